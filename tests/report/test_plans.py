"""A plan as tables."""

from __future__ import annotations

import pytest

from lookup.api.moving import plan
from lookup.moving.plan import MovePlan
from lookup.report.plans import brokers_table, figures_table, plan_notes, steps_table
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
