"""Measure what it costs to explain the difference of two policies over a log, beside the evaluation that it is about.

    python benchmarks/difference.py --lookups bench-data/20m/lookups

Whole processes, in turns, and the fastest of each: four policies with the default number of replicates and with one,
and `lookup explain RUN --policy stock --versus rack-then-load` of the run that the first has left.
On a busy machine the seconds of processors are what can be compared; they are complete with `--master none`, whose
tasks are forks of the process.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
from collections.abc import Mapping, Sequence
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
    seconds: dict[str, list[tuple[float, float]]] = {"replicates": [], "one": [], "difference": []}
    tables = table_variables(_CONFIG, arguments.lookups)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        run = Path(folder) / "run"
        explain = ["-m", "lookup", "explain", str(run), "--policy", "stock", "--versus", "rack-then-load"]
        for _ in range(arguments.rounds):
            for name, seeds, output in (("replicates", None, run), ("one", 1, Path(folder) / "one")):
                command = evaluate_command(_CONFIG, arguments.lookups, output, arguments.master)
                seconds[name].append(_spent(name, command, {**tables, **seeds_variable(seeds)}))
            seconds["difference"].append(_spent("difference", [*explain, "--master", arguments.master], {}))
    for place, what in enumerate(("by the clock", "of processors")):
        fastest = {name: min(spent[place] for spent in times) for name, times in seconds.items()}
        print(f"seconds {what}: {', '.join(f'{name} {spent:.1f}' for name, spent in fastest.items())}")
        print(f"  difference / evaluation: {fastest['difference'] / fastest['replicates']:.3f}")
        print(f"  difference / evaluation of one replicate: {fastest['difference'] / fastest['one']:.3f}")


def _spent(name: str, command: Sequence[str], variables: Mapping[str, str]) -> tuple[float, float]:
    """Run a whole process; return its seconds by the clock, and of processors in it and what it has forked."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    measured = run_measured(command, allowed=(0, 3, 4), variables=variables)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processors = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    print(f"... {name}: {measured.seconds:.1f} s by the clock, {processors:.1f} s of processors", flush=True)
    return measured.seconds, processors


if __name__ == "__main__":
    main()
