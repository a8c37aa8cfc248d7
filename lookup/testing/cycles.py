"""Checks of the conformance kit for parts that propose in cycles: shedders, splitters and split algorithms.

They are run with all others by the decorator of `conformance.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from lookup.engine.answers import checked_reads
from lookup.engine.cycles import CycleReport
from lookup.engine.policy import Policy
from lookup.errors import InputError
from lookup.hooks.protocols import Shedder, SplitAlgorithm, Splitter
from lookup.model import ClusterView, CycleLabel, CycleOutcome, CycleReason, NamespaceBundle, Ruling, Split
from lookup.testing.asking import manager_in, proposals_in
from lookup.testing.worlds import WORLDS, World, changed_elsewhere

__all__ = ["SplitsEverything", "check_shedding_repeats", "check_splits_are_sound", "check_splitting_repeats"]

#: More than the hits in a row after which Pulsar splits (3).
_CYCLES = 6


@dataclass(frozen=True)
class SplitsEverything:
    """A splitter around a split algorithm that is checked alone: it splits every bundle the algorithm cuts."""

    name: ClassVar[str] = "conformance-everything"
    reads: ClassVar[frozenset[str]] = frozenset({"view.load", "view.ownership"})

    algorithm: SplitAlgorithm

    def propose(self, view: ClusterView, memory: MutableMapping[str, Any]) -> Generator[Split, Ruling, CycleOutcome]:
        """Propose every bundle the algorithm cuts."""
        for bundle in view.load.traffic.stats:
            owner, topics = view.ownership.owner(bundle), view.load.traffic.topics_of(bundle)
            try:
                cuts = tuple(self.algorithm.boundaries(NamespaceBundle.parse(bundle), topics, None))
            except InputError:
                continue
            if owner is not None and cuts:
                yield Split(bundle, view.brokers[owner].id, cuts)
        return CycleOutcome(CycleLabel.SUCCESS, CycleReason.ADMIN)


def check_shedding_repeats(policy: Policy, worlds: Sequence[World] = WORLDS) -> None:
    """Check that a cycle of the shedder ends, and depends only on its arguments and declared reads."""
    if policy.shedder is not None:
        _check_cycles_repeat(policy.shedder, lambda world: manager_in(policy, world).shed(), worlds)


def check_splitting_repeats(policy: Policy, worlds: Sequence[World] = WORLDS) -> None:
    """Check that a cycle of the splitter ends, and depends only on its arguments and declared reads."""
    if policy.splitter is not None:
        _check_cycles_repeat(policy.splitter, lambda world: _split_reports(policy, world), worlds)


def check_splits_are_sound(policy: Policy, worlds: Sequence[World] = WORLDS) -> None:
    """Check that whatever a splitter proposes can be done: owned bundles, each once, cut strictly inside, ascending."""
    for world in worlds if policy.splitter is not None else ():
        for report in _split_reports(policy, world):
            assert not report.rejected, (
                f"{policy.name} proposed splits refused as {dict(report.rejected)}: {world.name}"
            )


def _check_cycles_repeat(part: Shedder | Splitter, run: Callable[[World], Any], worlds: Sequence[World]) -> None:
    reads = checked_reads(part)
    for world in worlds:
        first, second = run(world), run(world)
        assert first == second, f"{part!r} led to {second}, not {first}: {world.name}"
        expected = proposals_in(part, world)
        for what, changed in changed_elsewhere(reads, world):
            assert proposals_in(part, changed) == expected, f"{part!r} depends on {what}, which it does not declare"


def _split_reports(policy: Policy, world: World) -> list[CycleReport[Split]]:
    # Several cycles, so that hit counts reach their threshold.
    manager = manager_in(policy, world)
    reports = (manager.split_bundles() for _ in range(_CYCLES))
    return [report for report in reports if report is not None]
