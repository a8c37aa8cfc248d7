"""Put drawn states to one class of Pulsar's and to the part of ours that stands for it.

Our part is always the one of the policy that a `broker.conf` builds, in a `LoadManager`. Each state says what Pulsar
decided and what we decided, in the same words, and whether there was anything to decide.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lookup.engine.cycles import Unloading, run_sheds
from lookup.engine.manager import Conditions, LoadManager
from lookup.engine.policy import Policy, memory_key
from lookup.model import (
    RESOURCES,
    Assigned,
    Broker,
    BrokerLookupData,
    BundleLoad,
    Decision,
    Load,
    LookupOptions,
    NamespaceBundleStats,
    Roster,
    Traffic,
)
from lookup.model.bundles import IsolationPolicy, NamespacePolicies, bundle_of, equal_boundaries
from lookup.model.load import ascending, top_bundles
from lookup.model.load_data import ResourceUsage
from lookup.model.request import request_of
from tests.parity.jvm import Classes
from tests.parity.loops import LoadedDice, policy_of

__all__ = ["PARTS", "Compared", "compare", "published_to"]

IMPL = "org.apache.pulsar.broker.loadbalance.impl."
EXTENSIONS = "org.apache.pulsar.broker.loadbalance.extensions."
_EXTENSIBLE = {"loadManagerClassName": f"{EXTENSIONS}ExtensibleLoadManagerImpl"}
_KEYS = ("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut")
_MINUTE_US = 60_000_000
_NOW_US = 10_000 * _MINUTE_US
_NAMESPACES = ("t/a", "t/b", "pulsar/system")
_MODULAR_SHEDDERS = ("ThresholdShedder", "OverloadShedder", "UniformLoadShedder", "AvgShedder")

State = dict[str, Any]


@dataclass(frozen=True)
class Compared:
    """One state with what came of it on both sides."""

    state: State
    ours: Any
    pulsars: Any
    #: whether either side decided anything
    is_acting: bool

    @property
    def is_equal(self) -> bool:
        """Return whether both decided the same."""
        return bool(self.ours == self.pulsars)


def compare(part: str, classes: Classes, release: str, folder: Path, states: int) -> Iterator[Compared]:
    """Draw states for a part and yield what each came to."""
    for seed in range(states):
        yield PARTS[part](classes, random.Random(f"{part} {seed}"), release, folder)


# States


def _brokers(dice: random.Random, count: int, resources: int, *, idlest: float = 0.0) -> dict[str, State]:
    """Draw reports of brokers: percentages up to 130, some of them 0, and at least `idlest` of the CPU."""
    brokers = {}
    for number in range(count):
        used = [round(dice.choice((0.0, dice.uniform(0, 100), dice.uniform(0, 130))), 6) for _ in range(resources)]
        used[0] = max(used[0], idlest * (1 + number / 100))
        report: State = {key: [value, 100.0] for key, value in zip(_KEYS, [*used, *[0.0] * 5], strict=False)}
        brokers[f"b{number:02}:8080"] = report | {"bundles": {}}
    return brokers


def _filled(dice: random.Random, brokers: dict[str, State], *, idle: float) -> dict[str, State]:
    """Give brokers bundles with traffic, and return what the leader knows of these: of some nothing."""
    means: dict[str, State] = {}
    size = 0x1_0000_0000 // 0x100
    for number in range(dice.randint(0, dice.choice((12, 60, 200)))):
        name = f"{dice.choice(_NAMESPACES)}/0x{number * size:08x}_0x{(number + 1) * size:08x}"
        scale = 0.0 if dice.random() < idle else dice.uniform(1, 3_000)
        figures = [scale * dice.uniform(0.5, 1.5) * factor for factor in (1.0, 1.0, 20_000.0, 20_000.0)]
        owner = brokers[dice.choice(list(brokers))]
        names = ("msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut")
        topics = dice.randint(0, 2_000) if dice.random() < 0.1 else dice.randint(0, 30)
        owner["bundles"][name] = dict(zip(names, figures, strict=True)) | {"topics": topics, "producerCount": topics}
        if dice.random() > 0.05:
            long = [figure * dice.uniform(0.8, 1.2) for figure in figures]
            means[name] = {"short": figures, "long": long, "topics": topics}
    return means


def _weights(dice: random.Random) -> dict[str, str]:
    names = ("CPU", "DirectMemory", "BandwidthIn", "BandwidthOut")
    return {f"loadBalancer{name}ResourceWeight": str(dice.choice((0.0, 0.5, 1.0, 1.0, 2.0))) for name in names}


def _loaded(
    state: State,
    policy: Policy,
    memory: dict[str, dict[str, Any]],
    now_us: int = _NOW_US,
    namespaces: NamespacePolicies | None = None,
) -> LoadManager:
    """Return a manager of ours that knows what a state says."""
    brokers: dict[str, State] = state["brokers"]
    means: dict[str, State] = state.get("bundles", {})
    data = {
        name: BrokerLookupData(
            start_timestamp=report.get("startTimestamp", 0),
            broker_version=report.get("brokerVersion"),
            load_manager_class_name=report.get("loadManagerClassName"),
        )
        for name, report in brokers.items()
    }
    roster = Roster([Broker(name, data[name]) for name in brokers])
    conditions = Conditions(namespaces=namespaces or NamespacePolicies())
    manager = LoadManager(policy, "parity", roster, conditions=conditions)
    manager.memory = memory
    manager.begin_tick(now_us)
    manager.set_registry(roster, np.ones(len(roster), dtype=np.bool_))
    manager.restore({bundle: name for name, report in brokers.items() for bundle in report["bundles"]})
    # Nobody but this comparison puts an unload into a manager's memory that it did not make itself.
    ages: dict[str, int] = state.get("recentlyUnloaded", {})
    vars(manager)["_unloaded"].update({bundle: now_us - age * _MINUTE_US for bundle, age in ages.items()})
    percent = [[ResourceUsage(*report[key]).percent_usage for key in _KEYS] for report in brokers.values()]
    stats = {bundle: _stats(given) for report in brokers.values() for bundle, given in report["bundles"].items()}
    shown = [
        ascending(
            BundleLoad(bundle, sum(means[bundle]["short"][2:]), sum(means[bundle]["short"][:2]))
            for bundle in report["bundles"]
            if bundle in means
        )
        for report in brokers.values()
    ]
    long = {bundle: sum(given["long"][:2]) for bundle, given in means.items()}
    manager.set_load(
        Load(
            usage=np.array(percent).max(axis=1) / 100.0,
            throughput=_totals(brokers, "msgThroughputIn", "msgThroughputOut"),
            topics=np.array([sum(one["topics"] for one in report["bundles"].values()) for report in brokers.values()]),
            top_bundles=shown,
            resources=np.array(percent).reshape(len(brokers), len(RESOURCES)),
            rates=_totals(brokers, "msgRateIn", "msgRateOut"),
            bundle_unit="bytes/s",
            traffic=Traffic(stats, {}, {"t/a": 4, "t/b": 120, "pulsar/system": 4}),
            long_term_rates=np.array(
                [sum(long.get(bundle, 100.0) for bundle in report["bundles"]) for report in brokers.values()]
            ),
            long_term_bundle_rates=long,
            long_term_bundle_throughputs={bundle: sum(given["long"][2:]) for bundle, given in means.items()},
        )
    )
    return manager


def _stats(given: Mapping[str, Any]) -> NamespaceBundleStats:
    return NamespaceBundleStats(
        msg_rate_in=given.get("msgRateIn", 0.0),
        msg_rate_out=given.get("msgRateOut", 0.0),
        msg_throughput_in=given.get("msgThroughputIn", 0.0),
        msg_throughput_out=given.get("msgThroughputOut", 0.0),
        topics=given.get("topics", 0),
        producer_count=given.get("producerCount", 0),
        consumer_count=given.get("consumerCount", 0),
    )


def _totals(brokers: Mapping[str, State], *figures: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array(
        [sum(one[name] for one in report["bundles"].values() for name in figures) for report in brokers.values()],
        dtype=np.float64,
    )


# Parts of the modular manager


def _shed(shedder: str, kind: str) -> Callable[..., Compared]:
    """Return the comparison of a shedder of the modular manager, several cycles with their memory."""

    def compared(classes: Classes, dice: random.Random, release: str, folder: Path) -> Compared:
        """Compare the bundles that are named, and of AvgShedder where they are to go."""
        name = f"{IMPL}{shedder}"
        conf = {"loadBalancerLoadSheddingStrategy": name}
        if shedder == "AvgShedder":
            conf |= {"loadBalancerLoadPlacementStrategy": name, "maxUnloadPercentage": str(dice.uniform(0.1, 1.0))}
        elif dice.random() < 0.5:
            conf |= {"maxUnloadPercentage": str(dice.uniform(0.1, 0.9)), "lowerBoundarySheddingEnabled": "true"}
        if dice.random() < 0.7:
            conf |= {"loadBalancerBundleUnloadMinThroughputThreshold": "0", "minUnloadMessage": "10"}
        if kind == "weights":
            conf |= _weights(dice) | {"loadBalancerCPUResourceWeight": "1.0"}
            conf["loadBalancerHistoryResourcePercentage"] = str(dice.choice((0.0, 0.5, 0.9)))
        cycles = []
        count = dice.randint(2, 12)
        for _ in range(dice.randint(1, 5)):
            # AvgShedder pairs brokers by rank, and those at 0 would tie.
            idlest = 0.01 if shedder == "AvgShedder" else 0.0
            brokers = _brokers(dice, count, 5 if kind in ("five", "weights") else 1, idlest=idlest)
            means = _filled(dice, brokers, idle=0.25 if kind == "idle" else 0.02)
            recent = {bundle: dice.randint(0, 40) for bundle in means if dice.random() < 0.1}
            cycles.append({"brokers": brokers, "bundles": means, "recentlyUnloaded": recent})
        # Who cannot be unloaded any more has been forgotten (ModularLoadManagerImpl.doLoadShedding).
        asked = [
            {**cycle, "recentlyUnloaded": {k: v for k, v in cycle["recentlyUnloaded"].items() if v <= 30}}
            for cycle in cycles
        ]
        answer = classes.ask("shed", **{"class": name}, conf=conf, cycles=asked)["cycles"]
        policy = replace(policy_of(conf, release, folder), filters=())
        memory: dict[str, dict[str, Any]] = {}
        ours, pulsars = [], []
        for index, (state, theirs) in enumerate(zip(cycles, answer, strict=True)):
            manager = _loaded(state, policy, memory, _NOW_US + index * _MINUTE_US)
            # One idle bundle is like another.
            idle = {bundle for bundle, given in state["bundles"].items() if not any(given["short"])}
            for sides, named in ((ours, _named(manager, memory)), (pulsars, theirs["unloads"])):
                sides.append({b: sorted("idle" if one in idle else one for one in all_) for b, all_ in named.items()})
        return Compared({"conf": conf, "cycles": cycles}, ours, pulsars, any(ours) or any(pulsars))

    return compared


def _named(manager: LoadManager, memory: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """Return the bundles that the shedder names, by broker: every one of them would find another broker."""

    def choose(bundle: str) -> Decision:
        """Send a bundle to a broker that owns nothing."""
        return Decision("p", bundle, "elsewhere", None, None, {}, {}, None, 0, "")

    key = memory_key(manager.policy.shedder)
    report = run_sheds(
        manager.policy, manager.instant(), memory.setdefault(key, {}), Unloading(lambda unload: None, choose)
    )
    named: dict[str, list[str]] = {}
    for unload in report.accepted:
        named.setdefault(unload.source, []).append(unload.bundle)
    return named


def _place(placement: str, kind: str) -> Callable[..., Compared]:
    """Return the comparison of a placement of the modular manager."""

    def compared(classes: Classes, dice: random.Random, release: str, folder: Path) -> Compared:
        """Compare all candidates that tie."""
        name = f"{IMPL}{placement}"
        conf = {"loadBalancerLoadPlacementStrategy": name} | (_weights(dice) if kind == "weights" else {})
        conf["loadBalancerBrokerOverloadedThresholdPercentage"] = str(dice.choice((60, 85, 85, 100)))
        brokers = _brokers(dice, dice.randint(1, 12), 5 if kind in ("five", "weights") else 1)
        means = _filled(dice, brokers, idle=0.1)
        known = sorted(means)
        # Bundles of their own, which no report names yet: who owns what another is given would tie with it.
        given = {
            broker: [f"t/given/{index}-{n}" for n in range(dice.randint(0, 2))] for index, broker in enumerate(brokers)
        }
        for bundle in (bundle for names in given.values() for bundle in names):
            figures = [dice.uniform(1, 3_000) for _ in range(4)]
            means[bundle] = {"short": figures, "long": figures, "topics": 1}
        state = {"brokers": brokers, "bundles": means, "preallocated": given}
        bundle = dice.choice([*known, "t/new/0x00000000_0xffffffff"])
        answer = classes.ask(
            "place", **{"class": name}, conf=conf, state=state, bundle=bundle, candidates=sorted(brokers)
        )
        policy = replace(policy_of(conf, release, folder), filters=(), second_choice=None)
        rates = {broker: {one: sum(means[one]["long"][:2]) for one in names} for broker, names in given.items()}
        memory = {memory_key(policy.selector): {"at_us": _NOW_US, "given": rates}}
        manager = _loaded(state, policy, memory)
        ballot, _ = manager.decide(request_of(None, bundle, LookupOptions()))
        return Compared({"conf": conf, "state": state}, sorted(ballot.odds), sorted(answer["ties"]), len(brokers) > 1)

    return compared


def _assignment(classes: Classes, dice: random.Random, release: str, folder: Path) -> Compared:
    """Compare a whole manager: isolation, groups, topics, versions, even distribution, second choice."""
    conf = {
        "loadBalancerBrokerMaxTopics": str(dice.choice((20, 50_000))),
        "loadBalancerDistributeBundlesEvenlyEnabled": dice.choice(("true", "false")),
        "preferLaterVersions": dice.choice(("true", "false")),
        "loadBalancerSheddingEnabled": "false",
        "loadBalancerAutoBundleSplitEnabled": "false",
    }
    brokers = _brokers(dice, dice.randint(2, 12), 1)
    _filled(dice, brokers, idle=0.1)
    for report in brokers.values():
        report["brokerVersion"] = report["version"] = f"4.{dice.randint(0, 2)}.0"
        report["loadManagerClassName"] = f"{IMPL}ModularLoadManagerImpl"
    hosts = [broker.partition(":")[0] for broker in brokers]
    isolated = {"t/a": (tuple(dice.sample(hosts, 1)), tuple(dice.sample(hosts, dice.randint(0, 1))))}
    isolated = isolated if dice.random() < 0.5 else {}
    grouped = {"t/b": "g", "t/c": "g"} if dice.random() < 0.5 else {}
    spaces = {
        name: {"boundaries": [f"0x{b:08x}" for b in equal_boundaries(0x100)]}
        | ({"antiAffinityGroup": grouped[name]} if name in grouped else {})
        for name in (*_NAMESPACES, "t/c")
    }
    failover = {"policy_type": "min_available", "parameters": {"min_limit": "1", "usage_threshold": "100"}}
    rules = {
        name: {"namespaces": [name], "primary": first, "secondary": second, "auto_failover_policy": failover}
        for name, (first, second) in isolated.items()
    }
    store = {"/admin/clusters/cluster/namespaceIsolationPolicies": rules} if rules else {}
    opened = classes.ask("modular.open", conf=conf, namespaces=spaces, store=store)["id"]
    classes.ask("modular.minute", id=opened, now=0, brokers=brokers)
    known = NamespacePolicies(
        isolation={name: (IsolationPolicy(*hosts),) for name, hosts in isolated.items()}, anti_affinity_group=grouped
    )
    # One report of each bundle is all that the leader has seen: both of its means are that.
    means = {
        name: {"short": figures, "long": figures, "topics": given["topics"]}
        for report in brokers.values()
        for name, given in report["bundles"].items()
        for figures in [[given[key] for key in ("msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut")]]
    }
    state = {"brokers": brokers, "bundles": means}
    manager = _loaded(state, policy_of(conf, release, folder), {}, namespaces=known)
    fallen = manager.draws = LoadedDice("p")
    ours, pulsars = [], []
    for number in range(0xF0, 0xF0 + 6):
        bundle = f"{dice.choice(('t/a', 't/b', 't/c'))}/0x{number << 24:08x}_0x{(number + 1) << 24:08x}"
        theirs = classes.ask("modular.assign", id=opened, bundle=bundle)
        fallen.wanted, fallen.ties = {bundle: theirs["broker"]}, {bundle: frozenset(theirs["ties"])}
        answer = manager.assign(None, bundle)
        ours.append(answer.broker if isinstance(answer, Assigned) else None)
        pulsars.append(theirs["broker"])
    classes.ask("close", id=opened)
    return Compared(
        {"conf": conf, "state": state, "isolated": isolated, "grouped": grouped}, ours, pulsars, is_acting=True
    )


def _split_modular(classes: Classes, dice: random.Random, release: str, folder: Path) -> Compared:
    """Compare the bundles that the leader splits, with their owners."""
    conf = {
        "loadBalancerNamespaceBundleMaxMsgRate": str(dice.choice((2_000, 4_000, 30_000))),
        "loadBalancerNamespaceBundleMaxSessions": str(dice.choice((20, 1_000))),
        "loadBalancerNamespaceBundleMaxTopics": str(dice.choice((25, 1_000))),
        "loadBalancerNamespaceBundleMaxBandwidthMbytes": str(dice.choice((60, 100))),
    }
    brokers = _brokers(dice, dice.randint(2, 8), 1)
    means = _filled(dice, brokers, idle=0.1)
    state = {"brokers": brokers, "bundles": means}
    # As many as the namespaces are said to have, whatever bundles the state names: there is room for all.
    policy = policy_of(conf | {"loadBalancerNamespaceMaximumBundles": "100000"}, release, folder)
    spaces = {name: {"boundaries": [f"0x{b:08x}" for b in equal_boundaries(0x100)]} for name in _NAMESPACES}
    asked = {**conf, "loadBalancerNamespaceMaximumBundles": "100000"}
    theirs = classes.ask("split.modular", conf=asked, namespaces=spaces, state=state)["split"]
    report = _loaded(state, policy, {}).split_bundles()
    ours = {} if report is None else {split.bundle: split.source for split in report.accepted}
    return Compared({"conf": conf, "state": state}, ours, theirs, bool(ours or theirs))


# Parts of the extensible manager


def _published(dice: random.Random, count: int) -> dict[str, State]:
    """Draw what brokers of the extensible manager publish; no two bundles are alike to TopKBundles."""
    brokers: dict[str, State] = {}
    number, size = 0, 0x1_0000_0000 // 0x400
    steps = dice.sample(range(1, 400), 120)
    for index in range(count):
        usage = round(dice.choice((dice.uniform(0, 1.3), dice.uniform(0, 0.4))), 4)
        listed = []
        for _ in range(dice.choice((0, 1, 3, 10))):
            # Steps of TopKBundles are 100 kB/s.
            figures = {"msgThroughputIn": 200_000.0 * steps.pop(), "msgThroughputOut": 0.0}
            listed.append((f"t/a/0x{number * size:08x}_0x{(number + 1) * size:08x}", figures))
            number += 1
        listed.sort(key=lambda entry: entry[1]["msgThroughputIn"])
        total = sum(figures["msgThroughputIn"] for _, figures in listed)
        brokers[f"b{index:02}:8080"] = {
            **{key: [0.0, 100.0] for key in _KEYS},
            "cpu": [100.0 * usage, 100.0],
            "maxResourceUsage": usage,
            "weightedMaxEMA": usage,
            "msgThroughputEMA": total,
            "msgThroughputIn": total,
            "updatedAt": -3,
            "bundles": listed,
        }
    return brokers


def _transfer(classes: Classes, dice: random.Random, release: str, folder: Path) -> Compared:
    """Compare what TransferShedder moves in several cycles, four minutes apart."""
    conf = dict(_EXTENSIBLE)
    if dice.random() < 0.5:
        conf |= {
            "loadBalancerBrokerLoadTargetStd": str(round(dice.uniform(0.05, 0.4), 3)),
            "loadBalancerSheddingConditionHitCountThreshold": str(dice.randint(0, 3)),
            "loadBalancerMaxNumberOfBrokerSheddingPerCycle": str(dice.randint(1, 5)),
            "loadBalancerTransferEnabled": dice.choice(("true", "false")),
        }
    cycles = [{"brokers": _published(dice, dice.randint(2, 10)), "now": 4 * index} for index in range(6)]
    answer = classes.ask("transfer", conf=conf, cycles=cycles)["cycles"]
    policy, memory = policy_of(conf, release, folder), dict[str, dict[str, Any]]()
    unloaded: dict[str, int] = {}
    ours, pulsars = [], []
    for cycle, theirs in zip(cycles, answer, strict=True):
        brokers: Any = cycle["brokers"]
        manager = published_to(brokers, policy, memory, _NOW_US + int(str(cycle["now"])) * _MINUTE_US)
        vars(manager)["_unloaded"].update(unloaded)
        report = manager.shed()
        accepted = () if report is None else report.accepted
        unloaded |= manager.view().unloaded
        ours.append(_ranked(brokers, [(unload.bundle, unload.source, unload.destination) for unload in accepted]))
        pulsars.append(_ranked(brokers, [(bundle, source, to) for bundle, source, to, _ in theirs["unloads"]]))
    return Compared({"conf": conf, "cycles": cycles}, ours, pulsars, any(ours) or any(pulsars))


def _ranked(brokers: Mapping[str, State], moves: list[tuple[str, str, str | None]]) -> list[Any]:
    """Return moves with the ranks of their bundles in place of the names."""
    stats = {bundle: _stats(given).rank for report in brokers.values() for bundle, given in report["bundles"]}
    return sorted((stats[bundle], source, str(to)) for bundle, source, to in moves)


def published_to(
    brokers: Mapping[str, State], policy: Policy, memory: dict[str, dict[str, Any]], now_us: int = _NOW_US
) -> LoadManager:
    """Return a manager of ours that knows what brokers have published."""
    roster = Roster([Broker(name, _lookup_data(report)) for name, report in brokers.items()])
    manager = LoadManager(policy, "parity", roster)
    manager.memory = memory
    manager.begin_tick(now_us)
    manager.set_registry(roster, np.ones(len(roster), dtype=np.bool_))
    stats = {bundle: _stats(given) for report in brokers.values() for bundle, given in report.get("bundles", ())}
    manager.restore({bundle: name for name, report in brokers.items() for bundle, _ in report.get("bundles", ())})

    def column(key: str, default: float = 0.0) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.array([report.get(key, default) for report in brokers.values()], dtype=np.float64)

    manager.set_load(
        Load(
            usage=column("weightedMaxEMA"),
            max_usage=column("maxResourceUsage"),
            throughput=column("msgThroughputIn"),
            smoothed_throughput=column("msgThroughputEMA"),
            topics=column("topics").astype(np.int64),
            top_bundles=[
                ascending(
                    BundleLoad(bundle, given.get("msgThroughputIn", 0.0)) for bundle, given in report.get("bundles", ())
                )
                for report in brokers.values()
            ],
            traffic=Traffic(stats),
            bundle_unit="bytes/s",
        )
    )
    return manager


def _lookup_data(report: Mapping[str, Any]) -> BrokerLookupData:
    return BrokerLookupData(
        start_timestamp=report.get("startTimestamp", 0),
        broker_version=report.get("brokerVersion"),
        load_manager_class_name=report.get("loadManagerClassName", _EXTENSIBLE["loadManagerClassName"]),
    )


def _place_extensible(classes: Classes, dice: random.Random, release: str, folder: Path) -> Compared:
    """Compare all candidates of which the extensible manager draws one."""
    conf = {
        **_EXTENSIBLE,
        "loadBalancerAverageResourceUsageDifferenceThresholdPercentage": str(dice.choice((0, 5, 10, 30))),
    }
    brokers = _published(dice, dice.randint(1, 12))
    bundle, candidates = "t/new/0x00000000_0xffffffff", sorted(brokers)
    answer = classes.ask("place.extensible", conf=conf, brokers=brokers, candidates=candidates, bundle=bundle)
    policy = replace(policy_of(conf, release, folder), filters=())
    ballot, _ = published_to(brokers, policy, {}).decide(request_of(None, bundle, LookupOptions()))
    return Compared({"conf": conf, "brokers": brokers}, sorted(ballot.odds), sorted(answer["ties"]), len(brokers) > 1)


#: Class of a filter, by the name of our part.
_FILTERS = {
    "load-manager-class": "BrokerLoadManagerClassFilter",
    "max-topics": "BrokerMaxTopicCountFilter",
    "version": "BrokerVersionFilter",
}


def _filter(part: str) -> Callable[..., Compared]:
    """Return the comparison of a filter of the extensible manager."""

    def compared(classes: Classes, dice: random.Random, release: str, folder: Path) -> Compared:
        """Compare the brokers that are left."""
        conf = {**_EXTENSIBLE, "preferLaterVersions": "true", "loadBalancerBrokerMaxTopics": "100"}
        managers = (_EXTENSIBLE["loadManagerClassName"], f"{IMPL}ModularLoadManagerImpl")
        brokers = {
            f"b{n}:8080": {
                "loadManagerClassName": dice.choice(managers),
                "startTimestamp": dice.randint(1, 1_000_000),
                "brokerVersion": f"{dice.randint(3, 5)}.{dice.randint(0, 2)}.{dice.randint(0, 3)}",
                "topics": dice.choice((0, 99, 100, 101, 500)),
            }
            for n in range(dice.randint(2, 8))
        }
        # Lookups go to brokers of the class of the one that started last, so it is that class that filters.
        newest = max(brokers.values(), key=lambda one: one["startTimestamp"])
        conf["loadManagerClassName"] = newest["loadManagerClassName"]
        bundle = "t/a/0x00000000_0xffffffff"
        name = f"{EXTENSIONS}filter.{_FILTERS[part]}"
        theirs = classes.ask("filters", conf=conf, filter=name, brokers=brokers, bundle=bundle)["left"]
        policy = policy_of({**conf, **_EXTENSIBLE}, release, folder)
        manager = published_to(brokers, policy, {})
        instant = manager.instant()
        index = next(n for n, one in enumerate(policy.filters) if one.name == part)
        mask = policy.apply_filter(index, request_of(None, bundle, LookupOptions()), instant.offered, instant)
        ours = sorted(instant.offered.subset(mask).ids)
        return Compared({"conf": conf, "brokers": brokers}, ours, sorted(theirs), len(ours) < len(brokers))

    return compared


def _top_k(classes: Classes, dice: random.Random, release: str, folder: Path) -> Compared:
    """Compare the names of the top bundles, in order; no two are alike."""
    steps = dice.sample(range(1, 500), dice.randint(0, 100))
    size = 0x1_0000_0000 // 0x100
    bundles = {
        f"{dice.choice(_NAMESPACES)}/0x{n * size:08x}_0x{(n + 1) * size:08x}": {"msgThroughputIn": 100_000.0 * step}
        for n, step in enumerate(steps)
    }
    k = dice.randint(1, 20)
    theirs = classes.ask("topk", conf=_EXTENSIBLE, k=k, bundles=bundles)["bundles"]
    ours = top_bundles({name: _stats(given) for name, given in bundles.items()}, k)
    return Compared({"k": k, "bundles": bundles}, ours, theirs, bool(bundles))


def _bundle(classes: Classes, dice: random.Random, release: str, folder: Path) -> Compared:
    """Compare the bundle of topics by the hash of their names."""
    inner = sorted(dice.sample(range(1, 0xFFFFFFFF), dice.randint(0, 70)))
    bounds = [0, *inner, 0xFFFFFFFF]
    topics = [f"persistent://t/a/topic-{dice.randrange(10**9)}-partition-{n}" for n in range(20)]
    written = [f"0x{bound:08x}" for bound in bounds]
    theirs = classes.ask("bundle", namespace="t/a", boundaries=written, topics=topics)
    ours = {topic: f"t/a/{bundle_of(topic, bounds)}" for topic in topics}
    return Compared({"boundaries": written, "topics": topics}, ours, theirs, is_acting=True)


def _split_extensible(classes: Classes, dice: random.Random, release: str, folder: Path) -> Compared:
    """Compare the bundles that one broker splits in several cycles, and why."""
    conf = {
        **_EXTENSIBLE,
        "loadBalancerNamespaceBundleSplitConditionHitCountThreshold": str(dice.randint(0, 2)),
        "loadBalancerMaxNumberOfBundlesToSplitPerCycle": "1000",
        "loadBalancerNamespaceBundleMaxTopics": str(dice.choice((25, 1_000))),
        "loadBalancerNamespaceMaximumBundles": "100000",
    }
    spaces = {"t/a": {"boundaries": [f"0x{bound:08x}" for bound in equal_boundaries(16)]}}
    names = [
        f"t/a/{low}_{high}"
        for low, high in zip(spaces["t/a"]["boundaries"], spaces["t/a"]["boundaries"][1:], strict=False)
    ]
    cycles = []
    for _ in range(5):
        busy = {name: dice.choice((0.0, 5_000.0, 20_000.0, 40_000.0)) for name in names}
        cycles.append(
            {
                "bundles": {
                    name: {
                        "msgRateIn": rate,
                        "topics": dice.choice((0, 1, 5, 30)),
                        "producerCount": dice.choice((5, 1_200)),
                    }
                    for name, rate in busy.items()
                }
            }
        )
    answer = classes.ask("split.extensible", conf=conf, namespaces=spaces, topics=[], cycles=cycles)["cycles"]
    policy, memory = policy_of(conf, release, folder), dict[str, dict[str, Any]]()
    ours, pulsars = [], []
    for cycle, theirs in zip(cycles, answer, strict=True):
        manager = published_to(
            {"b0:8080": {"bundles": list(cycle["bundles"].items())}} | {"b1:8080": {}}, policy, memory
        )
        stats = {name: _stats(given) for name, given in cycle["bundles"].items()}
        shown = replace(Load.unknown(2), traffic=Traffic(stats, {}, {"t/a": 16}))
        manager.set_load(shown)
        report = manager.split_bundles()
        ours.append(sorted(split.bundle for split in (() if report is None else report.accepted)))
        pulsars.append(sorted(theirs["splits"]))
    return Compared({"conf": conf, "cycles": cycles}, ours, pulsars, any(ours) or any(pulsars))


def _parts() -> Iterator[tuple[str, Callable[..., Compared]]]:
    kinds = {"one": "one resource", "five": "five resources", "weights": "weights", "idle": "a quarter idle"}
    for shedder in _MODULAR_SHEDDERS:
        for kind, words in kinds.items():
            yield f"{shedder}, {words}", _shed(shedder, kind)
    for placement in ("LeastLongTermMessageRate", "LeastResourceUsageWithWeight"):
        for kind in ("one", "five", "weights"):
            yield f"{placement}, {kinds[kind]}", _place(placement, kind)
    yield "ModularLoadManagerImpl.selectBrokerForAssignment, six in a row", _assignment
    yield "BundleSplitterTask", _split_modular
    yield "TransferShedder", _transfer
    yield "LeastResourceUsageWithWeight of the extensible manager", _place_extensible
    for part, name in _FILTERS.items():
        yield name, _filter(part)
    yield "TopKBundles", _top_k
    yield "DefaultNamespaceBundleSplitStrategyImpl", _split_extensible
    yield "the bundle of a topic", _bundle


#: What compares one drawn state, by the part's name.
PARTS: Mapping[str, Callable[..., Compared]] = dict(_parts())
