"""The whole evaluation: every policy, cluster and seed, and the figures of the brokers the log says were answered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lookup.engine.build import build_policies
from lookup.engine.plugins import load_plugins
from lookup.settings.evaluation import EvaluationFile
from tests.replay.oracle.at_best import at_best
from tests.replay.oracle.exclusive import ExclusiveWalk
from tests.replay.oracle.reading import read_log, read_table
from tests.replay.oracle.walking import Figures, Told, counted
from tests.replay.oracle.world import World, is_usable
from tests.score.oracle import Lookup, measure_all

__all__ = ["Tale", "tell"]


@dataclass
class Tale:
    """Everything an evaluation is about."""

    #: by cluster, policy, seed
    runs: dict[tuple[str, str, int], Told]
    #: by cluster; empty where too few lookups carry a broker
    logged: dict[str, Figures]
    quarantined: dict[str, int]
    facts: dict[str, Any]
    #: by policy with a shedder: cycles after the warm-up, proposals accepted and refused
    cycles: dict[str, tuple[int, int, int]]


def tell(settings: EvaluationFile, *, by: Sequence[str] = ()) -> Tale:
    """Replay every policy of an evaluation, cluster by cluster and seed by seed."""
    quarantined: dict[str, int] = defaultdict(int)
    if settings.inputs.ownership is not None:
        refused = [event for event in read_table(settings.inputs.ownership) if not is_usable(event)]
        quarantined["a row of OWNERSHIP"] = len(refused)
    logs = {name: log for name, log in sorted(read_log(settings, quarantined).items()) if log.demand}
    worlds = [World(settings, name, log.demand) for name, log in logs.items()]
    policies = build_policies(load_plugins(settings.plugin_files), settings.policies)
    runs = {
        (world.name, policy.name, seed): ExclusiveWalk(world, policy, seed).told(by)
        for world in worlds
        for policy in policies
        for seed in settings.evaluation.drawn
    }
    known = sum(world.roster_id(one.logged) is not None for world in worlds for one in world.demand)
    lookups = sum(len(world.demand) for world in worlds)
    logged = {world.name: _of_the_log(world) for world in worlds} if known >= 0.95 * lookups else {}
    facts = {
        "lookups": lookups,
        "ticks": {world.name: len(world.ticks) for world in worlds},
        "induced": sum(world.induced() for world in worlds),
        "at_best": {
            (policy.name, *name): best
            for policy in settings.policies
            for name, best in at_best(worlds, policy.bundles).items()
        },
        "assumed": any(world.assumed is not None for world in worlds),
    }
    return Tale(
        runs, logged, dict(quarantined), facts, _cycles(runs, {world.name: world.scored_from for world in worlds})
    )


def _of_the_log(world: World) -> Figures:
    """Return the figures of the brokers the log says were answered."""
    lookups: list[Lookup] = []
    for tick, roster in world.rosters():
        for one in tick.lookups if tick.start >= world.scored_from else ():
            number = roster.number(world.roster_id(one.logged) or "")
            lookups.append(counted(world, one, None if number is None else roster[number]))
    cells = world.registered_cells()
    everyone = dict.fromkeys(cells, frozenset(broker.id for broker in world.roster))
    # The log may name a broker that was not registered; only balance is about registered ones alone.
    registered = [
        one for one in lookups if one.broker is None or one.broker.id in cells[world.name, world.cell(one.ts)]
    ]
    figures = measure_all(world.happenings(lookups, everyone))
    balance = measure_all(world.happenings(registered, cells))
    figures.update({name: value for name, value in balance.items() if name[0].startswith(("imbalance", "load_var"))})
    figures.pop(("agreement_ratio", None))
    return figures


def _cycles(
    runs: Mapping[tuple[str, str, int], Told], scored_from: Mapping[str, int]
) -> dict[str, tuple[int, int, int]]:
    found: dict[str, tuple[int, int, int]] = {}
    for (cluster, policy, _), told in runs.items():
        if told.cycles:
            scored = [row for row in told.cycles if row["ts"] >= scored_from[cluster]]
            cycles, accepted, refused = found.get(policy, (0, 0, 0))
            accepted += sum(row["accepted"] for row in scored)
            refused += sum(count for row in scored for _, count in row["rejected"])
            found[policy] = cycles + len(scored), accepted, refused
    return found
