"""The REST forms: what comes in is understood, what goes out reads back."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.errors import ArgumentError, InvalidNameError
from lookup.topics.catalog.operations import (
    LABELS,
    PROPERTIES,
    CatalogOperation,
    DeleteNamespace,
    GetPairs,
    RemovePairs,
    SetPairs,
)
from lookup.topics.listing.rest import ListTopics, Operation, parse_call, print_call

_TOPIC = "persistent://t/ns/orders"
_LABELS = "/admin/v2/topics/t/ns/orders/custom-labels"
_PROPERTIES = "/admin/v2/persistent/t/ns/orders/properties"


@pytest.mark.parametrize(
    ("method", "target", "body", "wanted"),
    [
        ("GET", "/admin/v2/persistent/t/ns", None, ListTopics("t/ns")),
        ("GET", "/admin/v2/non-persistent/t/ns", None, ListTopics("t/ns", "non-persistent")),
        (
            "GET",
            "/admin/v2/persistent/t/ns?properties=k1=v1,k2=v2",
            None,
            ListTopics("t/ns", properties={"k1": "v1", "k2": "v2"}),
        ),
        ("GET", "/admin/v2/topics/t/ns?properties=k1:v1", None, ListTopics("t/ns", "all", properties={"k1": "v1"})),
        (
            "GET",
            "/admin/v2/persistent/t/ns?bundle=0x00000000_0x80000000&includeSystemTopic=true",
            None,
            ListTopics("t/ns", include_system=True, bundle="0x00000000_0x80000000"),
        ),
        ("GET", "/admin/v2/persistent/t/ns?bundle=", None, ListTopics("t/ns")),
        ("GET", "/admin/v2/namespaces/t/ns/topics?mode=NON_PERSISTENT", None, ListTopics("t/ns", "non-persistent")),
        ("GET", "/admin/v2/namespaces/t/ns/topics", None, ListTopics("t/ns")),
        ("DELETE", "/admin/v2/namespaces/t/ns", None, DeleteNamespace("t/ns")),
        ("DELETE", "/admin/v2/namespaces/t/ns?force=true", None, DeleteNamespace("t/ns", force=True)),
        ("DELETE", "/admin/v2/namespaces/t/ns/?force=false", None, DeleteNamespace("t/ns")),
        ("get", _LABELS, None, GetPairs(LABELS, _TOPIC)),
        ("POST", _LABELS, '{"labels": {"k1": "v1"}}', SetPairs(LABELS, _TOPIC, {"k1": "v1"})),
        ("DELETE", f"{_LABELS}?keys=k1&keys=k2", None, RemovePairs(LABELS, _TOPIC, ("k1", "k2"))),
        ("DELETE", f"{_LABELS}?all=true", None, RemovePairs(LABELS, _TOPIC, everything=True)),
        (
            "GET",
            "/admin/v2/non-persistent/t/ns/a%2Fb/custom-labels",
            None,
            GetPairs(LABELS, "non-persistent://t/ns/a/b"),
        ),
        ("GET", _PROPERTIES, None, GetPairs(PROPERTIES, _TOPIC)),
        ("PUT", _PROPERTIES, '{"k": "v"}', SetPairs(PROPERTIES, _TOPIC, {"k": "v"})),
        ("DELETE", f"{_PROPERTIES}?key=k", None, RemovePairs(PROPERTIES, _TOPIC, ("k",))),
        ("DELETE", f"{_PROPERTIES}?key=j&key=k", None, RemovePairs(PROPERTIES, _TOPIC, ("k",))),
    ],
)
def test_a_request_is_understood(method: str, target: str, body: str | None, wanted: Operation) -> None:
    """The forms of the PIPs and of Pulsar's admin API are read."""
    assert parse_call(method, target, body) == wanted


@pytest.mark.parametrize(
    ("method", "target", "body", "said"),
    [
        ("GET", "/lookup/v2/topic", None, "is not a path of topics; they begin with /admin/v2/persistent/"),
        ("GET", "/admin/v2/topic/t/ns", None, "'topic' should be one of persistent, non-persistent, topics, namesp"),
        ("POST", "/admin/v2/persistent/t/ns", None, "method POST is not for this path; GET would be"),
        ("GET", "/admin/v2/persistent/t/ns?propertys=k=v", None, "there is no query parameter 'propertys'; known: "),
        ("GET", "/admin/v2/persistent/t/ns?properties=k", None, "should be of the form key=value or key:value"),
        ("GET", "/admin/v2/persistent/t/ns?includeSystemTopic=1", None, "should be true or false, not '1'"),
        ("GET", "/admin/v2/namespaces/t/ns/topics?properties=k=v", None, "there is no query parameter 'properties'"),
        ("GET", "/admin/v2/namespaces/t/ns/topics?mode=SOME", None, "one of PERSISTENT, NON_PERSISTENT, ALL"),
        ("GET", "/admin/v2/namespaces/t/ns", None, "method GET is not for this path; DELETE would be"),
        ("DELETE", "/admin/v2/namespaces/t/ns/topics", None, "method DELETE is not for this path; GET would be"),
        ("DELETE", "/admin/v2/namespaces/t/ns?forced=true", None, "there is no query parameter 'forced'; known: force"),
        ("DELETE", "/admin/v2/namespaces/t/ns?force=yes", None, "force should be true or false, not 'yes'"),
        ("DELETE", "/admin/v2/namespaces/t/ns/0x00000000_0x40000000", None, "should end with the namespace or topics"),
        ("GET", f"{_LABELS}?keys=k", None, "there is no query parameter 'keys'; this request has none"),
        ("GET", "/admin/v2/topics/t/ns/orders/labels", None, "should end with a topic and custom-labels or properties"),
        ("GET", "/admin/v2/topics/t/ns/custom-labels", None, "should end with a topic and"),
        ("PATCH", _LABELS, None, "method PATCH is not for this path; GET, POST, DELETE would be"),
        ("POST", _LABELS, "{", "the body is not JSON"),
        ("POST", _LABELS, "[" * 100_000, "the body is not JSON"),
        ("POST", _LABELS, '{"k": "v"}', 'an object with the one key "labels"'),
        ("POST", _LABELS, '{"labels": {"k": 1}}', "labels should be an object of texts"),
        ("PUT", _PROPERTIES, "[]", "the body should be an object of texts"),
        ("DELETE", _LABELS, None, "say which labels to remove"),
        ("DELETE", f"{_LABELS}?keys=k&all=true", None, "say which labels to remove"),
        ("DELETE", _PROPERTIES, None, "say which properties to remove: key=k1"),
        ("GET", "/admin/v2/persistent/t/%ff", None, "does not decode to UTF-8"),
    ],
)
def test_a_mistake_is_a_sentence(method: str, target: str, body: str | None, said: str) -> None:
    """Path, method, query and body are checked, and nothing is guessed."""
    with pytest.raises(ArgumentError) as refused:
        parse_call(method, target, body)

    assert said in str(refused.value)


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
_TOPICS = st.builds(
    "{}://t/ns/{}".format, st.sampled_from(["persistent", "non-persistent"]), _TEXT.filter(lambda text: text.strip("/"))
)
_KINDS = st.sampled_from([LABELS, PROPERTIES])
_PAIRS = st.dictionaries(_TEXT, _TEXT, max_size=3)
_OPERATIONS = st.one_of(
    st.builds(GetPairs, _KINDS, _TOPICS),
    st.builds(SetPairs, _KINDS, _TOPICS, _PAIRS),
    st.builds(RemovePairs, st.just(LABELS), _TOPICS, st.lists(_TEXT, min_size=1, max_size=3).map(tuple)),
    st.builds(RemovePairs, st.just(LABELS), _TOPICS, everything=st.just(True)),
    st.builds(RemovePairs, st.just(PROPERTIES), _TOPICS, st.tuples(_TEXT)),
    st.builds(DeleteNamespace, st.just("t/ns"), st.booleans()),
)


@given(_OPERATIONS)
def test_a_printed_request_reads_back(operation: CatalogOperation) -> None:
    """Whatever names, keys and values hold comes back as it was."""
    call = print_call(operation)

    assert call.target.isascii()
    assert parse_call(call.method, call.target, call.body) == operation


@given(st.sampled_from(["GET", "PUT", "POST", "DELETE"]), st.text(max_size=40), st.none() | st.text(max_size=20))
def test_any_text_is_an_operation_or_a_sentence(method: str, rest: str, body: str | None) -> None:
    """Nothing a client sends raises anything else."""
    with suppress(ArgumentError, InvalidNameError):
        assert parse_call(method, f"/admin/v2/{rest}", body)


@pytest.mark.parametrize(("keys", "everything"), [((), False), (("k",), True), (("",), False)])
def test_a_removal_says_what_it_removes(keys: tuple[str, ...], everything: bool) -> None:
    """One that names nothing, or some keys and everything, is never sent: it might remove more than was meant."""
    with pytest.raises(ArgumentError, match="keys=k1&keys=k2, or all=true"):
        print_call(RemovePairs(LABELS, _TOPIC, keys, everything=everything))


@pytest.mark.parametrize(("keys", "everything"), [(("a", "b"), False), ((), True)])
def test_a_request_removes_one_property(keys: tuple[str, ...], *, everything: bool) -> None:
    """Its query has room for one key."""
    with pytest.raises(ArgumentError, match="properties: key=k1"):
        print_call(RemovePairs(PROPERTIES, _TOPIC, keys, everything=everything))


def test_what_is_no_namespace_is_not_sent() -> None:
    """A name with a question mark would be read as a query."""
    with pytest.raises(InvalidNameError, match="'t/ns\\?bundle=x' is not of"):
        print_call(DeleteNamespace("t/ns?bundle=x"))
