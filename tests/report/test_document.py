"""Sections that all forms of the report share."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from lookup.engine.cycle_sums import CycleSums
from lookup.model.decision import CycleReason
from lookup.report.blocks import Fold, Table
from lookup.report.document import figure_table, first_figures, idle_shedders, sections
from lookup.report.figures import Results
from lookup.report.markdown import markdown_report
from tests.report.results import INPUTS, result, scored, varied
from tests.score.cases import plan, ratios


def tables(results: Results, section: str) -> dict[str, Table]:
    """Return the tables of a section by name, those in folds included."""
    blocks = next(each.blocks for each in sections(results) if each.id == section)
    inner = [each for block in blocks for each in (block.blocks if isinstance(block, Fold) else [block])]
    return {block.id: block for block in inner if isinstance(block, Table)}


def test_the_order_of_reading() -> None:
    """From the answer to how it was made."""
    ids = [section.id for section in sections(result())]

    assert ids == ["answer", "others", "figures", "where", "certainty", "method"]


def test_the_incumbent_comes_first_then_the_best() -> None:
    """Whatever their order in the settings."""
    shares = (("a", 0.5), ("c", 0.4), ("b", 0.3))
    found = scored([ratios(name, [of] * 30, "match_ratio", key="rack") for name, of in shares], plan("b", "c", "a"))

    assert figure_table(found).columns == ("figure", "unit", "b (incumbent)", "a", "c")


def test_first_figures_are_in_the_table_of_all() -> None:
    """Primary ones before the others."""
    names = first_figures(varied())

    assert names[0] == ("answered_ratio", None)
    assert next(row[0] for row in figure_table(varied(), names).rows) == "↑ answered_ratio *"


IDLE = CycleSums(
    "threshold", 720, Counter({"hit-count": 700, "too-little": 20}), excess={"hit-count": 0.0, "too-little": 0.25}
)
BUSY = CycleSums(
    "avg",
    3,
    Counter({"hit-count": 1, "mine": 1, "overloaded": 1}),
    accepted=1_000,
    refused=Counter({"grace-period": 2, "not-owner": 1}),
    excess={"hit-count": 0.1},
)
CYCLES = result(inputs=replace(INPUTS, cycles={"stock": IDLE, "new": BUSY}))


def test_a_shedder_that_unloaded_nothing_has_a_line() -> None:
    """The most frequent reason comes first; one that unloaded something has none."""
    (idle,) = idle_shedders(CYCLES)

    assert idle.startswith("stock: the shedder ran 720 cycles")
    assert idle.endswith(": balanced 700, too little to offload 20")
    assert idle_shedders(result()) == []


def test_cycles_have_a_table_for_each_policy() -> None:
    """A reason that is a third party's stands as it is, and an excess that is not known is a dash."""
    rows = tables(CYCLES, "moves")["cycles-new"].rows

    assert rows[0][0].startswith("balanced, or ")  # type: ignore[union-attr]  # a text
    assert [row[1:] for row in rows] == [("1", "0.1"), ("1", "–"), ("1", "–")]
    assert rows[1][0] == "mine"
    assert "3 proposals refused (grace-period 2, not-owner 1)." in markdown_report(CYCLES)


def test_every_reason_of_a_shedder_has_words() -> None:
    """Those that only splits have are not among them."""
    splits = {CycleReason.TOPICS, CycleReason.SESSIONS, CycleReason.MSG_RATE, CycleReason.BANDWIDTH}
    reasons = Counter(map(str, set(CycleReason) - splits))
    results = result(inputs=replace(INPUTS, cycles={"stock": CycleSums("avg", reasons=reasons)}))

    assert not {row[0] for row in tables(results, "moves")["cycles-stock"].rows} & set(reasons)


def test_the_condition_stands_in_the_table_of_verdicts() -> None:
    """Behind the mark and the word of the figure that drifts."""
    words = {row[0]: row[1] for row in tables(varied(), "certainty")["verdicts-new"].rows}

    assert words == {
        "answered_ratio *": "▲ better",
        "match_ratio[rack]": "▼ worse",
        "match_ratio[zone]": "▴ inconclusive",
        "imbalance_max_mean *": "▽ worse, only in these hours",
        "moves": "▾ inconclusive",
        "waiting[lock]": "▼ worse",
    }


def test_the_log_stands_beside_the_replay() -> None:
    """With ranges, gaps, and the reason where there is none."""
    (row,) = tables(result(), "certainty")["fidelity-table"].rows

    assert row == ["answered_ratio", "0.5010", "0.5000", "[0.5000, 0.5000]", "0.0010"]
    assert "no gap for network_covered_ratio, imbalance_cv, moves, agreement_ratio: " in markdown_report(result())
