"""The result of a run as one table, FIGURES: a row for each figure of a policy, with its interval and its verdict.

`metrics.parquet` is this table, `summary.json` has the same rows as JSON. Terminal, reports, gates, comparisons of runs
and frames in Python read nothing else about figures.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from lookup.engine.measuring import question_of
from lookup.hooks import Better, Metric, Question
from lookup.replay.outcome import Number
from lookup.score.luck import Estimate
from lookup.score.rules import Name
from lookup.score.scoring import Scored
from lookup.score.units import SenderKind, Units
from lookup.score.verdict import Guard, HoldsFor, Verdict, Word

__all__ = ["FIGURES", "Figure", "Scope", "blank_figure", "figures_of", "figures_table", "json_row", "plain"]

#: Rows of one scope add up to the whole demand. Rows of different scopes count the same lookups again.
Scope: TypeAlias = Literal["all clusters", "cluster", "part", "part of cluster"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of FIGURES. Numbers that are unknown are NaN, null in files."""

    policy: str
    scope: Scope
    cluster: str | None
    metric: str
    key: str | None
    #: the part of the demand, as "tenant" and "acme", null for the whole demand
    dimension: str | None
    part: str | None
    #: mean over the replicates, with its 95 % interval
    value: Number
    low: Number
    high: Number
    unit: str
    better: Better
    #: the subject of its verdict, either this log alone or similar demand
    question: Question
    #: the value if each bundle were always on the broker nearest to most of its clients
    at_best: Number = math.nan
    #: the policy that it is compared with, null without a comparison
    against: str | None = None
    #: this policy - the other one, with its 95 % interval
    change: Number = math.nan
    change_low: Number = math.nan
    change_high: Number = math.nan
    #: the change that counts as none
    margin: Number = math.nan
    verdict: Word | None = None
    #: why the verdict is inconclusive
    reason: str | None = None
    holds_for: HoldsFor | None = None
    #: whether it may decide the exit code
    primary: bool = False
    #: for a metric that is judged on this log, whether there is no loss
    guard: Guard | None = None
    #: the verdict if it were the only comparison, where that differs
    alone: Word | None = None
    #: probability of a change as large between equal policies. `p_family` accounts for all comparisons made together
    p_value: Number = math.nan
    p_family: Number = math.nan
    #: intervals of the change for both questions
    log_low: Number = math.nan
    log_high: Number = math.nan
    demand_low: Number = math.nan
    demand_high: Number = math.nan
    #: the independent senders behind it, with kind, number, number of equal weight, and whether independence is assumed
    units: SenderKind | None = None
    unit_count: int | None = None
    unit_worth: Number = math.nan
    units_assumed: bool | None = None
    #: how much better than their mean the best of so many equal candidates would look
    best_by_luck: Number = math.nan
    #: for the incumbent, the logged value, the 95 % range of another replicate, and the distance between the two
    logged: Number = math.nan
    replay_low: Number = math.nan
    replay_high: Number = math.nan
    gap: Number = math.nan
    #: why there is no gap
    no_gap: str | None = None

    @property
    def name(self) -> Name:
        """Metric and key."""
        return self.metric, self.key

    @property
    def label(self) -> str:
        """The name in reports, as in `moves[shed]`."""
        return self.metric if self.key is None else f"{self.metric}[{self.key}]"

    @property
    def gain(self) -> float:
        """The change, positive if this policy is better."""
        return (self.change if self.better == "up" else -self.change) + 0.0

    @property
    def gain_interval(self) -> tuple[float, float]:
        """The 95 % interval of the gain."""
        return (self.change_low, self.change_high) if self.better == "up" else (-self.change_high, -self.change_low)

    @property
    def is_decided(self) -> bool:
        """Whether the two policies differ significantly."""
        return self.verdict in ("better", "worse")

    @property
    def is_open(self) -> bool:
        """Whether the question is still open. For a guarded figure it is a possible loss, for others the verdict."""
        return self.guard == "open" if self.guard is not None else self.verdict == "inconclusive"

    @property
    def has_interval(self) -> bool:
        """Whether the change has an interval."""
        return not math.isnan(self.change_low)


#: As JSON has them, in which NaN is null.
_DEFAULTS = {each.name: None if each.default != each.default else each.default for each in fields(Figure)}
_TEXTS = frozenset(
    "policy scope cluster metric key dimension part unit better question against verdict reason holds_for guard alone "
    "units no_gap".split()
)
_FLAGS, _COUNTS = frozenset({"primary", "units_assumed"}), frozenset({"unit_count"})


def _type_of(name: str) -> pa.DataType:
    if name in _TEXTS:
        return pa.string()
    return pa.bool_() if name in _FLAGS else pa.int64() if name in _COUNTS else pa.float64()


#: The columns of `metrics.parquet`.
FIGURES = pa.schema([(each.name, _type_of(each.name)) for each in fields(Figure)])


def figures_of(scored: Scored) -> list[Figure]:
    """Write everything that was scored as rows, ordered by policy, metric, key, part of the demand and cluster."""
    return _sort_figures(_rows(scored), scored)


def _rows(scored: Scored) -> list[Figure]:
    verdicts = {(verdict.policy, *verdict.name): verdict for verdict in scored.verdicts}
    more, rows, measured = _collect_columns(scored, verdicts), [], set()
    for estimate in scored.estimates:
        series = estimate.series
        whole = () if series.by else (more[estimate.cluster, series.policy, *series.name],)
        rows.append(_build_figure(estimate, *whole))
        if not series.by and estimate.cluster is None:
            measured |= {(series.policy, *series.name), (series.policy, series.metric.name)}
    # Unmeasured figures have a row without a value, since an absent row would look like approval.
    unmeasured = [(policy, metric.name, None) for policy in scored.plan.policies for metric in scored.metrics]
    names = [key for key in unmeasured if key[:2] not in measured and key not in verdicts]
    for policy, name, key in (*(of for of in verdicts if of not in measured), *names):
        rows.append(blank_figure(policy, scored.metric[name], key, **more[None, policy, name, key]))
    return rows


def _collect_columns(
    scored: Scored, verdicts: Mapping[tuple[str, str, str | None], Verdict]
) -> Mapping[tuple[str | None, ...], dict[str, Any]]:
    more: dict[tuple[str | None, ...], dict[str, Any]] = defaultdict(dict)
    for of, verdict in verdicts.items():
        metric = scored.metric[verdict.metric]
        more[None, *of] |= _fill_verdict_columns(verdict, metric)
        for difference in verdict.clusters:
            more[difference.cluster, *of] |= _turn_gain(metric, difference.delta, difference.low, difference.high)
    for name, value in scored.at_best.items():
        more[None, *name]["at_best"] = value
    for winner in scored.winners:
        for of, verdict in verdicts.items():
            if verdict.name == (winner.metric, winner.key) and not math.isnan(verdict.p_value):
                more[None, *of]["best_by_luck"] = winner.advantage
    for figure in scored.fidelity:
        more[None, scored.incumbent, figure.metric, figure.key] |= {
            "logged": figure.logged, "replay_low": figure.low, "replay_high": figure.high, "gap": figure.gap,
            "no_gap": figure.reason,
        }  # fmt: skip
    return more


def blank_figure(policy: str, metric: Metric, key: str | None, scope: Scope = "all clusters", **known: Any) -> Figure:
    """Make a row without a value, except in the columns given."""
    row: dict[str, Any] = dict.fromkeys(("cluster", "dimension", "part"))
    row |= dict.fromkeys(("value", "low", "high"), math.nan) | known
    return Figure(
        policy, scope, metric=metric.name, key=key, unit=metric.unit, better=metric.better,
        question=question_of(metric), **row,
    )  # fmt: skip


def _build_figure(estimate: Estimate, more: Mapping[str, Any] | None = None) -> Figure:
    series, cluster = estimate.series, estimate.cluster
    # The demand is divided by one dimension at a time.
    ((dimension, part),) = series.by or ((None, None),)
    scope: Scope = "all clusters" if cluster is None else "cluster"
    if dimension is not None:
        scope = "part" if cluster is None else "part of cluster"
    units = None if estimate.sample is None else estimate.sample.units
    columns: dict[str, Any] = {"cluster": cluster, "dimension": dimension, "part": part} | _fill_unit_columns(units)
    columns |= {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    return blank_figure(series.policy, series.metric, series.key, scope, **(columns | dict(more or {})))


def _fill_verdict_columns(verdict: Verdict, metric: Metric) -> dict[str, Any]:
    intervals: dict[str, float] = {}
    for name, span in (("log", verdict.on_log), ("demand", verdict.for_demand)):
        turned = _turn_gain(metric, verdict.delta, span.low, span.high)
        intervals |= {f"{name}_low": turned["change_low"], f"{name}_high": turned["change_high"]}
    same = "against margin verdict reason holds_for primary guard alone p_value p_family".split()
    return {
        **{name: getattr(verdict, name) for name in same},
        **_turn_gain(metric, verdict.delta, verdict.low, verdict.high),
        **intervals,
        **_fill_unit_columns(verdict.units),
    }


def _turn_gain(metric: Metric, delta: float, low: float, high: float) -> dict[str, float]:
    """Turn a gain with its interval into a change. For example, fewer moves are a negative change."""
    # Adding 0.0 turns -0.0 into 0.0.
    ends = (low + 0.0, high + 0.0) if metric.better == "up" else (0.0 - high, 0.0 - low)
    change = delta + 0.0 if metric.better == "up" else 0.0 - delta
    return {"change": change, "change_low": ends[0], "change_high": ends[1]}


def _fill_unit_columns(units: Units | None) -> dict[str, Any]:
    names = ("units", "unit_count", "unit_worth", "units_assumed")
    values = units and (units.kind, units.count, units.worth, units.is_taken_for_granted)
    return dict(zip(names, values or (None, None, math.nan, None), strict=True))


def _sort_figures(rows: Sequence[Figure], scored: Scored) -> list[Figure]:
    policies, metrics = list(scored.plan.policies), [metric.name for metric in scored.metrics]

    def place(row: Figure) -> tuple[object, ...]:
        part = (row.dimension or "", row.part or "", row.cluster or "")
        return policies.index(row.policy), metrics.index(row.metric), row.key or "", *part

    return sorted(rows, key=place)


def figures_table(figures: Sequence[Figure]) -> pa.Table:
    """Write figures as the Arrow table FIGURES."""
    return pa.Table.from_pylist([plain(asdict(row)) for row in figures], schema=FIGURES)


def json_row(figure: Figure) -> dict[str, Any]:
    """Write a row as JSON has it, without the columns that the figure does not have."""
    columns = ((name, plain(value)) for name, value in asdict(figure).items())
    return {name: value for name, value in columns if value != _DEFAULTS[name]}


def plain(value: Any) -> Any:
    """Convert a value to JSON's types, including numpy's numbers and arrays. NaN and infinities become None."""
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        # JSON cannot represent them, and `allow_nan` would write a form that most readers reject.
        return value if math.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(entry) for entry in value]
    return value
