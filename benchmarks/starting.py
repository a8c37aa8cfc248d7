"""From the command to the first replayed rows: an evaluation on Spark with the archive of Spark's classes and without.

What is timed is Python, Java and Spark getting ready; a plug-in notes the moment at which a policy first decides. Both
ways in turns; the archive is made before, in a cache of the benchmark's own.
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
from first_row import VARIABLE

from lookup.replay.class_archive import SWITCH

__all__ = ["Starts", "measure_starts"]


@dataclass(frozen=True)
class Starts:
    """Seconds from the command to its first replayed row, in order of the rounds."""

    with_archive: list[float]
    without: list[float]

    @property
    def ratios(self) -> list[float]:
        """Return, for each round, the seconds with the archive over those without."""
        return [with_ / without for with_, without in zip(self.with_archive, self.without, strict=True)]


def measure_starts(config: Path, lookups: Path, cache: Path, master: str, rounds: int) -> Starts:
    """Make the archive if it is missing, then start evaluations both ways.

    Args:
        cache: folder that stands for the user's cache.
    """
    variables = {**os.environ, "XDG_CACHE_HOME": str(cache), **table_variables(config, lookups), **seeds_variable(1)}
    making = [sys.executable, "-m", "lookup.replay.class_archiving"]
    subprocess.run(making, env=variables, check=True, stderr=subprocess.DEVNULL)
    # What was just written is on its way to the disk otherwise while starts are timed.
    os.sync()
    starts = Starts([], [])
    for _ in range(rounds):
        starts.without.append(_seconds(config, lookups, {**variables, SWITCH: "off"}, master))
        starts.with_archive.append(_seconds(config, lookups, variables, master))
    return starts


def _seconds(config: Path, lookups: Path, variables: dict[str, str], master: str) -> float:
    """Return the seconds from the command to its first replayed row; it ends by itself."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        moment = Path(folder) / "first-row"
        command = [sys.executable, *evaluate_command(config, lookups, Path(folder) / "out", master)]
        begin = time.time()
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        # 3 and 4 are verdicts.
        done = subprocess.run(command, env={**variables, VARIABLE: str(moment)}, check=False, **quiet)
        if done.returncode not in (0, 3, 4):
            raise SystemExit(f"{' '.join(command)} ended with {done.returncode}")
        return float(moment.read_text()) - begin
