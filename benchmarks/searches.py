"""Searches whose answer is known: among equals nothing may be recommended, and what is bad on purpose should be found.

    python benchmarks/searches.py equals --logs 100
    python benchmarks/searches.py nothing --logs 20
    python benchmarks/searches.py power --logs 20
    python benchmarks/searches.py coverage --logs 100
    python benchmarks/searches.py stable --pairs 10

A line for each log, and a sum; seven seconds of one core each, or ten. Coverage asks whether intervals of what is
recommended hold what it brings on other logs of the same kind; these are replayed for all recommendations together,
half an hour.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import lookup
from lookup.logs.jobs import InProcess

#: A selector that goes by a hash alone: its number is luck, and nothing else.
_LUCKY = """
from dataclasses import dataclass
from typing import Annotated, ClassVar
from zlib import crc32

import numpy as np

from lookup.hooks import Ge, Le, hookimpl


@dataclass(frozen=True)
class Lucky:
    name: ClassVar[str] = "lucky"
    reads: ClassVar[frozenset[str]] = frozenset({"bundle", "view.salt"})
    number: Annotated[int, Ge(0), Le(1000)] = 0

    def odds(self, request, brokers, scores, view):
        odds = np.zeros(len(brokers))
        odds[crc32(f"{request.bundle}|{view.salt}|{self.number}".encode()) % len(brokers)] = 1.0
        return odds


@hookimpl
def lookup_register_selectors():
    return [Lucky]
"""
_THRESHOLD = "loadBalancerBrokerThresholdShedderPercentage"
_MINIMUM = "loadBalancerBundleUnloadMinThroughputThreshold"
_HITS = "loadBalancerSheddingConditionHitCountThreshold"
_SHEDDER = "loadBalancerLoadSheddingStrategy"
#: Values of a threshold that is varied beside another setting.
_SOME = {"low": 5, "high": 20}
_EXTENSIBLE = "org.apache.pulsar.broker.loadbalance.extensions"


@dataclass(frozen=True)
class Way:
    """An incumbent that is bad on purpose, and the key that should be changed."""

    key: str
    spaces: tuple[str | dict[str, Any], ...]
    #: of a broker.conf
    conf: Mapping[str, float | str] = field(default_factory=dict)
    #: of a policy that comes from no broker.conf
    policy: Mapping[str, Any] = field(default_factory=dict)
    #: of the brokers, in the unit of their usage
    capacities: tuple[float, ...] = (0.06,) * 4
    objectives: tuple[str, ...] | None = None
    rack: bool = False
    #: of each of the four namespaces
    bundles: int = 16


_WAYS = {
    "minimum": Way(_MINIMUM, ("shipped:threshold",), {_THRESHOLD: 5, _MINIMUM: 40}),
    "threshold": Way(_THRESHOLD, ("shipped:threshold",), {_THRESHOLD: 60, _MINIMUM: 0.5}),
    "hits": Way(
        _HITS,
        ("shipped:transfer",),
        {
            "loadManagerClassName": f"{_EXTENSIBLE}.ExtensibleLoadManagerImpl",
            _SHEDDER: f"{_EXTENSIBLE}.scheduler.TransferShedder",
            "loadBalancerLoadPlacementStrategy": f"{_EXTENSIBLE}.strategy.LeastResourceUsageWithWeight",
            _HITS: 400,
        },
    ),
    # Rates are made equal, which is too much for the two small machines.
    "shedder": Way(
        _SHEDDER,
        ("shipped:threshold", "shipped:uniform"),
        {
            _SHEDDER: "org.apache.pulsar.broker.loadbalance.impl.UniformLoadShedder",
            "loadBalancerMsgRateDifferenceShedderThreshold": 10,
        },
        capacities=(0.02, 0.02, 0.06, 0.06),
        objectives=("overload_ratio",),
    ),
    # Of eight bundles two of the six brokers have two, whatever the shedder does.
    "bundles": Way(
        "defaultNumberOfNamespaceBundles",
        ({"name": "bundles", "vary": {"defaultNumberOfNamespaceBundles": [2, 4, 8, 16, 32, 64], _THRESHOLD: _SOME}},),
        {_THRESHOLD: 10, _MINIMUM: 0.5},
        capacities=(0.04,) * 6,
        bundles=2,
    ),
    "locality": Way(
        "scorers[0].weight",
        ({"name": "weights", "vary": {"scorers[0].weight": {"low": 0.0, "high": 1.0}}},),
        policy={
            "scorers": [{"use": "property-match", "key": "rack", "weight": 0.0}, {"use": "headroom", "weight": 0.3}],
            "selector": "best",
        },
        objectives=("match_ratio:rack",),
        rack=True,
    ),
}
#: Brokers so large that no shedder of Pulsar's ever finds one of them above the others.
_NOTHING = Way("nothing", ("shipped:threshold",), {_THRESHOLD: 10, _MINIMUM: 10}, capacities=(60.0,) * 4)
_FIGURE = "imbalance_max_mean"
_START = datetime(2026, 3, 2, tzinfo=UTC)
#: Share of topics whose clients are in the other rack than most of their namespace's.
_STRAYS = 0.1
#: Logs on which recommendations are tried, and replicates on each.
_FRESH, _DICE = 8, 25


def _equals(seed: int, folder: Path) -> tuple[str, dict[str, Any]]:
    """Search 64 settings that differ in their luck alone, over two days of six brokers, three of which are lost."""
    losses = {"losses": 3, "joins": 0, "leaves": 0}
    log = folder / "log"
    lookup.generate(log, seed=seed, hours=48, lookups=20_000, clusters=1, brokers=6, topics=400, **losses)
    (folder / "lucky.py").write_text(_LUCKY)
    evaluation = {
        "evaluation": {"incumbent": "today", "session_s": 3600, "tick_s": 600},
        "inputs": {"lookups": str(log / "lookups"), "brokers": str(log / "brokers")},
        "plugin_files": [str(folder / "lucky.py")],
        "policies": [{"name": "today", "selector": {"use": "lucky", "number": 0}}],
    }
    space = {"name": "luck", "vary": {"selector.number": {"low": 1, "high": 1000}}}
    search = {"tune": {"evaluation": evaluation, "candidates": 64}, "spaces": [space]}
    return "luck", lookup.tune(search, output=folder / "out", workers=InProcess()).document()


def restarts(seed: int, folder: Path, way: Way) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return a log of two days in which brokers restart one by one, and the evaluation of what is today."""
    topics, hours = 256, 48
    dice = np.random.default_rng(seed)
    hour = np.repeat(np.arange(hours), topics)
    names = [f"persistent://shop/orders-{number % 4}/topic-{number}" for number in range(topics)]
    times = pd.to_timedelta(3600 * hour + dice.uniform(0, 3600, len(hour)), unit="s")
    weights = dice.lognormal(0, 0.5, topics)
    # Most clients of a namespace are in one rack.
    strays = dice.random(topics) < _STRAYS
    racks = [f'{{"rack":"{"ab"[(number + code) % 2]}"}}' if way.rack else "{}" for number, code in enumerate(strays)]
    log = pd.DataFrame(
        {
            "ts": pd.Timestamp(_START) + times,
            "cluster": "east",
            "topic": np.tile(names, hours),
            "weight": np.tile(weights, hours),
            "properties": np.tile(racks, hours),
        }
    ).sort_values("ts")
    brokers = []
    for number, capacity in enumerate(way.capacities):
        down = _START + timedelta(hours=3 + 12 * number)
        broker = {"id": f"broker-{number}:8080", "capacity": capacity, "properties": {"lookup.rack": "ab"[number % 2]}}
        brokers += [broker | {"until": down}, broker | {"from": down + timedelta(minutes=10)}]
    today = {"name": "today", **way.policy}
    if way.conf:
        (folder / "broker.conf").write_text("".join(f"{name}={value}\n" for name, value in way.conf.items()))
        today["from_broker_conf"] = str(folder / "broker.conf")
    rules = {"session_s": 3600, "tick_s": 600, "default_bundles": way.bundles, "bytes_per_weight": 1.77e9}
    return log, {"evaluation": {"incumbent": "today", **rules}, "policies": [today], "brokers": brokers}


def _power(seed: int, way: Way, folder: Path, draw: int = 0) -> tuple[str, dict[str, Any]]:
    """Search from an incumbent with one value bad on purpose."""
    log, evaluation = restarts(seed, folder, way)
    evaluation["evaluation"]["draw"] = draw
    tune: dict[str, Any] = {"evaluation": evaluation, "candidates": 32}
    if way.objectives is not None:
        tune["objectives"] = list(way.objectives)
    search = {"tune": tune, "spaces": list(way.spaces)}
    return way.key, lookup.tune(search, log, output=folder / "out", workers=InProcess()).document()


@dataclass(frozen=True)
class _Promise:
    """What a search recommends first: changes, and the intervals of its gain by the search and by the sealed days."""

    changes: dict[str, Any]
    search: tuple[float, float]
    sealed: tuple[float, float]
    sealed_s: int


def _coverage(logs: int) -> None:
    """Compare intervals with what recommendations bring on fresh logs, over the hours of the search and the others."""
    promises = []
    for seed in range(1, logs + 1):
        with tempfile.TemporaryDirectory() as folder:
            _, found = _power(seed, _WAYS["minimum"], Path(folder))
        for best in found["recommended"][:1]:
            spans = {days: (best[days][_FIGURE]["low"], best[days][_FIGURE]["high"]) for days in ("search", "sealed")}
            began = datetime.fromisoformat(found["sealed_from"])
            promises.append(_Promise(best["changes"], **spans, sealed_s=round((began - _START).total_seconds())))
        print(seed, len(found["recommended"]), *promises[-1:], flush=True)
    for days in ("search", "sealed"):
        gains = np.mean([_gains(1000 + log, promises, days) for log in range(_FRESH)], axis=0)
        spans = [getattr(promise, days) for promise in promises]
        held = sum(low <= gain <= high for gain, (low, high) in zip(gains, spans, strict=True))
        above = sum(low > gain for gain, (low, _) in zip(gains, spans, strict=True))
        middle = np.mean([(low + high) / 2 for low, high in spans])
        print(
            f"{days}: of {len(promises)} recommendations the interval holds what is true of {held}, is above it for "
            f"{above}; mean gain promised {middle:.4f}, true {np.mean(gains):.4f}",
            flush=True,
        )


def _gains(seed: int, promises: Sequence[_Promise], days: str) -> list[float]:
    """Return by how much each promise lowers the figure on a fresh log, in the same hours of it."""
    # Many searches recommend the same.
    distinct = {(promise.sealed_s, repr(promise.changes)): promise for promise in promises}
    gains: dict[tuple[int, str], float] = {}
    with tempfile.TemporaryDirectory() as folder:
        log, evaluation = restarts(seed, Path(folder), _WAYS["minimum"])
        today = evaluation["policies"][0]
        for sealed_s in sorted({promise.sealed_s for promise in promises}):
            names = {key: f"p{number}" for number, key in enumerate(distinct) if key[0] == sealed_s}
            policies = [
                today,
                *({**today, "name": name, "broker_conf": distinct[key].changes} for key, name in names.items()),
            ]
            seal = _START + timedelta(seconds=sealed_s)
            span = {"until": seal.isoformat()} if days == "search" else {"warmup_s": sealed_s}
            rules = evaluation["evaluation"] | {"seeds": _DICE} | span
            settings = evaluation | {"policies": policies, "evaluation": rules}
            pooled = lookup.evaluate(log, settings=settings, workers=InProcess()).results.pooled
            before = pooled["today", _FIGURE, None].value
            gains |= {key: before - pooled[name, _FIGURE, None].value for key, name in names.items()}
    return [gains[promise.sealed_s, repr(promise.changes)] for promise in promises]


def _answers(found: Mapping[str, Any]) -> list[frozenset[str]]:
    """Return the keys that a search changes first, and those that it calls interchangeable with them."""
    if not found["recommended"]:
        return [frozenset()]
    best, *others = found["recommended"]
    same = [found["candidates"][number] for number in best["same"]["candidates"]]
    same += [one for one in others if one["candidate"] in best["as_good"] and best["candidate"] in one["as_good"]]
    return [frozenset(one["changes"]) for one in (best, *same)]


def _stable(pairs: int, ways: Sequence[str]) -> None:
    """Search each log with two draws of seeds, and count the pairs whose first answers change the same keys."""
    same = agreed = 0
    for seed in range(1, pairs + 1):
        way, found = ways[(seed - 1) % len(ways)], []
        for draw in (0, 1):
            with tempfile.TemporaryDirectory() as folder:
                found.append(_power(seed, _WAYS[way], Path(folder), draw)[1])
        a, b = map(_answers, found)
        same += a[0] == b[0]
        agreed += a[0] in b or b[0] in a
        print(seed, way, a[0] == b[0], a[0] in b or b[0] in a, *(sorted(of[0]) for of in (a, b)), flush=True)
    print(f"{pairs} pairs of draws: {same} with the same keys first, {agreed} with these or interchangeable ones")


def _searched(kind: str, logs: range, ways: Sequence[str]) -> Iterator[tuple[int, str, dict[str, Any]]]:
    for seed in logs:
        for way in ways if kind == "power" else [""]:
            with tempfile.TemporaryDirectory() as folder:
                if kind == "equals":
                    found = _equals(seed, Path(folder))
                else:
                    found = _power(seed, _WAYS[way] if way else _NOTHING, Path(folder))
                written = json.loads((Path(folder) / "out" / "tune.json").read_text())
            assert written == found[1], "tune.json is what was found"
            yield seed, *found


def main() -> None:
    """Search, print a line for each, and a sum."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("equals", "nothing", "power", "coverage", "stable"))
    parser.add_argument("--logs", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=10, help="of `stable`")
    parser.add_argument("--ways", nargs="+", choices=list(_WAYS), default=list(_WAYS), help="of `power`")
    options = parser.parse_args()
    if options.kind == "coverage":
        _coverage(options.logs)
        return
    if options.kind == "stable":
        _stable(options.pairs, options.ways)
        return
    searches = recommended = right = finalists = apart = sealed_apart = 0
    for seed, key, found in _searched(options.kind, range(1, options.logs + 1), options.ways):
        searches += 1
        answers = found["recommended"]
        recommended += bool(answers)
        right += bool(answers) and key in answers[0]["changes"]
        spans = []
        if options.kind != "power" and found["finalists"]:
            best = found["finalists"][0]
            spans = [(best[days][_FIGURE]["low"], best[days][_FIGURE]["high"]) for days in ("search", "sealed")]
            finalists += 1
            apart += not spans[0][0] <= 0 <= spans[0][1]
            sealed_apart += not spans[1][0] <= 0 <= spans[1][1]
        print(seed, key, f"recommended {len(answers)}", *spans, flush=True)
    print(f"{searches} searches, {recommended} with a recommendation, {searches - recommended} keep", end="")
    if options.kind == "power":
        print(f", {right} with the right key first")
        return
    print(
        f"; {finalists} with finalists: the interval of the first leaves 0 out in {apart} by the search, in "
        f"{sealed_apart} on sealed days"
    )


if __name__ == "__main__":
    main()
