"""A plan that is held against the cluster later says of each step what has become of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import lookup
from lookup.api.moving import Source, check_plan
from lookup.engine.build import build_policies
from lookup.engine.plugins import load_plugins
from lookup.errors import InputError
from lookup.moving.checking import plan_today
from lookup.moving.plan import Limits, MovePlan
from lookup.moving.planning import make_plan
from lookup.moving.reading import recorded
from lookup.moving.state import state_of
from lookup.settings.files import load_policies
from lookup.settings.shipped import shipped_path
from tests.moving.worlds import World, broker, lookup_row, topics_of, with_owners, write_lookups


def _plan(folder: Path) -> MovePlan:
    policy = build_policies(load_plugins(), load_policies(shipped_path("shipped:rebalance")))[0]
    return make_plan(World.crowded().state(folder / "planned"), policy, Limits(max_moves=6))


def test_a_cluster_that_has_not_changed_is_as_planned(tmp_path: Path) -> None:
    """Every step is ready, and brings what it was to bring."""
    plan = _plan(tmp_path)

    today = plan_today(plan, World.crowded().state(tmp_path / "today"))

    assert today.counts == {"ready": 6, "done": 0, "drifted": 0}
    assert today.now == plan.before
    assert today.after["imbalance"] == pytest.approx(plan.after["imbalance"])


def test_shares_of_load_near_clients_are_those_of_today(tmp_path: Path) -> None:
    """Of a plan that is half made: now, after the rest of it, and as it was planned."""
    world = replace(World.crowded(), sway=0.0)
    lookups = write_lookups(
        [lookup_row(next(topics_of(name)), "rack-2") for name in world.owners], tmp_path / "lookups"
    )
    made = lookup.plan(Source(str(world.write(tmp_path / "planned")), lookups=lookups), max_moves=6)
    assert {step.destination for step in made.plan.steps} == {broker(1), broker(2)}
    to_rack = [step for step in made.plan.steps if step.destination == broker(2)]
    world.owners[to_rack[0].bundle] = broker(2)

    today = check_plan(made, Source(str(world.write(tmp_path / "today")), lookups=lookups))

    # 24 bundles, of which three are in the rack before.
    assert today.now["near[rack]"] == pytest.approx(4 / 24)
    assert today.after["near[rack]"] == pytest.approx((3 + len(to_rack)) / 24)
    assert today.planned["near[rack]"] == pytest.approx(today.after["near[rack]"])


def test_what_has_changed_is_named(tmp_path: Path) -> None:
    """There already, with another owner, without one, with another load; the rest is still worth it."""
    plan, world = _plan(tmp_path), World.crowded()
    done, other, gone, louder, *_ = [step.bundle for step in plan.steps]
    world.owners |= {done: plan.steps[0].destination, other: broker(2 if plan.steps[1].destination == broker(1) else 1)}
    del world.owners[gone]
    world.loads[louder] *= 2.0

    today = plan_today(plan, world.state(tmp_path / "today"))

    assert [of.standing for of in today.steps] == ["done", "drifted", "drifted", "drifted", "ready", "ready"]
    assert (today.steps[1].why or "").endswith("owns it now")
    assert "no broker" in (today.steps[2].why or "")
    assert "planned with" in (today.steps[3].why or "")
    assert today.after["imbalance"] < today.now["imbalance"]


def test_a_broker_that_is_gone_takes_nothing(tmp_path: Path) -> None:
    """What was to go there stays, and says why."""
    plan, world = _plan(tmp_path), World.crowded()
    world.brokers = 2
    world.owners = {name: owner for name, owner in world.owners.items() if owner != broker(2)}

    today = plan_today(plan, world.state(tmp_path / "today"))

    reasons = {str(of.why)[:13] for of in today.steps if of.step.destination == broker(2)}
    assert reasons == {"broker-2:8080"}


def test_a_broker_that_has_started_again_is_another_owner(tmp_path: Path) -> None:
    """It has lost what it owned, and was given it anew."""
    plan, world = _plan(tmp_path), World.crowded()
    world.started = {broker(0): 5}

    today = plan_today(plan, world.state(tmp_path / "today"))

    assert {of.why for of in today.steps} == {"broker-0:8080 has started again"}


def test_a_bundle_that_was_split_is_gone(tmp_path: Path) -> None:
    """And the plan says what became of it."""
    plan = _plan(tmp_path)
    first = plan.steps[0]
    rows = recorded(str(World.crowded().write(tmp_path / "today")))
    lower, _, upper = first.bundle.rpartition("/")[2].partition("_")
    middle = (int(lower, 16) + int(upper, 16)) // 2
    split = {"ts": 1, "bundle": first.bundle, "event": "split", "broker": first.source}

    today = plan_today(plan, state_of(with_owners(rows, {**split, "boundaries": [f"0x{middle:08x}"]})))

    assert (today.steps[0].standing, today.steps[0].why) == ("drifted", "it was split")


def test_a_plan_of_another_cluster_is_refused(tmp_path: Path) -> None:
    """By both names."""
    world = World.crowded()
    world.cluster = "west"

    with pytest.raises(InputError, match=r"'east', .* 'west'"):
        plan_today(_plan(tmp_path), world.state(tmp_path / "today"))
