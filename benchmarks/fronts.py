"""Compare ways to search settings: how much of a dense grid's front each finds, with about a tenth of its replays.

    python benchmarks/fronts.py

The figures are imbalance and moved weight, both as low as can be. What a search believes to be its front is replayed
again, with dice that it has not seen; its hypervolume is divided by that of the grid's front, treated alike. Where
Optuna is installed, two of its samplers search as well. About five minutes of one core for each space.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import tempfile
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc
from searches import Way, restarts

import lookup
from lookup.engine.plugins import load_plugins
from lookup.logs.jobs import InProcess
from lookup.settings.loader import load_evaluation, load_tuning
from lookup.tuning.space import Space, build_space

Floats = NDArray[np.float64]

SPACES = ("threshold", "transfer", "uniform", "avg")
FIGURES = ("imbalance_max_mean", "moved_weight")
#: Candidates of a search, replicates of each, and those in which what was found is replayed again.
_BUDGET, _REPLICATES, _AGAIN = 64, 2, 10
#: Of the broker.conf of today: Pulsar's defaults.
TODAY = {"loadBalancerBrokerThresholdShedderPercentage": 10}
#: How many times as many settings the grid has, and the batch after which a sampler hears of figures.
_DENSE, _BATCH = 10, 16


class Trial:
    """A space over one log: coordinates in, figures out."""

    def __init__(self, name: str, seed: int, folder: Path) -> None:
        self.log, self.evaluation = restarts(seed, folder, Way("", (), conf=TODAY))
        tune = {"evaluation": self.evaluation, "candidates": _BUDGET, "replicates": _REPLICATES}
        self.search = {"tune": tune, "spaces": [f"shipped:{name}"]}
        today = load_evaluation(self.evaluation | {"inputs": {"lookups": "given"}}).policies[0]
        self.space = build_space(load_tuning(self.search).spaces[0], today, load_plugins(()))

    def figures(self, changes: Sequence[Mapping[str, Any]], *, seeds: int, draw: int) -> Floats:
        """Replay settings; return imbalance and moved weight of each, shape (n_settings, 2)."""
        today = self.evaluation["policies"][0]
        rules = self.evaluation["evaluation"] | {"seeds": seeds, "draw": draw}
        rows = []
        # A report compares all its candidates, so a few at a time; the dice are the same in each.
        for batch in (changes[begin : begin + _BUDGET] for begin in range(0, len(changes), _BUDGET)):
            policies = [today, *({**today, "name": f"p{n}", "broker_conf": one} for n, one in enumerate(batch))]
            settings = self.evaluation | {"policies": policies, "evaluation": rules}
            pooled = lookup.evaluate(self.log, settings=settings, workers=InProcess()).results.pooled
            rows += [[pooled[f"p{n}", figure, None].value for figure in FIGURES] for n in range(len(batch))]
        return np.array(rows)

    def changes(self, places: Sequence[Sequence[float]]) -> list[dict[str, Any]]:
        """Return what settings at some coordinates change, each setting once."""
        points = {point.identity: dict(point.changes) for point in map(self.space.point, places)}
        return [change for change in points.values() if change]

    def ours(self, folder: Path) -> tuple[list[dict[str, Any]], int]:
        """Search as `lookup tune` does; return what it believes to be its front, and how many replays it took."""
        found = lookup.tune(self.search, self.log, output=folder, no_holdout=True, workers=InProcess()).document()
        tried = [one for one in found["candidates"][1:] if one["search"] is not None]
        values = np.array([[one["search"][figure]["value"] for figure in FIGURES] for one in tried])
        batches = json.loads((folder / "search.json").read_text())["batches"]
        replays = sum(len(batch["rows"]) * batch["replicates"] for batch in batches)
        return [tried[number]["changes"] for number in front(values)], replays

    def believed(self, changes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the front of settings that were all tried."""
        return [changes[number] for number in front(self.figures(changes, seeds=_REPLICATES, draw=0))]

    def sampled(self, sampler: Any, count: int) -> list[dict[str, Any]]:
        """Search with a sampler of Optuna, in batches."""
        import optuna  # noqa: PLC0415  only if it is there

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
        axes = {axis.key: optuna.distributions.FloatDistribution(0.0, 1.0) for axis in self.space.axes}
        tried: dict[str, tuple[dict[str, Any], Floats]] = {}
        for begin in range(0, count, _BATCH):
            trials = [study.ask(axes) for _ in range(min(_BATCH, count - begin))]
            points = [self.space.point([trial.params[key] for key in axes]) for trial in trials]
            values = self.figures([dict(point.changes) for point in points], seeds=_REPLICATES, draw=0)
            for trial, point, value in zip(trials, points, values, strict=True):
                study.tell(trial, value.tolist())
                tried[point.identity] = dict(point.changes), value
        kept = [(changes, value) for changes, value in tried.values() if changes]
        return [kept[number][0] for number in front(np.array([value for _, value in kept]))]


def grid(space: Space, count: int) -> list[tuple[float, ...]]:
    """Return places on a grid of about so many: each choice once, and as many values of every number."""
    choices = [len(axis.choices) for axis in space.axes]
    numbers = sum(not n for n in choices)
    each = round((count / np.prod([n or 1 for n in choices])) ** (1 / numbers))
    return list(product(*((np.arange(n or each) + 0.5) / (n or each) for n in choices)))


def front(values: Floats) -> list[int]:
    """Return the rows that no other row is as low as in both columns, and lower in one."""
    low = (values[:, None] <= values[None]).all(axis=2) & (values[:, None] < values[None]).any(axis=2)
    return np.flatnonzero(~low.any(axis=0)).tolist()


def hypervolume(values: Floats, corner: Floats) -> float:
    """Return the area between a front and a corner that is worse than all of it."""
    kept = values[front(values)]
    kept = kept[(kept < corner).all(axis=1)]
    kept = kept[np.argsort(kept[:, 0])]
    widths = np.append(kept[1:, 0], corner[0]) - kept[:, 0]
    return float((widths * (corner[1] - kept[:, 1])).sum())


def compared(name: str, seed: int) -> dict[str, float]:
    """Return for each way the hypervolume of what it found, as a share of the grid's."""
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(name, seed, Path(folder))
        mine, replays = trial.ours(Path(folder) / "ours")
        count, axes, dice = replays // _REPLICATES, len(trial.space.axes), np.random.default_rng(seed)
        sobol = qmc.Sobol(axes, scramble=False).random_base2(8)
        found = {
            "grid": trial.believed(trial.changes(grid(trial.space, _DENSE * _BUDGET))),
            "lookup tune": mine,
            "Sobol alone": trial.believed(trial.changes(sobol[1 : count + 1])),
            "at random": trial.believed(trial.changes(dice.random((count, axes)))),
        }
        if importlib.util.find_spec("optuna") is not None:
            from optuna.samplers import NSGAIISampler, TPESampler  # noqa: PLC0415  only if it is there

            found["Optuna, TPE"] = trial.sampled(TPESampler(seed=seed, constant_liar=True), count)
            found["Optuna, NSGA-II"] = trial.sampled(NSGAIISampler(seed=seed, population_size=_BATCH), count)
        every = {json.dumps(one, sort_keys=True): one for of in found.values() for one in of}
        again = dict(zip(every, trial.figures(list(every.values()), seeds=_AGAIN, draw=1), strict=True))
        values = {way: np.array([again[json.dumps(one, sort_keys=True)] for one in of]) for way, of in found.items()}
        dense = values["grid"][front(values["grid"])]
        corner = dense.max(axis=0) + 0.1 * (dense.max(axis=0) - dense.min(axis=0))
        print(f"{name}, log {seed}: {replays} replays, fronts of {[len(of) for of in found.values()]}", flush=True)
        whole = hypervolume(dense, corner)
        return {way: hypervolume(of, corner) / whole for way, of in values.items()}


def main() -> None:
    """Print a line for each space and log, and the mean of each way with the least and the most."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spaces", nargs="+", choices=SPACES, default=SPACES)
    parser.add_argument("--logs", type=int, default=1)
    options = parser.parse_args()
    for name in options.spaces:
        shares = [compared(name, seed) for seed in range(1, options.logs + 1)]
        found = {way: [share[way] for share in shares] for way in shares[0]}
        texts = [f"{way} {np.mean(of):.3f} ({min(of):.3f} to {max(of):.3f})" for way, of in found.items()]
        print(f"{name}: {', '.join(texts)}", flush=True)


if __name__ == "__main__":
    main()
