"""What an evaluation costs: seconds = a + b x rows / cores + c x runs / cores, fitted to evaluations of several sizes.

Logs of 1 to 80 million lookups, four policies with 1 replicate and, of some, with 3, on one and on two cores of this
machine, and on one and on two workers with a core each of a standalone Spark cluster on it. What is fitted are whole
processes, by least squares of relative errors; intervals leave out one log at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from evaluating import evaluate_command, seeds_variable, table_variables
from numpy.typing import NDArray
from processes import run_measured

from tests.replay.standalone import running_standalone

if TYPE_CHECKING:
    from tests.replay.standalone import Standalone

__all__ = ["Costs", "Evaluation", "fitted", "main"]

_HERE = Path(__file__).resolve().parent
_CONFIG = _HERE / "evaluation-4.toml"
_POLICIES, _CLUSTERS = 4, 3
#: Millions of lookups.
_SIZES = (1, 4, 8, 20, 40, 80)
#: Numbers of replicates, and those of some sizes only.
_SEEDS, _MORE_SEEDS, _OFTEN = (1,), (1, 3), frozenset({1, 20})


@dataclass(frozen=True)
class Evaluation:
    """One evaluation and how long it took."""

    where: str
    million_rows: int
    runs: int
    cores: int
    seconds: float


@dataclass(frozen=True)
class Costs:
    """The three costs, and how far the evaluations are from what they say."""

    #: seconds of any evaluation
    start: float
    #: seconds of a core for a million rows
    rows: float
    #: seconds of a core for one run: one policy and seed over one cluster of 22 hours
    run: float
    #: of the relative errors the largest, and their root mean square
    worst: float
    typical: float

    def seconds(self, million_rows: float, runs: float, cores: float) -> float:
        """Return what an evaluation should take."""
        return self.start + (self.rows * million_rows + self.run * runs) / cores


def fitted(evaluations: Sequence[Evaluation]) -> Costs:
    """Fit the costs by least squares of relative errors; of at least three evaluations of different sizes."""
    terms = np.array([[1, one.million_rows / one.cores, one.runs / one.cores] for one in evaluations], dtype=float)
    seconds = np.array([one.seconds for one in evaluations])
    solution: NDArray[np.float64] = np.linalg.lstsq(terms / seconds[:, None], np.ones(len(seconds)), rcond=None)[0]
    errors = terms @ solution / seconds - 1
    return Costs(*solution.tolist(), float(np.abs(errors).max()), float(np.sqrt((errors**2).mean())))


def intervals(evaluations: Sequence[Evaluation]) -> Mapping[str, tuple[float, float]]:
    """Return for each cost the least and the greatest value of fits that leave out one size of log."""
    fits = [
        fitted([one for one in evaluations if one.million_rows != size])
        for size in sorted({one.million_rows for one in evaluations})
    ]
    return {
        name: (min(getattr(fit, name) for fit in fits), max(getattr(fit, name) for fit in fits))
        for name in ("start", "rows", "run")
    }


def _log(data: Path, millions: int) -> Path:
    folder = data / f"{millions}m"
    if not (folder / "lookups").exists():
        run_measured([str(_HERE / "make_log.py"), "--rows", str(millions * 1_000_000), "--output", str(folder)])
    return folder / "lookups"


def _measured(
    lookups: Path, millions: int, master: str, cores: int, seeds: int, cluster: Standalone | None
) -> Evaluation:
    where = "local" if cluster is None else "cluster"
    with tempfile.TemporaryDirectory(prefix="bench-", dir=None if cluster is None else cluster.folder) as folder:
        arguments = evaluate_command(_CONFIG, lookups, Path(folder) / "out", master)
        variables = {**table_variables(_CONFIG, lookups), **seeds_variable(seeds)}
        if cluster is not None:
            variables |= {key: value for key, value in cluster.variables().items() if os.environ.get(key) != value}
        measured = run_measured(arguments, allowed=(0, 3, 4), variables=variables)
    evaluation = Evaluation(where, millions, seeds * _POLICIES * _CLUSTERS, cores, round(measured.seconds, 2))
    print(json.dumps(asdict(evaluation)), flush=True)
    return evaluation


def _replicates(millions: int) -> Sequence[int]:
    return _MORE_SEEDS if millions in _OFTEN else _SEEDS


def _here(logs: Mapping[int, Path]) -> Iterator[Evaluation]:
    """Measure all sizes on this machine, on both numbers of cores in turns."""
    for millions, lookups in logs.items():
        for seeds in _replicates(millions):
            for cores in (1, 2):
                yield _measured(lookups, millions, f"local[{cores}]", cores, seeds, None)


def _on_workers(logs: Mapping[int, Path]) -> Iterator[Evaluation]:
    """Measure all sizes on one worker, then on two."""
    with _folder_for_all() as folder, running_standalone(folder) as cluster:
        for workers in (1, 2):
            cluster.start_worker(workers)
            for millions, lookups in logs.items():
                for seeds in _replicates(millions):
                    yield _measured(lookups, millions, cluster.master, workers, seeds, cluster)


@contextmanager
def _folder_for_all() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        yield Path(folder)


def main() -> None:
    """Print each evaluation as a line of JSON, and at the end the costs by place."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=_HERE.parent / "bench-data", help="where the logs are")
    parser.add_argument("--only", choices=("local", "cluster"), help="measure one place, and not both")
    parser.add_argument("--sizes", type=int, nargs="+", default=_SIZES, help="millions of lookups")
    parser.add_argument("--measured", type=Path, help="lines that this printed before, which are fitted again")
    options = parser.parse_args()
    if options.measured is None:
        logs = {millions: _log(options.data, millions) for millions in options.sizes}
        found = [
            *(_here(logs) if options.only != "cluster" else ()),
            *(_on_workers(logs) if options.only != "local" else ()),
        ]
    else:
        lines = options.measured.read_text().splitlines()
        found = [Evaluation(**json.loads(line)) for line in lines if line.startswith('{"where"')]
    for where in ("local", "cluster"):
        some = [one for one in found if one.where == where]
        if some:
            print(json.dumps({where: {**asdict(fitted(some)), "intervals": intervals(some)}}))


if __name__ == "__main__":
    sys.exit(main())
