"""The steady state: several evaluations one after the other in one Spark session, each timed from call to outcome.

The first pays for starting Python workers and for code that Java has not compiled yet; those after it do not.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from evaluating import evaluate_in_session

from lookup.replay.session import create_session

__all__ = ["main"]


def main() -> None:
    """Print the seconds of each round, a JSON list on the last line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--lookups", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args()
    spark = create_session(options.master, "steady")
    spark.range(1).count()
    spent = []
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            begin = time.perf_counter()
            evaluate_in_session(spark, options.config, options.lookups, Path(folder) / "out")
            spent.append(round(time.perf_counter() - begin, 3))
    spark.stop()
    print(json.dumps(spent))


if __name__ == "__main__":
    main()
