"""Plans of one small cluster for unit tests, made by the jobs themselves from rows and settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from lookup.engine.build import build_policies
from lookup.engine.plugins import load_plugins
from lookup.engine.policy import Policy
from lookup.logs.jobs import InProcess
from lookup.logs.sources import list_log, share_out
from lookup.replay.clusters import plan_clusters
from lookup.replay.coding import EXTRA_FIELDS, CodingPlan, Share
from lookup.replay.days import SliceRows, day_rows
from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.replay.reports import Tables, read_tables
from lookup.replay.run import run_plan
from lookup.replay.shares import code_files
from lookup.replay.walk import Tick, Walker, walk_slices, walk_together
from lookup.replay.work import WorkDir
from lookup.settings.evaluation import EvaluationFile
from lookup.settings.resolve import client_rules
from tests.replay.layouts import Layout, write_lookups, write_rows
from tests.replay.worlds import MICRO

_Walker = TypeVar("_Walker", bound=Walker)

#: 2026-01-01T12:00:00Z, a grid instant of ticks of a minute.
NOON = 1_767_268_800 * MICRO
TOPIC = "persistent://t/n/topic"
#: The bundle of TOPIC where its namespace has one.
WHOLE = "t/n/0x00000000_0xffffffff"


@dataclass(frozen=True)
class Planned:
    """A cluster ready to be replayed."""

    cluster: ClusterPlan
    run: RunPlan
    work: WorkDir
    shares: Sequence[Share]
    tables: Tables

    @property
    def rows(self) -> SliceRows:
        """Return the first day's rows."""
        return day_rows(self.work, next(iter(self.cluster.days.values())))

    @property
    def ticks(self) -> list[Tick]:
        """Return the ticks of all days."""
        return [tick for ticks in walk_slices(self.cluster, self.run, self.work) for tick in ticks]

    def shown_to(self, walker: _Walker) -> _Walker:
        """Show every day to a walker and return it."""
        walk_together([walker], self.cluster, self.run, self.work)
        return walker

    @property
    def bounds(self) -> list[int]:
        """Return the ticks' bounds in µs since noon."""
        return [bound - NOON for bound in self.cluster.timeline.bounds.tolist()]


def lookup(second: float = 0.0, **values: Any) -> dict[str, Any]:
    """Return a row of LOOKUPS, some seconds after noon."""
    return {"ts": NOON + round(second * MICRO), "cluster": "east", "topic": TOPIC, **values}


def policy(**parts: Any) -> Policy:
    """Build a policy, by default `best` of equals."""
    spec = settings(policies=[{"name": "p", "selector": "best", **parts}]).policies
    return build_policies(load_plugins(), spec)[0]


def settings(**given: Any) -> EvaluationFile:
    """Return settings: two brokers with racks a and b, one bundle per namespace."""
    racks = {"a:1": "a", "b:1": "b"}
    base: dict[str, Any] = {
        "evaluation": {"incumbent": "p", "default_bundles": 1, **given.pop("evaluation", {})},
        "brokers": [{"id": name, "properties": {"lookup.rack": rack}} for name, rack in racks.items()],
        "policies": [{"name": "p", "selector": "best"}],
    }
    return EvaluationFile.model_validate(base | given)


def planned(
    folder: Path,
    rows: Sequence[Mapping[str, Any]],
    *,
    tasks: int = 1,
    tables: Mapping[str, Any] | None = None,
    **given: Any,
) -> Planned:
    """Run the jobs before a replay over rows of one cluster.

    Args:
        tables: rows of the small tables by name.
        given: settings by table of the evaluation file.
    """
    columns = sorted({name for row in rows for name in row})
    full = [{name: row.get(name) for name in columns} for row in rows]
    write_lookups(full, folder / "lookups", Layout(with_seq="seq" in columns, file_rows=len(full), group_rows=1))
    for name, held in (tables or {}).items():
        write_rows(held, name, folder / f"{name}.parquet")
    inputs = {name: str(folder / f"{name}.parquet") for name in tables or {}} | {"lookups": str(folder / "lookups")}
    file = settings(inputs=inputs, **given)
    run, work, quarantine = run_plan(file), WorkDir(str(folder / "work")), str(folder / "quarantine")
    others = read_tables(InProcess(), file, tick_us=run.tick_us, work=work, quarantine=quarantine)
    plan = CodingPlan(
        frozenset(EXTRA_FIELDS),
        client_rules(file),
        run.namespaces,
        others.cuts(),
        run.tick_us,
        bundle_counts=run.bundle_counts,
    )
    splits = share_out(list_log(str(folder / "lookups")), tasks)
    coded = code_files(InProcess(), splits, plan, work=work, quarantine=quarantine)
    shares = [share for one in coded for share in one.shares]
    (cluster,) = plan_clusters(InProcess(), {"east": shares}, tables=others, run=run, work=work)
    return Planned(cluster, run, work, shares, others)
