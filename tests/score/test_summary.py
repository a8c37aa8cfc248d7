"""`summary.json` and `metrics.parquet`: structure, order, plain values."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats

from lookup.replay.outcome import LOGGED, InputFacts
from lookup.score.scoring import Scored
from lookup.score.summary import METRICS as COLUMNS
from lookup.score.summary import metrics_table, summary, to_json
from tests.score.cases import METRICS, SEEDS, decided, moves, plan, ratios, scored, spread, sums

METRIC_KEYS = ["policy", "cluster", "metric", "key", "by", "value", "low", "high", "unit", "direction"]


def _freedom(weights: np.ndarray) -> float:
    """Return the freedom of bundles: midway between Kish's number less one and that of the squares."""
    kish = [np.sum(one) ** 2 / np.sum(one**2) for one in (weights, weights**2)]
    return float((kish[0] - 1 + kish[1]) / 2)


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
    return scored(parts, inputs=inputs, cannot_act={"new": "no topology"})


def test_sections(result: Scored) -> None:
    """The ten promised ones, schema 1."""
    judged = ["metrics", "verdicts", "comparisons", "units", "guarded", "winners", "fidelity", "at_best"]
    assert list(summary(result)) == ["schema", *judged, "inputs"]
    assert summary(result)["schema"] == 1


def test_metrics(result: Scored) -> None:
    """Pooled and by cluster, with interval, unit and direction."""
    rows = summary(result)["metrics"]

    assert all(list(row) == METRIC_KEYS for row in rows)
    chosen = [row for row in rows if row["policy"] == "new" and row["metric"] == "answered_ratio"]
    assert [(row["cluster"], row["by"]) for row in chosen] == [
        (None, None),
        ("c", None),
        ("d", None),
        (None, {"tenant": "t1"}),
        ("c", {"tenant": "t1"}),
    ]
    assert chosen[0]["value"] == pytest.approx(0.6)
    assert chosen[0]["low"] < 0.6 < chosen[0]["high"]
    assert (chosen[0]["unit"], chosen[0]["direction"]) == ("ratio", "up")


def test_metrics_that_could_not_be_computed_are_null(result: Scored) -> None:
    """Every registered metric has a row for every policy, pooled and in each cluster."""
    rows = [row for row in summary(result)["metrics"] if row["by"] is None]

    found = {(row["policy"], row["cluster"], row["metric"]) for row in rows}
    assert found == {
        (policy, cluster, metric.name)
        for policy in ("stock", "new")
        for cluster in (None, "c", "d")
        for metric in METRICS
    }
    absent = [row for row in rows if row["metric"] == "network_cost"]
    assert {(row["value"], row["low"], row["high"], row["key"]) for row in absent} == {(None, None, None, None)}


def test_order(result: Scored) -> None:
    """Policies as in the settings, metrics as registered."""
    rows = summary(result)["metrics"]

    assert list(dict.fromkeys(row["policy"] for row in rows)) == ["stock", "new"]
    names = [metric.name for metric in METRICS]
    assert list(dict.fromkeys(row["metric"] for row in rows)) == names


def test_verdicts(result: Scored) -> None:
    """The promised keys; what is unknown is null."""
    better, moved = summary(result)["verdicts"]

    keys = ["policy", "against", "metric", "key", "verdict", "reason", "delta", "low", "high", "margin", "primary"]
    beside = ["alone", "question", "guard", "units", "on_log", "for_demand", "clusters"]
    assert list(better) == [*keys, "holds_for", "p_value", "p_family", *beside]
    assert (better["policy"], better["against"], better["metric"]) == ("new", "stock", "answered_ratio")
    assert (better["verdict"], better["reason"], better["primary"]) == ("better", None, True)
    assert (better["holds_for"], better["p_value"], better["p_family"]) == ("placement", 0.0, 0.0)
    assert (better["question"], better["guard"], better["alone"]) == ("log", "kept", None)
    assert (moved["key"], moved["delta"], moved["low"], moved["p_value"]) == ("shed", None, None, None)
    assert (moved["question"], moved["guard"], moved["clusters"]) == ("demand", None, [])
    assert moved["on_log"] == moved["for_demand"] == {"low": None, "high": None, "p_value": None}


def test_both_questions_stand_in_the_summary() -> None:
    """On this log a gain that bundles differ in is certain; for demand like it there is an interval."""
    parts = [ratios("stock", [0.5] * 30), ratios("new", spread(0.6, 0.3, 30))]

    (row,) = summary(scored(parts))["verdicts"]

    assert row["on_log"] == pytest.approx({"low": 0.1, "high": 0.1, "p_value": 0.0})
    half = stats.t.ppf(0.975, 29) * np.std(np.linspace(-0.3, 0.3, 30), ddof=1) / np.sqrt(30)
    low, high, chance = (row["for_demand"][name] for name in ("low", "high", "p_value"))
    assert (low, high) == pytest.approx((0.1 - half, 0.1 + half))
    assert chance == pytest.approx(2 * stats.t.sf(0.1 / half * stats.t.ppf(0.975, 29), 29))
    assert (row["low"], row["high"]) == (row["on_log"]["low"], row["on_log"]["high"])


def test_clusters_that_disagree_stand_in_the_summary() -> None:
    """By name, each with its difference and interval."""
    gains = {"c": 0.1, "d": -0.1}
    parts = [ratios("stock", [0.5] * 30, cluster=name) for name in gains]
    parts += [ratios("new", [0.5 + gain] * 30, cluster=name) for name, gain in gains.items()]

    (row,) = summary(scored(parts))["verdicts"]

    assert [list(one) for one in row["clusters"]] == [["cluster", "delta", "low", "high"]] * 2
    assert [(one["cluster"], one["delta"]) for one in row["clusters"]] == [
        (name, pytest.approx(gain)) for name, gain in gains.items()
    ]


def test_verdicts_that_decide_have_a_probability_together() -> None:
    """Two primary comparisons: the smaller probability counts twice."""
    parts = [ratios(policy, spread(mean, 0.1)) for policy, mean in (("stock", 0.5), ("new", 0.6))]
    # six bundles of forty move once more
    before, more = np.array([1, 2] * 20), np.array([1] * 6 + [0] * 34)
    moved = [moves("stock", before.tolist()), moves("new", (before + more).tolist())]

    content = summary(decided([*parts, *moved], primary=("answered_ratio", "moves")))

    t = more.sum() / np.sqrt(40 * np.var(more, ddof=1))
    chance = 2 * stats.t.sf(t, _freedom(2 * before + more))
    assert [row["p_value"] for row in content["verdicts"]] == pytest.approx([1 / 512, chance])
    assert [row["p_family"] for row in content["verdicts"]] == pytest.approx([2 / 512, chance])
    assert content["comparisons"] == {"together": 2, "alone": 0, "expected_by_chance": 0.0}


def test_comparisons(result: Scored) -> None:
    """How many were made for the exit code, how many besides, and in how many figures chance does something there."""
    assert summary(result)["comparisons"] == {"together": 0, "alone": 1, "expected_by_chance": 0.05}


def test_comparisons_of_one_figure_are_expected_once() -> None:
    """Two candidates by two figures are four comparisons, of which chance turns one figure in twenty."""
    parts = [
        ratios(policy, spread(0.5, width), "match_ratio", key=key)
        for policy, width in (("stock", 0.1), ("new", 0.2), ("old", 0.3))
        for key in ("rack", "zone")
    ]

    comparisons = summary(scored(parts, plan("stock", "new", "old", primary=())))["comparisons"]

    assert comparisons == {"together": 0, "alone": 4, "expected_by_chance": 0.1}


def test_winners() -> None:
    """What luck gives the best of several candidates, by figure."""
    parts = [
        ratios(policy, [0.5 + 0.01 * place * seed] * 30, "match_ratio", key="rack", seed=seed)
        for place, policy in enumerate(("stock", "new", "old"))
        for seed in SEEDS
    ]

    (row,) = summary(scored(parts, plan("stock", "new", "old", seeds=SEEDS)))["winners"]

    assert list(row) == ["metric", "key", "candidates", "value", "advantage"]
    assert (row["metric"], row["key"], row["candidates"]) == ("match_ratio", "rack", 2)
    assert row["value"] == pytest.approx(0.545)


def test_fidelity(result: Scored) -> None:
    """Logged, re-simulated, range and gap."""
    (row,) = summary(result)["fidelity"]

    assert list(row) == ["metric", "key", "logged", "resimulated", "low", "high", "gap", "seeds", "reason"]
    assert (row["low"], row["high"], row["gap"]) == pytest.approx((0.5, 0.5, 0.01))
    assert row["seeds"] == [1]


def test_inputs_are_plain(result: Scored) -> None:
    """Numbers of numpy become what JSON knows; why verdicts say less than they could stands there too."""
    inputs: dict[str, Any] = summary(result)["inputs"]

    assert {name: value for name, value in inputs.items() if value} == {
        "lookups": 7,
        "clusters": ["c", "d"],
        "placed_once": result.placed_once,
        "cannot_act": {"new": "no topology"},
    }


def test_json_is_strict(result: Scored) -> None:
    """No NaN; the text is the same each time and reads back."""
    text = to_json(summary(result))

    assert text == to_json(summary(result))
    assert "NaN" not in text
    assert json.loads(text) == summary(result)


def test_table(result: Scored, tmp_path: Any) -> None:
    """The same rows, and they survive Parquet."""
    pq.write_table(metrics_table(result), tmp_path / "metrics.parquet")

    back = pq.read_table(tmp_path / "metrics.parquet")

    assert back.schema.equals(COLUMNS)
    rows = summary(result)["metrics"]
    assert back.column("value").to_pylist() == [row["value"] for row in rows]
    assert [dict(by) if by else None for by in back.column("by").to_pylist()] == [row["by"] for row in rows]
