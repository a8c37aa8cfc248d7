"""All built-in metrics: what they declare, and that they equal a plain-Python second implementation."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.engine.measuring import luck_of
from lookup.hooks import Metric
from lookup.model.broker import Broker, Roster
from lookup.score.metrics import Moves, lookup_register_metrics
from tests.score.oracle import Happenings, measure_all
from tests.score.worlds import batch_of, event_of, events_of, worlds

METRICS = [metric() for metric in lookup_register_metrics()]


def measured(batches: list[object]) -> dict[tuple[str, str | None], float]:
    """Add the sums of batches up and turn them into values, as score does."""
    figures = {}
    for metric in METRICS:
        for key in dict.fromkeys(key for batch in batches for key in metric.keys(batch)):
            parts = [metric.accumulate(batch, key) for batch in batches]
            sums = sum(part for part in parts if len(part))
            totals = sums if metric.resample == "none" else np.sum(sums, axis=0)
            figures[metric.name, key] = float(metric.value(totals))
    return figures


def assert_same(ours: dict[tuple[str, str | None], float], theirs: dict[tuple[str, str | None], float]) -> None:
    """Compare figures; NaN equals NaN."""
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        assert ours[name] == pytest.approx(value, rel=1e-9, abs=1e-9, nan_ok=True), name


@given(worlds())
def test_metrics_equal_the_oracle(drawn: tuple[Happenings, list[Broker]]) -> None:
    """Every metric of a random world equals the plain loop."""
    world, brokers = drawn

    assert_same(measured([batch_of(world, brokers)]), measure_all(world))


@given(worlds(), st.integers(0, 30))
def test_batches_add_up(drawn: tuple[Happenings, list[Broker]], cut: int) -> None:
    """Figures do not depend on how lookups are spread over batches; labels may change between them."""
    world, brokers = drawn
    whole = batch_of(world, brokers)
    mask = np.arange(len(whole.served.bundle)) < cut
    early = replace(batch_of(replace(world, registered={}), brokers, last=False), served=_kept(whole.served, mask))
    late = replace(whole, served=_kept(whole.served, ~mask))
    halves = [replace(early, logged=whole.logged * 0, agreed=whole.agreed * 0), late]

    assert_same(measured(halves), measured([whole]))


@given(worlds())
def test_rows_are_bundles_then_events(drawn: tuple[Happenings, list[Broker]]) -> None:
    """Every metric over events has the rows of the batch's bundles, and those of its events after them."""
    world, brokers = drawn
    batch = batch_of(world, brokers)

    shapes = {metric.accumulate(batch, None).shape for metric in METRICS if metric.resample == "event"}
    assert shapes == {(len(batch.bundles) + len(batch.events), 1)}


@given(worlds())
def test_what_an_event_caused_stands_in_its_row(drawn: tuple[Happenings, list[Broker]]) -> None:
    """Moves of each event and of each bundle equal those of the plain loop over the changes that are theirs."""
    world, brokers = drawn
    changes = [one for one in world.changes or () if one.source is not None and one.source != one.broker]
    rows = [event_of(one) or one.bundle for one in changes]
    batch = batch_of(world, brokers)

    names = [*batch.bundles, *events_of(world.changes or ())]
    assert Moves().accumulate(batch, None)[:, 0].tolist() == [rows.count(name) for name in names]


def _kept(served: object, mask: np.ndarray) -> object:
    columns = ("bundle", "broker", "client", "lookups", "weight")
    return replace(served, **{name: getattr(served, name)[mask] for name in columns})


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
class TestDeclarations:
    """What every metric declares."""

    def test_it_pickles(self, metric: Metric) -> None:
        """Spark tasks get an equal object."""
        assert pickle.loads(pickle.dumps(metric)) == metric

    def test_nothing_is_worth_nothing(self, metric: Metric) -> None:
        """Totals of zero are NaN, or 0 for metrics that count."""
        value = metric.value(np.zeros((1, 2)))

        assert all(math.isnan(one) or one == 0 for one in np.ravel(value))

    def test_values_keep_the_leading_shape(self, metric: Metric) -> None:
        """Totals of shape (n, k) become values of shape (n,); a metric whose rows are no units gives one."""
        value = metric.value(np.ones((5, 2)))

        assert np.shape(value) == (() if metric.resample == "none" else (5,))


def test_a_roster_without_brokers_measures_nothing() -> None:
    """An empty cluster gives NaN and zeros, not an error."""
    world = Happenings([], [], {("c", 0): frozenset()}, 3600 * 10**6)

    figures = measured([replace(batch_of(world, []), brokers=Roster([]))])

    assert math.isnan(figures["answered_ratio", None])
    assert figures["moves", None] == 0


def test_the_page_names_the_rows_and_the_luck_of_every_metric() -> None:
    """The table of docs/scoring.md has the rows of each metric, and a sentence which of them vary with events."""
    page = (Path(__file__).parents[3] / "docs" / "scoring.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")] for line in page.splitlines() if line.startswith("| `")]
    named = {row[1].strip("`").partition("[")[0]: row[-2] for row in rows if len(row) == 6}
    still = {name for name, kind in named.items() if kind not in ("bundle", "event")} | {"network_cost"}

    assert "also with events ([sources of chance](#luck)), except `network_cost`." in page
    assert named == {metric.name: metric.resample for metric in METRICS}
    assert {metric.name for metric in METRICS if "events" not in luck_of(metric)} == still
    assert all({"demand", "placement"} <= set(luck_of(metric)) for metric in METRICS)
