"""One decision of the policy `rack-then-load`: the engine against the bare loop, in turns, on the same requests."""

from __future__ import annotations

import gc
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

import numpy as np
from bare import BareAnswer, BareCluster, decide

from lookup.engine.build import build_policies
from lookup.engine.manager import LoadManager
from lookup.engine.plugins import load_plugins
from lookup.engine.policy import Ballot, Instant, Policy
from lookup.model.broker import EXTENSIBLE_MANAGER, Broker, BrokerLookupData, Roster
from lookup.model.bundles import bundle_of, equal_boundaries
from lookup.model.load import Load
from lookup.model.request import LookupOptions, LookupRequest, request_of
from lookup.settings.policy import PolicySpec

__all__ = ["DecisionTimes", "measure_decision"]

#: Timed calls of each kind, and calls before them that do not count.
_CALLS, _WARM_UP = 2_000, 200
_RACKS = ("a", "b", "c")
_NAMESPACES = [f"tenant-{number % 4}/ns-{number}" for number in range(16)]


@dataclass(frozen=True)
class DecisionTimes:
    """Microseconds of single decisions over the same requests: (p50, p99) of each way."""

    brokers: int
    engine: tuple[float, float]
    bare: tuple[float, float]
    #: the same decision again under one fingerprint
    cached: tuple[float, float]
    #: a whole lookup of an unowned bundle: decision, dice, ownership, records
    assign: tuple[float, float]

    @property
    def ratio(self) -> float:
        """Return the engine's p50 over the bare loop's."""
        return self.engine[0] / self.bare[0]


def measure_decision(n_brokers: int) -> DecisionTimes:
    """Time single decisions in a cluster of so many brokers; the answers of both ways are compared first."""
    policy, roster, requests = _policy(), _roster(n_brokers), _requests()
    manager = _manager(policy, roster)
    instant = Instant(policy, manager.view())
    bare = _bare(roster, manager)
    for request in requests:
        _agree(policy.ballot(request, instant), decide(request, bare))
    many = list(islice(cycle(requests), _CALLS + _WARM_UP))

    def ballot(request: LookupRequest) -> object:
        """Decide as if nothing had been asked at this instant before."""
        instant.answers.clear()
        return policy.ballot(request, instant)

    uncached, floor = _timed(many, ballot, lambda request: decide(request, bare))
    (cached,) = _timed(many, manager.decide)
    bundles = iter(range(len(many)))
    (assign,) = _timed(
        many,
        lambda request: manager.assign(
            request.topic, f"{request.namespace}/{next(bundles)}", LookupOptions(properties=request.properties)
        ),
    )
    return DecisionTimes(n_brokers, uncached, floor, cached, assign)


def _timed(requests: list[LookupRequest], *ways: Callable[[LookupRequest], object]) -> list[tuple[float, float]]:
    """Call every way in turn for each request, so that whatever else the machine does falls on all of them."""
    clock, spent = time.perf_counter_ns, [[0] * len(requests) for _ in ways]
    gc.collect()
    for place, request in enumerate(requests):
        for way, times in zip(ways, spent, strict=True):
            begin = clock()
            way(request)
            times[place] = clock() - begin
    return [_quantiles(times[_WARM_UP:]) for times in spent]


def _quantiles(times_ns: list[int]) -> tuple[float, float]:
    p50, p99 = np.quantile(np.array(times_ns) / 1000.0, [0.5, 0.99]).tolist()
    return p50, p99


def _policy() -> Policy:
    """Build `rack-then-load` from the benchmark's own evaluation."""
    table = tomllib.loads((Path(__file__).parent / "evaluation-4.toml").read_text())
    specs = [PolicySpec.model_validate(entry) for entry in table["policies"] if entry["name"] == "rack-then-load"]
    return build_policies(load_plugins(), specs)[0]


def _roster(n_brokers: int) -> Roster:
    return Roster(
        [
            Broker(
                f"broker-{number:04}:8080",
                BrokerLookupData(
                    load_manager_class_name=EXTENSIBLE_MANAGER,
                    broker_version="4.1.0",
                    properties={"lookup.rack": _RACKS[number % 3]},
                ),
            )
            for number in range(n_brokers)
        ]
    )


def _manager(policy: Policy, roster: Roster) -> LoadManager:
    """Put the policy to work over registered brokers that have reported uneven loads; a few serve too many topics."""
    dice = np.random.default_rng(1)
    manager = LoadManager(policy, "bench", roster)
    manager.begin_tick(0)
    manager.set_registry(roster, np.ones(len(roster), dtype=bool))
    usage = dice.uniform(0.1, 1.1, len(roster))
    topics = np.where(dice.random(len(roster)) < 0.05, 60_000, 1_000)
    manager.set_load(Load(usage, usage * 100.0, topics, [()] * len(roster)))
    return manager


def _bare(roster: Roster, manager: LoadManager) -> BareCluster:
    view = manager.view()
    return BareCluster(
        brokers=list(roster),
        usage={broker.id: float(view.load.usage[number]) for number, broker in enumerate(roster)},
        topics={broker.id: int(view.load.topics[number]) for number, broker in enumerate(roster)},
        expected_class=EXTENSIBLE_MANAGER,
    )


def _requests() -> list[LookupRequest]:
    """Return requests of all namespaces from all racks, and of clients without one."""
    boundaries = equal_boundaries(64)
    topics = [(namespace, f"persistent://{namespace}/topic") for namespace in _NAMESPACES]
    return [
        request_of(topic, f"{namespace}/{bundle_of(topic, boundaries)}", LookupOptions(properties=properties))
        for namespace, topic in topics
        for properties in ({"rack": "a"}, {"rack": "b"}, {"rack": "c"}, {})
    ]


def _agree(ballot: Ballot, answer: BareAnswer) -> None:
    """Stop where the two ways differ: times of different answers mean nothing."""
    same = dict(ballot.odds) == answer.odds and ballot.ties == answer.ties
    rejected = {str(reason): count for reason, count in ballot.rejected.items()}
    if not same or rejected != answer.rejected or not _close(ballot.margin, answer.margin):
        raise SystemExit(f"the engine and the bare loop disagree: {ballot} against {answer}")


def _close(left: float | None, right: float | None) -> bool:
    return left is right is None or (left is not None and right is not None and abs(left - right) < 1e-12)
