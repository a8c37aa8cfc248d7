"""Bundles: hashing, boundaries and names; Pulsar's own examples are run by `tests/vectors`."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.errors import InvalidNameError
from lookup.model import BundleRange, NamespaceBundle, NamespaceName, bundle_of
from lookup.model.bundles import HASH_END, bundle_index, bundle_name_parts, bundle_ranges, equal_boundaries, topic_hash

_BOUNDARIES = st.sets(st.integers(1, HASH_END - 1), max_size=12).map(lambda inner: (0, *sorted(inner), HASH_END))


@given(_BOUNDARIES, st.integers(0, HASH_END))
def test_every_hash_is_in_exactly_one_bundle(boundaries: tuple[int, ...], hashed: int) -> None:
    """And it is the one that is found."""
    ranges = bundle_ranges(boundaries)

    assert [hashed in one for one in ranges].count(True) == 1
    assert hashed in ranges[bundle_index(hashed, boundaries)]


@given(st.text(), _BOUNDARIES)
def test_a_topic_is_in_the_bundle_of_its_hash(topic: str, boundaries: tuple[int, ...]) -> None:
    """Whatever the name, unless it cannot be encoded."""
    topic = topic.encode(errors="ignore").decode()

    assert topic_hash(topic) == zlib.crc32(topic.encode())
    assert topic_hash(topic) in bundle_of(topic, boundaries)


@given(st.integers(1, 5000))
def test_equal_boundaries_divide_the_circle(count: int) -> None:
    """Into as many bundles as asked for, ascending, the remainder at the end."""
    boundaries = equal_boundaries(count)

    assert (len(boundaries), boundaries[0], boundaries[-1]) == (count + 1, 0, HASH_END)
    assert list(boundaries) == sorted(set(boundaries))
    assert {one.upper - one.lower for one in bundle_ranges(boundaries)[:-1]} <= {2**32 // count}


def test_only_the_last_bundle_holds_its_end() -> None:
    """The end of the circle belongs to it; every other end to the next bundle."""
    first, last = bundle_ranges((0, 0x80000000, HASH_END))

    assert (0x80000000 in first, 0x80000000 in last, HASH_END in last) == (False, True, True)
    assert bundle_index(HASH_END, (0, 0x80000000, HASH_END)) == 1
    assert bundle_index(0x80000000, (0, 0x80000000, HASH_END)) == 1


@given(st.tuples(st.integers(0, HASH_END), st.integers(0, HASH_END)).filter(lambda ends: ends[0] < ends[1]))
def test_a_range_prints_as_it_was_read(ends: tuple[int, int]) -> None:
    """In lower case with eight digits, and it is read in either case."""
    text = f"0x{ends[0]:08x}_0x{ends[1]:08x}"

    assert str(BundleRange.parse(text)) == text
    assert BundleRange.parse(text.upper().replace("X", "x")) == BundleRange(*ends)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is not of the form 0x00000000_0x40000000"),
        ("0x0", "is not of the form"),
        ("0x0_0xg", "is not of the form"),
        ("0x2_0x1", "does not ascend within 0x00000000_0xffffffff"),
        ("0x1_0x1", "does not ascend"),
        ("-0x1_0x1", "does not ascend"),
        ("0x0_0x100000000", "does not ascend"),
    ],
)
def test_what_is_no_range_is_refused(text: str, sentence: str) -> None:
    """The sentence quotes it."""
    with pytest.raises(InvalidNameError, match=f"bundle range '{text}' {sentence}"):
        BundleRange.parse(text)


def test_a_bundle_prints_as_it_was_read() -> None:
    """A name is its namespace and its range."""
    bundle = NamespaceBundle(NamespaceName("t", "n"), BundleRange(0, 0x40000000))

    assert str(bundle) == "t/n/0x00000000_0x40000000"
    assert NamespaceBundle.parse(str(bundle)) == bundle


@pytest.mark.parametrize(("text", "sentence"), [("0x0_0x1", "bundle '0x0_0x1' is not"), ("t/0x0_0x1", "namespace 't'")])
def test_what_is_no_bundle_is_refused(text: str, sentence: str) -> None:
    """Without a namespace, or without a whole one."""
    with pytest.raises(InvalidNameError, match=sentence):
        NamespaceBundle.parse(text)


def test_names_come_apart_as_they_are_written() -> None:
    """At the last slash, case kept."""
    assert bundle_name_parts("p/c/n/0x0_0X0FFF") == ("p/c/n", "0x0_0X0FFF")
    with pytest.raises(InvalidNameError):
        bundle_name_parts("0x0_0x1")
