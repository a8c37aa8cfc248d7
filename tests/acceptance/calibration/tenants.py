"""Worlds of tenants, which the generator does not make: whole namespaces live in a rack, clients come back in storms.

Everything is drawn anew for every log: how large namespaces are, where they live, when crowds come and brokers restart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lookup.logs.jobs import InProcess
from lookup.logs.schema import CANONICAL, write_parquet
from lookup.model.time import moment_at
from lookup.replay.run import replay
from lookup.score.scoring import ScoringPlan, score
from lookup.score.verdict import Word
from lookup.settings.evaluation import EvaluationFile
from tests.acceptance.calibration.equals import METRICS, RULES, named
from tests.acceptance.calibration.worlds import PLUGIN, policy

__all__ = ["PAIRS", "TENANTS", "Found", "Tenants", "compared_by_tenants"]

#: 2026-01-05T00:00:00Z, and an hour.
_START_US, _HOUR_US = 1_767_571_200_000_000, 3_600_000_000
_RACKS, _BROKERS_OF_RACK = "abc", 3

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Weather = Literal["calm", "storm", "flash"]


@dataclass(frozen=True)
class Tenants:
    """How many namespaces there are, whose clients live where, and what happens to them."""

    namespaces: int = 12
    bundles: int = 4
    weather: Weather = "calm"
    #: namespaces of a tenant, all of which live in the tenant's rack
    of_tenant: int = 1
    #: the clock of a client is wrong by up to so many seconds
    clocks_s: int = 0
    hours: int = 12
    lookups: int = 2_000

    @property
    def name(self) -> str:
        """Write down what the log is like, in a few words."""
        tenants = "" if self.of_tenant == 1 else f", {self.of_tenant} of each tenant"
        clocks = f", clocks wrong by up to {self.clocks_s} s" if self.clocks_s else ""
        return f"{self.namespaces} namespaces of {self.bundles} bundles{tenants}, {self.weather}{clocks}"


#: Every kind of log that the page is about.
TENANTS = (
    *(
        Tenants(namespaces, bundles, weather)
        for namespaces, bundles in ((12, 4), (24, 4), (48, 1))
        for weather in ("calm", "storm", "flash")
    ),
    Tenants(48, 2, of_tenant=4),
    Tenants(24, 4, clocks_s=120),
)


#: What is compared: policies that are equal over demands, and one that goes by the label of a bundle's first client.
PAIRS = {
    "mirror": tuple(
        policy(f"keeps-{rack}", scorers=[{"use": "of-rack", "rack": rack}], selector="best") for rack in "ab"
    ),
    "first label": (
        policy("random"),
        policy("first-label", scorers=[{"use": "property-match", "key": "rack"}], selector="best"),
    ),
    "equals": (policy("random"), policy("modulo", selector="salted-modulo")),
}


@dataclass(frozen=True)
class Found:
    """The verdicts on the second policy of a pair, over one log."""

    #: word, difference and its interval, by figure
    verdicts: Mapping[str, tuple[Word, float, float, float]]
    exit_code: int
    #: how many units of equal weight the demand is worth
    worth: float


def compared_by_tenants(world: Tenants, pair: str, seed: int) -> Found:
    """Replay a pair of policies over a log of a world, and judge the second against the first."""
    rng = np.random.default_rng(seed)
    with TemporaryDirectory(prefix="calibration-") as folder:
        table, restarts = _log(world, rng)
        path = Path(folder) / "lookups.parquet"
        write_parquet(table, str(path))
        settings = {
            "evaluation": {
                "incumbent": PAIRS[pair][0]["name"],
                "default_bundles": world.bundles,
                "balance_s": 900,
                "tick_s": 300,
                "session_s": 600,
            },
            "inputs": {"lookups": str(path)},
            "brokers": [
                {
                    "id": f"{rack}{number}:8080",
                    "clusters": ["c"],
                    "capacity": 1.0,
                    "properties": {"lookup.rack": rack},
                    **restarts.get((rack, number), {}),
                }
                for rack in _RACKS
                for number in range(_BROKERS_OF_RACK)
            ],
            "policies": [dict(policy) for policy in PAIRS[pair]],
            "plugin_files": [PLUGIN],
        }
        file = EvaluationFile.model_validate(settings)
        outcome = replay(InProcess(), file, f"{folder}/out")
    names = tuple(policy.name for policy in file.policies)
    evaluation = file.evaluation.model_copy(update={"seeds": outcome.seeds})
    scored = score(outcome, METRICS, ScoringPlan(names, evaluation, RULES, labels=("rack",)))
    verdicts = {named(one.metric, one.key): (one.verdict, one.delta, one.low, one.high) for one in scored.verdicts}
    worth = next((one.units.worth for one in scored.verdicts if one.units is not None), 0.0)
    return Found(verdicts, scored.exit_code, worth)


def _log(world: Tenants, rng: np.random.Generator) -> tuple[pa.Table, Mapping[tuple[str, int], Mapping[str, Any]]]:
    """Draw a log, and which brokers are gone from when on."""
    sizes = rng.gamma(2.0, size=world.namespaces)
    homes = np.repeat(rng.integers(len(_RACKS), size=-(-world.namespaces // world.of_tenant)), world.of_tenant)
    namespace = rng.choice(world.namespaces, world.lookups, p=sizes / sizes.sum())
    # By day more than by night.
    times = rng.triangular(0, world.hours / 2, world.hours, world.lookups) * _HOUR_US
    restarts: dict[tuple[str, int], Mapping[str, Any]] = {}
    if world.weather == "flash":
        # A crowd comes to one namespace for half an hour.
        crowd = rng.uniform(size=world.lookups) < 0.15
        namespace[crowd] = rng.integers(world.namespaces)
        times[crowd] = (rng.uniform(1, world.hours - 1) + 0.5 * rng.uniform(size=int(crowd.sum()))) * _HOUR_US
    if world.weather == "storm":
        # Three brokers go one after the other, and clients ask again and again for a few minutes.
        for rack in _RACKS:
            gone = float(rng.uniform(1, world.hours - 1))
            restarts[rack, int(rng.integers(_BROKERS_OF_RACK))] = {"until": moment_at(_START_US + int(gone * _HOUR_US))}
            storm = rng.uniform(size=world.lookups) < 0.08
            times[storm] = (gone + 0.1 * rng.exponential(size=int(storm.sum()))) * _HOUR_US
    topic = rng.integers(20, size=world.lookups)
    is_home = rng.uniform(size=world.lookups) < 0.85
    rack = np.where(is_home, homes[namespace], rng.integers(len(_RACKS), size=world.lookups))
    client = rng.integers(30, size=world.lookups)
    wrong = rng.integers(-world.clocks_s, world.clocks_s + 1, size=30) * 1_000_000
    times = np.clip(times.astype(np.int64) + wrong[client], 0, world.hours * _HOUR_US - 1) + _START_US
    order = np.argsort(times, kind="stable")
    columns: dict[str, Any] = {
        "ts": times[order],
        "cluster": ["c"] * world.lookups,
        "topic": [
            f"persistent://t{number // world.of_tenant}/n{number}/topic-{each}"
            for number, each in zip(namespace[order].tolist(), topic[order].tolist(), strict=True)
        ],
        "client": [f"10.0.{r}.{c}" for r, c in zip(rack[order].tolist(), client[order].tolist(), strict=True)],
        "properties": [json.dumps({"rack": _RACKS[number]}) for number in rack[order].tolist()],
        "weight": rng.exponential(size=world.lookups),
    }
    schema = CANONICAL["lookups"]
    nothing = [None] * world.lookups
    return pa.table({field.name: pa.array(columns.get(field.name, nothing), field.type) for field in schema}), restarts
