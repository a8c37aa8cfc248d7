"""`report.md`."""

from __future__ import annotations

import re

from lookup.replay.outcome import InputFacts
from lookup.report.blocks import Bullets, Definitions, Paragraph, Table
from lookup.report.markdown import markdown, markdown_report
from lookup.report.sentences import answer
from tests.report.results import result, varied


def _section(text: str, heading: str) -> str:
    headings = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    return re.split(r"^## ", text, flags=re.MULTILINE)[headings.index(heading) + 1]


def test_the_answer_stands_first() -> None:
    """Short enough for a comment: a title, the answer, then the cards, before any table."""
    title, lead, *_ = markdown_report(varied()).split("\n\n")

    assert title == "# Placement policies compared"
    assert lead.replace("**", "") == answer(varied()).sentence


def test_a_card_has_its_figures_below_its_sentence() -> None:
    """Gain and cost with both values, the change, its interval and the verdict, and a command."""
    lines = [line.strip() for line in markdown_report(result()).splitlines()]

    place = next(number for number, line in enumerate(lines) if line.startswith("* **new**: "))
    gain, cost, certainty, step = lines[place + 1 : place + 5]
    for part in ("`answered_ratio`", "50.0 % → 70.0 %", "+20 points, ", "+20 to +20 points", ", better"):
        assert part in gain
    for part in ("`moves`", "1,200 → 2,400", "× 2", "+1,200 to +1,200", ", worse"):
        assert part in cost
    assert "1 of 200 comparisons" in certainty
    assert "`lookup explain RUN_DIR --policy new" in step


def test_figures_have_values_marks_and_intervals() -> None:
    """In one cell each."""
    text = _section(markdown_report(result()), "Figures")

    assert re.search(r"\| ↑ answered_ratio \\\* +\| ratio +\| 0.5000 \[0.48\d\d, 0.51\d\d\] \| 0.5000 ≡ \[", text)


def test_how_it_was_made() -> None:
    """Settings that shape the numbers, and inputs in words; no µs since 1970, nothing that did not happen."""
    inputs = InputFacts(rows=5, first_us=807_256_800_000_000, load="simulated")
    text = _section(markdown_report(result(inputs=inputs)), "How it was made")

    assert "* Incumbent: `stock`, replayed like the candidates." in text
    assert "* 5 replicates, seeds 1, 2, 3, 4, 5." in text
    assert re.findall(r"^\| (\S.*?) +\| (\S.*?) +\|$", text, flags=re.MULTILINE)[1:] == [
        ("rows of the log", "5"),
        ("first lookup", "1995-08-01 06:00:00 UTC"),
    ]


def test_blocks_become_markdown() -> None:
    """A lead is bold up to its colon; what Markdown would take for its own is text."""
    text = markdown(
        [
            Paragraph("Keep a: b", "lead"),
            Bullets(["<b>"]),
            Definitions([("word", "meaning")]),
            Table(("a|b", "c"), [("*", "www.x.org")]),
        ]
    )

    assert text == (
        "**Keep a:** b\n\n* &lt;b>\n\n* word: meaning\n\n"
        "| a\\|b | c          |\n|------|------------|\n| \\*   | www\\.x.org |\n"
    )
