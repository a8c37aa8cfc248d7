"""Measure what it costs to explain the difference of two policies over a log, beside the evaluation that it is about.

    python benchmarks/difference.py --lookups bench-data/20m/lookups

Whole processes, in turns, and the fastest of each: four policies with the default number of replicates and with one,
and `lookup explain RUN --policy stock --versus rack-then-load` of the run that the first has left.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from evaluating import evaluate_command, seeds_variable, table_variables
from processes import run_measured

_CONFIG = Path(__file__).resolve().parent / "evaluation-4.toml"


def main() -> None:
    """Print the seconds of each, and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lookups", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--master", default="local[2]")
    arguments = parser.parse_args()
    seconds: dict[str, list[float]] = {"replicates": [], "one": [], "difference": []}
    tables = table_variables(_CONFIG, arguments.lookups)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        run = Path(folder) / "run"
        explain = ["-m", "lookup.cli", "explain", str(run), "--policy", "stock", "--versus", "rack-then-load"]
        for _ in range(arguments.rounds):
            for name, seeds, output in (("replicates", None, run), ("one", 1, Path(folder) / "one")):
                command = evaluate_command(_CONFIG, arguments.lookups, output, arguments.master)
                measured = run_measured(command, allowed=(0, 3, 4), variables={**tables, **seeds_variable(seeds)})
                seconds[name].append(measured.seconds)
            measured = run_measured([*explain, "--master", arguments.master])
            seconds["difference"].append(measured.seconds)
    print(measured.output)
    fastest = {name: min(times) for name, times in seconds.items()}
    for name, spent in fastest.items():
        print(f"{name}: {spent:.1f} s of {', '.join(f'{each:.1f}' for each in seconds[name])}")
    print(f"difference / evaluation: {fastest['difference'] / fastest['replicates']:.3f}")
    print(f"difference / evaluation of one replicate: {fastest['difference'] / fastest['one']:.3f}")


if __name__ == "__main__":
    main()
