"""Vectors of the areas `transfer_shedder*`: a cycle of the shedder `transfer` over reports written out as data.

What is said here is put to the engine in `transfer_scene.py`. Random data are drawn here from a fixed seed.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Generator, Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from lookup.engine.ballots import roll
from lookup.engine.cycles import FAILED, CycleReport, drive_proposals
from lookup.model.bundles import IsolationPolicy, NamespacePolicies
from lookup.model.decision import CycleLabel, CycleOutcome, Probe, Proposal, Ruling, Unload
from lookup.model.load import LoadStats
from tests.vectors.reading import CONFIG_DEFAULTS, Handler, NotUnderstood, configuration, only, pulsars_word
from tests.vectors.transfer_scene import NOW_US, Bundles, Report, Scene, Transferable, shedder_of

__all__ = ["AREAS"]

_DEBUGGED = {"loadBalancerSheddingConditionHitCountThreshold": 0, "loadBalancerDebugModeEnabled": True}
#: What upstream's property tests draw unless a vector says otherwise.
_DRAWN = {"n_brokers": 10, "cpu_percent_range": (0, 100), "bundles_per_broker": 2, "repeats": 5}
_SEED = 1

# Areas


def _one_cycle(given: Mapping[str, Any], expected: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(given.get("available_brokers"), str):
        # Nothing else that is said of brokers comes to bear then.
        only(given, "available_brokers", "config", *_READ, *_UNLOADED, *CONFIG_DEFAULTS)
        # The engine is given the registry; who cannot read it has a cycle that fails, like one whose shedder does.
        return _answers(CycleReport(FAILED, (), {}), {})
    unloaded_ms = given.get(*_UNLOADED, {})
    scene = _scene(given, *_UNLOADED)
    memory = {"unloaded_us": {name: scene.updated_us - ms * 1000 for name, ms in unloaded_ms.items()}}
    return _answers(scene.cycle(memory), scene.reports)


def _debug_quirk(given: Mapping[str, Any], expected: Mapping[str, Any]) -> dict[str, Any]:
    return _one_cycle({**given, "config": {**_DEBUGGED, **given.get("config", {})}}, expected)


def _hit_count(given: Mapping[str, Any], expected: Mapping[str, Any]) -> dict[str, Any]:
    scene = _scene({**given, "config": {**_DEBUGGED, **given.get("config", {})}}, "calls")
    memory: dict[str, Any] = {}
    reports: list[CycleReport[Unload]] = []
    for _ in range(given["calls"]):
        reports.append(scene.cycle(memory))
        # Pulsar notes an unload when it has taken place, and here none does.
        memory["unloaded_us"] = {}
    skips = [_counter(report) == {"label": "Skip", "reason": "HitCount", "count": 1} for report in reports]
    return {
        "decision_counts": [len(report.accepted) for report in reports],
        "skip_hitcount_counter_after_each_of_first_3": [sum(skips[: place + 1]) for place in range(3)],
        "decisions_4th_call_as_set": [decision for report in reports[3:4] for decision in _decisions(report)],
    }


def _load_stats(given: Mapping[str, Any], expected: Mapping[str, Any]) -> dict[str, Any]:
    only(given, "cpu_percent_broker0_up")
    usage = [_percentage(cpu) for cpu in given["cpu_percent_broker0_up"]]
    reports = {f"broker{place}:8080": Report(used, 0.0, 0.0, None) for place, used in enumerate(usage)}
    outcome = Scene(reports, configuration({})).cycle({}).outcome
    return {"avg": outcome.average, "std": outcome.deviation}


def _policies_gate(given: Mapping[str, Any], expected: Mapping[str, Any]) -> dict[str, Any]:
    key = "loadBalancerSheddingBundlesWithPoliciesEnabled"
    only(given, "hasIsolationPolicy", "hasAntiAffinityGroupPolicy", key)
    isolation = {"t/n": (IsolationPolicy((".*",)),)} if given["hasIsolationPolicy"] else {}
    groups = {"t/n": "group"} if given["hasAntiAffinityGroupPolicy"] else {}
    bundles = [("t/n/0x00000000_0x80000000", 10.0), ("t/n/0x80000000_0xffffffff", 10.0)]
    scene = Scene(
        {"full:8080": Report(1.0, 100.0, 100.0, bundles), "empty:8080": Report(0.0, 0.0, 0.0, None)},
        {**configuration({}), **_DEBUGGED, key: given[key]},
        namespaces=NamespacePolicies(isolation=isolation, anti_affinity_group=groups),
    )
    return {"allowed": bool(scene.cycle({}).accepted)}


def _property(given: Mapping[str, Any], expected: Mapping[str, Any]) -> dict[str, Any]:
    only(given, "kind", "cluster", "steps", *_DRAWN)
    kinds = {"random_load": _is_exhausted, "random_load_stats": _is_tracked}
    if given["kind"] not in kinds:
        raise NotUnderstood(f"kind {given['kind']}")
    drawn = {key: given.get(key, value) for key, value in _DRAWN.items()}
    dice = _Dice()
    return {"invariant": all(kinds[given["kind"]](drawn, dice) for _ in range(drawn["repeats"]))}


# Random data


class _Dice:
    """Numbers in a row, the same in every run."""

    def __init__(self) -> None:
        self._rolls = 0

    def uniform(self, low: float, high: float) -> float:
        """Return the next number in [low, high]."""
        self._rolls += 1
        return low + (high - low) * roll(_SEED, "vector", "", self._rolls)


def _is_tracked(drawn: Mapping[str, Any], dice: _Dice) -> bool:
    """Tell whether moving half of the difference between both ends leaves the figures that the loads have then."""
    loads = sorted(_percentage(dice.uniform(*drawn["cpu_percent_range"])) for _ in range(drawn["n_brokers"]))
    stats = LoadStats.of(loads)
    pairs = min(CONFIG_DEFAULTS["loadBalancerMaxNumberOfBrokerSheddingPerCycle"], len(loads) // 2)
    for low, high in ((place, -1 - place) for place in range(pairs)):
        amount = (loads[high] - loads[low]) / 2
        stats = stats.after_move(loads[high], loads[low], amount)
        loads[low], loads[high] = loads[low] + amount, loads[high] - amount
    off = stats.average - statistics.fmean(loads), stats.deviation - statistics.pstdev(loads)
    return max(map(abs, off)) <= 1e-4


def _is_exhausted(drawn: Mapping[str, Any], dice: _Dice) -> bool:
    """Tell whether a cycle ends balanced, or because no pair of brokers is left to look at."""
    reports: dict[str, Report] = {}
    for place in range(drawn["n_brokers"]):
        used = dice.uniform(*drawn["cpu_percent_range"])
        reports[f"broker{place}:8080"] = Report(_percentage(used), used, used, _split(f"t/n{place}", drawn, used, dice))
    config = {**configuration({}), **_DEBUGGED}
    unloads, outcome = _all_accepted(shedder_of(config).propose(Scene(reports, config).view(), {}))
    pairs = [
        sorted((unload.source, str(unload.destination)), key=lambda name: reports[name].usage) for unload in unloads
    ]
    # Every broker is looked at once as the fuller one; the emptier one is replaced when something came to it.
    emptier, fuller = {pair[0] for pair in pairs}, {pair[1] for pair in pairs}
    most = config["loadBalancerMaxNumberOfBrokerSheddingPerCycle"]
    is_even = (
        outcome.modelled_deviation is None or outcome.modelled_deviation <= config["loadBalancerBrokerLoadTargetStd"]
    )
    return is_even or len(emptier) >= most or len(emptier) + len(fuller) >= len(reports) - 1


def _all_accepted(cycle: Generator[Proposal, Ruling, CycleOutcome]) -> tuple[list[Unload], CycleOutcome]:
    """Accept whatever a shedder proposes or asks; return what was proposed or asked, and the end."""
    heard: list[Unload] = []

    def accept(proposal: Proposal) -> Ruling:
        """Note what is proposed or asked, and accept it."""
        heard.append(proposal.unload if isinstance(proposal, Probe) else proposal)
        return Ruling(accepted=True)

    outcome = drive_proposals(cycle, accept)
    return heard, outcome


def _split(namespace: str, drawn: Mapping[str, Any], whole: float, dice: _Dice) -> Bundles:
    count = drawn["bundles_per_broker"]
    cuts = [0.0, *sorted(dice.uniform(0, whole) for _ in range(count - 1)), whole]
    loads = sorted(high - low for low, high in pairwise(cuts))
    return [(f"{namespace}/{place:#010x}_{place + 1:#010x}", load) for place, load in enumerate(loads)]


# Reading


def _scene(given: Mapping[str, Any], *others: str) -> Scene:
    only(given, "config", "available_brokers", *_READ, *CONFIG_DEFAULTS, *others)
    reports = _generated(given["cluster_spec"]) if "cluster_spec" in given else _written(given.get("brokers", {}))
    if "cluster" in given and "cluster_spec" not in given:
        raise NotUnderstood("cluster without cluster_spec")
    if not str(given.get("filter", "fails")).startswith("fails"):
        raise NotUnderstood(f"filter: {given['filter']}")
    if not str(given.get("channel.isOwner", "always false")).startswith("always false"):
        raise NotUnderstood(f"channel.isOwner: {given['channel.isOwner']}")
    gate = Transferable(
        nothing=given.get("every_bundle_not_transferable", False),
        not_in=frozenset(given.get("not_transferable_namespaces", ())),
        only=given.get("only_transferable_bundle"),
        fails="filter" in given,
    )
    return Scene(
        reports,
        configuration(given),
        available=given.get("available_brokers", ()),
        owned="channel.isOwner" not in given,
        order=given.get("store_iteration_order", ()),
        updated_us=_leading_number(given["updatedAt"]) * 1000 if "updatedAt" in given else NOW_US,
        unloaded=given.get("recentlyUnloadedBundles", ()),
        gate=gate,
    )


_UNLOADED = ("recentlyUnloadedBrokers_ms_before_updatedAt",)
_READ = (
    "brokers",
    "channel.isOwner",
    "cluster",
    "cluster_spec",
    "every_bundle_not_transferable",
    "filter",
    "not_transferable_namespaces",
    "only_transferable_bundle",
    "recentlyUnloadedBundles",
    "store_iteration_order",
    "updatedAt",
)

_REPORTED = ("weightedMaxEMA", "msgThroughputEMA", "msgThroughputIn", "msgThroughputOut", "top_bundles_ascending")


def _written(brokers: Mapping[str, Mapping[str, Any]]) -> dict[str, Report]:
    for report in brokers.values():
        only(report, *_REPORTED)
    return {name: _report(report) for name, report in brokers.items()}


def _report(report: Mapping[str, Any]) -> Report:
    bundles = report.get("top_bundles_ascending")
    return Report(
        float(report.get("weightedMaxEMA", 0.0)),
        float(report.get("msgThroughputEMA", 0.0)),
        float(report.get("msgThroughputIn", 0.0) + report.get("msgThroughputOut", 0.0)),
        None if bundles is None else [(bundle, float(load)) for bundle, load in bundles],
    )


def _generated(spec: Iterable[Mapping[str, Any]]) -> dict[str, Report]:
    reports: dict[str, Report] = {}
    for item in spec:
        only(item, "first", "last", "cpu", "bundles")
        used, (low, high) = _percentage(item["cpu"]), map(float, item["bundles"])
        for place in range(item["first"], item["last"] + 1):
            namespace = f"my-tenant/my-namespace{place}"
            bundles = [(f"{namespace}/0x00000000_0x0FFFFFFF", low), (f"{namespace}/0x0FFFFFFF_0xFFFFFFFF", high)]
            load = 1.0 + (low + high)
            reports[f"broker{place}:8080"] = Report(used, load, load, bundles)
    return reports


def _percentage(cpu: float) -> float:
    """Return a usage of so many in a hundred, worked out in 32 bits as Pulsar does, as a ratio."""
    return float(np.float32(cpu) / np.float32(100) * np.float32(100)) / 100.0


def _leading_number(text: object) -> int:
    number = re.match(r"\d+", str(text))
    if number is None:
        raise NotUnderstood(f"updatedAt: {text}")
    return int(number[0])


# Answers


def _answers(report: CycleReport[Unload], reports: Mapping[str, Report]) -> dict[str, Any]:
    outcome, decisions = report.outcome, _decisions(report)
    answers = {
        "decisions_as_set": decisions,
        "number_of_decisions": len(decisions),
        "counter": _counter(report),
        "loadAvg": outcome.average or 0.0,
        "loadStd": outcome.deviation or 0.0,
        "internal_std_after_cycle": outcome.modelled_deviation or 0.0,
    }
    if len(decisions) != 1:
        return {**answers, "single_decision": None}
    pool = _as_full_as(report.accepted[0].destination, reports)
    return {**answers, "single_decision": {**decisions[0], "dest_one_of": pool}}


def _as_full_as(destination: str | None, reports: Mapping[str, Report]) -> list[str]:
    # Which of these is taken goes by the order of a hash map in Pulsar.
    if destination is None:
        return []
    return [name for name, report in reports.items() if report.usage == reports[destination].usage]


def _decisions(report: CycleReport[Unload]) -> list[dict[str, Any]]:
    return [
        {
            "source": unload.source,
            "bundle": unload.bundle,
            "dest": unload.destination,
            "label": pulsars_word(CycleLabel.SUCCESS),
            "reason": pulsars_word(unload.reason or report.outcome.reason),
        }
        for unload in report.accepted
    ]


def _counter(report: CycleReport[Unload]) -> dict[str, Any]:
    count = len(report.accepted) if report.outcome.label is CycleLabel.SUCCESS else 1
    return {"label": pulsars_word(report.outcome.label), "reason": pulsars_word(report.outcome.reason), "count": count}


#: Area -> what puts its inputs to the API.
AREAS: Mapping[str, Handler] = {
    "transfer_shedder": _one_cycle,
    "transfer_shedder.debug_quirk": _debug_quirk,
    "transfer_shedder.hit_count": _hit_count,
    "transfer_shedder.load_stats": _load_stats,
    "transfer_shedder.policies_gate": _policies_gate,
    "transfer_shedder.property": _property,
}
