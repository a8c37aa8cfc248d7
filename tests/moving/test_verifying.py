"""What a plan predicted is held against what is measured after it, and kept, so that predictions can be counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lookup import plan as make_plan
from lookup import verify
from lookup.api.moving import Source, open_plan
from lookup.cli import main
from lookup.errors import InputError
from lookup.moving.journal import Journal
from lookup.moving.plan import MovePlan
from lookup.moving.verifying import PREDICTIONS
from tests.moving.worlds import World, broker, carried_out, lookup_row, topics_of, write_lookups


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


def test_a_prediction_that_holds_is_right(world: World, plan: MovePlan, tmp_path: Path) -> None:
    """Figures and loads are those of the record after it."""
    journal = carried_out(plan, tmp_path / "plan.json.journal")

    measured = verify(journal, _after(world, plan, tmp_path))

    assert (measured.is_right, measured.unmade) == (True, ())
    assert measured.figures["imbalance"].measured < plan.before["imbalance"]
    loads = {one.broker: (one.predicted, one.measured) for one in measured.brokers}
    assert all(now == pytest.approx(predicted, rel=0.2) for predicted, now in loads.values())


def test_the_share_of_load_near_clients_is_measured(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is that of the owners after the plan, by the lookups of the day before; it has no interval to be held to."""
    rows = [lookup_row(next(topics_of(name)), "rack-2") for name in world.owners]
    lookups = write_lookups(rows, tmp_path / "lookups")
    near = {"name": "near", "selector": "best", "shedder": {"use": "rebalance", "near": "rack"}}
    plan = make_plan(Source(str(world.write(tmp_path / "before")), lookups=lookups), policy=near).plan
    journal = carried_out(plan, tmp_path / "plan.json.journal")
    after = _after(world, plan, tmp_path)

    measured = verify(journal, Source(after, lookups=lookups)).near["rack"]
    unread = verify(journal, after).near
    main(["verify", "--plan", str(journal), "--record", after, "--lookups", lookups])

    assert (measured.before, measured.predicted) == (plan.near["rack"].before, plan.near["rack"].after)
    assert measured.measured == pytest.approx(measured.predicted, rel=0.1) != measured.before
    assert (measured.is_inside, unread) == (None, {})
    assert "|near[rack]" in capsys.readouterr().out


def test_a_prediction_that_does_not_hold_is_wrong(world: World, plan: MovePlan, tmp_path: Path) -> None:
    """What has grown since is outside the interval, and the figures are named."""
    journal = carried_out(plan, tmp_path / "plan.json.journal")
    world.besides[broker(1)] = 3e8

    measured = verify(journal, _after(world, plan, tmp_path))

    assert measured.is_right is False
    assert measured.verdict.startswith("the prediction was wrong: ")
    assert "imbalance" in measured.verdict


def test_a_plan_that_was_made_in_part_is_not_judged(world: World, plan: MovePlan, tmp_path: Path) -> None:
    """Its prediction is of all steps."""
    journal = carried_out(plan, tmp_path / "plan.json.journal", skipped=1)

    measured = verify(journal, _after(world, plan, tmp_path))

    assert (measured.is_right, measured.unmade) == (None, (1,))
    assert "1 step of" in measured.verdict


def test_without_intervals_nothing_is_judged(world: World, tmp_path: Path) -> None:
    """A single report does not say how loads vary, and the plan says so."""
    world.minutes = 1
    plan = make_plan(world.write(tmp_path / "before")).plan
    world.minutes = 10
    journal = carried_out(plan, tmp_path / "plan.json.journal")

    measured = verify(journal, _after(world, plan, tmp_path))

    assert measured.is_right is None
    assert measured.verdict.startswith("not judged: the plan has no intervals")


def test_reports_of_before_the_last_move_do_not_count(world: World, plan: MovePlan, tmp_path: Path) -> None:
    """Nor those of the minute after it, in which brokers have rates of before."""
    journal = carried_out(plan, tmp_path / "plan.json.journal")
    world.minutes = 4

    with pytest.raises(InputError, match=r"8080 reported no load since 2026-11-26T12:04:00Z, a minute after"):
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
    with pytest.raises(InputError, match="the plan is of cluster 'east', and this is 'west'"):
        verify(carried_out(plan, tmp_path / "other"), str(world.write(tmp_path / "west")))


def test_the_command_says_and_keeps_it(
    world: World, plan: MovePlan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """0 if it was right, 3 if not, 4 if that cannot be said; a plan that is verified again counts once."""
    journal = str(carried_out(plan, tmp_path / "plan.json.journal"))
    right = _after(world, plan, tmp_path)
    world.besides[broker(1)] = 3e8
    wrong = str(world.write(tmp_path / "wrong"))

    assert main(["verify", "--plan", journal, "--record", right]) == 0
    printed = capsys.readouterr()
    assert "the prediction was right: every figure was measured in its interval" in printed.out
    assert f"of 1 prediction in {tmp_path} 1 were right" in printed.err
    assert main(["verify", journal, "--record", wrong, "--format", "json"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert (document["right"], document["predictions"]) == (False, {"right": 0, "of": 1})
    partly = str(carried_out(plan, tmp_path / "partly", skipped=1))
    assert main(["verify", "--plan", partly, "--record", right]) == 4
    assert len((tmp_path / PREDICTIONS).read_text().splitlines()) == 2


def test_a_plan_says_how_often_predictions_before_it_were_wrong(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On its page, in the terminal and in the file; those in its folder and beside it count, of its cluster only."""
    before = str(world.write(tmp_path / "before"))
    first, second, third = (str(tmp_path / "plans" / name) for name in ("first", "second", "third"))
    assert main(["plan", "--record", before, "--output", first]) == 0
    assert "predictions" not in capsys.readouterr().out
    plan = open_plan(first).plan
    journal = str(carried_out(plan, Path(first, "plan.json.journal")))
    world.besides[broker(1)] = 3e8
    assert main(["verify", "--plan", journal, "--record", _after(world, plan, tmp_path)]) == 3
    other = {"cluster": "west", "made": "2026-11-26T11:00:00Z", "right": True}
    entries = [other, other | {"cluster": "east"}]
    Path(second).mkdir()
    Path(second, PREDICTIONS).write_text("".join(json.dumps(entry) + "\n" for entry in entries) + "cut o")

    world.minutes = 9
    later = str(world.write(tmp_path / "later"))
    capsys.readouterr()
    assert main(["plan", "--record", later, "--output", third]) == 0

    sentence = "predictions before this one were wrong in 1 of 2 plans"
    assert sentence in capsys.readouterr().out
    assert sentence in Path(third, "plan.html").read_text(encoding="utf-8")
    assert json.loads(Path(third, "plan.json").read_text(encoding="utf-8"))["predictions"] == {"wrong": 1, "of": 2}
    assert main(["plan", "show", third]) == 0
    assert sentence in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--plan", "journal"), "no cluster is named: give --record, or --admin, --service-url and --zookeeper"),
        (("record", "--plan", "journal"), "RECORD and --plan: verify decisions or a plan; give one of them"),
        (("--plan", "no-journal", "--record", "."), "no-journal: No such file or directory"),
    ],
)
def test_mistakes_are_said(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str) -> None:
    """In one sentence, with exit code 2."""
    assert main(["verify", *words]) == 2
    assert sentence in capsys.readouterr().err
