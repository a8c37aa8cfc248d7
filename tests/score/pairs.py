"""Estimates written down instead of calculated, and verdicts on pairs of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from lookup.score.luck import Estimate, Sample
from lookup.score.rules import Name
from lookup.score.series import Series, series_of
from lookup.score.verdict import Case, Verdict, judge
from lookup.settings.evaluation import VerdictSection
from tests.score.cases import METRICS, layout, ratios, spread

NAN = math.nan
#: Student's quantile of 97.5 % with one degree of freedom.
ONE_FREEDOM = 12.706204736


def estimated(series: Series, value: float, half: float = 0.0) -> Estimate:
    """Write down an estimate of two replicates whose mean is a value and whose interval has half that width."""
    apart = half / ONE_FREEDOM
    return Estimate(series, None, value, sample=Sample(np.array([value - apart, value + apart])))


def case(*several: Series, gaps: Mapping[Name, float] | None = None, **rules: Any) -> Case:
    """Compare with `stock`; answers and locality decide."""
    return Case("stock", VerdictSection(**rules), ("answered_ratio", "match_ratio"), layout(several), gaps or {})


def judged(delta: float, half: float, *, gap: float = NAN, metric: str = "answered_ratio") -> Verdict:
    """Judge a candidate whose difference to an incumbent at 0.5 has this interval; the margin is 0.005."""
    parts = [ratios("stock", spread(0.5, 0.1), metric), ratios("new", spread(0.5, 0.2), metric)]
    stock, new = series_of(parts, METRICS, ["stock", "new"])
    estimates = [estimated(stock, 0.5), estimated(new, 0.5 + delta, half)]
    (verdict,) = judge(estimates, ["stock", "new"], case(stock, new, gaps={(metric, None): gap}))
    return verdict
