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
from lookup.report.printing import Detail, Format, show
from lookup.score.summary import summary
from tests.report.results import placed_once, result, varied, wide
from tests.score.cases import decided, moves, plan, ratios, scored, sums


def printed(scored: Any = None, *, detail: Detail = "usual", **console: Any) -> str:
    """Print a report to memory."""
    file = io.StringIO()
    show(scored or result(), "table", Console(file=file, **console), detail=detail)
    return file.getvalue()


def row(text: str, metric: str) -> list[str]:
    """Return the cells of a metric's row."""
    line = next(line for line in text.splitlines() if re.search(rf"[|↑↓ ] {re.escape(metric)}[ |]", line))
    return [cell.strip() for cell in line.strip("| ").split("|")]


def test_pipes_get_plain_text() -> None:
    """No colours, no wrapping, one row per metric."""
    text = printed()

    assert "\x1b" not in text
    assert row(text, "answered_ratio") == ["↑ answered_ratio *", "ratio", "0.5000", "0.5000 ≡", "0.7000 ▲"]
    assert row(text, "moves") == ["↓ moves *", "moves", "1,200", "1,200 ≡", "2,400 ▼"]


def test_lines_without_figures_are_named_below() -> None:
    """Nobody has to read rows of dashes; what was left out is said."""
    text = printed(detail="all")

    assert not re.search(r"^\|.*network_cost", text, re.MULTILINE)
    assert re.search(r"^left out, .*: .*network_cost", text, re.MULTILINE)
    zeros = [sums(policy, [[0]] * 30, "redundant_moves") for policy in ("stock", "new")]
    assert re.search(
        r"^left out, 0 for .*: redundant_moves",
        printed(scored(zeros, plan("stock", "new", primary=())), detail="all"),
        re.MULTILINE,
    )


def test_a_primary_line_is_never_left_out() -> None:
    """Zeros that decide the exit code are shown."""
    nothing = [sums(policy, [[0]] * 30, "moves") for policy in ("stock", "new")]
    text = printed(scored(nothing, plan("stock", "new", primary=("moves",))))

    assert row(text, "moves")[:3] == ["↓ moves *", "moves", "0"]


def test_the_head_names_policies_and_incumbent() -> None:
    """The incumbent first, then the candidates, the best first."""
    assert "stock (incumbent) |     twin |      new" in printed()


def test_the_answers_stand_above_the_table() -> None:
    """One for each candidate, that of the best with how sure it is and what to do next."""
    lines = printed(varied()).splitlines()

    begins = ("old: Balances as well; ", "    how sure: ", "    next: ", "new: Answers 5 points more ")
    assert [line.startswith(begin) for line, begin in zip(lines[:4], begins, strict=True)] == [True] * 4
    assert lines[4].endswith(" 1.3% better in moves.")


def test_sentences_follow_the_table() -> None:
    """All of them are printed only if that is asked for; marks, the conclusion and notes are always."""
    brief, whole = printed(), printed(detail="all")

    for part in ("▲ better", "exit code 3", "Note: capacity"):
        assert part in brief
        assert part in whole
    for part in ("new: 1 better", "2 comparisons decide "):
        assert part not in brief
        assert part in whole


def test_a_first_look_has_ten_figures() -> None:
    """Those that decide first, then those that cards speak of; the others are counted, and printed if asked for."""
    names = ("moves", "unloads", "assignments", "cycle_moves", "redundant_moves")
    parts = [moves(policy, [count] * 40, metric=name) for policy, count in _COUNTS for name in names]
    parts += [moves(policy, [count] * 40, key=key) for policy, count in _COUNTS for key in ("shed", "forced", "admin")]
    parts += [ratios(p, [n / 99] * 40, name, key=key) for p, n in _COUNTS for name, key in _RATIOS]
    found = decided(parts, "stock", "new", primary=("cycle_moves",))

    brief, whole = printed(found), printed(found, detail="all")
    rows = re.findall(r"^\| (.*?) +\|", brief, flags=re.MULTILINE)[1:]
    assert len(rows) == 10
    assert rows[0] == "↓ cycle_moves *"
    assert {"↑ match_ratio[rack]", "↓ imbalance_max_mean", "↓ moves"} <= set(rows)
    assert "\n4 more figures: report.md" in brief
    assert len(re.findall(r"^\| (.*?) +\|", whole, flags=re.MULTILINE)[1:]) == 14
    assert "more figure" not in whole


_COUNTS = (("stock", 3), ("new", 9))
_RATIOS = (
    ("match_ratio", "rack"), ("match_ratio", "zone"), ("imbalance_max_mean", None), ("imbalance_cv", None),
    ("load_variation", None),
)  # fmt: skip


def test_quiet_prints_answers_figures_and_what_decides() -> None:
    """No notes and no explanations."""
    lines = printed(varied(), detail="quiet").splitlines()

    assert [line.partition(":")[0][:3] for line in lines if line[0] not in "|+"] == ["old", "new", "It "]
    assert any(line.startswith("| ↑ answered_ratio *") for line in lines)


def test_policies_that_decide_alike_share_a_column() -> None:
    """Of sixteen variants of one policy there is one, unless all are asked for."""
    names = ["stock", *(f"variant-{number}" for number in range(16))]
    found = scored([ratios(name, [0.5 if name == "stock" else 0.7] * 30) for name in names], plan(*names))

    brief, whole = printed(found), printed(found, detail="all")

    assert "| variant-0 and 15 alike |" in brief
    assert "variant-0, variant-1 and 14 more decide alike: " in brief
    assert len(brief.splitlines()) < 20
    assert all(f" {name} |" in whole for name in names[1:])


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


def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal whose user wants no colours gets none."""
    monkeypatch.setenv("NO_COLOR", "1")

    text = printed(force_terminal=True, color_system="standard", width=120)

    assert not re.search(r"\x1b\[(1;)?3\dm", text)


@pytest.mark.parametrize("width", [80, 120, 400])
def test_wide_comparisons_are_divided(width: int) -> None:
    """Every table fits, begins with the incumbent, and no candidate is lost or shown twice."""
    text = printed(wide(12), detail="all", force_terminal=True, color_system=None, width=width)
    heads = [line for line in text.splitlines() if "metric" in line and "unit" in line]
    shown = re.findall(r"policy-\d+", " ".join(heads))

    assert all(len(line) <= width for line in heads)
    assert all("policy-0 (incumbent)" in head for head in heads)
    assert [shown.count(f"policy-{place}") for place in range(12)] == [len(heads)] + [1] * 11


def test_names_are_no_markup() -> None:
    """Keys in brackets are printed as they are."""
    assert "↑ match_ratio[zone]" in printed(varied())


def test_nothing_measured_is_an_empty_table() -> None:
    """Where no line is left the head stands alone, and the sentences below say what was left out."""
    text = printed(scored([], plan("stock", "new", primary=())), detail="all")

    assert "stock (incumbent)" in text
    assert ": answered_ratio" in text


class _Closed(io.StringIO):
    """A file whose reader has gone."""

    def flush(self) -> None:
        raise BrokenPipeError


def test_a_closed_pipe_is_the_command_lines_business() -> None:
    """A comparison whose reader has gone ends with the error as it is, not with an exit of rich's."""
    with pytest.raises(BrokenPipeError):
        show(result(), "table", DataConsole(file=_Closed()))


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
