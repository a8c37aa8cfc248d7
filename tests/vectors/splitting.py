"""Areas on splitting: where the split algorithms cut a bundle, and which bundles a broker's split cycle chooses.

Parts are built as a `broker.conf` would fill them; cycles run through the load manager.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.engine.cycles import CycleReport
from lookup.engine.manager import LoadManager
from lookup.engine.policy import Policy
from lookup.model.broker import Broker, Roster
from lookup.model.bundles import FULL_RANGE, BundleRange, NamespaceBundle
from lookup.model.decision import Split
from lookup.model.load import Load, Traffic, topic_traffic
from lookup.model.load_data import bundle_stats_from_json
from lookup.model.names import NamespaceName
from tests.vectors.parts import configured_part, named_part
from tests.vectors.reading import CONFIG_DEFAULTS, Handler, configuration, only, pulsars_word

__all__ = ["AREAS"]

_ANY = NamespaceName("tenant", "namespace")
#: The broker whose cycle it is.
_BROKER = "broker-1"
_STATS = ("topics", "msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut", "producerCount", "consumerCount")
_FLOW = (
    "loadBalancerNamespaceBundleMaxMsgRate",
    "loadBalancerNamespaceBundleMaxBandwidthMbytes",
    "flowOrQpsDifferenceThresholdPercentage",
)
_CYCLE = ("bundle_stats_in_order", "split_boundaries", "owner_of_all", "bundle_count", "already_Splitting", "calls")


@dataclass(frozen=True)
class _Given:
    """A split algorithm that answers what the vector says it answers."""

    name: ClassVar[str] = "given"
    reads: ClassVar[frozenset[str]] = frozenset()

    answers: Mapping[NamespaceBundle, Any]

    def boundaries(
        self, bundle: NamespaceBundle, topics: NDArray[np.void], positions: Sequence[int] | None
    ) -> Sequence[int]:
        """Look the answer up; a number stands for a list of one."""
        found = self.answers.get(bundle)
        if found is None:
            return ()
        return found if isinstance(found, list) else [found]


def _bundle(lower: int, upper: int) -> NamespaceBundle:
    return NamespaceBundle(_ANY, BundleRange(lower, upper))


def _found(boundaries: Sequence[int]) -> Mapping[str, Any]:
    return {"boundaries": list(boundaries) or None}


def _range_equally(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "lower", "upper")
    part = named_part("split_algorithms", "range-equally-divide")
    return _found(part.boundaries(_bundle(given["lower"], given["upper"]), topic_traffic(()), None))


def _topic_count(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "topic_hashes")
    topics = topic_traffic((hashed, 0.0, 0.0) for hashed in given["topic_hashes"])
    return _found(
        named_part("split_algorithms", "topic-count-equally-divide").boundaries(_bundle(*FULL_RANGE), topics, None)
    )


def _positions(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "positions", "lower", "upper", "topics_in_bundle")
    bundle, part = _bundle(given["lower"], given["upper"]), named_part("split_algorithms", "specified-positions-divide")
    topics = topic_traffic((bundle.range.lower, 0.0, 0.0) for _ in range(given["topics_in_bundle"]))
    return _found(part.boundaries(bundle, topics, given.get("positions")))


def _flow_or_qps(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "topics_hash_rate_throughput", "config", *_FLOW)
    part = configured_part("split_algorithms", "flow-or-qps-equally-divide", configuration(given, *_FLOW))
    topics = topic_traffic(tuple(row) for row in given["topics_hash_rate_throughput"])
    return _found(part.boundaries(_bundle(*FULL_RANGE), topics, None))


def _strategy(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "config", *_CYCLE, *CONFIG_DEFAULTS)
    splitter = configured_part("splitters", "default-split", configuration(given))
    answers = {NamespaceBundle.parse(name): cut for name, cut in given.get("split_boundaries", {}).items()}
    reports = _reports(replace(splitter, algorithm=_Given(answers)), given)
    per_call = [[_decision(split) for split in report.accepted] for report in reports]
    return {
        "decisions": per_call[0],
        "decisions_per_call": per_call,
        "number_of_decisions": len(per_call[0]),
        "failure_unknown_count": sum(report.outcome.failures for report in reports),
    }


def _reports(splitter: Any, given: Mapping[str, Any]) -> list[CycleReport[Split]]:
    reports: list[CycleReport[Split]] = []
    memory: dict[str, dict[str, Any]] = {}
    for _ in range(given.get("calls", 1)):
        # The data does not change between calls: what was split is whole again.
        manager = _manager(splitter, given)
        manager.memory = memory
        report = manager.split_bundles()
        if report is not None:
            reports.append(report)
    return reports


def _manager(splitter: Any, given: Mapping[str, Any]) -> LoadManager:
    roster = Roster([Broker(_BROKER)])
    policy = Policy("vectors", named_part("selectors", "random"), splitter=splitter)
    manager = LoadManager(policy, "cluster", roster)
    manager.set_registry(roster, np.ones(1, dtype=np.bool_))
    if given.get("owner_of_all", True):
        manager.restore(dict.fromkeys(given["bundle_stats_in_order"], _BROKER))
    manager.set_load(replace(Load.unknown(1), traffic=_traffic(given)))
    return manager


def _traffic(given: Mapping[str, Any]) -> Traffic:
    figures: Mapping[str, Mapping[str, Any]] = given["bundle_stats_in_order"]
    for stats in figures.values():
        only(stats, *_STATS)
    namespaces = {bundle.rpartition("/")[0] for bundle in figures}
    count = given.get("bundle_count", 0)
    return Traffic(
        stats={bundle: bundle_stats_from_json(json.dumps(stats)) for bundle, stats in figures.items()},
        # A text says that counting fails.
        bundle_counts={} if isinstance(count, str) else dict.fromkeys(namespaces, count),
        splitting=frozenset(given.get("already_Splitting", ())),
    )


def _decision(split: Split) -> Mapping[str, Any]:
    return {
        "bundle": split.bundle,
        "source": split.source,
        "children": [child.rpartition("/")[2] for child in split.children],
        "reason": pulsars_word(split.reason),
        "label": "Success",
    }


AREAS: Mapping[str, Handler] = {
    "split_algorithm.flow_or_qps_equally_divide": _flow_or_qps,
    "split_algorithm.range_equally_divide": _range_equally,
    "split_algorithm.specified_positions_divide": _positions,
    "split_algorithm.topic_count_equally_divide": _topic_count,
    "split_strategy": _strategy,
}
