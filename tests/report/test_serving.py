"""The page of a decision server, drawn from figures: reasons and owners."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lookup.report.serving import html_overview
from lookup.serve.overview import Decision, Overview

_OVERVIEW = Overview(
    cluster="east",
    version="1.2.3",
    started_us=1_795_000_000_000_000,
    now_us=1_795_000_000_000_000 + 90_061_000_000,
    policy="even",
    settings="040a16c88ceb6e5c",
    plugins={"builtin": "pulsar-lookup 1.2.3", "ours": "our-plugins 0.4"},
    problems=[],
    recorded=1_234,
    pending=0,
    lost=0,
    agreement={"other": (3, 1)},
    decisions=[],
    owners=(7, 0.25),
)


def test_figures_stand_in_sentences() -> None:
    """Owners with their lag, agreement, plug-ins of others, and for how long it serves, in its two largest units."""
    page = html_overview(_OVERVIEW)

    assert "of 7 bundles; the latest change took 0.25 s to get here" in page
    assert "75.0%" in page
    assert "pulsar-lookup 1.2.3, ours our-plugins 0.4</dd>" in page
    assert "UTC, 1 d 1 h" in page


@pytest.mark.parametrize(("seconds", "text"), [(0, "0 s"), (59, "59 s"), (61, "1 min 1 s"), (7_200, "2 h 0 min")])
def test_spans_have_two_units_at_most(seconds: int, text: str) -> None:
    """From seconds to days."""
    overview = replace(_OVERVIEW, now_us=_OVERVIEW.started_us + seconds * 1_000_000)

    assert f"UTC, {text}</dd>" in html_overview(overview)


def test_reasons_of_a_failing_server_stand_first() -> None:
    """Each is a sentence, as `/health` has them, and rows that are lost are counted."""
    page = html_overview(replace(_OVERVIEW, problems=["the disk is full", "<b>lost</b>"], lost=1_000))

    assert page.index("<code>even</code> decides; failing") < page.index("<li>the disk is full</li>")
    assert "<li>&lt;b&gt;lost&lt;/b&gt;</li>" in page
    assert ", 1,000 lost" in page


def test_a_long_topic_is_cut() -> None:
    """A client may send thousands of characters; a policy that declined named no broker."""
    decision = Decision("1-1", 1_795_000_000_000_000, "x" * 5_000, {}, "b1:8080", None, None)
    page = html_overview(replace(_OVERVIEW, decisions=[decision]))

    assert f">{'x' * 200}…<" in page
    assert ">declined<" in page
