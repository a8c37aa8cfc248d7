"""Areas of the modular load manager's shedders: section 10 of the vectors' README."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from lookup.engine.build import build_policies
from lookup.engine.cycles import Unloading, run_sheds
from lookup.engine.policy import Instant, Policy, memory_key
from lookup.model.decision import Assigned, Unload
from lookup.model.request import LookupOptions
from lookup.model.view import ClusterView
from lookup.settings.policy import PartSpec, PolicySpec
from lookup.testing.asking import manager_in
from lookup.testing.clusters import cluster, engine_request
from lookup.testing.worlds import World
from tests.vectors.parts import registry
from tests.vectors.reading import CONFIG_DEFAULTS, Handler, NotUnderstood, configuration, only, usage

__all__ = ["AREAS"]

#: Vectors write bundles without their namespace.
_NAMESPACE = "tenant/namespace/"
#: The clock of all vectors, µs; it stands past the grace period.
_NOW_US = 2 * Policy.grace_us
#: How a vector's usage pairs are called in the view.
_PAIRS = {
    "cpu": "cpu",
    "memory": "memory",
    "directMemory": "direct_memory",
    "bandwidthIn": "bandwidth_in",
    "bandwidthOut": "bandwidth_out",
}


@dataclass(frozen=True)
class _Shed:
    """Bundles of one cycle and who had to give them up, without their namespace."""

    source: str
    bundle: str


class _Run:
    """Cycles of one shedder over data that do not change, and afterwards lookups of what it unloaded."""

    def __init__(self, policy: Policy, view: ClusterView) -> None:
        self._policy, self._view = policy, view
        self._memory: dict[str, Any] = {}

    def cycle(self) -> list[_Shed]:
        """Return what one cycle unloads; the owners stay."""
        instant = Instant(self._policy, self._view)
        unloads: list[Unload] = []
        run_sheds(self._policy, instant, self._memory, Unloading(unloads.append))
        return [_Shed(unload.source, unload.bundle.removeprefix(_NAMESPACE)) for unload in unloads]

    def placed(self, sheds: Iterable[_Shed]) -> dict[str, str | None]:
        """Return by bundle where the lookups after the last cycle take what it unloaded."""
        manager = manager_in(self._policy, World("vector", self._view, engine_request()))
        manager.memory[memory_key(self._policy.shedder)] = self._memory
        return {shed.bundle: _placed(manager, _NAMESPACE + shed.bundle) for shed in sheds}


def _placed(manager: Any, bundle: str) -> str | None:
    manager.unload(bundle)
    answer = manager.assign(None, bundle, LookupOptions())
    return answer.broker if isinstance(answer, Assigned) else None


def _policy(shedder: str, given: Mapping[str, Any]) -> Policy:
    """Build a shedder by Pulsar's configuration keys, with the placement that shares its memory where there is one."""
    selectors = registry().classes["selectors"]
    partner = next((name for name, found in selectors.items() if memory_key(found) == shedder), "random")
    # Upstream's examples tell bundles apart by what the vectors leave out.
    by_name = {"plan": "bundle"} if partner == "avg-placement" else {}
    spec = PolicySpec(name=shedder, selector=PartSpec(use=partner, **by_name), shedder=PartSpec(use=shedder))
    return build_policies(registry(), [spec], configuration(given))[0]


def _threshold(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "config", "brokers", "bundle_throughput_in_out", "recently_unloaded", *CONFIG_DEFAULTS)
    only(expected, "unload")
    for broker in given["brokers"].values():
        only(broker, *_PAIRS, "msgThroughputIn", "msgThroughputOut", "bundles", "usage")
    brokers: Mapping[str, Mapping[str, Any]] = given["brokers"]
    view = cluster(
        *sorted(brokers),
        resources={name: _percentages(broker) for name, broker in brokers.items()},
        throughput={name: float(_sum(broker, "msgThroughput")) for name, broker in brokers.items()},
        owned={_NAMESPACE + bundle: name for name, broker in brokers.items() for bundle in broker.get("bundles", ())},
        bundle_loads=_throughput(brokers, given.get("bundle_throughput_in_out", {})),
        unloaded={_NAMESPACE + bundle: _NOW_US for bundle in given.get("recently_unloaded", ())},
        now_us=_NOW_US,
    )
    return {"unload": _by_source(_Run(_policy("threshold", given), _with_usage(view)).cycle())}


def _percentages(broker: Mapping[str, Any]) -> dict[str, float]:
    if not str(broker.get("usage", "none")).startswith("none"):
        raise NotUnderstood(f"usage: {broker['usage']}")
    return {_PAIRS[key]: usage(pair).percent_usage for key, pair in broker.items() if key in _PAIRS}


def _sum(broker: Mapping[str, Any], figure: str) -> float:
    return float(broker.get(f"{figure}In", 0.0)) + float(broker.get(f"{figure}Out", 0.0))


def _throughput(brokers: Mapping[str, Mapping[str, Any]], figures: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return the throughput of every bundle that is owned; Pulsar has data of bundles without traffic too."""
    owned = [bundle for broker in brokers.values() for bundle in broker.get("bundles", ())]
    return {_NAMESPACE + bundle: float(sum(figures.get(bundle, ()))) for bundle in owned}


def _with_usage(view: ClusterView) -> ClusterView:
    """Put the largest percentage into the column of usage, as a report of a cluster would."""
    assert view.load.resources is not None
    return replace(view, load=replace(view.load, usage=view.load.resources.max(axis=1, initial=0.0) / 100.0))


def _by_source(sheds: Iterable[_Shed]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for shed in sheds:
        found.setdefault(shed.source, []).append(shed.bundle)
    return found


def _avg(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "config", "brokers", "each_bundle", *CONFIG_DEFAULTS)
    only(expected, "unload_counts_per_call", "from", "per_source", "select_broker_for_each_unloaded", "select")
    run = _Run(_policy("avg", given), _pairs_view(given["brokers"], given.get("each_bundle", {})))
    cycles = [run.cycle() for _ in expected.get("unload_counts_per_call", [None])]
    last = cycles[-1] if cycles else []
    placed = run.placed(last) if {"select", "select_broker_for_each_unloaded"} & expected.keys() else {}
    return {
        "unload_counts_per_call": [len(sheds) for sheds in cycles],
        "from": _alone({shed.source for shed in last}),
        "per_source": {source: len(bundles) for source, bundles in _by_source(last).items()},
        "select_broker_for_each_unloaded": _alone(set(placed.values())),
        "select": {
            pattern: _alone({broker for bundle, broker in placed.items() if fnmatchcase(bundle, pattern)})
            for pattern in expected.get("select", ())
        },
    }


def _pairs_view(brokers: Mapping[str, Mapping[str, Any]], each: Mapping[str, Any]) -> ClusterView:
    only(each, "rate_in_out", "count")
    for broker in brokers.values():
        only(broker, "cpu", "rate_in_out", "bundles")
    owned = {
        _NAMESPACE + bundle: name for name, broker in brokers.items() for bundle in _bundles(broker.get("bundles"))
    }
    view = cluster(
        *sorted(brokers),
        resources={name: {"cpu": usage([broker["cpu"], 100]).percent_usage} for name, broker in brokers.items()},
        throughput=dict.fromkeys(brokers, 0.0),
        rates={name: float(sum(broker.get("rate_in_out", ()))) for name, broker in brokers.items()},
        owned=owned,
        bundle_loads=dict.fromkeys(owned, 0.0),
        bundle_rates=dict.fromkeys(owned, float(sum(each.get("rate_in_out", ())))),
        now_us=_NOW_US,
    )
    return _with_usage(view)


def _bundles(written: str | None) -> list[str]:
    """Write `<prefix>-<first>..<last>` out."""
    if not written:
        return []
    prefix, dash, numbers = written.rpartition("-")
    first, dots, last = numbers.partition("..")
    if not (dash and dots and first.isdecimal() and last.isdecimal()):
        raise NotUnderstood(f"bundles: {written}")
    return [f"{prefix}-{number}" for number in range(int(first), int(last) + 1)]


def _alone(found: Iterable[str | None]) -> object:
    """Return the only one; all of them where there are more or none."""
    names = sorted(map(str, found))
    return names[0] if len(names) == 1 else names


#: Area -> what puts its inputs to the API.
AREAS: Mapping[str, Handler] = {"avg_shedder": _avg, "threshold_shedder": _threshold}
