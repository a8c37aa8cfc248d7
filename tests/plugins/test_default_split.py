"""The splitters `default-split` and `modular-split`: which bundles, when, and how many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.model import (
    ClusterView,
    CycleLabel,
    CycleOutcome,
    CycleReason,
    NamespaceBundleStats,
    Reason,
    Ruling,
    Split,
    Traffic,
)
from lookup.testing import cluster
from lookup_policies.default_split import DefaultSplit, ModularSplit
from lookup_policies.splits import SpecifiedPositionsDivide, TopicCountEquallyDivide

A, B = "t/ns/0x00000000_0x80000000", "t/ns/0x80000000_0xffffffff"
FULL = NamespaceBundleStats(topics=1001)
NOW = DefaultSplit(hit_threshold=0)


@dataclass(frozen=True)
class At:
    """Cuts every bundle at the same places."""

    name: ClassVar[str] = "at"

    places: tuple[int, ...] = ()

    def boundaries(self, bundle: Any, topics: Any, positions: Any) -> Sequence[int]:
        """Return the places."""
        return self.places


def _view(
    stats: Mapping[str, NamespaceBundleStats], owners: Mapping[str, str] | None = None, **traffic: Any
) -> ClusterView:
    owned = dict.fromkeys(stats, "b1") if owners is None else owners
    counts = traffic.pop("bundle_counts", {bundle.rpartition("/")[0]: 2 for bundle in stats})
    return cluster("b1", "b2", owned=owned, traffic=Traffic(stats, bundle_counts=counts, **traffic))


def _cycle(
    view: ClusterView,
    part: DefaultSplit | ModularSplit = NOW,
    memory: dict[str, Any] | None = None,
    ruling: Ruling | None = None,
) -> tuple[list[Split], CycleOutcome]:
    cycle = part.propose(view, {} if memory is None else memory)
    splits: list[Split] = []
    try:
        splits.append(next(cycle))
        while True:
            splits.append(cycle.send(ruling or Ruling(accepted=True)))
    except StopIteration as ended:
        return splits, ended.value


@pytest.mark.parametrize(
    ("stats", "reason"),
    [
        (NamespaceBundleStats(topics=1001, producer_count=2000), CycleReason.TOPICS),
        (NamespaceBundleStats(topics=2, producer_count=500, consumer_count=501, msg_rate_in=1e9), CycleReason.SESSIONS),
        (NamespaceBundleStats(topics=2, msg_rate_in=15_000, msg_rate_out=15_001), CycleReason.MSG_RATE),
        (NamespaceBundleStats(topics=2, msg_throughput_in=100 * 2**20, msg_throughput_out=1), CycleReason.BANDWIDTH),
    ],
)
def test_the_first_limit_that_is_exceeded_is_the_reason(stats: NamespaceBundleStats, reason: CycleReason) -> None:
    """Topics before sessions before messages before bytes; the cycle ends with the reason of its last split."""
    splits, outcome = _cycle(_view({A: stats}))

    assert splits == [Split(A, "b1", (0x40000000,), reason)]
    assert outcome == CycleOutcome(CycleLabel.SUCCESS, reason)


@pytest.mark.parametrize(
    "stats",
    [
        NamespaceBundleStats(topics=1000, producer_count=500, consumer_count=500, msg_rate_in=30_000),
        NamespaceBundleStats(topics=2, msg_throughput_in=100 * 2**20),
        NamespaceBundleStats(topics=1, msg_rate_in=1e9),
    ],
    ids=["at-every-limit", "at-the-bandwidth", "a-single-topic"],
)
def test_at_a_limit_nothing_is_split(stats: NamespaceBundleStats) -> None:
    """A limit has to be exceeded, and there have to be two topics."""
    assert _cycle(_view({A: stats})) == ([], CycleOutcome(CycleLabel.SKIP, CycleReason.HIT_COUNT))


@pytest.mark.parametrize("sessions", [0, -1])
def test_sessions_may_be_without_limit(sessions: int) -> None:
    """Zero and below switch the limit off."""
    stats = NamespaceBundleStats(topics=2, producer_count=9999)

    assert _cycle(_view({A: stats}), DefaultSplit(max_sessions=sessions, hit_threshold=0))[0] == []


def test_the_fourth_time_in_a_row_acts() -> None:
    """Three hits wait, the fourth splits and is forgotten."""
    memory: dict[str, Any] = {}
    counts = [len(_cycle(_view({A: FULL}), DefaultSplit(), memory)[0]) for _ in range(8)]

    assert counts == [0, 0, 0, 1, 0, 0, 0, 1]


def test_a_quiet_cycle_begins_the_count_anew() -> None:
    """Hits have to be in a row; fewer than two topics leave them alone."""
    memory: dict[str, Any] = {"hits": {"b1": {A: 3, B: 3}}}
    _cycle(_view({A: NamespaceBundleStats(topics=2), B: NamespaceBundleStats(topics=1)}), DefaultSplit(), memory)

    assert memory["hits"] == {"b1": {B: 3}}


def test_hits_belong_to_a_broker() -> None:
    """A bundle without figures, or with another owner, begins anew."""
    memory: dict[str, Any] = {"hits": {"b1": {A: 3, "t/ns/gone": 3}}}
    _cycle(_view({A: FULL}, {A: "b2"}), DefaultSplit(), memory)

    assert memory["hits"] == {"b2": {A: 1}}


def test_a_bundle_without_owner_is_left() -> None:
    """Nobody counts its hits."""
    memory: dict[str, Any] = {}

    assert _cycle(_view({A: FULL}, {}), memory=memory)[0] == []
    assert memory == {"hits": {}}


def test_limits_of_a_cycle_are_per_broker() -> None:
    """Each broker stops after its own splits; bundles behind keep their hits, even uncounted ones."""
    c, d = "t/other/0x00000000_0x80000000", "t/other/0x80000000_0xffffffff"
    memory: dict[str, Any] = {"hits": {"b1": {B: 7}}}
    part = DefaultSplit(hit_threshold=0, max_splits=1)
    splits, _ = _cycle(_view(dict.fromkeys((A, B, c, d), FULL), {A: "b1", B: "b1", c: "b2", d: "b2"}), part, memory)

    assert [split.bundle for split in splits] == [A, c]
    assert memory["hits"] == {"b1": {B: 7}}


@pytest.mark.parametrize(("count", "splits"), [(126, 2), (127, 1), (128, 0)])
def test_a_namespace_has_so_many_bundles(count: int, splits: int) -> None:
    """Splits decided in the cycle count; hits stay where there is no room."""
    assert len(_cycle(_view({A: FULL, B: FULL}, bundle_counts={"t/ns": count}))[0]) == splits


def test_failures_are_counted() -> None:
    """A namespace that cannot be counted, a bundle of one hash, an algorithm that fails or does not cut once."""
    tiny = "t/ns/0x00000005_0x00000006"
    failed = CycleOutcome(CycleLabel.FAILURE, CycleReason.UNKNOWN, failures=2)

    assert _cycle(_view({A: FULL, B: FULL}, bundle_counts={})) == ([], failed)
    assert _cycle(_view({tiny: FULL}))[1].failures == 1
    for part in (SpecifiedPositionsDivide(), TopicCountEquallyDivide(), At((1, 2))):
        memory: dict[str, Any] = {}
        assert _cycle(_view({A: FULL, B: FULL}), DefaultSplit(hit_threshold=0, algorithm=part), memory) == ([], failed)
        assert memory["hits"] == {"b1": {A: 1, B: 1}}


@pytest.mark.parametrize(
    ("splitting", "upstream", "intended"),
    [
        ("t/ns/0x00000000_0xffffffff", 0, 0),
        ("t/ns/0x40000000_0x80000000", 0, 0),
        ("t/ns/0x80000000_0xffffffff", 1, 1),
        ("t/ns-2/0x00000000_0xffffffff", 0, 1),
        ("t/other/0x00000000_0xffffffff", 1, 1),
    ],
)
def test_a_bundle_beside_one_that_splits_waits(splitting: str, upstream: int, intended: int) -> None:
    """Upstream compares texts, so a namespace whose name goes on is taken for this one."""
    view = _view({A: FULL}, splitting=frozenset({splitting}))

    assert len(_cycle(view)[0]) == upstream
    assert len(_cycle(view, DefaultSplit(hit_threshold=0, quirks="intended"))[0]) == intended


def test_a_refused_split_is_decided_all_the_same() -> None:
    """Its hits are forgotten, and the cycle has no success to tell."""
    memory: dict[str, Any] = {}
    refused = Ruling(accepted=False, reason=Reason.BAD_BOUNDARY)
    splits, outcome = _cycle(_view({A: FULL}), memory=memory, ruling=refused)

    assert len(splits) == 1
    assert outcome == CycleOutcome(CycleLabel.SKIP, CycleReason.HIT_COUNT)
    assert memory["hits"] == {}


@given(st.data())
def test_a_cycle_keeps_its_limits(data: st.DataObject) -> None:
    """No bundle twice, none without excess, no broker above its splits, no namespace above its bundles."""
    names = [f"t/n{space}/0x{place:x}0000000_0x{place:x}8000000" for space in range(2) for place in range(1, 6)]
    topics = {name: data.draw(st.sampled_from([1, 2, 1000, 1001])) for name in names}
    owners = {name: data.draw(st.sampled_from(["b1", "b2"])) for name in names}
    part = DefaultSplit(hit_threshold=0, max_splits=data.draw(st.integers(1, 4)), max_bundles=8)
    view = _view({name: NamespaceBundleStats(topics=count) for name, count in topics.items()}, owners)
    splits, _ = _cycle(view, part)

    assert len({split.bundle for split in splits}) == len(splits)
    assert all(topics[split.bundle] == 1001 and owners[split.bundle] == split.source for split in splits)
    for broker in ("b1", "b2"):
        assert sum(split.source == broker for split in splits) <= part.max_splits
        for space in ("t/n0/", "t/n1/"):
            assert sum(split.source == broker and split.bundle.startswith(space) for split in splits) <= 6


def _long_run(view: ClusterView, rate: float = 0.0, throughput: float = 0.0) -> ClusterView:
    means = {"long_term_bundle_rates": {A: rate}, "long_term_bundle_throughputs": {A: throughput}}
    return replace(view, load=replace(view.load, **means))


def test_the_modular_splitter_acts_at_once() -> None:
    """There is no hit count, and nothing is remembered."""
    memory: dict[str, Any] = {}

    for _ in range(2):
        splits, outcome = _cycle(_view({A: FULL}), ModularSplit(), memory)
        assert splits == [Split(A, "b1", (0x40000000,), CycleReason.TOPICS)]
        assert outcome == CycleOutcome(CycleLabel.SUCCESS, CycleReason.TOPICS)
    assert memory == {}


@pytest.mark.parametrize(
    ("rate", "throughput", "reason"),
    [(30_001.0, 0.0, CycleReason.MSG_RATE), (0.0, 100 * 2**20 + 1.0, CycleReason.BANDWIDTH), (30_000.0, 1.0, None)],
)
def test_the_modular_splitter_goes_by_the_long_run(rate: float, throughput: float, reason: CycleReason | None) -> None:
    """What the last report says of messages and bytes does not count, as high as it may be."""
    view = _view({A: NamespaceBundleStats(topics=2, msg_rate_in=1e9, msg_throughput_in=1e12)})

    assert _cycle(view, ModularSplit())[0] == []
    assert [split.reason for split in _cycle(_long_run(view, rate, throughput), ModularSplit())[0]] == (
        [] if reason is None else [reason]
    )


def test_the_modular_splitter_cuts_at_every_boundary() -> None:
    """As many children as the algorithm makes, where the extensible manager's takes exactly two."""
    at = At((0x10000000, 0x20000000, 0x30000000))

    assert _cycle(_view({A: FULL}), DefaultSplit(hit_threshold=0, algorithm=at))[0] == []
    assert [split.boundaries for split in _cycle(_view({A: FULL}), ModularSplit(algorithm=at))[0]] == [at.places]


@pytest.mark.parametrize(("room", "splits"), [(2, 0), (3, 1), (4, 2)])
def test_the_modular_splitter_counts_a_namespaces_bundles_over_all_brokers(room: int, splits: int) -> None:
    """What was decided for one broker's bundles leaves less room for those of the next."""
    view = _view({A: FULL, B: FULL}, {A: "b1", B: "b2"})

    assert len(_cycle(view, ModularSplit(max_bundles=room))[0]) == splits


def test_the_modular_splitter_counts_what_it_cannot_divide() -> None:
    """A range of one hash, an algorithm without an answer and a namespace that cannot be counted are failures."""
    single = "t/ns/0x00000000_0x00000001"
    failed = CycleOutcome(CycleLabel.FAILURE, CycleReason.UNKNOWN, failures=1)

    assert _cycle(_view({single: FULL}), ModularSplit()) == ([], failed)
    assert _cycle(_view({A: FULL}), ModularSplit(algorithm=SpecifiedPositionsDivide())) == ([], failed)
    assert _cycle(_view({A: FULL}, bundle_counts={}), ModularSplit()) == ([], failed)


def test_the_modular_splitter_needs_two_brokers() -> None:
    """With one broker there is nobody to share with."""
    view = _view({A: FULL})
    alone = replace(view, registered=np.array([True, False]))

    assert _cycle(alone, ModularSplit()) == ([], CycleOutcome(CycleLabel.SKIP, CycleReason.NO_BROKERS))
