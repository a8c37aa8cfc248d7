"""What is possible, said in a line and in a table, and read back from a run."""

from __future__ import annotations

from dataclasses import replace
from math import nan
from pathlib import Path

from lookup.report.blocks import Chart, Paragraph, Table
from lookup.report.caveats import caveats
from lookup.report.folder import read_run
from lookup.report.possible import reach, what_is_possible
from lookup.report.sections import sections
from lookup.score.possible import Best, Beyond, Frontier, Possible, Share
from lookup.score.scoring import Scored
from tests.report.results import varied
from tests.report.runs import write_run
from tests.score.cases import ratios, scored

NEAR, EVEN = ("match_ratio", "rack"), ("imbalance_max_mean", None)
NOTHING = "nothing to improve: the incumbent is as near to the bound as luck goes"
POSSIBLE = Possible(
    moves=30,
    figures=(Best(*NEAR, 0.5, 0.9, 0.7, 0.01), Best(*EVEN, 1.5, 1.0, 1.0, 0.1)),
    shares=(
        Share("new", *NEAR, 0.25, 0.2, 0.3, "policy", None),
        Share("new", *EVEN, nan, nan, nan, "policy", NOTHING),
        Share("old", *NEAR, -0.004, -0.1, 0.1, "hours", None),
        Share("old", *EVEN, 0.5, nan, nan, "policy", "too few bundles or blocks of time for an interval"),
    ),
    frontiers=(Frontier(*NEAR, ((1.0, 0.8), (1.2, 0.9)), ()),),
    unanswered=(),
    beyond=(),
)


def result(possible: Possible | None = POSSIBLE) -> Scored:
    """Return a comparison with some figures that are possible."""
    return replace(varied(), possible=possible)


def test_one_line_says_what_is_possible_and_how_far_the_best_goes() -> None:
    """In the figures that say what a policy is good for."""
    assert reach(result()) == (
        "possible in hindsight: same-rack share 90.0 % (70.0 % with the 30 moves of stock), load of the busiest broker "
        "1 × mean; old goes 0 % (-10 to 10, for these hours only) and 50 % of the way there"
    )


def test_nothing_is_said_of_what_was_not_bounded() -> None:
    """Neither in a line nor in a table."""
    assert reach(result(None)) is None
    assert list(what_is_possible(result(None))) == []


def test_the_table_has_each_share_and_the_reason_for_none() -> None:
    """Shares in percent, a dash if there is none, and below it why."""
    about, table, *notes = what_is_possible(result())
    assert isinstance(table, Table)
    rows = [[cell.text for cell in row] for row in table.cells]

    assert isinstance(about, Paragraph)
    assert "with the 30 moves of the incumbent" in about.text
    assert rows == [
        ["match_ratio[rack]", "0.5000", "0.9000", "0.7000", "25 % (20 to 30)", "0 % (-10 to 10, for these hours only)"],
        ["imbalance_max_mean", "1.5000", "1.0000", "1.0000", "–", "50 %"],
    ]
    assert f"imbalance_max_mean: {NOTHING}" in [note.text for note in notes if isinstance(note, Paragraph)]


def test_filters_that_no_bound_goes_by_are_named() -> None:
    """If they kept a broker out: shares may then be too small, and nobody would see why."""
    shown = result(replace(POSSIBLE, filters=("isolation",)))
    texts = {
        reasons: [block.text for block in what_is_possible(shown, reasons) if isinstance(block, Paragraph)]
        for reasons in (("isolation", "max-topics", "anti-affinity"), ("isolation",))
    }
    known, all_of_them = texts[("isolation",)], texts[("isolation", "max-topics", "anti-affinity")]

    assert all_of_them[:-1] == known
    assert "kept brokers out by anti-affinity, max-topics, which the bounds do not go by" in all_of_them[-1]


def test_a_policy_beyond_its_bound_is_the_first_caution() -> None:
    """With all its figures, each once; it is no fault of the reader."""
    found = tuple(Beyond("new", figures, seed) for figures in ((NEAR,), (NEAR, EVEN)) for seed in (1, 2))
    first = caveats(result(replace(POSSIBLE, beyond=found)))[0]

    assert first.startswith(
        "new lies beyond what is possible in match_ratio[rack], match_ratio[rack] with imbalance_max_mean: this is "
        "a fault of pulsar-lookup"
    )


def test_a_run_is_read_back_with_what_is_possible(tmp_path: Path) -> None:
    """The same line from the folder as from the run, and none of a run without bounds."""
    assert reach(read_run(str(write_run(tmp_path / "run", result()))).scored) == reach(result())
    assert read_run(str(write_run(tmp_path / "off", result(None)))).scored.possible is None


def test_without_labels_the_chart_has_the_curve_of_distances(tmp_path: Path) -> None:
    """No point is below it: the shaded side reaches down to the lower edge."""
    figures = {"network_ms_mean": (0.5, 0.4), "imbalance_max_mean": (1.5, 1.4), "answered_ratio": (1.0, 1.0)}
    parts = [
        ratios(name, [value] * 30, metric)
        for metric, values in figures.items()
        for name, value in zip(("stock", "new"), values, strict=True)
    ]
    curve = Frontier("network_ms_mean", None, ((1.0, 0.3), (1.2, 0.2)), ())
    compared = replace(scored(parts), possible=replace(POSSIBLE, figures=(), shares=(), frontiers=(curve,)))
    drawn = sections(read_run(str(write_run(tmp_path / "run", compared))))
    (trade,) = [section for section in drawn if section.id == "trade"]
    chart = next(block for block in trade.blocks if isinstance(block, Chart))
    points = next(layer for layer in chart.spec["layer"] if layer["mark"]["type"] == "area")["data"]["values"]

    assert [(point["x"], point["y"]) for point in points][2:4] == [(1.0, 0.3), (1.2, 0.2)]
    assert all(point["far"] < 0.2 for point in points)


def test_the_chart_of_two_aims_has_the_curves_that_no_policy_is_above(tmp_path: Path) -> None:
    """Of the property that stands upwards; without bounds there are none, and the text does not speak of them."""
    few = ((1.0, 0.6), (1.3, 0.7))
    with_both = replace(
        POSSIBLE, frontiers=(Frontier("match_ratio", "zone", ((1.0, 0.9),), ()), Frontier(*NEAR, ((1.0, 0.8),), few))
    )
    drawn = {}
    for name, possible in (("free", POSSIBLE), ("both", with_both), ("off", None)):
        (trade,) = [
            section
            for section in sections(read_run(str(write_run(tmp_path / name, result(possible)))))
            if section.id == "trade"
        ]
        chart = next(block for block in trade.blocks if isinstance(block, Chart))
        layers = [layer for layer in chart.spec["layer"] if "data" in layer]
        names = [layer["data"]["values"][0]["label"] for layer in layers if layer["mark"]["type"] == "text"]
        lines = [layer["data"]["values"] for layer in layers if layer["mark"]["type"] == "line"]
        # two points at the left edge, and one at the right
        curves = [[(point["x"], point["y"]) for point in line[2:-1]] for line in lines]
        texts = [block.text for block in trade.blocks if isinstance(block, Paragraph)]
        drawn[name] = dict(zip(names, curves, strict=True)), any("shaded" in text for text in texts)

    assert drawn == {
        "free": ({"possible with any moves": [(1.0, 0.8), (1.2, 0.9)]}, True),
        "both": ({"possible with any moves": [(1.0, 0.8)], "possible with 30 moves": [*few]}, True),
        "off": ({}, False),
    }
