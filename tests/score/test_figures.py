"""FIGURES: one row per figure, its order, its verdict, and what it holds besides."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from lookup.replay.outcome import LOGGED, InputFacts
from lookup.score.figures import FIGURES, Figure, figures_of, figures_table
from lookup.score.scoring import Scored
from tests.score.cases import METRICS, decided, moves, ratios, scored, spread, sums


@pytest.fixture(scope="module")
def result() -> Scored:
    """Score two policies in two clusters, with a tenant apart and a logged choice."""
    parts = [
        ratios(policy, spread(0.5 + gain, 0.1), cluster=cluster)
        for policy, gain in (("new", 0.1), ("stock", 0.0), (LOGGED, 0.01))
        for cluster in "dc"
    ]
    parts += [ratios("new", [0.5] * 40, by=(("tenant", "t1"),)), sums("new", [[1]] * 40, "moves", key="shed")]
    inputs = InputFacts(lookups=np.int64(7), clusters=("c", "d"))  # type: ignore[arg-type]  # of numpy
    return scored(parts, inputs=inputs, at_best={("new", "answered_ratio", None): 0.9})


def _pooled(found: Scored, policy: str, metric: str, key: str | None = None) -> Figure:
    rows = [row for row in figures_of(found) if (row.policy, row.name, row.scope) == (policy, (metric, key), _WHOLE)]
    (row,) = rows
    return row


_WHOLE = "all clusters"


def test_the_scope_tells_rows_apart_that_count_the_same_lookups(result: Scored) -> None:
    """The whole first, then clusters, then parts and these by cluster; each with value and interval."""
    rows = [row for row in figures_of(result) if (row.policy, row.metric) == ("new", "answered_ratio")]

    assert [(row.scope, row.cluster, row.dimension, row.part) for row in rows] == [
        ("all clusters", None, None, None),
        ("cluster", "c", None, None),
        ("cluster", "d", None, None),
        ("part", None, "tenant", "t1"),
        ("part of cluster", "c", "tenant", "t1"),
    ]
    assert rows[0].value == pytest.approx(0.6)
    assert rows[0].low < 0.6 < rows[0].high
    assert (rows[0].unit, rows[0].better, rows[0].question, rows[0].at_best) == ("ratio", "up", "log", 0.9)


def test_every_metric_has_a_row_for_every_policy(result: Scored) -> None:
    """In the order of the settings and of the metrics; what could not be computed has no value."""
    rows = [row for row in figures_of(result) if row.scope == "all clusters"]

    assert {(row.policy, row.metric) for row in rows} == {(p, m.name) for p in ("stock", "new") for m in METRICS}
    assert list(dict.fromkeys(row.policy for row in rows)) == ["stock", "new"]
    assert list(dict.fromkeys(row.metric for row in rows)) == [metric.name for metric in METRICS]
    assert math.isnan(_pooled(result, "stock", "network_cost").value)


def test_a_compared_figure_has_its_verdict(result: Scored) -> None:
    """The incumbent's has none; one that is not measured for a policy has no change, and the reason."""
    better, shed = _pooled(result, "new", "answered_ratio"), _pooled(result, "new", "moves", "shed")

    assert _pooled(result, "stock", "answered_ratio").verdict is None
    assert (better.against, better.verdict, better.reason, better.primary) == ("stock", "better", None, True)
    assert (better.holds_for, better.p_value, better.guard, better.alone) == ("placement", 0.0, "kept", None)
    assert better.change == pytest.approx(0.1)
    assert (shed.verdict, math.isnan(shed.change), math.isnan(shed.p_value)) == ("inconclusive", True, True)


def test_a_change_is_the_candidate_less_the_incumbent() -> None:
    """Whatever is better: fewer moves are a negative change, and a gain."""
    counts = {"stock": [30.0, 31.0] * 20, "new": [20.0, 22.0] * 20}
    row = _pooled(decided([moves(policy, of) for policy, of in counts.items()]), "new", "moves")

    assert row.change == pytest.approx(-380)
    assert row.change_low < -380 < row.change_high < 0
    assert row.gain == pytest.approx(380)


def test_the_incumbent_has_what_the_log_says(result: Scored) -> None:
    """The logged value, the range of a replicate, and the gap between them; without it the reason."""
    known, unknown = (_pooled(result, "stock", metric) for metric in ("answered_ratio", "moves"))

    assert (known.replay_low, known.replay_high, known.gap) == pytest.approx((0.5, 0.5, 0.01))
    assert known.logged == pytest.approx(0.51)
    assert (unknown.logged, unknown.no_gap) == (pytest.approx(math.nan, nan_ok=True), None)


def test_the_table_survives_parquet(result: Scored, tmp_path: Any) -> None:
    """The same columns and values, null for what is unknown."""
    rows = figures_of(result)
    pq.write_table(figures_table(rows), tmp_path / "metrics.parquet")

    back = pq.read_table(tmp_path / "metrics.parquet")

    assert back.schema.equals(FIGURES)
    assert back.column("value").to_pylist() == [None if math.isnan(row.value) else row.value for row in rows]
    assert back.column("verdict").to_pylist() == [row.verdict for row in rows]
