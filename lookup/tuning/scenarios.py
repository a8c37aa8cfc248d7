"""Try candidates on scenarios in place of a log: the same load for all, replicates by seeds, other seeds sealed.

A figure of a candidate is the mean over scenarios by their weights, in each seed; candidates are compared seed by seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

import numpy as np

from lookup.engine.build import build_policies
from lookup.engine.plugins import Registry, load_plugins
from lookup.errors import SettingsError
from lookup.model.quoting import suggestion
from lookup.score.luck import LEVEL, Sample, Spread, minus, spread
from lookup.score.rules import Name, name_of
from lookup.score.verdict import holm
from lookup.settings.policy import PolicySpec
from lookup.settings.tuning import TuneFile
from lookup.simulation import ScenarioFile, Trend, read_scenario, run_policy
from lookup.simulation.scenario import FigureName
from lookup.tuning.racing import ANSWERED, Aims, Figure, Standing
from lookup.tuning.search import Batch, Candidate, Search
from lookup.tuning.sought import prices_of, require_reachable, spaces_of
from lookup.tuning.space import Space
from lookup.tuning.trials import Shown, Span, policy_name, shown_of_batch

__all__ = ["ScenarioTrials"]

#: Batches have other seeds than each other; the last of so many draws is sealed.
_DRAWS, _SEEDS = 16, 1_000
#: Share of the bundle-minutes that may stay without an owner more than today: less is no loss.
_HANDFUL = 0.001
_RISING = frozenset({ANSWERED, ("matched", None)})
#: The least and the largest that figures can be; others are 0 or more.
_BOUNDS: Mapping[Name, tuple[float, float]] = {("balance", None): (1.0, math.inf), ("matched", None): (0.0, 1.0)}


#: Figures over all scenarios in every seed, by policy, figure and no key.
_Samples = dict[tuple[str, str, str | None], Sample]


@dataclass(frozen=True)
class ScenarioTrials:
    """Scenarios with their weights, and the policies that are changed."""

    files: Sequence[tuple[ScenarioFile, float]]
    policies: Sequence[PolicySpec]
    spaces: Sequence[Space]
    registry: Registry
    aims: Aims
    #: seeds in which finalists are judged
    replicates: int

    @classmethod
    def of(cls, file: TuneFile, warn: Callable[[str], None]) -> ScenarioTrials:
        """Check everything that can be wrong before the first run.

        Raises:
            SettingsError: in one sentence, for whatever the user has to change.
        """
        registry, own = load_plugins(()), file.tune
        files = [(read_scenario(Path(entry.file)), entry.weight) for entry in file.scenarios]
        for spec in file.policies:
            for warning in spec.warnings:
                warn(f"policy {spec.name!r}: {warning}")
        build_policies(registry, file.policies)
        objectives = own.objectives or ("balance",)
        prices = prices_of(own, "moved_load")
        known, named = get_args(FigureName), [*objectives, *prices, *own.limits]
        wrong = [name for name in named if name not in known]
        problems = [f"tune: scenarios have no figure {name!r}; {suggestion(name, known)}" for name in wrong]
        both = [name for name in objectives if name in prices]
        problems += [f"tune: {name!r} is an objective and a price; name it once" for name in both]
        if "matched" in named and not any(given.scenario.properties for given, _ in files):
            problems.append("tune: 'matched' has no value, since clients send no properties in these scenarios")
        if own.replicates < 2:
            problems.append("tune.replicates: of scenarios only seeds differ, and one shows no luck; give 2 or more")
        if problems:
            raise SettingsError(problems)
        limits = {name_of(name): times for name, times in own.limits.items()}
        sought = tuple(map(name_of, objectives)), tuple(map(name_of, prices))
        return cls(
            files=files,
            policies=file.policies,
            spaces=spaces_of(file, file.policies, file.policies[0].name, registry),
            registry=registry,
            aims=Aims(*sought, limits, own.tolerance, _RISING),
            replicates=own.seeds,
        )

    @property
    def incumbent(self) -> str:
        """Return the name of today's policy, the first one."""
        return self.policies[0].name

    @property
    def span(self) -> Span:
        """Return which seeds are searched and which are sealed."""
        seeds = self._seeds(_DRAWS - 1, self.replicates)
        return Span("seeds", f"seed {self._seeds(0, 1)[0]}", f"seed {seeds[0]}", f"seed {seeds[-1]}")

    @property
    def settings(self) -> object:
        """Return the scenarios as they are written; policies stand in the file of the search."""
        return [[given.head, weight] for given, weight in self.files]

    @property
    def sealed(self) -> object:
        """Return the scenarios and the seeds that are sealed."""
        return [self.settings, list(self._seeds(_DRAWS - 1, self.replicates))]

    def begin(self, folder: str) -> None:
        """Do nothing: all has been checked."""

    def tried(self, batch: Batch, number: int, search: Search, progress: Callable[[str], None]) -> Shown:
        """Run the scenarios with a batch, each candidate with the same seeds."""
        candidates = [search.incumbent, *batch.candidates]
        names = {one.number: policy_name(one, self.incumbent) for one in candidates}
        samples, _ = self._run(candidates, self._seeds(number, batch.replicates), search)
        standings = {one: _standing(samples, name, self.incumbent, self.aims) for one, name in names.items()}
        if search.aims is None:
            today = {name: standings[0].figures[name].value for name in self.aims.limits}
            require_reachable(self.aims, {name: _BOUNDS.get(name, (0.0, math.inf)) for name in today}, today)
        return shown_of_batch(batch, names, samples, standings, self.aims)

    def confirmed(
        self,
        finalists: Sequence[Candidate],
        search: Search,
        progress: Callable[[str], None],
        warn: Callable[[str], None],
    ) -> Shown:
        """Judge the finalists in the seeds that are sealed, all comparisons of a figure together."""
        candidates = [search.incumbent, *finalists]
        samples, cycles = self._run(candidates, self._seeds(_DRAWS - 1, self.replicates), search)
        names = {one.number: policy_name(one, self.incumbent) for one in candidates}
        standings = {one: _standing(samples, name, self.incumbent, self.aims) for one, name in names.items()}
        return Shown(self.aims, self._judged_together(standings, samples, names), cycles=cycles)

    def _judged_together(
        self, standings: Mapping[int, Standing], samples: _Samples, names: Mapping[int, str]
    ) -> dict[int, Standing]:
        """Take back what chance alone would bring among all comparisons that count for a recommendation."""
        places = [(one, name) for one in standings if one for name in self.aims.judged]
        chances = holm([_luck(samples, names[one], self.incumbent, name, self.aims)[1] for one, name in places])
        figures = {one: dict(standing.figures) for one, standing in standings.items()}
        for (one, name), chance in zip(places, chances, strict=True):
            if chance > LEVEL and figures[one][name].verdict in ("better", "worse"):
                figures[one][name] = replace(figures[one][name], verdict="inconclusive")
        return {one: Standing(of) for one, of in figures.items()}

    def _seeds(self, number: int, count: int) -> range:
        return range(1 + number * _SEEDS, 1 + number * _SEEDS + count)

    def _run(self, candidates: Sequence[Candidate], seeds: range, search: Search) -> tuple[_Samples, dict[int, str]]:
        """Run every scenario with every candidate in every seed; return figures, and what shedders did in the first."""
        samples: _Samples = {}
        cycles: dict[int, str] = {}
        for candidate in candidates:
            name = policy_name(candidate, self.incumbent)
            spec = self.policies[0]
            if candidate.number:
                spec = search.spaces[candidate.point.space].policy(candidate.point, name)
            rows, weights = [], []
            for given, weight in self.files:
                of_seeds = []
                bundle_minutes = given.scenario.minutes * sum(of.bundles for of in given.scenario.namespaces)
                for seed in seeds:
                    scenario = given.scenario.model_copy(update={"seed": seed})
                    # New parts for every run, so that none carries state from another.
                    (policy,) = build_policies(self.registry, [spec])
                    trend = run_policy(scenario, policy)
                    of_seeds.append(dict(_figures(trend, bundle_minutes)))
                    if candidate.number not in cycles and trend.cycles is not None and trend.cycles.account:
                        cycles[candidate.number] = trend.cycles.account
                rows.append(of_seeds)
                weights.append(weight)
            for figure in rows[0][0]:
                of_scenarios = np.array([[of[figure] for of in of_seeds] for of_seeds in rows])
                # A scenario in which a figure means nothing, as `matched` if clients send nothing, says nothing of it.
                counts = np.where(np.isnan(of_scenarios).any(axis=1), 0.0, weights)
                sums = counts @ np.nan_to_num(of_scenarios)
                values = sums / counts.sum() if counts.sum() else np.full(len(seeds), np.nan)
                samples[name, figure, None] = Sample(values)
        return samples, cycles


def _figures(trend: Trend, bundle_minutes: int) -> Iterator[tuple[str, float]]:
    """Yield the figures of a run, and the share of bundle-minutes with an owner."""
    figures = trend.figures
    yield from ((name, float(getattr(figures, name))) for name in get_args(FigureName))
    yield ANSWERED[0], 1.0 - figures.unowned / bundle_minutes


def _luck(samples: _Samples, policy: str, incumbent: str, name: Name, aims: Aims) -> tuple[float, float, Spread]:
    """Return a gain over the incumbent, its probability between equals, and how it varies over seeds."""
    one, today = samples[policy, *name], samples[incumbent, *name]
    # adding 0.0 turns -0.0 into 0.0
    delta = (1.0 if name in aims.rising else -1.0) * (one.mean - today.mean) + 0.0
    luck = spread(minus(one, today))
    return delta, luck.chance(delta) if math.isfinite(delta) else 1.0, luck


def _standing(samples: _Samples, policy: str, incumbent: str, aims: Aims) -> Standing:
    """Return how a policy stands against the incumbent, each figure by itself, by Student's t over seeds."""
    figures = {}
    for name in aims.shown:
        value = samples[policy, *name].mean
        delta, chance, luck = _luck(samples, policy, incumbent, name, aims)
        if policy == incumbent or not math.isfinite(delta):
            figures[name] = Figure(value)
            continue
        half = luck.half_width()
        word = "inconclusive"
        if not (delta or luck.error):
            word = "identical"
        elif chance <= LEVEL:
            word = "better" if delta > 0 else "worse"
        guard = None
        if name == ANSWERED:
            guard = "kept" if delta - luck.half_width(2 * LEVEL) >= -_HANDFUL else "lost" if word == "worse" else "open"
        figures[name] = Figure(value, delta, delta - half, delta + half, word, guard)
    return Standing(figures)
