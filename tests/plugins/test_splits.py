"""Chooses where a bundle is cut, where Pulsar does not: examples of its own rules are run by `tests/vectors`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from lookup.model import BundleRange, NamespaceBundle, NamespaceName, topic_traffic
from lookup_policies.splits import (
    FlowOrQpsEquallyDivide,
    RangeEquallyDivide,
    SpecifiedPositionsDivide,
    TopicCountEquallyDivide,
)

MIB = 1024 * 1024
LIMITS: dict[str, Any] = {"max_msg_rate": 1000.0, "max_bandwidth_mib": 100.0}


def _bundle(lower: int = 0, upper: int = 1000) -> NamespaceBundle:
    return NamespaceBundle(NamespaceName("t", "n"), BundleRange(lower, upper))


def _cut(part: Any, *topics: tuple[int, float, float], positions: list[int] | None = None, **ends: int) -> list[int]:
    return list(part.boundaries(_bundle(**ends), topic_traffic(topics), positions))


def test_half_of_the_topics_may_be_no_boundary_as_upstream() -> None:
    """Topics at the lower end of the bundle give that end; intended is none."""
    topics = [(0, 1.0, 1.0), (0, 1.0, 1.0)]

    assert _cut(TopicCountEquallyDivide(), *topics) == [0]
    assert _cut(TopicCountEquallyDivide(quirks="intended"), *topics) == []


def test_a_hot_first_topic_is_cut_off_twice_as_upstream() -> None:
    """The same cut appears twice; intended is once."""
    topics = [(100, 2000.0, 0.0), (200, 10.0, 0.0), (300, 10.0, 0.0)]

    assert _cut(FlowOrQpsEquallyDivide(**LIMITS), *topics) == [150, 150]
    assert _cut(FlowOrQpsEquallyDivide(**LIMITS, quirks="intended"), *topics) == [150]


PARTS = [
    RangeEquallyDivide(),
    TopicCountEquallyDivide(quirks="intended"),
    SpecifiedPositionsDivide(quirks="intended"),
    FlowOrQpsEquallyDivide(**LIMITS, quirks="intended"),
    FlowOrQpsEquallyDivide(**LIMITS, rule="from-second", quirks="intended"),
]


@given(st.data())
def test_boundaries_ascend_strictly_inside(data: st.DataObject) -> None:
    """Without upstream's accidents every answer can be carried out, for every bundle that can be split."""
    lower, upper = sorted(data.draw(st.tuples(st.integers(0, 0xFFFFFFFF), st.integers(0, 0xFFFFFFFF))))
    assume(upper - lower > 1)
    row = st.tuples(st.integers(lower, upper - 1), st.floats(0, 3000), st.floats(0, 200.0 * MIB))
    topics = data.draw(st.lists(row, max_size=8))
    positions = data.draw(st.lists(st.integers(0, 0xFFFFFFFF), min_size=1, max_size=5))
    for part in PARTS:
        ends = [lower, *_cut(part, *topics, positions=positions, lower=lower, upper=upper), upper]

        assert all(low < high for low, high in pairwise(ends)), part


@given(st.lists(st.tuples(st.integers(0, 999), st.floats(0, 3000), st.floats(0, 200.0 * MIB)), max_size=8))
def test_upstreams_accidents_only_repeat_or_touch_the_end(topics: list[tuple[int, float, float]]) -> None:
    """Boundaries of upstream differ from the intended ones by repetitions and by ends of the bundle."""
    for found in (TopicCountEquallyDivide, FlowOrQpsEquallyDivide):
        upstream = _cut(found(), *topics)

        assert upstream == sorted(upstream)
        assert set(upstream) - {0} == set(_cut(found(quirks="intended"), *topics))
