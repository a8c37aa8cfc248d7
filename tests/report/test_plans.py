"""A plan as tables and as a page, without a browser."""

from __future__ import annotations

import json
import re
from html import unescape

import altair as alt
import pytest

from lookup.api.moving import plan
from lookup.moving.plan import MovePlan
from lookup.report.plans import brokers_table, figures_table, html_plan, plan_notes, refused_table, steps_table
from tests.moving.worlds import World, broker


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> MovePlan:
    """A plan with drained bundles, other moves, and refused ones."""
    folder = World.crowded().write(tmp_path_factory.mktemp("plan") / "record")
    return plan(folder, drain="broker-2", max_moves=8).plan


def test_tables_say_what_the_plan_says(planned: MovePlan) -> None:
    """Steps in their order, brokers with the bundles that they have then, figures before and after."""
    steps, brokers, figures = steps_table(planned), brokers_table(planned), figures_table(planned)

    assert [row[1] for row in steps.rows] == [step.bundle for step in planned.steps]
    assert [(row[0], row[3], row[4], row[5]) for row in brokers.rows][2] == (broker(2), "3", "0", "drained")
    assert sum(int(str(row[4])) for row in brokers.rows) == 24
    assert [row[0] for row in figures.rows] == ["imbalance", "deviation"]


def test_notes_say_why(planned: MovePlan) -> None:
    """The reason first, then whether any step makes it worse."""
    why, *notes = plan_notes(planned)

    assert why.startswith("3 of 3 bundles can leave broker-2:8080")
    assert "balance never gets worse on the way" in notes


def test_a_step_that_makes_it_worse_is_named(planned: MovePlan) -> None:
    """In the notes by its number, and in its row."""
    steps = (planned.steps[0].model_copy(update={"worse": True}), *planned.steps[1:])
    worse = planned.model_copy(update={"steps": steps})

    assert "balance is worse than at the start after 1 step: 1" in plan_notes(worse)
    assert str(steps_table(worse).rows[0][-1]).endswith("(worse)")


def test_the_page_has_it_all_and_asks_for_nothing(planned: MovePlan) -> None:
    """Every bundle, broker and setting; no incumbent, and nothing from elsewhere."""
    page = html_plan(planned)

    for text in (planned.steps[0].bundle, broker(1), "Moves to make now", "8 moves to make"):
        assert text in page
    assert "incumbent" not in page.partition("<header>")[2].partition("</header>")[0]
    assert "default-src 'none'" in unescape(page)


def test_the_chart_of_loads_is_valid(planned: MovePlan) -> None:
    """As Altair knows Vega-Lite: two bars for each broker that has reported."""
    found = re.search(r'<script type="application/json" id="charts">(.*)</script>', html_plan(planned))
    assert found is not None
    (chart,) = json.loads(found[1])

    alt.Chart.from_dict({**chart["spec"], "data": {"values": []}})
    assert [row[:2] for row in chart["rows"][:2]] == [[broker(0), "before"], [broker(0), "after"]]
    assert len(chart["rows"]) == 6


def test_a_page_of_an_idle_plan_says_so(planned: MovePlan) -> None:
    """Instead of empty tables."""
    idle = planned.model_copy(update={"steps": (), "refused": ()})

    page = html_plan(idle)

    assert "Nothing is worth moving" in page
    assert refused_table(idle).rows == []
