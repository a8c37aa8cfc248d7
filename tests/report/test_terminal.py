"""The report on terminals and in pipes."""

from __future__ import annotations

import io
import json
import re
from typing import get_args

import pytest
from rich.console import Console

from lookup.commands.streams import DataConsole
from lookup.report.figures import Results, summary
from lookup.report.markdown import markdown_report
from lookup.report.sentences import answer, conclusion
from lookup.report.terminal import Detail, Format, show
from tests.report.results import decided, placed_once, result, scored, varied, wide
from tests.score.cases import moves, plan, ratios, sums


def printed(
    results: Results | None = None, *, detail: Detail = "usual", width: int | None = None, **console: str
) -> str:
    """Print a report to memory."""
    file = io.StringIO()
    terminal = Console(file=file, width=width, force_terminal=bool(console) or width is not None, **console)  # type: ignore[arg-type]  # of names
    show(results or result(), "table", terminal, detail=detail)
    return file.getvalue()


def row(text: str, metric: str) -> list[str]:
    """Return the cells of a metric's row."""
    line = next(line for line in text.splitlines() if re.search(rf"[|↑↓ ] {re.escape(metric)}[ |]", line))
    return [cell.strip() for cell in line.strip("| ").split("|")]


def test_pipes_get_plain_text() -> None:
    """No colours, no wrapping, one row per figure; the incumbent first, then the candidates, the best first."""
    text = printed()

    assert "\x1b" not in text
    assert "stock (incumbent) |     twin |      new" in text
    assert row(text, "answered_ratio *") == ["↑ answered_ratio *", "ratio", "0.5000", "0.5000 ≡", "0.7000 ▲"]
    assert row(text, "moves *") == ["↓ moves *", "moves", "1,200", "1,200 ≡", "2,400 ▼"]


def test_the_answer_stands_first_and_the_conclusion_last() -> None:
    """Below the answer a line for each candidate, the first one with how sure it is and what to do next."""
    lines = printed(varied()).splitlines()

    assert lines[0] == answer(varied()).sentence
    begins = ("  old: ", "    How sure: ", "    Next: ", "  new: ")
    assert [line.startswith(begin) for line, begin in zip(lines[1:5], begins, strict=True)] == [True] * 4
    assert conclusion(varied()) in lines[-8:]


def test_a_primary_line_is_never_left_out() -> None:
    """Zeros that decide the exit code are shown; others are counted, and shown if all is asked for."""
    nothing = [sums(policy, [[0]] * 30, name) for policy in ("stock", "new") for name in ("moves", "redundant_moves")]
    results = scored(nothing, plan("stock", "new", primary=("moves",)))
    brief, whole = printed(results), printed(results, detail="all")

    assert row(brief, "moves *")[:3] == ["↓ moves *", "moves", "0"]
    assert "redundant_moves" not in brief
    assert re.search(r"^\d+ more figures: report\.md has them$", brief, re.MULTILINE)
    assert row(whole, "redundant_moves")[2] == "0"
    assert "more figure" not in whole


_COUNTS = (("stock", 3), ("new", 9))
_RATIOS = (
    ("match_ratio", "rack"), ("match_ratio", "zone"), ("imbalance_max_mean", None), ("imbalance_cv", None),
    ("load_variation", None),
)  # fmt: skip


def test_a_first_look_has_ten_figures() -> None:
    """Those that decide first, then those of the answer."""
    names = ("moves", "unloads", "assignments", "cycle_moves", "redundant_moves")
    parts = [moves(policy, [count] * 40, metric=name) for policy, count in _COUNTS for name in names]
    parts += [moves(policy, [count] * 40, key=key) for policy, count in _COUNTS for key in ("shed", "forced", "admin")]
    parts += [ratios(p, [n / 99] * 40, name, key=key) for p, n in _COUNTS for name, key in _RATIOS]

    brief = printed(decided(parts, "stock", "new", primary=("cycle_moves",)))

    rows = re.findall(r"^\| (.*?) +\|", brief, flags=re.MULTILINE)[1:]
    assert len(rows) == 10
    assert rows[0] == "↓ cycle_moves *"
    assert {"↑ match_ratio[rack]", "↓ imbalance_max_mean", "↓ moves"} <= set(rows)


def test_quiet_prints_answers_figures_and_what_decides() -> None:
    """No notes and no explanations."""
    lines = printed(varied(), detail="quiet").splitlines()

    sentences = [line for line in lines if line[0] not in "|+"]
    assert len(sentences) == 4
    assert any(line.startswith("| ↑ answered_ratio *") for line in lines)


def test_policies_that_decide_alike_share_a_column() -> None:
    """Of sixteen variants of one policy there is one, unless all are asked for."""
    names = ["stock", *(f"variant-{number}" for number in range(16))]
    results = scored([ratios(name, [0.5 if name == "stock" else 0.7] * 30) for name in names], plan(*names))

    brief, whole = printed(results), printed(results, detail="all")

    assert "  variant-0, variant-1 and 14 more (identical): " in brief
    assert "| variant-1 |" not in brief
    assert all(f" {name} |" in whole for name in names[1:])


@pytest.mark.parametrize(
    ("results", "shown", "absent"),
    [
        (result(), (r"\x1b\[32m", r"\x1b\[1;31m"), r"\x1b\[33m.*[△▽]"),
        # What is better or worse for one placement, or in these hours, is neither a success nor an alarm.
        (placed_once(), (r"\x1b\[33m",), r"\x1b\[(32|1;31)m"),
        (varied(), (r"\x1b\[33m1\.6510 ▽", r"\x1b\[1;31m0\.4500 ▼"), r"\x1b\[1;31m.* ▽"),
    ],
    ids=["certain", "one placement", "these hours"],
)
def test_terminals_get_colours(
    monkeypatch: pytest.MonkeyPatch, results: Results, shown: tuple[str, ...], absent: str
) -> None:
    """Green for better, red for worse, and yellow for what holds under a condition; none if NO_COLOR is set."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = printed(results, color_system="standard", width=120)
    monkeypatch.setenv("NO_COLOR", "1")

    assert all(re.search(each, text) for each in shown)
    assert not re.search(absent, text)
    assert not re.search(r"\x1b\[(1;)?3\dm", printed(results, color_system="standard", width=120))


@pytest.mark.parametrize("width", [80, 120, 400])
def test_wide_comparisons_are_divided(width: int) -> None:
    """Every table fits, begins with the incumbent, and no candidate is lost or shown twice."""
    text = re.sub(r"\x1b\[[\d;]*m", "", printed(wide(12), detail="all", width=width))
    heads = [line for line in text.splitlines() if "figure" in line and "unit" in line]
    shown = re.findall(r"policy-\d+", " ".join(heads))

    assert all(len(line) <= width for line in heads)
    assert all("policy-0 (incumbent)" in head for head in heads)
    assert [shown.count(f"policy-{place}") for place in range(12)] == [len(heads)] + [1] * 11


def test_names_are_no_markup() -> None:
    """Keys in brackets are printed as they are."""
    assert "↑ match_ratio[zone]" in printed(varied())


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


def test_json_is_the_summary_and_markdown_the_report() -> None:
    """Nothing else, unwrapped."""
    assert json.loads(shown("json")) == summary(result())
    assert shown("markdown") == markdown_report(result())
    assert all(shown(form).endswith("\n") for form in get_args(Format))
