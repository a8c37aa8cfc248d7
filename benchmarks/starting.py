"""From the command to the first replayed rows: an evaluation on Spark with the archive of Spark's classes and without.

The log is small and replayed once, so that what is timed, up to the first score, is Python, Java and Spark getting
ready. Both ways in turns; the archive is made before, in a cache of the benchmark's own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from evaluating import evaluate_command, seeds_variable, table_variables

from lookup.replay.class_archive import SWITCH

__all__ = ["Starts", "measure_starts"]


@dataclass(frozen=True)
class Starts:
    """Seconds from the command to the end of its replay, in order of the rounds."""

    with_archive: list[float]
    without: list[float]

    @property
    def ratio(self) -> float:
        """Return the best with the archive over the best without."""
        return min(self.with_archive) / min(self.without)


def measure_starts(config: Path, lookups: Path, cache: Path, master: str, rounds: int) -> Starts:
    """Make the archive if it is missing, then start evaluations both ways.

    Args:
        cache: folder that stands for the user's cache.
    """
    variables = {**os.environ, "XDG_CACHE_HOME": str(cache), **table_variables(config, lookups), **seeds_variable(1)}
    making = [sys.executable, "-m", "lookup.replay.class_archiving"]
    subprocess.run(making, env=variables, check=True, stderr=subprocess.DEVNULL)
    starts = Starts([], [])
    for _ in range(rounds):
        starts.without.append(_seconds(config, lookups, {**variables, SWITCH: "off"}, master))
        starts.with_archive.append(_seconds(config, lookups, variables, master))
    return starts


def _seconds(config: Path, lookups: Path, variables: dict[str, str], master: str) -> float:
    """Return the seconds from the command to the end of its replay, and end it."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        command = [sys.executable, *evaluate_command(config, lookups, Path(folder) / "out", master)]
        begin = time.perf_counter()
        with subprocess.Popen(
            command, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as process:
            lines = iter(process.stderr or ())
            if not any("scoring" in line for line in lines):
                raise SystemExit(f"{' '.join(command)} ended with {process.wait()} before it had replayed")
            seconds = time.perf_counter() - begin
            process.terminate()
            process.communicate()
        return seconds
