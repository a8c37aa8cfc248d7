"""Test the specifications of the page's charts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import altair as alt
import pytest

from lookup.report import charts
from lookup.score.verdict import Word

SPECIFICATIONS = {
    "trade": charts.trade_spec("match_ratio", "imbalance", [(1.0, 2.0), (0.2, 0.4)], 7.0),
    "trade without moves": charts.trade_spec("match_ratio", "imbalance", [(1.0, 2.0), (0.2, 0.4)], None),
    "delta": charts.delta_spec(2),
    "heat, relative": charts.heat_spec("load / mean", "%H:%M", is_relative=True),
    "heat": charts.heat_spec("bundles", "%d %H:%M", is_relative=False),
    "moves": charts.moves_spec(["broker lost", "split"], "%H:%M"),
    "matrix": charts.matrix_spec("from", "to", "share"),
    "rejections": charts.rejection_spec([f"reason {number}" for number in range(10)]),
    "topology": charts.topology_spec(7, 3.0),
}


def test_sizes_have_a_legend_only_if_moves_are_known() -> None:
    """Under shared ownership nothing moves, and all points have the least size."""
    sizes = [_sizes(SPECIFICATIONS[name]) for name in ("trade", "trade without moves")]

    assert ["legend" in size for size in sizes] == [False, True]
    assert sizes[1]["legend"] is None
    assert [size["scale"]["domain"] for size in sizes] == [[0, 7.0], [0, 1.0]]
    assert all(size["scale"]["range"][0] >= 79 for size in sizes)


def test_every_word_of_a_verdict_has_a_colour() -> None:
    """In the order of the words: a scale that is short begins again, and only one verdict is better."""
    (scale,) = [
        layer["encoding"]["color"]["scale"]
        for layer in SPECIFICATIONS["delta"]["spec"]["layer"]
        if "scale" in layer["encoding"].get("color", {})
    ]

    colours = dict(zip(scale["domain"], scale["range"], strict=True))
    assert set(colours) == set(get_args(Word))
    assert [colours[word] for word in ("better", "worse")] == ["@better", "@worse"]
    assert set(colours.values()) == {"@better", "@worse", "@quiet"}


def _sizes(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    (found,) = [layer["encoding"]["size"] for layer in spec["layer"] if "size" in layer["encoding"]]
    return found


@pytest.mark.parametrize("spec", SPECIFICATIONS.values(), ids=SPECIFICATIONS)
def test_altair_reads_and_writes_a_specification_as_it_is(spec: Mapping[str, Any]) -> None:
    """It keeps to the schema of Vega-Lite, whose version is the one that Altair writes."""
    written = alt.Chart.from_dict(dict(spec)).to_dict()

    assert {key: value for key, value in written.items() if key != "config"} == spec
