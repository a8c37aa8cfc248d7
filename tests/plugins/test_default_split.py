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


def _stats(topics: int = 2, **figures: float) -> NamespaceBundleStats:
    return NamespaceBundleStats(topics=topics, **figures)  # type: ignore[arg-type]  # counts among them are whole


def _in_the_long_run(rate: float, throughput: float) -> ClusterView:
    view = _view({A: _stats(msg_rate_in=1e9, msg_throughput_in=1e12)})
    means = {"long_term_bundle_rates": {A: rate}, "long_term_bundle_throughputs": {A: throughput}}
    return replace(view, load=replace(view.load, **means))


def _failed(failures: int) -> CycleOutcome:
    return CycleOutcome(CycleLabel.FAILURE, CycleReason.UNKNOWN, failures=failures)


def _beside(splitting: str) -> ClusterView:
    return _view({A: FULL}, splitting=frozenset({splitting}))


MIB = 2**20
BOTH = {A: FULL, B: FULL}
AT = At((0x10000000, 0x20000000, 0x30000000))
WAITS = CycleOutcome(CycleLabel.SKIP, CycleReason.HIT_COUNT)
ALONE = CycleOutcome(CycleLabel.SKIP, CycleReason.NO_BROKERS)
INTENDED = replace(NOW, quirks="intended")


@pytest.mark.parametrize(
    ("part", "view", "expected"),
    [
        # Topics before sessions before messages before bytes.
        (NOW, _view({A: _stats(1001, producer_count=2000)}), [CycleReason.TOPICS]),
        (NOW, _view({A: _stats(producer_count=500, consumer_count=501, msg_rate_in=1e9)}), [CycleReason.SESSIONS]),
        (NOW, _view({A: _stats(msg_rate_in=15_000, msg_rate_out=15_001)}), [CycleReason.MSG_RATE]),
        (NOW, _view({A: _stats(msg_throughput_in=100 * MIB, msg_throughput_out=1)}), [CycleReason.BANDWIDTH]),
        # A limit has to be exceeded, and there have to be two topics; zero and below switch that of sessions off.
        (NOW, _view({A: _stats(1000, producer_count=500, consumer_count=500, msg_rate_in=30_000)}), WAITS),
        (NOW, _view({A: _stats(msg_throughput_in=100 * MIB)}), WAITS),
        (NOW, _view({A: _stats(1, msg_rate_in=1e9)}), WAITS),
        (replace(NOW, max_sessions=0), _view({A: _stats(producer_count=9999)}), WAITS),
        (replace(NOW, max_sessions=-1), _view({A: _stats(producer_count=9999)}), WAITS),
        # Splits decided in the cycle count among the bundles that a namespace may have.
        (NOW, _view(BOTH, bundle_counts={"t/ns": 126}), [CycleReason.TOPICS] * 2),
        (NOW, _view(BOTH, bundle_counts={"t/ns": 127}), [CycleReason.TOPICS]),
        (NOW, _view(BOTH, bundle_counts={"t/ns": 128}), WAITS),
        # A bundle beside one that splits waits; upstream takes a namespace whose name goes on for this one.
        (NOW, _beside("t/ns/0x00000000_0xffffffff"), WAITS),
        (NOW, _beside("t/ns/0x40000000_0x80000000"), WAITS),
        (NOW, _beside("t/ns/0x80000000_0xffffffff"), [CycleReason.TOPICS]),
        (NOW, _beside("t/ns-2/0x00000000_0xffffffff"), WAITS),
        (NOW, _beside("t/other/0x00000000_0xffffffff"), [CycleReason.TOPICS]),
        (INTENDED, _beside("t/ns/0x00000000_0xffffffff"), WAITS),
        (INTENDED, _beside("t/ns/0x40000000_0x80000000"), WAITS),
        (INTENDED, _beside("t/ns/0x80000000_0xffffffff"), [CycleReason.TOPICS]),
        (INTENDED, _beside("t/other/0x00000000_0xffffffff"), [CycleReason.TOPICS]),
        (INTENDED, _beside("t/ns-2/0x00000000_0xffffffff"), [CycleReason.TOPICS]),
        # A namespace that cannot be counted, a bundle of one hash, an algorithm that fails or does not cut once.
        (NOW, _view(BOTH, bundle_counts={}), _failed(2)),
        (NOW, _view({"t/ns/0x00000005_0x00000006": FULL}), _failed(1)),
        *((replace(NOW, algorithm=part), _view(BOTH), _failed(2)) for part in (SpecifiedPositionsDivide(), AT)),
        (replace(NOW, algorithm=TopicCountEquallyDivide()), _view(BOTH), _failed(2)),
        # The modular splitter goes by the long run, whatever the last report says of messages and bytes.
        (ModularSplit(), _view({A: FULL}), [CycleReason.TOPICS]),
        (ModularSplit(), _view({A: _stats(msg_rate_in=1e9, msg_throughput_in=1e12)}), WAITS),
        (ModularSplit(), _in_the_long_run(30_001.0, 0.0), [CycleReason.MSG_RATE]),
        (ModularSplit(), _in_the_long_run(0.0, 100 * MIB + 1.0), [CycleReason.BANDWIDTH]),
        (ModularSplit(), _in_the_long_run(30_000.0, 1.0), WAITS),
        # It counts a namespace's bundles over all brokers.
        (ModularSplit(max_bundles=2), _view(BOTH, {A: "b1", B: "b2"}), WAITS),
        (ModularSplit(max_bundles=3), _view(BOTH, {A: "b1", B: "b2"}), [CycleReason.TOPICS]),
        (ModularSplit(max_bundles=4), _view(BOTH, {A: "b1", B: "b2"}), [CycleReason.TOPICS] * 2),
        (ModularSplit(), _view({"t/ns/0x00000000_0x00000001": FULL}), _failed(1)),
        (ModularSplit(algorithm=SpecifiedPositionsDivide()), _view({A: FULL}), _failed(1)),
        (ModularSplit(), _view({A: FULL}, bundle_counts={}), _failed(1)),
        (ModularSplit(), replace(_view({A: FULL}), registered=np.array([True, False])), ALONE),
    ],
)
def test_bundles_are_split_for_a_reason(
    part: DefaultSplit | ModularSplit, view: ClusterView, expected: list[CycleReason] | CycleOutcome
) -> None:
    """The cycle ends with the reason of its last split, or says why there is none."""
    memory: dict[str, Any] = {}
    splits, outcome = _cycle(view, part, memory)

    if isinstance(expected, CycleOutcome):
        assert (splits, outcome) == ([], expected)
    else:
        assert [split.reason for split in splits] == expected
        assert outcome == CycleOutcome(CycleLabel.SUCCESS, expected[-1])
    # The modular splitter remembers nothing; hits of a split that failed are kept.
    if isinstance(part, ModularSplit):
        assert memory == {}
    elif part.algorithm != NOW.algorithm:
        assert memory["hits"] == {"b1": {A: 1, B: 1}}


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


def test_limits_of_a_cycle_are_per_broker() -> None:
    """Each broker stops after its own splits; bundles behind keep their hits, even uncounted ones."""
    c, d = "t/other/0x00000000_0x80000000", "t/other/0x80000000_0xffffffff"
    memory: dict[str, Any] = {"hits": {"b1": {B: 7}}}
    part = DefaultSplit(hit_threshold=0, max_splits=1)
    splits, _ = _cycle(_view(dict.fromkeys((A, B, c, d), FULL), {A: "b1", B: "b1", c: "b2", d: "b2"}), part, memory)

    assert [split.bundle for split in splits] == [A, c]
    assert memory["hits"] == {"b1": {B: 7}}


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
