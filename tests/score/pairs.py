"""Estimates written down instead of calculated, and verdicts on pairs of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import stats

from lookup.score.luck import Estimate
from lookup.score.rules import Name
from lookup.score.series import Series, series_of
from lookup.score.units import Sample
from lookup.score.verdict import Case, Verdict, judge
from lookup.settings.evaluation import VerdictSection
from tests.score.cases import METRICS, layout, ratios, spread

NAN = math.nan
#: Five replicates, and half the width of the interval of their mean: Student's, with four degrees of freedom.
_FIVE = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
_HALF = float(stats.t.ppf(0.975, 4) * _FIVE.std(ddof=1) / math.sqrt(5))


def estimated(series: Series, value: float, half: float = 0.0) -> Estimate:
    """Write down an estimate of five replicates whose mean is a value and whose interval has half that width."""
    return Estimate(series, None, value, sample=Sample(value + half / _HALF * _FIVE))


def case(*several: Series, gaps: Mapping[Name, float] | None = None, **rules: Any) -> Case:
    """Compare with `stock`; answers and locality decide."""
    return Case("stock", VerdictSection(**rules), ("answered_ratio", "match_ratio"), layout(several), gaps or {})


def judged(delta: float, half: float, *, gap: float = NAN, metric: str = "match_ratio") -> Verdict:
    """Judge a candidate whose difference to an incumbent at 0.5 has this interval; the margin is 0.005."""
    parts = [ratios("stock", spread(0.5, 0.1), metric), ratios("new", spread(0.5, 0.2), metric)]
    stock, new = series_of(parts, METRICS, ["stock", "new"])
    estimates = [estimated(stock, 0.5), estimated(new, 0.5 + delta, half)]
    (verdict,) = judge(estimates, ["stock", "new"], case(stock, new, gaps={(metric, None): gap}))
    return verdict
