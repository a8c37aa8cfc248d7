"""Keeps or drops brokers by what they run and carry: load manager class, topics, version, bundles of a namespace."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.errors import InputError
from lookup.testing import candidates, cluster, engine_request, request
from lookup_policies.broker_filters import EvenDistribution, LoadManagerClass, MaxTopics, Version
from tests.plugins.worlds import kept, labelled


@pytest.mark.parametrize(
    ("classes", "class_name", "expected"),
    [
        ({"b1": "A", "b2": "B", "b3": None}, "A", {"b1"}),
        ({"b1": "A", "b2": "B", "b3": "B"}, None, {"b2", "b3"}),
        ({"b1": "B", "b2": "A"}, None, {"b2"}),
        ({"b1": None, "b2": None, "b3": "A"}, None, {"b3"}),
        ({"b1": None, "b2": None}, None, {"b1", "b2"}),
    ],
    ids=["given", "majority", "first-of-a-draw", "silent-brokers-have-no-vote", "nobody-says"],
)
def test_brokers_of_the_expected_class_are_kept(
    classes: dict[str, str | None], class_name: str | None, expected: set[str]
) -> None:
    """The class is the one given, or of brokers that started together the one that most of them name."""
    view = cluster(*(labelled(broker_id, load_manager_class_name=cls) for broker_id, cls in classes.items()))

    assert kept(LoadManagerClass(class_name), request(), view) == expected


def test_the_class_of_the_broker_that_started_last_is_expected() -> None:
    """However few have it; in a migration lookups go to its brokers from the first one on."""
    starts = {"b1": ("old", 30), "b2": ("old", 10), "b3": ("new", 40), "b4": (None, 50)}
    view = cluster(
        *(
            labelled(broker_id, load_manager_class_name=cls, start_timestamp=started)
            for broker_id, (cls, started) in starts.items()
        )
    )

    assert kept(LoadManagerClass(), request(), view) == {"b3"}


def test_only_registered_brokers_vote() -> None:
    """A broker that has left does not say which manager the cluster runs."""
    brokers = [labelled(f"b{place}", load_manager_class_name="old" if place < 3 else "new") for place in range(5)]
    view = cluster(*brokers, registered=["b2", "b3", "b4"])

    assert kept(LoadManagerClass(), request(), view) == {"b3", "b4"}


def test_the_detail_names_both_classes() -> None:
    """An explanation says what the broker runs and what was expected."""
    view = cluster(labelled("b1", load_manager_class_name="A"))

    assert LoadManagerClass("B").detail(request(), view.brokers[0], view) == "runs A, expected B"


def test_a_broker_at_the_limit_is_dropped() -> None:
    """Topics equal to the limit are too many; a broker without report has none."""
    view = cluster("b1", "b2", "b3", "b4", topics={"b1": 49_999, "b2": 50_000, "b3": 50_001})

    assert kept(MaxTopics(), request(), view) == {"b1", "b4"}


@pytest.mark.parametrize(
    ("topics", "expected"),
    [({"b1": 99, "b2": 100, "b3": 101}, {"b1", "b2"}), ({"b1": 101, "b2": 200, "b3": 101}, {"b1", "b2", "b3"})],
)
def test_the_modular_manager_drops_brokers_above_the_limit(topics: dict[str, int], expected: set[str]) -> None:
    """And none if all are (LoadManagerShared.filterBrokersWithLargeTopicCount, Pulsar 4.0.4)."""
    view = cluster("b1", "b2", "b3", topics=topics)

    assert kept(MaxTopics(max_topics=100, manager="modular"), request(), view) == expected


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


def test_nothing_happens_by_default() -> None:
    """Without `prefer_later` every version is kept."""
    assert _kept("2.10.0", "2.10.1", prefer_later=False) == {0, 1}


def test_only_the_candidates_are_compared() -> None:
    """A later version that another filter has dropped does not count."""
    view = cluster(*(labelled(f"b{place}", broker_version=f"3.0.{place}") for place in range(3)))

    assert kept(Version(True), request(), view, "b0", "b1") == {"b1"}


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


OWNED = {"t/ns/0x00000000_0x40000000": "1", "t/ns/0x40000000_0x80000000": "2", "t/other/0x00000000_0x40000000": "3"}
VIEW = cluster("1", "2", "3", owned=OWNED)
ASKED = engine_request("t/ns/0x80000000_0xffffffff")


def test_brokers_with_the_fewest_bundles_of_the_namespace_are_kept() -> None:
    """Bundles of other namespaces do not count."""
    assert kept(EvenDistribution(), ASKED, VIEW) == {"3"}


def test_even_distribution_may_hold_for_one_namespace_only() -> None:
    """For `pulsar/system` it holds in any case (ModularLoadManagerImpl.selectBroker, Pulsar 4.0.4)."""
    assert kept(EvenDistribution(only="pulsar/system"), ASKED, VIEW) == {"1", "2", "3"}
    assert kept(EvenDistribution(only="t/ns"), ASKED, VIEW) == {"3"}


def test_the_fewest_are_those_of_the_candidates() -> None:
    """A broker that is not offered sets no standard."""
    assert kept(EvenDistribution(), ASKED, VIEW, "1", "2") == {"1", "2"}


def test_a_rejection_names_the_count() -> None:
    """The explanation says how many bundles of the namespace the broker owns."""
    said = EvenDistribution().detail(ASKED, candidates(VIEW, "1")[0], VIEW)

    assert str(said).startswith("owns 1 bundles of t/ns")
