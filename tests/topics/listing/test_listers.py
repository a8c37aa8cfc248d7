"""The contract of a lister: it reads and cannot write, its interests exist, and an error of it is a sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.errors import ContractError, PolicyError, StateError
from lookup.hooks import Lister
from lookup.model.catalog import CatalogView, Equals, TopicEvent
from lookup.topics.listing.listers import ReadOnlyCatalog, interests_of, lister_failing
from tests.topics.catalogs import NAMESPACE, everything, filled, topic
from tests.topics.listers import Listed, Scripted

#: Every question the protocol knows, with arguments.
_QUESTIONS: dict[str, tuple[Any, ...]] = {
    "namespaces": (),
    "topics": (NAMESPACE, "all"),
    "entry": (topic("q"),),
    "with_properties": (NAMESPACE, "persistent", {"owner": "x"}),
    "selected": (NAMESPACE, (Equals("env", "prod"),)),
    "labels_in": (NAMESPACE,),
}


@dataclass(frozen=True)
class Careless(Scripted):
    """Name as interests whatever a test says, or fail to."""

    name: ClassVar[str] = "careless"
    given: Any = None

    @property
    def interests(self) -> Any:  # type: ignore[override]  # a careless lister
        """Answer, or raise."""
        if isinstance(self.given, BaseException):
            raise self.given
        return self.given


class _Worn(BaseException):
    """An error that is no `Exception`."""


# The catalog


def test_a_lister_s_catalog_has_what_the_protocol_promises_and_nothing_else() -> None:
    """No name of a catalog's leads further, those that write and those inside among them."""
    catalog = filled()
    view = ReadOnlyCatalog(catalog)

    assert {name for name in dir(view) if not name.startswith("_")} == {*_QUESTIONS, "revision"}
    assert {name for name in vars(CatalogView) if not name.startswith("_")} == {*_QUESTIONS, "revision"}
    assert [name for name in vars(catalog) if hasattr(view, name)] == []
    assert hasattr(catalog, "_state")


@pytest.mark.parametrize("question", _QUESTIONS)
def test_a_lister_reads_what_is_in_the_catalog(question: str) -> None:
    """Every answer is the catalog's, also after a change."""
    catalog = filled()
    view = ReadOnlyCatalog(catalog)
    for _ in range(2):
        assert view.revision == catalog.revision
        asked, answered = (getattr(one, question)(*_QUESTIONS[question]) for one in (view, catalog))
        assert _plain(asked) == _plain(answered)
        catalog.set_labels(topic("q"), {"env": "prod"})

    assert view.entry(topic("nothing")) is None


def _plain(answer: Any) -> Any:
    if isinstance(answer, list | tuple):
        return list(answer)
    return {key: list(values) for key, values in answer.items()} if hasattr(answer, "items") else answer


@pytest.mark.parametrize(
    "change",
    [
        lambda view: view.namespaces().append("a/b"),
        lambda view: view.topics(NAMESPACE).remove(topic("q")),
        lambda view: view.with_properties(NAMESPACE, "all", {"owner": "x"}).clear(),
        lambda view: view.selected(NAMESPACE, (Equals("env", "test"),)).clear(),
        lambda view: view.entry(topic("q")).labels.update(env="prod"),
        lambda view: view.entry(topic("q")).properties.clear(),
        lambda view: setattr(view.entry(topic("q")), "name", "x"),
        lambda view: view.labels_in(NAMESPACE).clear(),
        lambda view: view.labels_in(NAMESPACE)["env"].append("dev"),
        lambda view: view.delete(topic("q")),
        lambda view: view.set_labels(topic("q"), {"env": "prod"}),
        lambda view: view._state.make(topic("q"), None),
        lambda view: view._storage.close(),
        lambda view: setattr(view, "topics", lambda *_: ()),
        lambda view: setattr(view, "revision", 0),
        lambda view: delattr(view, "_ReadOnlyCatalog__catalog"),
    ],
)
def test_what_a_lister_is_handed_cannot_be_changed(change: Callable[[Any], object]) -> None:
    """A lister that tries gets an error at once, and the catalog is as it was."""
    catalog, events = filled(), list[TopicEvent]()
    catalog.subscribe(events.append)
    before, view = everything(catalog), ReadOnlyCatalog(catalog)

    with pytest.raises((AttributeError, TypeError)):
        change(view)

    assert (everything(catalog), events) == (before, [])
    assert view.topics(NAMESPACE) == catalog.topics(NAMESPACE)


def test_who_asks_for_more_is_told_what_there_is() -> None:
    """The sentence has every question of the protocol, and what was asked for."""
    view: Any = ReadOnlyCatalog(filled())

    with pytest.raises(AttributeError, match="'delete'") as raised:
        view.delete(topic("q"))

    assert all(question in str(raised.value) for question in (*_QUESTIONS, "revision"))


# Interests


def test_interests_may_come_in_any_collection() -> None:
    """In a list, or made as they are read."""
    assert interests_of(Listed()) == {"created", "labels"}
    assert interests_of(Careless(given=())) == frozenset()
    assert interests_of(Careless(given=iter(["labels", "labels"]))) == {"labels"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"createt"}, "has 'createt' .*; did you mean 'created'?"),
        (["created", 7], "has 7 .*; known: created, deleted, labels, nam"),
        ([["created"]], r"has \['created'\] among its interests"),
        (["x" * 10**6], r"has 'xxx.*\.\.\.' among its interests"),
        ("created", "has the interests 'created', .* like {'created'}"),
        (None, "has the interests None"),
    ],
)
def test_interests_that_are_none_are_refused(given: Any, said: str) -> None:
    """A lister would wait for such an event for ever, and its watchers would miss what changes, in silence."""
    with pytest.raises(ContractError, match=f"^lister 'careless' {said}") as raised:
        interests_of(Careless(given=given))

    assert len(str(raised.value)) < 300


@given(st.sets(st.sampled_from(["created", "deleted", "labels", "properties"])), st.text())
def test_only_kinds_of_events_are_interests(kinds: set[str], other: str) -> None:
    """Any set of them is one; with any other text in it, none is."""
    assert interests_of(Careless(given=kinds)) == kinds
    if other not in ("created", "deleted", "labels", "properties"):
        with pytest.raises(ContractError, match="is no kind of event"):
            interests_of(Careless(given=[*kinds, other]))


# Failures


@pytest.mark.parametrize("error", [SystemExit(0), GeneratorExit(), _Worn("out"), StopIteration(), RuntimeError("gone")])
def test_whatever_a_lister_raises_is_a_sentence(error: BaseException) -> None:
    """One that exits does not end its caller."""
    said = rf"^lister 'x' could not begin: {type(error).__name__}.* \(test_listers\.py, line"
    with pytest.raises(PolicyError, match=said), lister_failing("x", "could not begin"):
        raise error
    with pytest.raises(PolicyError, match=f"lister 'careless' .* interests: {type(error).__name__}"):
        interests_of(Careless(given=error))


@pytest.mark.parametrize("error", [KeyboardInterrupt(), StateError("it is closed")])
def test_interruptions_and_what_is_refused_on_purpose_stay_as_they_are(error: BaseException) -> None:
    """Ctrl-C is not the lister's, and its own refusal needs no other words."""
    with pytest.raises(type(error)) as raised, lister_failing("x", "could not begin"):
        raise error

    assert raised.value is error


def test_a_lister_is_still_a_lister() -> None:
    """The doubles of these tests satisfy the protocol."""
    assert isinstance(Careless(given=()), Lister)
