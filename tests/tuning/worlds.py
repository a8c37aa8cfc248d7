"""Searches without a log: figures that follow from where a candidate lies."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from lookup.engine.plugins import load_plugins
from lookup.score.figures import Figure, blank_figure
from lookup.score.rules import Name
from lookup.settings.policy import PolicySpec
from lookup.settings.tuning import SpaceEntry, TuneSection
from lookup.tuning.racing import ANSWERED, MOVES, Aims, Standing
from lookup.tuning.search import Candidate, Search, TrialBatch
from lookup.tuning.space import Space, build_space

TODAY: Mapping[str, Any] = {"name": "today", "selector": "random", "shedder": "threshold"}
IMBALANCE, MOVED = ("imbalance_max_mean", None), ("moved_weight", None)
AIMS = Aims((IMBALANCE,), (MOVED,), {}, 0.05, frozenset({ANSWERED}))


def space_of(vary: Mapping[str, Any], today: Mapping[str, Any] = TODAY, *, bundles: int = 4, **keys: Any) -> Space:
    """Return a space of settings of a policy; `bundles` are those of an evaluation."""
    entry = SpaceEntry.model_validate({"name": "space", "vary": vary, **keys})
    return build_space(entry, PolicySpec.model_validate(today), load_plugins(), bundles=bundles)


_REGISTRY = load_plugins()


def figure_of(name: Name, value: float, gain: float = math.nan, half: float = math.nan, **columns: Any) -> Figure:
    """Return a figure of a candidate whose gain over today is known to half a width."""
    blank = blank_figure("candidate", _REGISTRY.classes["metrics"][name[0]](), name[1])
    sign = 1.0 if blank.better == "up" else -1.0
    ends = {"change_low": sign * gain - half, "change_high": sign * gain + half}
    return replace(blank, value=value, change=sign * gain, **ends, **columns)


def standing(
    imbalance: float, moved: float = 0.0, *, today: tuple[float, float] = (2.0, 1.0), half: float = 0.0
) -> Standing:
    """Return a candidate with these figures, whose differences from today's are known to half a width."""

    def figure(name: Name, value: float, before: float) -> Figure:
        gain = before - value
        word = "better" if gain > half else "worse" if gain < -half else "inconclusive"
        return figure_of(name, value, gain, half, verdict=word)

    return Standing(
        {
            IMBALANCE: figure(IMBALANCE, imbalance, today[0]),
            MOVED: figure(MOVED, moved, today[1]),
            ANSWERED: figure_of(ANSWERED, 1.0, 0.0, 0.0, verdict="identical", guard="kept"),
            MOVES: figure_of(MOVES, moved),
        }
    )


def searched(
    space: Space,
    figures: Callable[[Candidate], Standing],
    *,
    candidates: int = 32,
    replicates: int = 7,
    figures_of_all: Callable[[Candidate], Standing] | None = None,
) -> tuple[Search, list[TrialBatch]]:
    """Search with figures in the place of replays; return what was found, and the batches.

    Args:
        figures_of_all: what as many replicates show as a verdict has; by default the same.
    """
    section = TuneSection(evaluation="none.toml", candidates=candidates)
    search, batches = Search([space], section, replicates=replicates), []
    for batch in search.batches():
        batches.append(batch)
        shown = figures if figures_of_all is None or batch.replicates < replicates else figures_of_all
        search.learn(AIMS, {one.number: shown(one) for one in (search.incumbent, *batch.candidates)}, {})
    return search, batches


def distance(candidate: Candidate, key: str, best: float) -> float:
    """Return how many times a setting lies off the best value, as a logarithm; today it is ten times too large."""
    return abs(math.log(float(candidate.point.changes.get(key, 10 * best)) / best))
