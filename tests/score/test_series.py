"""Sums in order, and observed values."""

from __future__ import annotations

import math

import pytest

from lookup.errors import PluginError
from tests.score.cases import ratios, series, sums


def test_series_come_in_order() -> None:
    """Whatever the order of the sums: parts of the demand last, then policies, metrics and keys as given."""
    parts = [
        sums("new", [[1]], "moves", key="shed"),
        sums("new", [[1]], "moves"),
        sums("stock", [[1]], "moves"),
        ratios("stock", [1.0], by=(("tenant", "a"),)),
        ratios("new", [1.0]),
    ]

    names = [(one.policy, *one.name, one.by) for one in series(*parts)]

    assert names == [(one.policy, *one.name, one.by) for one in series(*reversed(parts))]
    assert names[0] == ("stock", "moves", None, ())
    assert [name[:3] for name in names[1:4]] == [
        ("new", "answered_ratio", None),
        ("new", "moves", None),
        ("new", "moves", "shed"),
    ]
    assert names[4][3] == (("tenant", "a"),)


def test_values_are_those_of_totals() -> None:
    """A large unit counts more than a small one; clusters are pooled by adding."""
    (one,) = series(sums("new", [[1, 1], [0, 9]]), sums("new", [[10, 10]], cluster="d"))

    assert one.value_of_seed(1, "c") == pytest.approx(0.1)
    assert one.value_of_seed(1, "d") == 1.0
    assert one.value() == pytest.approx(11 / 20)


def test_every_seed_has_a_value() -> None:
    """Pooled, in a cluster, and none where nothing was measured."""
    (one,) = series(
        sums("new", [[0, 1]], seed=3),
        sums("new", [[9, 9]], seed=2),
        sums("new", [[0, 3]], "answered_ratio", seed=2, cluster="d"),
    )

    assert one.seeds == (2, 3)
    assert (one.value_of_seed(2), one.value_of_seed(2, "c"), one.value_of_seed(3)) == (0.75, 1.0, 0.0)
    assert math.isnan(one.value_of_seed(3, "d"))


def test_rows_of_quantiles_add_over_clusters() -> None:
    """A metric whose rows are no units gets all of them; clusters add up row by row."""
    (one,) = series(
        sums("new", [[99, 99], [1, 30]], "network_ms_p95"),
        sums("new", [[0, 0], [9, 270]], "network_ms_p95", cluster="d"),
    )

    assert one.value_of_seed(1, "c") == 1.0
    assert one.value() == 30.0


@pytest.mark.parametrize(
    "where", [{"policy": "new"}, {"policy": "stock", "cluster": "d"}, {"policy": "stock", "seed": 2}]
)
def test_sums_with_other_columns_are_refused(where: dict[str, str]) -> None:
    """They would not add up; the metric is named, and where it answered them."""
    place = rf"\(n, 1\) in cluster {where.get('cluster', 'c')!r} under policy {where['policy']!r}"
    sentence = rf"metric 'moves' .* {place} .* \(n, 2\) elsewhere; "

    with pytest.raises(PluginError, match=f"^{sentence}"):
        series(sums("stock", [[1, 1]], "moves"), sums(rows=[[1]], metric="moves", **where))
