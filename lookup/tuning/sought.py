"""Check the request of a search, with its spaces and figures before any replay, and the log's own after a batch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from lookup.engine.measuring import bounds_of
from lookup.engine.plugins import Registry
from lookup.engine.policy import Policy
from lookup.engine.units import cannot_act, rates_without
from lookup.errors import InputError, SettingsError
from lookup.model.broker import EXTENSIBLE_MANAGER
from lookup.model.quoting import shown, suggestion
from lookup.replay.reports import mean_load
from lookup.score.rules import Name, check_rules, name_of
from lookup.score.scoring import Scored
from lookup.settings import EvaluationFile
from lookup.settings.broker_conf import read_today
from lookup.settings.evaluation import OTHER_BUNDLES
from lookup.settings.resolve import require_few_ranges
from lookup.settings.tuning import TuneFile, TuneSection
from lookup.tuning.racing import Aims, figure_name, totals
from lookup.tuning.space import Space, build_space, spread

__all__ = [
    "aims_on", "check_bundles", "check_figures", "from_broker_conf", "require_acting", "spaces_of",
]  # fmt: skip

#: Figures that may get worse for an objective unless prices are named.
_PRICE = "moved_weight"


def from_broker_conf(path: str) -> dict[str, object]:
    """Build a search for better values of a `broker.conf`, in the shipped spaces for its load manager.

    Raises:
        SettingsError: if the file cannot be read.
    """
    is_extensible = read_today(path).keys["loadManagerClassName"] == EXTENSIBLE_MANAGER
    spaces = ("transfer",) if is_extensible else ("threshold", "uniform", "avg", "placement")
    return {
        "tune": {
            "evaluation": {
                "evaluation": {"incumbent": "today"},
                "policies": [{"name": "today", "from_broker_conf": path}],
            }
        },
        "spaces": [f"shipped:{name}" for name in spaces],
    }


def spaces_of(file: TuneFile, settings: EvaluationFile, registry: Registry) -> tuple[Space, ...]:
    """Build the spaces of a search, which change some policies of its evaluation.

    Raises:
        SettingsError: for an unknown policy, and settings that cannot vary in this way, with all mistakes together.
    """
    problems: list[str] = []
    spaces: list[Space] = []
    by_name = {policy.name: policy for policy in settings.policies}
    for entry in file.spaces:
        name = settings.evaluation.incumbent if entry.policy is None else entry.policy
        if name not in by_name:
            problems.append(f"space {shown(entry.name)}: no policy is named {shown(name)}; {suggestion(name, by_name)}")
            continue
        try:
            spaces.append(build_space(entry, by_name[name], registry, bundles=settings.evaluation.default_bundles))
        except SettingsError as error:
            problems += error.problems
    if problems:
        raise SettingsError(problems)
    return tuple(spaces)


def _prices_of(own: TuneSection) -> tuple[str, ...]:
    return tuple({_PRICE} - {*(own.objectives or ())}) if own.prices is None else own.prices


def check_figures(own: TuneSection, settings: EvaluationFile, registry: Registry) -> None:
    """Refuse names that no metric has.

    Raises:
        SettingsError: with all wrong names together.
    """
    prices = _prices_of(own)
    named = tuple(dict.fromkeys([*(own.objectives or ()), *prices, *own.limits]))
    metrics = [metric() for metric in registry.classes["metrics"].values()]
    rules = settings.verdict.model_copy(update={"primary": named, "margins": {}})
    try:
        check_rules(rules, metrics)
    except SettingsError as error:
        raise SettingsError([problem.replace("verdict.primary", "tune") for problem in error.problems]) from None
    both = [name for name in own.objectives or () if name in prices]
    if both:
        raise SettingsError(f"tune: {both[0]!r} is an objective and a price; name it once")
    kinds = {metric.name: metric for metric in metrics}
    for name, times in own.limits.items():
        metric = kinds[name_of(name)[0]]
        least, _ = bounds_of(metric) or (0.0, math.inf)
        if times == 0.0 and metric.better == "down" and least > 0.0:
            raise SettingsError(f"tune.limits: {name!r}: at most 0 times today's is 0, and it is never below {least:g}")


def require_acting(incumbent: Policy, settings: EvaluationFile) -> None:
    """Refuse an incumbent that cannot act on any log without the missing tables.

    Raises:
        InputError: with the reason and the remedy.
    """
    rates = rates_without(settings)
    idle = {} if rates is None else cannot_act([incumbent], rates, partial(mean_load, settings))
    for name, why in idle.items():
        raise InputError(f"the incumbent {name} is not what it says: {why}")


def check_bundles(spaces: Sequence[Space], settings: EvaluationFile, candidates: int) -> None:
    """Refuse other numbers of bundles if BUNDLES has the loads of the log's own, and far too many of them.

    Raises:
        SettingsError: with the spaces, or the number of bundles.
    """
    with_bundles = [(space, key) for space in spaces for key in space.of_bundles]
    if with_bundles and settings.inputs.bundles is not None:
        raise SettingsError(
            [f"space {shown(space.name)}: {key} cannot be varied: {OTHER_BUNDLES}" for space, key in with_bundles]
        )
    points = [(point, key) for space, key in with_bundles for point in spread(space, candidates)]
    require_few_ranges({settings.evaluation.default_bundles, *(point.changes.get(key, 1) for point, key in points)})


def aims_on(own: TuneSection, scored: Scored) -> Aims:
    """Build the aims, once the log has shown which figures there are.

    Raises:
        InputError: if the incumbent cannot act on this log, so that every candidate would look better.
        SettingsError: for a figure that this log does not have.
    """
    if scored.incumbent in scored.cannot_act:
        raise InputError(f"the incumbent {scored.incumbent} is not what it says: {scored.cannot_act[scored.incumbent]}")
    names = [
        figure_name(of.series.name)
        for of in scored.pooled.values()
        if of.series.policy == scored.incumbent and math.isfinite(of.value)
    ]
    labels = [name for key in scored.plan.labels if (name := f"match_ratio:{key}") in names]
    objectives, prices = own.objectives or ("imbalance_max_mean", *labels), _prices_of(own)
    problems = [
        f"tune: {name!r} has no value on this log; {suggestion(name, names)}"
        for name in (*objectives, *prices, *own.limits)
        if name not in names
    ]
    if problems:
        raise SettingsError(problems)
    limits = {name_of(name): times for name, times in own.limits.items()}
    aims = Aims(tuple(map(name_of, objectives)), tuple(map(name_of, prices)), limits, own.tolerance, frozenset())
    rising = frozenset(name for name in aims.shown if scored.metric[name[0]].better == "up")
    aims = replace(aims, rising=rising, per_day=totals(scored, aims.shown))
    bounds = {name: bounds_of(scored.metric[name[0]]) or (-math.inf, math.inf) for name in limits}
    _require_reachable(aims, bounds, {name: scored.pooled[(scored.incumbent, *name)].value for name in limits})
    return aims


def _require_reachable(aims: Aims, bounds: Mapping[Name, tuple[float, float]], values: Mapping[Name, float]) -> None:
    """Refuse limits that no value of their figure, within its bounds, reaches. The values are today's."""
    problems = []
    for name, times in aims.limits.items():
        (least, most), today = bounds[name], values[name]
        target, is_rising = times * today, name in aims.rising
        if target > most if is_rising else target < least:
            side, end = ("least", f"above {most:g}") if is_rising else ("most", f"below {least:g}")
            problems.append(
                f"tune.limits: {figure_name(name)!r}: at {side} {times:g} times today's {today:.4g} is {target:.4g}, "
                f"and it is never {end}"
            )
    if problems:
        raise SettingsError(problems)
