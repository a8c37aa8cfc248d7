"""Keeps or drops brokers by what they run and carry: load manager class, topics, version, bundles of a namespace."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.errors import InputError
from lookup.hooks import Filter
from lookup.model import ClusterView
from lookup.testing import candidates, cluster, engine_request, request
from lookup_policies.broker_filters import EvenDistribution, LoadManagerClass, MaxTopics, Version
from tests.plugins.worlds import kept, labelled

OWNED = {"t/ns/0x00000000_0x40000000": "b1", "t/ns/0x40000000_0x80000000": "b2", "t/other/0x00000000_0x40000000": "b3"}
VIEW = cluster("b1", "b2", "b3", owned=OWNED)
ASKED = engine_request("t/ns/0x80000000_0xffffffff")


def _running(*classes: str | None, registered: list[str] | None = None, starts: tuple[int, ...] = ()) -> ClusterView:
    data = zip(classes, starts or (0,) * len(classes), strict=True)
    brokers = [
        labelled(f"b{place}", load_manager_class_name=name, start_timestamp=start)
        for place, (name, start) in enumerate(data, start=1)
    ]
    return cluster(*brokers, registered=registered or [broker.id for broker in brokers])


def _serving(*topics: int) -> ClusterView:
    return cluster("b1", "b2", "b3", topics={f"b{place}": count for place, count in enumerate(topics, start=1)})


@pytest.mark.parametrize(
    ("part", "view", "offered", "expected"),
    [
        # The class is the one given, or of brokers that started together the one that most of them name.
        (LoadManagerClass("A"), _running("A", "B", None), "", "b1"),
        (LoadManagerClass(), _running("A", "B", "B"), "", "b2 b3"),
        (LoadManagerClass(), _running("B", "A"), "", "b2"),
        (LoadManagerClass(), _running(None, None, "A"), "", "b3"),
        (LoadManagerClass(), _running(None, None), "", "b1 b2"),
        # Else that of the broker that started last, however few have it: lookups go to it from the first one on.
        (LoadManagerClass(), _running("old", "old", "new", None, starts=(30, 10, 40, 50)), "", "b3"),
        (LoadManagerClass(), _running("old", "old", "old", "new", "new", registered=["b3", "b4", "b5"]), "", "b4 b5"),
        # Topics equal to the limit are too many; a broker without report has none.
        (MaxTopics(), _serving(49_999, 50_000), "", "b1 b3"),
        (MaxTopics(), _serving(50_001, 50_000), "", "b3"),
        # Above it under the modular manager, and none if all are (filterBrokersWithLargeTopicCount, Pulsar 4.0.4).
        (MaxTopics(max_topics=100, manager="modular"), _serving(99, 100, 101), "", "b1 b2"),
        (MaxTopics(max_topics=100, manager="modular"), _serving(101, 200, 101), "", "b1 b2 b3"),
        # Bundles of other namespaces do not count; a broker that is not offered sets no standard.
        (EvenDistribution(), VIEW, "", "b3"),
        (EvenDistribution(), VIEW, "b1 b2", "b1 b2"),
        # For `pulsar/system` it holds in any case (ModularLoadManagerImpl.selectBroker, Pulsar 4.0.4).
        (EvenDistribution(only="pulsar/system"), VIEW, "", "b1 b2 b3"),
        (EvenDistribution(only="t/ns"), VIEW, "", "b3"),
    ],
)
def test_brokers_are_kept(part: Filter, view: ClusterView, offered: str, expected: str) -> None:
    """Those that run the right class, have room for topics, or own the fewest bundles."""
    assert kept(part, ASKED, view, *offered.split()) == {*expected.split()}


def test_the_detail_names_both_classes() -> None:
    """An explanation says what the broker runs and what was expected."""
    view = cluster(labelled("b1", load_manager_class_name="A"))

    assert LoadManagerClass("B").detail(request(), view.brokers[0], view) == "runs A, expected B"


def test_the_limit_is_a_parameter() -> None:
    """A lower limit drops brokers earlier and is named in the explanation."""
    view = cluster("b1", "b2", topics={"b1": 2, "b2": 1})
    part = MaxTopics(max_topics=2)

    assert kept(part, request(), view) == {"b2"}
    assert str(part.detail(request(), view.brokers[0], view)).startswith("serves 2 topics, at most 1 ")


def _kept(*versions: str | None, prefer_later: bool = True) -> set[int]:
    view = cluster(*(labelled(f"b{place}", broker_version=version) for place, version in enumerate(versions)))
    return {int(broker_id[1:]) for broker_id in kept(Version(prefer_later), request(), view)}


@pytest.mark.parametrize(
    ("versions", "expected"),
    [(("2.10.0", "xxx", "2.10.1"), {0, 1, 2}), (("2.10.0", None), {0, 1}), (("2.10.0", "2.10.1.4"), {0, 1})],
)
def test_a_version_that_cannot_be_read_keeps_everybody(versions: tuple[str | None, ...], expected: set[int]) -> None:
    """Other versions are compared by the examples of `tests/vectors`."""
    assert _kept(*versions) == expected


@given(st.lists(st.tuples(*[st.integers(0, 12)] * 3), min_size=1, max_size=6))
def test_numbers_are_compared_as_numbers(versions: list[tuple[int, int, int]]) -> None:
    """Releases sort like the tuples of their numbers."""
    best = {place for place, version in enumerate(versions) if version == max(versions)}

    assert _kept(*(".".join(map(str, version)) for version in versions)) == best


def test_an_unreadable_version_fails_the_filter_where_that_is_asked_for() -> None:
    """As in Pulsar nobody is rejected; what follows from the failure is for `on_error` to say."""
    view = cluster(labelled("1", broker_version="4.0.0"), labelled("2", broker_version="04.0.0"))

    with pytest.raises(InputError, match=r"broker 2 has version '04\.0\.0'"):
        kept(Version(prefer_later=True, unreadable="fail"), request(), view)
    assert kept(Version(prefer_later=True), request(), view) == {"1", "2"}
    assert kept(Version(unreadable="fail"), request(), view) == {"1", "2"}


def test_a_rejection_names_the_count() -> None:
    """The explanation says how many bundles of the namespace the broker owns."""
    said = EvenDistribution().detail(ASKED, candidates(VIEW, "b1")[0], VIEW)

    assert str(said).startswith("owns 1 bundles of t/ns")
