"""The steady state: several evaluations one after the other in one Spark session, each timed from call to outcome.

The first pays for starting Python workers and for code that Java has not compiled yet; those after it do not. Beside
each round stands how long a bare loop takes on both cores just then: the machine is a share of a larger one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from evaluating import evaluate_in_session

from lookup.spark.session import create_session

__all__ = ["main"]

_CORES = 2
#: Prints the seconds of a loop that nothing of ours is in.
_BARE_LOOP = """
import time
begin, total = time.perf_counter(), 0
for number in range(3_000_000):
    total += number * number % 7
print(time.perf_counter() - begin)
"""


def _bare_loop() -> float:
    """Return the seconds of a bare loop that runs once on every core, those of the slowest."""
    command = [sys.executable, "-c", _BARE_LOOP]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(_CORES)]
    return max(float(process.communicate()[0]) for process in running)


def main() -> None:
    """Print the seconds of each round and of the bare loop after it, a JSON list on the last line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--lookups", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args()
    spark = create_session(options.master, "steady")
    spark.range(1).count()
    spent = []
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            begin = time.perf_counter()
            evaluate_in_session(spark, options.config, options.lookups, Path(folder) / "out")
            spent.append((round(time.perf_counter() - begin, 3), round(_bare_loop(), 3)))
    spark.stop()
    print(json.dumps(spent))


if __name__ == "__main__":
    main()
