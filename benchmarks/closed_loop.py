"""Seconds of one policy with a shedder over a day of one cluster, on one core, a JSON object on the last line.

The log is made beside the others: 100 brokers, some bundles, some hours, and as many lookups per hour and bundle
whatever the size, so that what grows is the number of ticks and of bundles.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from lookup.logs.generator.generate import GenerateSettings, generate
from lookup.replay.outcome import InputFacts
from lookup.replay.run import replay
from lookup.settings.evaluation import EvaluationFile
from lookup.spark.session import create_session

__all__ = ["main"]

_BUNDLES_PER_NAMESPACE = 64
_LOOKUPS_PER_BUNDLE_HOUR = 20


def _closed_loop_log(data: Path, bundles: int, hours: int) -> Path:
    """Return the folder of a log of one cluster; make it where it is missing."""
    folder = data / f"closed-{bundles}-{hours}h"
    if not (folder / "lookups").exists():
        settings = GenerateSettings(
            lookups=bundles * hours * _LOOKUPS_PER_BUNDLE_HOUR,
            clusters=1,
            hours=hours,
            topics=4 * bundles,
            namespaces=-(-bundles // _BUNDLES_PER_NAMESPACE),
            bundles_per_namespace=_BUNDLES_PER_NAMESPACE,
            brokers=100,
            losses=4,
            joins=2,
            leaves=2,
            unloads=6,
        )
        generate(settings, folder, force=True)
    return folder


def main() -> None:
    """Replay twice and print the seconds of the second time: the first starts workers and warms Java up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--bundles", type=int, default=10_000)
    parser.add_argument("--hours", type=int, default=24)
    options = parser.parse_args()
    folder = _closed_loop_log(options.data, options.bundles, options.hours)
    settings = EvaluationFile.model_validate(
        {
            "evaluation": {"incumbent": "least-used", "default_bundles": _BUNDLES_PER_NAMESPACE},
            "inputs": {name: str(folder / name) for name in ("lookups", "brokers", "ownership")},
            "policies": [{"name": "least-used", "selector": "least-resource-usage", "shedder": "threshold"}],
        }
    )
    spark = create_session("local[1]", "closed-loop")
    spent, facts = 0.0, InputFacts()
    for _ in range(2):
        with tempfile.TemporaryDirectory(prefix="bench-") as out:
            begin = time.perf_counter()
            facts = replay(spark, settings, f"{out}/replay").inputs
            spent = time.perf_counter() - begin
    spark.stop()
    found = {"ticks": sum(facts.ticks.values()), "bundles": sum(facts.bundles.values())}
    print(json.dumps({"seconds": round(spent, 3), "decisions": facts.decisions, **found}))


if __name__ == "__main__":
    main()
