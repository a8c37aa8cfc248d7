"""The comparison on terminals and in pipes."""

from __future__ import annotations

import io
import json
import re
from typing import Any, get_args

import pytest
from rich.console import Console

from lookup.commands.streams import DataConsole
from lookup.report.markdown import markdown_report
from lookup.report.printing import Format, print_report, show
from lookup.score.summary import summary
from tests.report.results import placed_once, result, varied, wide
from tests.score.cases import plan, scored, sums


def printed(scored: Any = None, **console: Any) -> str:
    """Print a report to memory."""
    file = io.StringIO()
    print_report(scored or result(), Console(file=file, **console))
    return file.getvalue()


def row(text: str, metric: str) -> list[str]:
    """Return the cells of a metric's row."""
    line = next(line for line in text.splitlines() if re.search(rf"[|↑↓ ] {re.escape(metric)}[ |]", line))
    return [cell.strip() for cell in line.strip("| ").split("|")]


def test_pipes_get_plain_text() -> None:
    """No colours, no wrapping, one row per metric."""
    text = printed()

    assert "\x1b" not in text
    assert row(text, "answered_ratio") == ["↑ answered_ratio *", "ratio", "0.5000", "0.7000 ▲", "0.5000 ≡"]
    assert row(text, "moves") == ["↓ moves *", "moves", "1,200", "2,400 ▼", "1,200 ≡"]


def test_lines_without_figures_are_named_below() -> None:
    """Nobody has to read rows of dashes; what was left out is said."""
    text = printed()

    assert not re.search(r"^\|.*network_cost", text, re.MULTILINE)
    assert re.search(r"^left out, no figure for any policy: .*network_cost", text, re.MULTILINE)
    zeros = [sums(policy, [[0]] * 30, "redundant_moves") for policy in ("stock", "new")]
    assert re.search(
        r"^left out, 0 for .*: redundant_moves", printed(scored(zeros, plan("stock", "new", primary=()))), re.MULTILINE
    )


def test_a_primary_line_is_never_left_out() -> None:
    """Zeros that decide the exit code are shown."""
    nothing = [sums(policy, [[0]] * 30, "moves") for policy in ("stock", "new")]
    text = printed(scored(nothing, plan("stock", "new", primary=("moves",))))

    assert row(text, "moves")[:3] == ["↓ moves *", "moves", "0"]


def test_the_head_names_policies_and_incumbent() -> None:
    """The incumbent first."""
    assert "stock (incumbent) |      new |     twin" in printed()


def test_sentences_follow_the_table() -> None:
    """Legend, floor, outcomes, comparisons, conclusion, notes."""
    text = printed()

    for part in (
        "▲ better",
        "round-robin would score: c 1.02, d 1.5",
        "new: 1 better",
        "2 comparisons decide the exit code (*)",
        "exit code 3",
        "Note: capacity",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("found", "shown", "absent"),
    [
        (result(), (r"\x1b\[32m", r"\x1b\[1;31m"), r"\x1b\[33m.*[△▽]"),
        # What is better or worse for one placement, or in these hours, is neither a success nor an alarm.
        (placed_once(), (r"\x1b\[33m",), r"\x1b\[(32|1;31)m"),
        (varied(), (r"\x1b\[33m1\.6510 ▽", r"\x1b\[1;31m0\.4500 ▼"), r"\x1b\[1;31m.* ▽"),
    ],
)
def test_terminals_get_colours(
    monkeypatch: pytest.MonkeyPatch, found: Any, shown: tuple[str, ...], absent: str
) -> None:
    """Green for better, red for worse, and yellow for what may be turned."""
    monkeypatch.delenv("NO_COLOR", raising=False)

    text = printed(found, force_terminal=True, color_system="standard", width=120)

    assert all(re.search(each, text) for each in shown)
    assert not re.search(absent, text)


def test_the_luck_of_the_winner_stands_at_the_top() -> None:
    """Behind what is undecided and what decides."""
    head = printed(varied()).splitlines()[0]

    assert head.startswith("Undecided on 2 of 4 primary comparisons (")
    assert head.endswith("the best of 2 equal candidates would look 1.3% better in moves.")


def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal whose user wants no colours gets none."""
    monkeypatch.setenv("NO_COLOR", "1")

    text = printed(force_terminal=True, color_system="standard", width=120)

    assert not re.search(r"\x1b\[(1;)?3\dm", text)


@pytest.mark.parametrize("width", [80, 120, 400])
def test_wide_comparisons_are_divided(width: int) -> None:
    """Every table fits, begins with the incumbent, and no candidate is lost or shown twice."""
    text = printed(wide(12), force_terminal=True, color_system=None, width=width)
    heads = [line for line in text.splitlines() if "metric" in line and "unit" in line]
    shown = re.findall(r"policy-\d+", " ".join(heads))

    assert all(len(line) <= width for line in heads)
    assert all("policy-0 (incumbent)" in head for head in heads)
    assert [shown.count(f"policy-{place}") for place in range(12)] == [len(heads)] + [1] * 11


def test_names_are_no_markup() -> None:
    """Keys in brackets are printed as they are."""
    assert "moves[" not in printed(wide(2))
    assert "network_ms_p95" in printed(wide(2))


def test_nothing_measured_is_an_empty_table() -> None:
    """Where no line is left the head stands alone, and the sentences below say what was left out."""
    text = printed(scored([], plan("stock", "new", primary=())))

    assert "stock (incumbent)" in text
    assert "left out, no figure for any policy: answered_ratio" in text


class _Closed(io.StringIO):
    """A file whose reader has gone."""

    def flush(self) -> None:
        raise BrokenPipeError


def test_a_closed_pipe_is_the_command_lines_business() -> None:
    """A comparison whose reader has gone ends with the error as it is, not with an exit of rich's."""
    with pytest.raises(BrokenPipeError):
        print_report(result(), DataConsole(file=_Closed()))


def shown(form: Format) -> str:
    """Show a report in memory."""
    file = io.StringIO()
    show(result(), form, Console(file=file, width=40))
    return file.getvalue()


def test_json_is_the_summary() -> None:
    """Nothing else, unwrapped."""
    assert json.loads(shown("json")) == summary(result())


def test_markdown_is_the_report() -> None:
    """To the letter."""
    assert shown("markdown") == markdown_report(result())


@pytest.mark.parametrize("form", get_args(Format))
def test_every_form_ends_with_a_line(form: Format) -> None:
    """And says something of every policy."""
    assert shown(form).endswith("\n")
    assert all(policy in shown(form) for policy in ("stock", "new", "twin"))
