"""Searches whose answer is known: among equals nothing may be recommended, and what is bad on purpose should be found.

    python benchmarks/searches.py equals --logs 100
    python benchmarks/searches.py power --logs 20

A line for each log, and a sum; seven seconds of one core each, or ten.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping
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
#: Values of a broker.conf that are bad on purpose, by the key to change.
_BAD: Mapping[str, Mapping[str, float]] = {
    _MINIMUM: {_THRESHOLD: 5, _MINIMUM: 40},
    _THRESHOLD: {_THRESHOLD: 60, _MINIMUM: 0.5},
}
_FIGURE = "imbalance_max_mean"


def _equals(seed: int, folder: Path) -> tuple[str, dict[str, Any]]:
    """Search 64 settings that differ in their luck alone, over two days of six brokers, three of which are lost."""
    losses = {"losses": 3, "joins": 0, "leaves": 0}
    log = folder / "log"
    lookup.generate(
        log, seed=seed, hours=48, lookups=20_000, clusters=1, brokers=6, topics=400, logging_policy="none", **losses
    )
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


def _power(seed: int, key: str, folder: Path) -> tuple[str, dict[str, Any]]:
    """Search over two days in which each of four brokers restarts, with one value of the broker.conf bad on purpose."""
    topics, hours, start = 256, 48, datetime(2026, 3, 2, tzinfo=UTC)
    dice = np.random.default_rng(seed)
    hour = np.repeat(np.arange(hours), topics)
    names = [f"persistent://shop/orders-{number % 4}/topic-{number}" for number in range(topics)]
    times = pd.to_timedelta(3600 * hour + dice.uniform(0, 3600, len(hour)), unit="s")
    log = pd.DataFrame(
        {
            "ts": pd.Timestamp(start) + times,
            "cluster": "east",
            "topic": np.tile(names, hours),
            "weight": np.tile(dice.lognormal(0, 0.5, topics), hours),
            "properties": "{}",
        }
    ).sort_values("ts")
    brokers = []
    for number in range(4):
        down = start + timedelta(hours=3 + 12 * number)
        broker = {"id": f"broker-{number}:8080", "capacity": 0.06}
        brokers += [broker | {"until": down}, broker | {"from": down + timedelta(minutes=10)}]
    (folder / "broker.conf").write_text("".join(f"{name}={value}\n" for name, value in _BAD[key].items()))
    rules = {"session_s": 3600, "tick_s": 600, "default_bundles": 16, "bytes_per_weight": 1.77e9}
    evaluation = {
        "evaluation": {"incumbent": "today", **rules},
        "policies": [{"name": "today", "from_broker_conf": str(folder / "broker.conf")}],
        "brokers": brokers,
    }
    search = {"tune": {"evaluation": evaluation, "candidates": 32}, "spaces": ["shipped:threshold"]}
    return key, lookup.tune(search, log, output=folder / "out", workers=InProcess()).document()


def _searched(kind: str, logs: int) -> Iterator[tuple[int, str, dict[str, Any]]]:
    for seed in range(1, logs + 1):
        for key in _BAD if kind == "power" else [""]:
            with tempfile.TemporaryDirectory() as folder:
                found = _power(seed, key, Path(folder)) if key else _equals(seed, Path(folder))
            yield seed, *found


def main() -> None:
    """Search, print a line for each, and a sum."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("equals", "power"))
    parser.add_argument("--logs", type=int, default=20)
    options = parser.parse_args()
    searches = recommended = right = finalists = apart = sealed_apart = 0
    for seed, key, found in _searched(options.kind, options.logs):
        searches += 1
        answers = found["recommended"]
        recommended += bool(answers)
        right += bool(answers) and key in answers[0]["changes"]
        best = found["finalists"][:1]
        finalists += bool(best)
        spans = [
            {days: (one[days][_FIGURE]["low"], one[days][_FIGURE]["high"]) for days in ("search", "sealed")}
            for one in best
        ]
        apart += any(not low <= 0 <= high for low, high in (span["search"] for span in spans))
        sealed_apart += any(not low <= 0 <= high for low, high in (span["sealed"] for span in spans))
        print(seed, key, f"recommended {len(answers)}", *spans, flush=True)
    print(
        f"{searches} searches, {recommended} with a recommendation, {right} with the right key first; {finalists} with "
        f"finalists: the interval of the first leaves 0 out in {apart} by the search, in {sealed_apart} on sealed days"
    )


if __name__ == "__main__":
    main()
