"""Why bundles moved, or did not, in words."""

from __future__ import annotations

from typing import Any

from lookup.model.decision import CycleReason
from lookup.report.cycles import cycles_of, idle_shedders
from lookup.report.markdown import markdown_report
from tests.report.results import INPUTS, result
from tests.report.test_markdown import section
from tests.report.test_table import printed

IDLE: dict[str, Any] = {
    "shedder": "threshold",
    "cycles": 720,
    "reasons": {"hit-count": 700, "too-little": 20},
    "accepted": 0,
    "refused": {},
    "excess": {"hit-count": 0.0, "too-little": 0.25},
}
BUSY: dict[str, Any] = {
    "shedder": "avg",
    "cycles": 3,
    "reasons": {"hit-count": 1, "mine": 1, "overloaded": 1},
    "accepted": 1_000,
    "refused": {"grace-period": 2, "in-flight": 1},
    "excess": {"hit-count": 0.1},
}
CYCLES = {"cycles": {"stock": IDLE, "new": BUSY}}


def test_a_shedder_that_unloaded_nothing_has_a_line() -> None:
    """The most frequent reason comes first; one that unloaded something, or never ran, has none."""
    idle = idle_shedders({"cycles": {**CYCLES["cycles"], "unborn": {**IDLE, "cycles": 0, "reasons": {}}}})

    assert idle == ["stock: the shedder ran 720 cycles and unloaded nothing: balanced 700, too little to offload 20"]
    assert idle_shedders({}) == []


def test_the_line_stands_below_the_table() -> None:
    """Of a run without idle shedders there is none."""
    assert "\nstock: the shedder ran 720 cycles" in printed(result(inputs={**INPUTS, **CYCLES}))
    assert "the shedder ran" not in printed()


def test_balance_is_certain_only_if_no_broker_was_over() -> None:
    """A reason that is nobody's but a third party's stands as it is, and so does an excess that is not told."""
    rows = cycles_of(CYCLES)["new"].rows

    assert rows == [
        ("balanced, or not for long enough out of balance", "1", "0.1"),
        ("mine", "1", "–"),
        ("unloaded from overloaded brokers", "1", "–"),
    ]


def test_the_report_has_a_table_for_each_policy() -> None:
    """Below what was proposed; nothing of it is among the inputs."""
    text = markdown_report(result(inputs={**INPUTS, **CYCLES}))
    moved = section(text, "Why bundles moved, or did not")

    assert "### stock\n\nThe shedder `threshold` ran 720 cycles: 0 unloads accepted, 0 proposals refused.\n" in moved
    assert "`avg` ran 3 cycles: 1,000 unloads accepted, 3 proposals refused (grace-period 2, in-flight 1)." in moved
    assert "| too little to offload | 20     | 0.25           |" in moved
    assert "cycles" not in section(text, "Inputs")


def test_every_reason_of_a_shedder_has_words() -> None:
    """Those that only splits have are not among them."""
    splits = {CycleReason.TOPICS, CycleReason.SESSIONS, CycleReason.MSG_RATE, CycleReason.BANDWIDTH}
    reasons = {str(reason): 1 for reason in set(CycleReason) - splits}
    rows = cycles_of({"cycles": {"p": {**IDLE, "reasons": reasons, "excess": {}}}})["p"].rows

    assert not {words for words, _, _ in rows} & set(reasons)
