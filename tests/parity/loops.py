"""Put whole managers side by side: a scenario minute by minute, once with our policy and once with Pulsar's manager."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lookup.engine.ballots import Ballot, Draws
from lookup.engine.build import build_policies
from lookup.engine.plugins import Registry, load_plugins
from lookup.engine.policy import Policy
from lookup.model import Decision, Roster
from lookup.settings.policy import PolicySpec
from lookup.simulation import Scenario
from lookup.simulation.load import MIB, MinuteLoad
from lookup.simulation.loop import MINUTE_US, START_US, ClosedLoop
from lookup.simulation.scenario import checked_scenario
from tests.parity.jvm import Classes

__all__ = ["LoadedDice", "Minute", "drawn_scenario", "free", "policy_of", "registry", "taught"]

#: (bundle, broker before or None, broker after or None)
Move = tuple[str, str | None, str | None]


@dataclass(frozen=True)
class Minute:
    """What one minute changed on either side, each sorted, and what Pulsar drew from."""

    ours: tuple[Move, ...]
    pulsars: tuple[Move, ...]
    #: by bundle: the brokers of which Pulsar drew one
    ties: Mapping[str, frozenset[str]]
    #: brokers with bundles that are alike to Pulsar, which takes any of them
    twins: frozenset[str]

    @property
    def is_acting(self) -> bool:
        """Return whether either side did anything."""
        return bool(self.ours or self.pulsars)

    @property
    def draws(self) -> bool:
        """Return whether Pulsar drew a destination at random, or took another one of several bundles that are alike."""
        return any(len(brokers) > 1 for brokers in self.ties.values()) or self.is_tied

    @property
    def is_tied(self) -> bool:
        """Return whether the sides differ only for brokers with bundles that are alike."""
        differing = {source for _, source, _ in set(self.ours) ^ set(self.pulsars)}
        return bool(differing) and differing <= self.twins

    @property
    def is_equal(self) -> bool:
        """Return whether both sides did the same."""
        return self.ours == self.pulsars


def policy_of(conf: Mapping[str, str], release: str, folder: Path) -> Policy:
    """Return the policy that a `broker.conf` with these keys describes."""
    file = folder / "broker.conf"
    file.write_text("".join(f"{key}={value}\n" for key, value in conf.items()), encoding="latin-1")
    spec = PolicySpec.model_validate({"name": "p", "from_broker_conf": str(file), "pulsar": release})
    return build_policies(registry(), [spec])[0]


@cache
def registry() -> Registry:
    """Return the plug-ins."""
    return load_plugins()


def drawn_scenario(seed: int, *, is_steady: bool) -> Scenario:
    """Draw a cluster with a load that is out of balance; no two brokers or bundles are alike.

    Args:
        is_steady: leave out waves, jitter, and brokers that leave and join.
    """
    dice = random.Random(seed)
    count = dice.randint(2, 8)
    brokers = [
        {"id": f"b{n}:8080", "capacity": round(dice.uniform(60, 300), 3), "busy": round(dice.uniform(0, 0.2), 4)}
        for n in range(count)
    ]
    namespaces = []
    spaces = dice.randint(1, 3)
    # Where all brokers are overloaded Pulsar draws one, and a loop that is left alone goes its own way.
    usage = dice.uniform(0.25, 0.75) * sum(float(entry["capacity"]) for entry in brokers) / spaces
    for n in range(spaces):
        bundles = dice.randint(8, 25)
        entry = {
            "name": f"t/n{n}",
            "bundles": bundles,
            "topics": bundles * dice.randint(1, 6),
            "load": round(dice.uniform(0.7, 1.1) * usage, 3),
            "skew": round(dice.uniform(0.2, 1.2), 3),
        }
        if not is_steady:
            entry |= {"jitter": round(dice.uniform(0, 0.4), 3)}
        namespaces.append(entry)
    total = sum(int(entry["bundles"]) for entry in namespaces)
    # Brokers without any bundle would tie.
    owners = {str(entry["id"]): 1 for entry in brokers}
    shares = [dice.random() ** 2 for _ in brokers]
    for name in dice.choices(list(owners), shares, k=max(0, total - count)):
        owners[name] += 1
    events: list[dict[str, Any]] = []
    if not is_steady and count > 2:
        leaver = str(brokers[dice.randrange(1, count)]["id"])
        at = dice.randint(5, 25)
        events = [{"at": at, "leave": [leaver]}, {"at": at + dice.randint(3, 20), "join": [leaver]}]
        events.append({"at": dice.randint(1, 50), "factor": round(dice.uniform(0.5, 2.0), 3), "namespace": "t/n0"})
    written = {
        "about": f"drawn with seed {seed}",
        "minutes": 60,
        "window": 1,
        "owners": {name: many for name, many in owners.items() if many},
        "brokers": brokers,
        "namespaces": namespaces,
        "events": events,
        "policies": [{"name": "p", "selector": "random"}],
    }
    return checked_scenario(written, f"scenario {seed}")


def free(classes: Classes, scenario: Scenario, policy: Policy, conf: Mapping[str, str]) -> Iterator[Minute]:
    """Let both sides run a scenario by themselves, and yield what each minute changed."""
    loop, theirs = ClosedLoop(scenario, policy), _Pulsars(classes, scenario, conf)
    for minute in range(scenario.minutes):
        before = dict(_owners(loop))
        load = loop.report(minute)
        loop.change()
        loop.look_up(load, load.loads)
        twins = theirs.twins(load, theirs.owners)
        moves, ties = theirs.minute(minute, load)
        yield Minute(_moves(before, dict(_owners(loop))), moves, ties, twins)
    theirs.close()


def taught(classes: Classes, scenario: Scenario, policy: Policy, conf: Mapping[str, str]) -> Iterator[Minute]:
    """Run a scenario as Pulsar does, and yield what each minute changed there and what ours would have changed.

    Where ours draws, it draws what Pulsar has drawn if that has any odds, so that one draw is no excuse for the next.
    """
    loop, theirs = ClosedLoop(scenario, policy), _Pulsars(classes, scenario, conf)
    dice = loop.manager.draws = LoadedDice(policy.name)
    for minute in range(scenario.minutes):
        _teach(loop, theirs)
        before = dict(_owners(loop))
        load = loop.report(minute)
        twins = theirs.twins(load, theirs.owners)
        moves, dice.ties = theirs.minute(minute, load)
        dice.wanted = {bundle: broker for bundle, _, broker in moves}
        # A bundle that was judged and stayed has drawn its owner.
        dice.wanted |= {
            bundle: before[bundle] for bundle in dice.ties if bundle in before and bundle not in dice.wanted
        }
        loop.change()
        loop.look_up(load, load.loads)
        yield Minute(_moves(before, dict(_owners(loop))), moves, dice.ties, twins)
    theirs.close()


class LoadedDice(Draws):
    """Dice that fall as Pulsar's fell, where that is possible."""

    def __init__(self, policy: str) -> None:
        super().__init__(policy, "scenario", 1)
        self.wanted: Mapping[str, str | None] = {}
        self.ties: Mapping[str, frozenset[str]] = {}

    def decision(self, bundle: str, ballot: Ballot, roster: Roster, fingerprint: str) -> Decision:
        """Return the decision for the broker that Pulsar has drawn, or an ordinary one if that has no odds."""
        wanted, drawn, odds = self.wanted.get(bundle), self.ties.get(bundle, frozenset()), ballot.odds.keys()
        # Our odds are those of choosing twice; Pulsar tells what it drew from, once or twice.
        if wanted is None or wanted not in odds or not (drawn <= odds or odds <= drawn):
            return super().decision(bundle, ballot, roster, fingerprint)
        return ballot.decision(self._policy, bundle, fingerprint, wanted)


def _teach(loop: ClosedLoop, theirs: _Pulsars) -> None:
    """Let our manager have the owners that Pulsar's has, and know what that has unloaded."""
    manager, numbers = loop.manager, {broker: number for number, broker in enumerate(loop.manager.roster.ids)}
    for bundle, number in list(manager.ownership):
        if numbers.get(theirs.owners.get(bundle, "")) != number:
            manager.ownership.take(bundle)
    for bundle, broker in theirs.owners.items():
        if manager.ownership.owner(bundle) is None:
            manager.ownership.give(bundle, numbers[broker])
    # Nobody but this comparison puts an unload into a manager's memory that it did not make itself.
    unloaded: dict[str, int] = vars(manager)["_unloaded"]
    unloaded.clear()
    unloaded.update({bundle: START_US + minute * MINUTE_US for bundle, minute in theirs.unloaded.items()})


def _owners(loop: ClosedLoop) -> Iterator[tuple[str, str]]:
    ids = loop.manager.roster.ids
    for bundle, number in loop.manager.ownership:
        yield bundle, ids[number]


def _moves(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Move, ...]:
    names = before.keys() | after.keys()
    changed = [name for name in names if before.get(name) != after.get(name)]
    return tuple(sorted((name, before.get(name), after.get(name)) for name in changed))


class _Pulsars:
    """A manager of Pulsar's in closed loop: reports are made of what its own owners carry."""

    def __init__(self, classes: Classes, scenario: Scenario, conf: Mapping[str, str]) -> None:
        self._classes, self._scenario = classes, scenario
        self._manager = "extensible" if "extensions" in conf.get("loadManagerClassName", "") else "modular"
        boundaries: dict[str, list[str]] = {}
        loop = ClosedLoop(scenario, Policy("none", None))  # type: ignore[arg-type]  # only its bundles and owners count
        self.owners = dict(_owners(loop))
        for name in loop.table.names():
            namespace, _, bounds = name.rpartition("/")
            low, _, high = bounds.partition("_")
            boundaries.setdefault(namespace, [low]).append(high)
        spaces = {namespace: {"boundaries": bounds} for namespace, bounds in boundaries.items()}
        self._id = classes.ask(f"{self._manager}.open", conf=dict(conf), namespaces=spaces)["id"]
        self._groups = {name: group for group in scenario.brokers for name in group.ids}
        self._away = {name for name, group in self._groups.items() if not group.present}
        #: minute of its last unload by bundle
        self.unloaded: dict[str, int] = {}

    def close(self) -> None:
        self._classes.ask("close", id=self._id)

    def minute(self, minute: int, load: MinuteLoad) -> tuple[tuple[Move, ...], dict[str, frozenset[str]]]:
        """Run a minute; return what it changed, and by bundle the brokers that were drawn from."""
        before = dict(self.owners)
        for event in self._scenario.events:
            if event.at == minute:
                self._away = (self._away | set(event.leave)) - set(event.join)
        self.owners = {bundle: broker for bundle, broker in self.owners.items() if broker not in self._away}
        cycle = {"modular": "modular.minute", "extensible": "extensible.cycle"}[self._manager]
        answer = self._classes.ask(cycle, id=self._id, now=minute, brokers=self._reports(load))
        for bundle, *_ in answer["unloads"]:
            del self.owners[bundle]
            self.unloaded[bundle] = minute
        ties = {bundle: frozenset(brokers) for bundle, brokers in answer.get("ties", {}).items()}
        named = [bundle for bundle, *_ in answer["unloads"]]
        if self._manager == "extensible":
            # Transferred at once; where no destination is named the next lookup decides.
            self.owners |= {bundle: to for bundle, _, to, _ in answer["unloads"] if to is not None}
            named = []
        lost = [bundle for bundle in load.loads if bundle not in self.owners and bundle not in set(named)]
        for bundle in [*named, *lost]:
            found = self._classes.ask(f"{self._manager}.assign", id=self._id, bundle=bundle)
            if found["broker"] is not None:
                self.owners[bundle] = found["broker"]
            if not found.get("affinity"):
                ties[bundle] = frozenset(found["ties"])
        return _moves(before, self.owners), ties

    def twins(self, load: MinuteLoad, owners: Mapping[str, str]) -> frozenset[str]:
        """Return the brokers with two bundles of one rank, which TopKBundles orders as a hash map does."""
        if self._manager == "modular":
            return frozenset()
        seen = Counter((owners[name], stats.rank) for name, stats in load.traffic.stats.items() if name in owners)
        return frozenset(broker for (broker, _), count in seen.items() if count > 1)

    def _reports(self, load: MinuteLoad) -> dict[str, Any]:
        bundles: dict[str, dict[str, Any]] = {name: {} for name in self._groups if name not in self._away}
        carried = dict.fromkeys(bundles, 0.0)
        for bundle, bytes_in_out in load.loads.items():
            owner = self.owners.get(bundle)
            if owner is not None:
                carried[owner] += bytes_in_out
                bundles[owner][bundle] = _stats(bytes_in_out, load.rates[bundle], load.traffic.stats[bundle].topics)
        reports = {}
        for name, found in bundles.items():
            group = self._groups[name]
            usage = carried[name] / (group.capacity * MIB) + group.busy
            reports[name] = {"cpu": [100.0 * usage, 100.0], "bundles": found}
            if self._manager == "extensible":
                # As the scenario has it: nothing is smoothed.
                means = {"maxResourceUsage": usage, "weightedMaxEMA": usage, "msgThroughputEMA": carried[name]}
                # As late as the unload itself: see `docs/pulsar-parity.md` on the cool-down.
                reports[name] |= {**means, "updatedAt": -3}
        return reports


def _stats(throughput: float, rate: float, topics: int) -> dict[str, Any]:
    return {
        "msgRateIn": rate / 2.0,
        "msgRateOut": rate / 2.0,
        "msgThroughputIn": throughput / 2.0,
        "msgThroughputOut": throughput / 2.0,
        "topics": topics,
    }
