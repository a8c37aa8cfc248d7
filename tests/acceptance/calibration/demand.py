"""Logs whose demand is drawn anew: traffic on few bundles, two days of one demand, policies that differ in nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lookup.logs.jobs import InProcess
from lookup.logs.schema import CANONICAL, write_parquet
from lookup.model.time import moment_at
from lookup.replay.run import replay
from lookup.score.scoring import Scored, ScoringPlan, score
from lookup.settings.evaluation import EvaluationFile
from tests.acceptance.calibration.equals import METRICS, RULES, named
from tests.acceptance.calibration.worlds import PLUGIN, policy

__all__ = ["DEMANDS", "Demand", "deaf", "redrawn", "same_luck", "two_days"]

#: 2026-01-05T00:00:00Z, and a day.
_START_US, _DAY_US = 1_767_571_200_000_000, 86_400_000_000

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Demand:
    """How the traffic of a log is spread over its bundles, one in each namespace."""

    bundles: int = 60
    #: exponent of Zipf's law of the bundles' sizes
    zipf: float = 0.0
    #: share of the largest bundle, all others being alike; None: by Zipf's law
    top: float | None = None
    #: clusters, each half as large as the one before
    clusters: int = 1
    hours: int = 12
    lookups: int = 6_000

    @property
    def name(self) -> str:
        """Write down what the log is like, in a few words."""
        spread = f"Zipf {self.zipf:g}" if self.top is None else f"one bundle with {self.top:.0%}"
        clusters = "" if self.clusters == 1 else f" in each of {self.clusters} clusters"
        return f"{self.bundles:,} bundles, {spread}{clusters}"

    @property
    def sizes(self) -> FloatArray:
        """Return the bundles' shares of their cluster's traffic, shape (n_bundles,)."""
        sizes = np.arange(1, self.bundles + 1) ** -self.zipf
        if self.top is not None:
            sizes = np.full(self.bundles, (1 - self.top) / (self.bundles - 1))
            sizes[0] = self.top
        return sizes / sizes.sum()


#: Every kind of demand that the page is about.
DEMANDS = (
    *(Demand(zipf=zipf) for zipf in (0.0, 0.8, 1.2, 1.6)),
    *(Demand(top=top) for top in (0.1, 0.3, 0.6)),
    Demand(bundles=20, zipf=0.8),
    Demand(bundles=600, zipf=1.0),
    Demand(bundles=30, zipf=0.8, clusters=3),
)


def redrawn(demand: Demand, seed: int, seeds: int = 7) -> Scored:
    """Compare two policies, one of which keeps to rack a and one to rack b, over one log.

    Which share of a bundle's clients stands in rack a is drawn anew for every log, so that the policies are equal over
    logs and not on any of them.
    """
    policies = [policy(f"keeps-{rack}", scorers=[{"use": "of-rack", "rack": rack}], selector="best") for rack in "ab"]
    rng = np.random.default_rng(seed)
    with _log(demand, rng, [_likes(demand, rng)], policies, {"seeds": seeds}) as (settings, folder):
        return _scored(settings, folder)


def deaf(seed: int, namespaces: int, seeds: int = 7) -> Scored:
    """Compare a policy with one that is like it and never answers so many of sixty namespaces."""
    rng = np.random.default_rng(seed)
    demand = Demand(zipf=0.5)
    unheard = [f"n{place}" for place in rng.permutation(demand.bundles)[:namespaces]]
    filters = [{"use": "deaf", "namespaces": unheard}] if unheard else []
    policies = [policy("hears"), policy("deaf", filters=filters, selector="salted-modulo")]
    with _log(demand, rng, [_likes(demand, rng)], policies, {"seeds": seeds}) as (settings, folder):
        return _scored(settings, folder)


def two_days(seed: int) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Return the differences between two hashes on two days of one demand, with default seeds, by figure."""
    return tuple(_deltas(seed, [{}, {}]))  # type: ignore[return-value]


def same_luck(seed: int) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Return the same if both days are replayed with the same seeds."""
    return tuple(_deltas(seed, [{"seeds": list(range(1, 8))}] * 2))  # type: ignore[return-value]


def _deltas(seed: int, sections: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, float]]:
    rng = np.random.default_rng(seed)
    demand = Demand(zipf=0.8)
    likes = _likes(demand, rng)
    policies = [policy("rendezvous", selector="rendezvous"), policy("modulo", selector="salted-modulo")]
    for day, section in enumerate(sections):
        with _log(demand, rng, [likes], policies, section, day=day) as (settings, folder):
            scored = _scored(settings, folder)
            yield {named(one.metric, one.key): one.delta for one in scored.verdicts}


def _likes(demand: Demand, rng: np.random.Generator) -> FloatArray:
    """Draw the share of each bundle's clients that stands in rack a."""
    return rng.uniform(size=demand.bundles)


def _scored(settings: EvaluationFile, folder: Path) -> Scored:
    outcome = replay(InProcess(), settings, str(folder / "out"))
    evaluation = settings.evaluation.model_copy(update={"seeds": outcome.seeds})
    plan = ScoringPlan(tuple(policy.name for policy in settings.policies), evaluation, RULES, labels=("rack",))
    return score(outcome, METRICS, plan)


@contextmanager
def _log(
    demand: Demand,
    rng: np.random.Generator,
    likes: Sequence[FloatArray],
    policies: Sequence[Mapping[str, Any]],
    section: Mapping[str, Any],
    *,
    day: int = 0,
) -> Iterator[tuple[EvaluationFile, Path]]:
    """Write a log of as many lookups, and yield the evaluation of it in its folder.

    Args:
        likes: share of each bundle's clients in rack a; of clusters behind the first they are drawn.
    """
    names = [f"c{place}" for place in range(demand.clusters)]
    with TemporaryDirectory(prefix="calibration-") as folder:
        parts = []
        for place, name in enumerate(names):
            of_cluster = likes[place] if place < len(likes) else _likes(demand, rng)
            parts.append(_lookups(demand, rng, of_cluster, name, demand.lookups >> place, day))
        path = Path(folder) / "lookups.parquet"
        write_parquet(pa.concat_tables(parts).sort_by("ts"), str(path))
        mean = demand.lookups / (demand.hours * 3600) / 8
        settings = {
            "evaluation": {
                "incumbent": policies[0]["name"],
                "default_bundles": 1,
                "balance_s": 900,
                "tick_s": 300,
                "session_s": 300,
                **section,
            },
            "inputs": {"lookups": str(path)},
            "brokers": [
                {
                    "id": f"{name}-{rack}{number}:8080",
                    "clusters": [name],
                    "capacity": 4 * mean,
                    "properties": {"lookup.rack": rack},
                    # The first of each rack leaves half way.
                    **(
                        {} if number else {"until": moment_at(_START_US + day * _DAY_US + demand.hours * 1_800_000_000)}
                    ),
                }
                for name in names
                for rack in "ab"
                for number in range(4)
            ],
            "policies": [dict(policy) for policy in policies],
            "plugin_files": [PLUGIN],
        }
        yield EvaluationFile.model_validate(settings), Path(folder)


def _lookups(
    demand: Demand, rng: np.random.Generator, likes: FloatArray, cluster: str, count: int, day: int
) -> pa.Table:
    bundles = rng.choice(demand.bundles, count, p=demand.sizes)
    racks = np.where(rng.uniform(size=count) < likes[bundles], "a", "b")
    times = _START_US + day * _DAY_US + np.sort(rng.integers(0, demand.hours * 3_600_000_000, count))
    columns: dict[str, Any] = {
        "ts": times,
        "cluster": [cluster] * count,
        "topic": [f"persistent://t/n{bundle}/topic" for bundle in bundles],
        "properties": [json.dumps({"rack": str(rack)}) for rack in racks],
    }
    schema = CANONICAL["lookups"]
    return pa.table({field.name: pa.array(columns.get(field.name, [None] * count), field.type) for field in schema})
