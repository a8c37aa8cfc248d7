"""What a pipeline reads of a run."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

from lookup.report.gate import gate_of
from lookup.report.pipeline import COMMENT_MARK, comment_markdown, github_annotations, junit_xml
from tests.report.results import result

_GATE = gate_of(result(), {"moves": 50, "imbalance_cv": 10})


def test_junit_has_a_case_for_each_check() -> None:
    """Failures and skipped cases are counted, and carry their reasons."""
    root = ET.fromstring(junit_xml(_GATE))

    assert {name: root.get(name) for name in ("tests", "failures", "skipped")} == {
        "tests": "4",
        "failures": "1",
        "skipped": "1",
    }
    (failure,), (skipped,) = root.findall(".//failure"), root.findall(".//skipped")
    assert failure.get("message") == "failed: it regresses by 1,200 moves at least, and 50 are tolerated"
    assert skipped.get("message") == "not judged: there is nothing to measure for twin"
    assert [suite.get("name") for suite in root] == ["new", "twin"]


def test_names_with_control_characters_stay_xml() -> None:
    """Keys of figures come from a log, where a property may hold anything."""
    check = replace(_GATE.checks[0], name='match_ratio[\x1b<&"]')

    (case,) = ET.fromstring(junit_xml(replace(_GATE, checks=(check,)))).iter("testcase")

    assert case.get("name") == 'match_ratio[\\x1b<&"]'


def test_annotations_are_one_line_each() -> None:
    """The headline, and one for each policy and outcome, escaped as GitHub reads them."""
    check = replace(_GATE.checks[0], policy="a:b,c", reason="100 % more\nthan before")

    head, failed, skipped = github_annotations(replace(_GATE, checks=(check, *_GATE.checks[1:])))

    assert head == f"::error title=lookup::{_GATE.headline}"
    assert failed.startswith("::error title=a%3Ab%2Cc%3A 1 figure failed::moves: 100 %25 more")
    assert skipped.startswith("::warning title=twin%3A 1 figure not judged::imbalance_cv: there is nothing to measure")
    assert all("\n" not in line for line in (head, failed, skipped))


def test_a_comment_says_what_a_reviewer_needs() -> None:
    """The headline first, the failed check above the others, the page as a link, and a mark for the next run."""
    text = comment_markdown(result(), _GATE, "https://ci.example.org/report.html", ["1 setting differs."])
    lines = text.splitlines()

    assert lines[0] == f"### {_GATE.headline}"
    assert lines[4].startswith("| failed     | new    | moves        | +1,200 moves ▼ |")
    assert "* 1 setting differs." in lines
    assert "[The page of this run](https://ci.example.org/report.html)" in lines
    assert lines[-1] == COMMENT_MARK


def test_a_long_comment_is_cut() -> None:
    """GitHub takes a bounded number of characters; what is left out is counted."""
    text = comment_markdown(result(), replace(_GATE, checks=_GATE.checks * 20), "report/report.html")

    assert "40 more figures are left out." in text
    assert "The page of this run is `report/report.html`." in text
