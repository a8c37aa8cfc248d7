"""Logs to calibrate with, kinds of policies that are equal but for their luck, and their replays in this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lookup.logs.generator.generate import GenerateSettings, generate
from lookup.logs.jobs import InProcess
from lookup.replay.outcome import MetricSums, ReplayOutcome
from lookup.replay.run import replay
from lookup.settings.evaluation import EvaluationFile

__all__ = ["KINDS", "PLUGIN", "WORLDS", "Policy", "World", "group", "policy", "replayed"]

Policy = Mapping[str, Any]

_FILTERS = ("load-manager-class", "max-topics", "version", "anti-affinity", "isolation")
PLUGIN = str(Path(__file__).with_name("plugin.py"))

#: Policies that place by luck, each by its own: two of a kind with other seeds are equal.
KINDS: Mapping[str, Policy] = {
    "dice": {"filters": _FILTERS, "selector": "random"},
    "rendezvous": {"filters": _FILTERS, "selector": "rendezvous"},
    "ring": {"filters": _FILTERS, "selector": "bounded-consistent-hash"},
    "plug-in hash": {"filters": _FILTERS, "selector": "salted-modulo"},
    "shedder": {"filters": _FILTERS, "selector": "least-resource-usage", "shedder": "threshold"},
    "sticky": {"filters": _FILTERS, "scorers": ["sticky"], "selector": "softmax"},
}


def policy(name: str, **parts: Any) -> Policy:
    """Return a policy without filters that rolls dice, but for some of its parts."""
    return {"name": name, "filters": [], "selector": "random", **parts}


@dataclass(frozen=True)
class World:
    """What a log is like; its seed says which of all logs like that."""

    hours: float = 6.0
    clusters: int = 1
    #: brokers of each cluster that vanish; all but the last come back
    lost: int = 5
    lookups: int = 20_000
    brokers: int = 8

    @property
    def cost(self) -> float:
        """Return about how long it takes to replay, 1.0 for six hours of one cluster."""
        return self.clusters * (1.0 if self.hours < 24 else 1.5)

    @property
    def name(self) -> str:
        """Write down what the log is like, in a few words."""
        clusters = "1 cluster" if self.clusters == 1 else f"{self.clusters} clusters"
        return f"{self.hours:g} h, {clusters}, {self.lost} lost in each"

    def settings(self, seed: int) -> GenerateSettings:
        """Return the settings of one such log."""
        return GenerateSettings(
            seed=seed,
            hours=self.hours,
            clusters=self.clusters,
            losses=self.lost,
            lookups=self.lookups * self.clusters,
            brokers=self.brokers,
            policy="random",
            topics=600,
            namespaces=24,
            bundles_per_namespace=4,
            load_report_s=0,
        )


#: Every kind of log that the table is about.
WORLDS = tuple(World(hours, clusters, lost) for hours in (6.0, 48.0) for clusters in (1, 3) for lost in (1, 5))


def replayed(world: World, seed: int, policies: Sequence[Policy], replicates: int) -> ReplayOutcome:
    """Generate a log and replay policies over it, as often as there are replicates; the first is the incumbent.

    Bundles have the same names on every log, so each log has dice and salts of its own: no placement meets two logs.
    """
    seeds = [1_000 * seed + replicate for replicate in range(1, replicates + 1)]
    with _log(world, seed) as folder:
        return replay(InProcess(), _settings(world, folder, policies, seeds), str(folder / "out"))


def group(outcome: ReplayOutcome, policy: str, place: int, size: int, name: str) -> list[MetricSums]:
    """Return some replicates of a policy as if they were all that it was replayed with, as seeds from 1 on.

    Args:
        place: number of the group; groups of one size have no replicate in common.
    """
    seeds = sorted({part.seed for part in outcome.sums if part.policy == policy})
    numbers = {seed: number for number, seed in enumerate(seeds[place * size : (place + 1) * size], 1)}
    return [
        replace(part, policy=name, seed=numbers[part.seed])
        for part in outcome.sums
        if part.policy == policy and part.seed in numbers
    ]


@contextmanager
def _log(world: World, seed: int) -> Iterator[Path]:
    with TemporaryDirectory(prefix="calibration-") as folder:
        generate(world.settings(seed), Path(folder) / "log")
        yield Path(folder)


def _settings(world: World, folder: Path, policies: Sequence[Policy], seeds: Sequence[int]) -> EvaluationFile:
    generated = world.settings(1)
    mean = generated.lookups / (generated.hours * 3600) / (world.clusters * world.brokers)
    return EvaluationFile.model_validate(
        {
            "evaluation": {
                "incumbent": policies[0]["name"],
                "seeds": seeds,
                "default_bundles": generated.bundles_per_namespace,
                "balance_s": 900,
                "warmup_s": 1800,
                # A tick is a turn of the replay: two days of them are as many as a quarter of one.
                "tick_s": 60 if world.hours < 24 else 300,
                "session_s": 300,
            },
            "inputs": {name: str(folder / "log" / name) for name in ("lookups", "brokers", "ownership")},
            "brokers": [
                {
                    "id": f"{cluster}-broker-{{n:02}}:8080",
                    "count": world.brokers,
                    "first": 1,
                    "clusters": [cluster],
                    "capacity": 2 * mean,
                }
                for cluster in ("east", "west", "north")[: world.clusters]
            ],
            "policies": [dict(policy) for policy in policies],
            "plugin_files": [PLUGIN],
        }
    )
