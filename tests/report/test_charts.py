"""Test the specifications of the page's charts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import pytest

from lookup.report import charts

SPECIFICATIONS = {
    "trade": charts.trade_spec("match_ratio", "imbalance"),
    "delta": charts.delta_spec(2),
    "heat, relative": charts.heat_spec("load / mean", "%H:%M", is_relative=True),
    "heat": charts.heat_spec("bundles", "%d %H:%M", is_relative=False),
    "moves": charts.moves_spec(["broker lost", "split"], "%H:%M"),
    "matrix": charts.matrix_spec("from", "to", "share"),
    "rejections": charts.rejection_spec([f"reason {number}" for number in range(10)]),
    "topology": charts.topology_spec(7, 3.0),
}


@pytest.mark.parametrize("spec", SPECIFICATIONS.values(), ids=SPECIFICATIONS)
def test_altair_reads_and_writes_a_specification_as_it_is(spec: Mapping[str, Any]) -> None:
    """It keeps to the schema of Vega-Lite, whose version is the one that Altair writes."""
    written = alt.Chart.from_dict(dict(spec)).to_dict()

    assert {key: value for key, value in written.items() if key != "config"} == spec
