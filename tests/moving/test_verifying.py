"""Figures that a plan predicted are held against those that are measured after it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lookup import plan as make_plan
from lookup import verify
from lookup.api.moving import Source
from lookup.cli import main
from lookup.errors import InputError
from lookup.moving.journal import Journal
from lookup.moving.plan import MovePlan
from tests.moving.worlds import World, carried_out, lookup_row, topics_of, write_lookups


@pytest.fixture
def world() -> World:
    """A cluster whose first broker has most."""
    return World.crowded()


@pytest.fixture
def plan(world: World, tmp_path: Path) -> MovePlan:
    """A plan for it."""
    return make_plan(world.write(tmp_path / "before")).plan


def _after(world: World, plan: MovePlan, folder: Path) -> str:
    """Return the record of the cluster after the plan."""
    for step in plan.steps:
        world.owners[step.bundle] = step.destination
    return str(world.write(folder / "after"))


def test_a_prediction_is_held_against_the_record_after_it(world: World, plan: MovePlan, tmp_path: Path) -> None:
    """Figures and loads are those of the record after it."""
    journal = carried_out(plan, tmp_path / "plan.json.journal")

    measured = verify(journal, _after(world, plan, tmp_path))

    assert measured.unmade == ()
    assert measured.figures[0].measured < plan.figure("imbalance").before
    loads = {one.broker: (one.predicted, one.measured) for one in measured.brokers}
    assert all(now == pytest.approx(predicted, rel=0.2) for predicted, now in loads.values())


def test_the_share_of_load_near_clients_is_measured(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is that of the owners after the plan, by the lookups of the day before."""
    rows = [lookup_row(next(topics_of(name)), "rack-2") for name in world.owners]
    lookups = write_lookups(rows, tmp_path / "lookups")
    near = {"name": "near", "selector": "best", "shedder": {"use": "rebalance", "near": "rack"}}
    plan = make_plan(Source(str(world.write(tmp_path / "before")), lookups=lookups), policy=near).plan
    journal = carried_out(plan, tmp_path / "plan.json.journal")
    after = _after(world, plan, tmp_path)

    *_, measured = verify(journal, Source(after, lookups=lookups)).figures
    unread = verify(journal, after).figures
    main(["verify", str(journal), "--record", after, "--lookups", lookups])

    assert measured.planned == plan.figure("near", "rack")
    assert measured.measured == pytest.approx(measured.planned.value, rel=0.1) != measured.planned.before
    assert {of.planned.metric for of in unread} == {"imbalance", "deviation"}
    assert "|near[rack]" in capsys.readouterr().out


def test_reports_of_before_the_last_move_do_not_count(world: World, plan: MovePlan, tmp_path: Path) -> None:
    """Nor those of the minute after it, in which brokers have rates of before."""
    journal = carried_out(plan, tmp_path / "plan.json.journal")
    world.minutes = 4

    with pytest.raises(InputError, match=r"8080 .* since 2026-11-26T12:04:00Z, a minute"):
        verify(journal, _after(world, plan, tmp_path))


def test_what_cannot_be_verified(world: World, plan: MovePlan, tmp_path: Path) -> None:
    """A plan of which nothing was made, one that was taken back, another cluster: one sentence each."""
    after = _after(world, plan, tmp_path)
    with Journal(tmp_path / "new") as journal:
        journal.begin(plan)
    with pytest.raises(InputError, match="no bundle has moved yet"):
        verify(tmp_path / "new", after)
    with pytest.raises(InputError, match="was taken back"):
        verify(carried_out(plan, tmp_path / "back", is_back=True), after)
    world.cluster = "west"
    with pytest.raises(InputError, match=r"'east', .* 'west'"):
        verify(carried_out(plan, tmp_path / "other"), str(world.write(tmp_path / "west")))


def test_the_command_prints_figures(
    world: World, plan: MovePlan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before, as predicted and as measured; steps that were not made are counted in a note."""
    journal, after = str(carried_out(plan, tmp_path / "plan.json.journal")), _after(world, plan, tmp_path)

    assert main(["verify", journal, "--record", after]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[1].replace(" ", "") == "|figure|before|predicted|measured|"
    partly = str(carried_out(plan, tmp_path / "partly", skipped=1))
    assert main(["verify", partly, "--record", after, "--format", "json"]) == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert document["unmade"] == [1]
    assert document["figures"][0].keys() >= {"metric", "before", "value", "measured"}
    assert "1 step of" in printed.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [((__file__,), "give --record DIR or --cluster FILE"), (("no-journal", "--record", "."), "no-journal")],
)
def test_mistakes_are_said(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str) -> None:
    """In one sentence, with exit code 2."""
    assert main(["verify", *words]) == 2
    assert sentence in capsys.readouterr().err
