"""At which stage two policies part, lookup by lookup, against a plain loop over the log with two load managers."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from lookup.engine.build import build_policies
from lookup.engine.explain import Explanation, explain
from lookup.engine.plugins import load_plugins
from lookup.errors import InputError
from lookup.logs.jobs import InProcess, Workers
from lookup.model import Decision
from lookup.model.names import pinned_broker
from lookup.model.request import LookupOptions, request_of
from lookup.replay.again import find_difference
from lookup.replay.difference import PolicyDifference
from lookup.replay.work import WorkDir
from lookup.settings.evaluation import EvaluationFile
from tests.replay.oracle.bundles import bundle_at, split_bundle
from tests.replay.oracle.exclusive import ExclusiveWalk
from tests.replay.oracle.reading import MICRO, Demand, read_log
from tests.replay.oracle.shared import SharedWalk
from tests.replay.oracle.world import World as OracleWorld
from tests.replay.worlds import World, moving_world, worlds

#: A topic's place: namespace and hash.
Place = tuple[str, int]
#: Lookups and weight by stage.
Counts = dict[str, tuple[float, float]]


@dataclass
class _Side:
    """One policy, and what it has done since it was last looked at."""

    walk: ExclusiveWalk
    decided: dict[str, tuple[Explanation, Decision]] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        manager: Any = self.walk.manager
        select, take_changes = manager.select, manager.take_changes

        def noted_select(request: Any, ts_us: int, **keywords: Any) -> Decision | None:
            """Keep the answer of every part, which is the same before and after a decision that is only repeated."""
            found = explain(manager.policy, request, manager.view())
            decision: Decision | None = select(request, ts_us, **keywords)
            if decision is not None:
                self.decided[request.bundle] = found, decision
            return decision

        def noted_changes() -> Any:
            """Keep the bundles that changed hands."""
            changes = take_changes()
            self.changed.update(change.bundle for change in changes)
            return changes

        manager.select, manager.take_changes = noted_select, noted_changes

    def bundle(self, place: Place) -> str:
        """Return the bundle that a topic lies in now."""
        return bundle_at(*place, self.walk.boundaries[place[0]])

    def owner(self, place: Place) -> str | None:
        """Return the owner of a topic's bundle now."""
        number = self.walk.manager.ownership.owner(self.bundle(place))
        return None if number is None else self.walk.manager.roster.ids[number]

    def decision(self, place: Place) -> tuple[Explanation, Decision] | None:
        """Return the decision by which a topic has its owner, or none, since this side was last looked at."""
        found = self.decided.get(self.bundle(place))
        return found if found is not None and found[1].broker == self.owner(place) else None

    def forget(self) -> None:
        """Begin anew."""
        self.decided, self.changed = {}, set()


def _stage(sides: tuple[_Side, _Side], place: Place) -> str:
    """Return the first stage in which two sides differ."""
    one, other = (side.decision(place) for side in sides)
    if one is None or other is None:
        return "shedder" if all(side.bundle(place) in side.changed for side in sides) else "owner kept"
    return "dice" if one[1].odds == other[1].odds else _stage_of([one[0], other[0]])


def _stage_of(decided: list[Explanation]) -> str:
    """Return the first stage in which two answers with other odds differ."""
    kept = [{vote.broker: vote.score for vote in found.votes if vote.reason is None} for found in decided]
    if kept[0].keys() != kept[1].keys():
        return "filter"
    pairs = [(kept[0][broker], kept[1][broker]) for broker in kept[0]]
    return "score" if any(abs((a or 0.0) - (b or 0.0)) > 1e-9 for a, b in pairs) else "selector"


def _worlds(settings: EvaluationFile) -> Iterator[OracleWorld]:
    """Yield what happens in each cluster with lookups."""
    for name, log in sorted(read_log(settings, defaultdict(int)).items()):
        if log.demand:
            yield OracleWorld(settings, name, log.demand)


def _looped(settings: EvaluationFile, seed: int) -> Counts:
    """Return lookups and weight by stage, of a loop over single lookups."""
    counts: dict[str, list[float]] = defaultdict(lambda: [0, 0.0])
    policies = build_policies(load_plugins(settings.plugin_files), settings.policies[:2])
    for world in _worlds(settings):
        sides = tuple(_Side(ExclusiveWalk(world, policy, seed)) for policy in policies)
        assert len(sides) == 2
        _walk(world, (sides[0], sides[1]), counts)
    return {stage: (int(lookups), round(weight, 6)) for stage, (lookups, weight) in counts.items()}


def _walk(world: OracleWorld, sides: tuple[_Side, _Side], counts: dict[str, list[float]]) -> None:
    places = {(one.namespace, one.hashed) for one in world.demand if pinned_broker(one.namespace) is None}
    parted: dict[Place, str] = {}
    for tick in world.ticks:
        for side in sides:
            side.walk._events(tick)
            if tick.is_grid:
                side.walk._grid_instant(tick)
        # What happens at the instant of a lookup, before it, is one with it.
        if not tick.lookups or tick.lookups[0].ts != tick.start:
            _look(sides, places, parted)
        for one in tick.lookups:
            for side in sides:
                side.walk._lookup(tick, one)
            _look(sides, places, parted)
            stage = parted.get((one.namespace, one.hashed))
            if stage is not None:
                counts[stage][0] += 1
                counts[stage][1] += one.micro / MICRO


def _look(sides: tuple[_Side, _Side], places: set[Place], parted: dict[Place, str]) -> None:
    """Note the places that begin or end to be parted."""
    for place in places:
        if sides[0].owner(place) == sides[1].owner(place):
            parted.pop(place, None)
        elif place not in parted:
            parted[place] = _stage(sides, place)
    for side in sides:
        side.forget()


def _looped_by_key(settings: EvaluationFile, seed: int) -> Counts:
    """Return expected lookups and weight by stage under shared ownership, of a loop over single lookups."""
    counts: dict[str, list[float]] = defaultdict(lambda: [0, 0.0])
    policies = build_policies(load_plugins(settings.plugin_files), settings.policies[:2])
    for world in _worlds(settings):
        walks = [SharedWalk(world, policy, seed) for policy in policies]
        #: stage at which the lookups of a key part, by key
        parted: dict[tuple[str, ...], str | None] = {}
        for tick in world.ticks:
            for walk in walks:
                walk.manager.begin_tick(tick.start)
                walk.register(tick)
                for parent, children in tick.splits:
                    split_bundle(walk.boundaries, parent, children)
                if tick.is_grid:
                    walk._grid_instant(tick)
            for one in tick.lookups:
                if pinned_broker(one.namespace) is None and any(walks[0].registered):
                    _count_odds(walks, one, counts, parted)
            for walk in walks:
                walk._lookups(tick)
                walk.note_usage(tick)
    return {stage: (round(lookups, 6), round(weight, 6)) for stage, (lookups, weight) in counts.items()}


def _count_odds(
    walks: list[SharedWalk], one: Demand, counts: dict[str, list[float]], parted: dict[tuple[str, ...], str | None]
) -> None:
    """Count the share of a lookup that the two policies answer by other brokers."""
    answers = [walk._decide(one) for walk in walks]
    key, decided = tuple(text for _, text, _ in answers), [ballot.odds for ballot, _, _ in answers]
    stage = None
    odds = [{**each, None: 0.0 if each else 1.0} for each in decided]
    moved = sum(abs(odds[0].get(broker, 0.0) - odds[1].get(broker, 0.0)) for broker in {*odds[0], *odds[1]}) / 2
    if moved > 1e-12:
        options = LookupOptions(
            read_only=one.read_only, advertised_listener_name=one.listener, properties=one.properties
        )
        asked: list[Explanation] = []
        for walk in walks:
            request = request_of(one.topic, walk.bundle(one), options, one.client)
            asked.append(explain(walk.manager.policy, request, walk.manager.view()))
        stage = _stage_of(asked)
        counts[stage][0] += moved
        counts[stage][1] += moved * one.micro / MICRO
        counts[f"partings by {stage}"][0] += parted.get(key) != stage
    parted[key] = stage


def _by_stage(difference: PolicyDifference) -> Counts:
    found: dict[str, list[float]] = defaultdict(lambda: [0, 0.0])
    for count in difference.causes:
        found[count.cause.stage][0] += count.lookups
        found[count.cause.stage][1] += count.weight
    return {stage: (round(lookups, 6), round(weight, 6)) for stage, (lookups, weight) in found.items()}


def _found(workers: Workers, settings: EvaluationFile, folder: Path) -> PolicyDifference:
    pair = settings.policies[0].name, settings.policies[1].name
    return find_difference(workers, settings, pair, settings.evaluation.drawn[0], WorkDir(str(folder / "work")))


def _prove(workers: Workers, world: World, folder: Path) -> Counts:
    settings = world.written(folder)
    if len(settings.policies) < 2:
        return {}
    try:
        found = _found(workers, settings, folder)
    except InputError:
        return {}

    if settings.evaluation.ownership == "exclusive":
        expected = _looped(settings, settings.evaluation.drawn[0])
    else:
        expected = _looped_by_key(settings, settings.evaluation.drawn[0])
        for stage in ("filter", "score", "selector"):
            partings = [count.partings for count in found.causes if count.cause.stage == stage]
            begun, _ = expected.pop(f"partings by {stage}", (0, 0.0))
            # Filters may part by several reasons, one after the other.
            assert sum(partings) == begun or len(partings) > 1
    # Sums of shares in another order differ in their last digits.
    assert _by_stage(found) == {stage: pytest.approx(counts, rel=1e-6) for stage, counts in expected.items()}
    return expected


@pytest.mark.parametrize("ownership", ["exclusive", "shared"])
@given(data=st.data())
@settings(max_examples=25, derandomize=True, suppress_health_check=list(HealthCheck))
def test_every_lookup_has_the_stage_that_a_plain_loop_finds(ownership: str, data: st.DataObject) -> None:
    """Lookups and weight by stage are those of two load managers that are asked lookup by lookup."""
    world = data.draw(worlds(ownership=ownership))
    with tempfile.TemporaryDirectory() as folder:
        _prove(InProcess(), world, Path(folder))


@pytest.mark.parametrize("owner_loss", ["leader", "next-lookup"])
def test_shedders_and_hand_overs_part_as_in_a_plain_loop(tmp_path: Path, owner_loss: str) -> None:
    """Bundles that are moved, split and orphaned while they are handed over."""
    stages: set[str] = set()
    for seed in (0, 3, 8):
        stages |= _prove(InProcess(), moving_world(seed, owner_loss), tmp_path / str(seed)).keys()

    assert {"selector", "shedder"} <= stages


def test_destinations_that_are_drawn_are_no_decisions_of_that_instant(tmp_path: Path) -> None:
    """A leader re-selects an orphan, and in the same instant a shedder has another owner drawn for it."""
    world = moving_world(2, "leader")
    policies = [{**policy, "destination_first": True} for policy in world.settings["policies"]]

    assert "shedder" in _prove(InProcess(), replace(world, settings={**world.settings, "policies": policies}), tmp_path)


@pytest.mark.spark
def test_spark_finds_the_same(spark: SparkSession, tmp_path: Path) -> None:
    """Causes, counts and examples do not depend on what runs the tasks."""
    settings = moving_world(3, "leader").written(tmp_path)

    assert _found(spark, settings, tmp_path / "spark") == _found(InProcess(), settings, tmp_path / "process")
