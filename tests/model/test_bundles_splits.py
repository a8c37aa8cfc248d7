"""All bundles of a namespace: found, split, and what Pulsar does at the end of the circle."""

from __future__ import annotations

import pickle
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.errors import ArgumentError, InvalidNameError, NotFoundError
from lookup.model import NamespaceName, bundle_of
from lookup.model.bundles import (
    HASH_END,
    BundleRange,
    NamespaceBundles,
    bundle_index,
    bundle_name_parts,
    equal_boundaries,
    topic_hash,
)

_NAMESPACE = NamespaceName("t", "n")
_QUARTERS = NamespaceBundles(_NAMESPACE, equal_boundaries(4))
_BUNDLES = st.sets(st.integers(1, HASH_END - 1), max_size=12).map(
    lambda inner: NamespaceBundles(_NAMESPACE, (0, *sorted(inner), HASH_END))
)


def test_a_topic_is_found_in_its_bundle() -> None:
    """The same one that `bundle_of` finds."""
    topic = "persistent://t/n/x"

    assert _QUARTERS.find(topic).range == bundle_of(topic, _QUARTERS.boundaries)
    assert str(_QUARTERS.find(topic)).startswith("t/n/0x")


@pytest.mark.parametrize("topic", ["persistent://t/other/x", "persistent://t/n2/x", "persistent://u/n/x"])
def test_topics_of_other_namespaces_are_refused(topic: str) -> None:
    """Also where the names begin alike."""
    with pytest.raises(ArgumentError, match="belongs to another namespace than t/n"):
        _QUARTERS.find(topic)


def test_topics_of_version_1_belong_to_their_namespace() -> None:
    """Whose name has a cluster in the middle."""
    bundles = NamespaceBundles(NamespaceName.parse("pulsar/global/ns1"), equal_boundaries(4))

    assert topic_hash("persistent://pulsar/global/ns1/x") in bundles.find("persistent://pulsar/global/ns1/x").range
    with pytest.raises(ArgumentError):
        bundles.find("persistent://pulsar/use/ns2/x")


def test_the_bundles_of_the_topics_found_last_are_kept() -> None:
    """A topic that is found again soon is not hashed again; one that is not has the same bundle all the same."""
    bundles = NamespaceBundles(_NAMESPACE, equal_boundaries(4))
    first = bundles.find("persistent://t/n/x")
    assert bundles.find("persistent://t/n/x") is first
    for number in range(5000):
        bundles.find(f"persistent://t/n/{number}")
    again = bundles.find("persistent://t/n/x")

    assert again is not first
    assert again == first


def test_what_was_found_is_no_part_of_the_bundles() -> None:
    """Neither of their equality nor of their text, and a split finds its own."""
    bundles = NamespaceBundles(_NAMESPACE, (0, HASH_END))
    bundles.find("persistent://t/n/x")

    assert bundles == pickle.loads(pickle.dumps(bundles)) == NamespaceBundles(_NAMESPACE, (0, HASH_END))
    assert repr(bundles) == repr(NamespaceBundles(_NAMESPACE, (0, HASH_END)))
    assert bundles.split(0).find("persistent://t/n/x") != bundles.find("persistent://t/n/x")


def test_finding_builds_no_ranges() -> None:
    """Of a namespace with a hundred thousand bundles it takes no memory to speak of."""
    bundles = NamespaceBundles(_NAMESPACE, equal_boundaries(100_000))
    tracemalloc.start()
    bundles.find_hash(1 << 31)
    bundles.find("persistent://t/n/x")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 50_000


@given(_BUNDLES, st.integers(0, HASH_END - 1))
def test_hashes_are_found_where_the_framework_looks(bundles: NamespaceBundles, hashed: int) -> None:
    """Everywhere but at the end of the circle."""
    found = bundles.find_hash(hashed)

    assert found.namespace == _NAMESPACE
    assert found.range == bundles.ranges[bundle_index(hashed, bundles.boundaries)]
    assert hashed in found.range


def test_the_end_of_the_circle_fails_as_upstream_unless_intended() -> None:
    """The quirk concerns this one hash."""
    with pytest.raises(NotFoundError, match="hash 0xffffffff is in no bundle of t/n"):
        _QUARTERS.find_hash(HASH_END)

    repaired = NamespaceBundles(_NAMESPACE, equal_boundaries(4), quirks="intended")
    assert str(repaired.find_hash(HASH_END).range) == "0xc0000000_0xffffffff"


@pytest.mark.parametrize("quirks", ["upstream", "intended"])
def test_a_hash_outside_the_boundaries_fails(quirks: str) -> None:
    """Below the first, above the last, and at the last where it is not the end of the circle."""
    bundles = NamespaceBundles(_NAMESPACE, (10, 20, 30), quirks=quirks)  # type: ignore[arg-type]  # one of the two

    for hashed in (9, 30, 31):
        with pytest.raises(NotFoundError):
            bundles.find_hash(hashed)


@given(_BUNDLES, st.data())
def test_a_split_divides_one_bundle_only(bundles: NamespaceBundles, data: st.DataObject) -> None:
    """Into children of equal width, the last with the remainder."""
    index = data.draw(st.integers(0, len(bundles.ranges) - 1))
    count = data.draw(st.integers(2, 9))
    whole = bundles.ranges[index]
    width = (whole.upper - whole.lower) // count
    if width == 0:
        with pytest.raises(ArgumentError, match=f"cannot be split into {count}"):
            bundles.split(index, count)
        return

    after = bundles.split(index, count)

    children = after.ranges[index : index + count]
    assert (after.ranges[:index], after.ranges[index + count :]) == (
        bundles.ranges[:index],
        bundles.ranges[index + 1 :],
    )
    assert {child.upper - child.lower for child in children[:-1]} == {width}
    assert (children[0].lower, children[-1].upper) == (whole.lower, whole.upper)


def test_splitting_at_positions_orders_them() -> None:
    """Each once."""
    after = NamespaceBundles(_NAMESPACE, (0, 100)).split_at(0, [70, 30, 70])

    assert after.boundaries == (0, 30, 70, 100)


@pytest.mark.parametrize("positions", [[], [0], [100], [50, 100], [-1], [101]])
def test_positions_at_or_beyond_the_ends_are_refused(positions: list[int]) -> None:
    """One is enough to refuse all."""
    with pytest.raises(ArgumentError, match=r"bundle t/n/0x00000000_0x00000064 can only be split between its ends"):
        NamespaceBundles(_NAMESPACE, (0, 100)).split_at(0, positions)


@pytest.mark.parametrize("index", [-1, 4])
def test_there_is_nothing_to_split_beyond_the_bundles(index: int) -> None:
    """The index is told."""
    with pytest.raises(NotFoundError, match=f"t/n has no bundle of index {index}"):
        _QUARTERS.split(index)


@pytest.mark.parametrize("boundaries", [(), (0,), (0, 0), (5, 4, 9)])
def test_boundaries_ascend(boundaries: tuple[int, ...]) -> None:
    """And there are two at least."""
    with pytest.raises(ArgumentError, match="not at least two ascending hashes"):
        NamespaceBundles(_NAMESPACE, boundaries)


def test_names_come_apart_as_they_are_written() -> None:
    """At the last slash, case kept."""
    assert bundle_name_parts("p/c/n/0x0_0X0FFF") == ("p/c/n", "0x0_0X0FFF")
    with pytest.raises(InvalidNameError):
        bundle_name_parts("0x0_0x1")


def test_a_range_needs_room_to_be_split() -> None:
    """At least one hash between its ends."""
    assert [BundleRange(5, upper).can_split for upper in (6, 7)] == [False, True]
    assert [BundleRange(5, upper).is_upper_closed for upper in (6, HASH_END)] == [False, True]
