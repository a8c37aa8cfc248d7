"""Blocks that all forms of the report share."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from lookup.engine.cycle_sums import CycleSums
from lookup.model.decision import CycleReason
from lookup.report.document import cycle_table, figure_table, idle_shedders, verdict_table
from lookup.report.markdown import markdown_report
from tests.report.results import INPUTS, result, varied
from tests.report.test_markdown import section
from tests.report.test_printing import printed
from tests.score.cases import plan, ratios, scored


def test_the_incumbent_comes_first() -> None:
    """Then the candidates as in the settings."""
    found = scored([ratios(name, [0.5] * 30) for name in ("a", "b")], plan("b", "a"))

    assert figure_table(found).columns == ("metric", "unit", "b (incumbent)", "a")


_MOVED = "Why bundles moved, or did not"
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
CYCLES = {"stock": IDLE, "new": BUSY}


def test_a_shedder_that_unloaded_nothing_has_a_line() -> None:
    """The most frequent reason comes first; one that unloaded something, or never ran, has none."""
    idle = idle_shedders(result(inputs=replace(INPUTS, cycles={**CYCLES, "unborn": CycleSums("avg")})))

    assert [text.partition(": the ")[0] for text in idle] == ["stock"]
    assert idle[0].endswith(": balanced 700, too little to offload 20")
    assert idle_shedders(result()) == []


def test_the_line_stands_below_the_table() -> None:
    """Of a run without idle shedders there is none."""
    assert "\nstock: the shedder ran 720 cycles" in printed(result(inputs=replace(INPUTS, cycles=CYCLES)))
    assert "the shedder ran" not in printed()


def test_balance_is_certain_only_if_no_broker_was_over() -> None:
    """A reason that is nobody's but a third party's stands as it is, and so does an excess that is not told."""
    rows = cycle_table("new", BUSY).rows

    assert rows[0][0].startswith("balanced, or ")
    assert [row[1:] for row in rows] == [("1", "0.1"), ("1", "–"), ("1", "–")]
    assert rows[1][0] == "mine"


def test_the_report_has_a_table_for_each_policy() -> None:
    """Below what was proposed; nothing of it is among the inputs."""
    text = markdown_report(result(inputs=replace(INPUTS, cycles=CYCLES)))
    moved = section(text, _MOVED)

    assert "### stock\n\nThe shedder `threshold` ran 720 cycles: 0 " in moved
    assert "3 proposals refused (grace-period 2, not-owner 1)." in moved
    assert "| too little to offload | 20     | 0.25           |" in moved
    assert "cycles" not in section(text, "Inputs")


def test_every_reason_of_a_shedder_has_words() -> None:
    """Those that only splits have are not among them."""
    splits = {CycleReason.TOPICS, CycleReason.SESSIONS, CycleReason.MSG_RATE, CycleReason.BANDWIDTH}
    reasons = Counter(map(str, set(CycleReason) - splits))
    rows = cycle_table("p", CycleSums("avg", reasons=reasons)).rows

    assert not {row[0] for row in rows} & set(reasons)


def test_the_scope_stands_in_the_table_of_verdicts() -> None:
    """Behind the mark and the word of the one that drifts."""
    words = {row[0]: row[1] for row in verdict_table(varied(), "new").rows}

    assert words == {
        "answered_ratio *": "▲ better",
        "match_ratio[rack]": "▼ worse",
        "match_ratio[zone]": "▴ inconclusive",
        "imbalance_max_mean *": "▽ worse, only in these hours",
        "moves": "▾ inconclusive",
        "waiting[lock]": "▼ worse",
    }
