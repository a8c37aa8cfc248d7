"""Lookups of the day before say where clients are, so that a plan brings load near them and says how much is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import lookup
from lookup.api.moving import ClusterSource
from lookup.cli import main
from lookup.errors import InputError
from lookup.moving.origins import origins_of, with_lookups
from lookup.moving.plan import MovePlan
from lookup.moving.reading import read_record
from tests.moving.worlds import START_US, World, broker, bundle, lookup_row, topics_of, write_lookups

_NEAR = {"name": "near", "selector": "best", "shedder": {"use": "rebalance", "near": "rack", "max_share": 0.5}}
_DAY_US = 86_400_000_000


def _near(plan: MovePlan) -> list[str | None]:
    """Return the properties by which a plan has a figure of nearness."""
    return [figure.key for figure in plan.figures if figure.metric == "near"]


@pytest.fixture
def apart() -> World:
    """Three brokers, each in a rack of its own, with eight bundles each; every second one's clients are in the next."""
    world = World()
    for number in range(24):
        world.owners[bundle(number)] = broker(number % 3)
        world.loads[bundle(number)] = 1e6 * (1 + number % 4)
    return world


def _clients(world: World) -> dict[str, str]:
    """Return the rack of each bundle's clients."""
    return {name: f"rack-{(number + number // 3 % 2) % 3}" for number, name in enumerate(world.owners)}


def _lookups(world: World) -> list[dict[str, Any]]:
    return [lookup_row(next(topics_of(name)), rack) for name, rack in _clients(world).items()]


def _share(world: World, owners: Mapping[str, str]) -> float:
    """Return which share of load is in the rack of its clients."""
    clients, loads = _clients(world), {name: world.load(name, world.minutes - 1) for name in world.loads}
    return sum(load for name, load in loads.items() if f"rack-{owners[name][7]}" == clients[name]) / sum(loads.values())


def test_a_plan_brings_load_near_its_clients(apart: World, tmp_path: Path) -> None:
    """Bundles go to the rack of their clients; the shares before and after are those of the owners."""
    owners = dict(apart.owners)
    record, lookups = str(apart.write(tmp_path / "record")), write_lookups(_lookups(apart), tmp_path / "lookups")

    plan = lookup.plan(ClusterSource(record, lookups=lookups), policy=_NEAR).plan
    for step in plan.steps:
        owners[step.bundle] = step.destination

    assert {step.reason for step in plan.steps} == {"locality"}
    shares = plan.figure("near", "rack").before, plan.figure("near", "rack").value
    assert shares == pytest.approx((_share(apart, apart.owners), _share(apart, owners)))
    assert shares[1] > 0.8 > 0.5 > shares[0]
    assert plan.figure("imbalance").before < plan.figure("imbalance").value < 1.2
    assert not any("near its clients" in sentence for sentence in plan.missing)


def test_without_lookups_it_evens_load_out_and_says_so(apart: World, tmp_path: Path) -> None:
    """Load is even, so nothing moves, and the plan says why none comes near."""
    plan = lookup.plan(str(apart.write(tmp_path / "record")), policy=_NEAR).plan

    assert (plan.steps, _near(plan)) == ((), [])
    assert "no lookups" in plan.missing[-1]


def test_shares_are_known_for_any_policy(apart: World, tmp_path: Path) -> None:
    """One that goes by balance alone moves nothing here, and says how much load is near all the same."""
    record, lookups = str(apart.write(tmp_path / "record")), write_lookups(_lookups(apart), tmp_path / "lookups")

    plan = lookup.plan(ClusterSource(record, lookups=lookups)).plan

    assert plan.steps == ()
    assert (
        plan.figure("near", "rack").before
        == plan.figure("near", "rack").value
        == pytest.approx(_share(apart, apart.owners))
    )


def test_demand_of_the_day_before_counts(apart: World, tmp_path: Path) -> None:
    """Weights add up by bundle and value; other times and clusters, hops, and what is not sound are left out."""
    name = bundle(0)
    first, second = islice(topics_of(name), 2)
    at_us = START_US + 9 * 60_000_000
    rows = [
        lookup_row(first, "rack-1", weight=3.0),
        lookup_row(first, "rack-1", weight=None, result="failed"),
        lookup_row(second, "rack-1", weight=2.0, ts=at_us - _DAY_US + 1),
        lookup_row(second, "rack-2", weight=0.5, ts=at_us),
        lookup_row(first, "rack-2", ts=at_us - _DAY_US),
        lookup_row(first, "rack-2", ts=at_us + 1),
        lookup_row(first, "rack-2", cluster="west"),
        lookup_row(first, "rack-2", result="redirect"),
        lookup_row(first, "rack-2", weight=float("nan")),
        lookup_row(first, "rack-2", weight=-1.0),
        lookup_row(first, None),
        lookup_row(first, None, properties="rack-2"),
        lookup_row(first, None, properties='["rack-2"]'),
        lookup_row(first, None, properties='{"rack": 2}'),
        lookup_row("persistent://shop/others/topic", "rack-2"),
        lookup_row("topic", "rack-2"),
    ]
    read = with_lookups(read_record(str(apart.write(tmp_path / "record"))), write_lookups(rows, tmp_path / "lookups"))

    origins, unknown = origins_of(read, [name])

    assert (origins["rack"].keys(), unknown) == ({name}, ())
    assert {value: round(weight * 86_400, 6) for value, weight in origins["rack"][name].items()} == {
        "rack-1": 6.0,
        "rack-2": 0.5,
    }


@pytest.mark.parametrize("number", range(0, 24, 5))
def test_topics_count_for_their_bundle(apart: World, tmp_path: Path, number: int) -> None:
    """A topic counts for the bundle that holds its hash."""
    rows = [lookup_row(topic, "rack-0") for topic in islice(topics_of(bundle(number)), 20)]
    read = with_lookups(read_record(str(apart.write(tmp_path / "record"))), write_lookups(rows, tmp_path / "lookups"))

    origins, _ = origins_of(read, apart.owners)

    assert origins["rack"].keys() == {bundle(number)}
    assert origins["rack"][bundle(number)]["rack-0"] * 86_400 == pytest.approx(20)


def test_lookups_without_properties_are_named(apart: World, tmp_path: Path) -> None:
    """A day in which no client says where it is leaves a sentence in the plan."""
    lookups = write_lookups([lookup_row(next(topics_of(bundle(0))), None)], tmp_path / "lookups")

    plan = lookup.plan(ClusterSource(str(apart.write(tmp_path / "record")), lookups=lookups), policy=_NEAR).plan

    assert any("no lookup of the day" in sentence for sentence in plan.missing)
    assert _near(plan) == []


def test_a_label_that_no_broker_publishes_has_no_share(apart: World, tmp_path: Path) -> None:
    """Clients may send what brokers do not publish; bundles whose load is not known do not count."""
    del apart.loads[bundle(0)]
    rows = _lookups(apart)
    rows += [lookup_row(row["topic"], None, properties='{"team": "billing"}') for row in rows]

    plan = lookup.plan(
        ClusterSource(str(apart.write(tmp_path / "record")), lookups=write_lookups(rows, tmp_path / "lookups"))
    ).plan

    assert _near(plan) == ["rack"]
    assert plan.figure("near", "rack").before == pytest.approx(_share(apart, apart.owners))


def test_what_is_no_table_of_lookups_is_one_sentence(apart: World, tmp_path: Path) -> None:
    """The argument, the path and what would be right are named."""
    record = str(apart.write(tmp_path / "record"))
    nothing = tmp_path / "nothing"

    with pytest.raises(InputError, match=r"^lookups: .*nothing: .*LOOKUPS"):
        lookup.plan(ClusterSource(record, lookups=str(nothing)))
    with pytest.raises(InputError, match=r"^lookups: .*; name LOOKUPS"):
        lookup.plan(ClusterSource(record, lookups=f"{record}/loads"))


def test_commands_take_lookups(apart: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A plan's table and page have the shares."""
    record, lookups = apart.write(tmp_path / "record"), write_lookups(_lookups(apart), tmp_path / "lookups")
    policy = tmp_path / "near.toml"
    policy.write_text(
        '[[policies]]\nname = "near"\nselector = "best"\n'
        'shedder = { use = "rebalance", near = "rack", max_share = 1.0 }\n'
    )

    code = main(
        [
            "plan",
            "--record",
            str(record),
            "--lookups",
            lookups,
            "--policy",
            str(policy),
            "--output",
            str(tmp_path / "p"),
        ]
    )

    rows = Counter(line.split("|")[1].strip() for line in capsys.readouterr().out.splitlines() if line.startswith("|"))
    assert (code, rows["near[rack]"]) == (0, 1)
    assert "near" in (tmp_path / "p" / "plan.json").read_text()
