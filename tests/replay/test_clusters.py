"""The plan of a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from lookup.errors import InputError
from lookup.replay.clusters import broker_names
from tests.replay.plans import NOON, WHOLE, lookup, planned
from tests.replay.worlds import MICRO

REGISTERED = {"ts": NOON, "cluster": "east", "broker": "a:1", "event": "registered"}


def test_capacity_is_assumed_so_that_mean_usage_is_a_half(tmp_path: Path) -> None:
    """Where no broker has a capacity, all get twice the demand per broker-second."""
    plan = planned(tmp_path, [lookup(0, weight=30.0), lookup(61, weight=90.0)])

    assert plan.cluster.assumed_capacity == pytest.approx(2 * 120.0 / (2 * 120))


def test_one_known_capacity_is_enough_to_assume_none(tmp_path: Path) -> None:
    """A single broker's capacity says that the others are unknown, not equal."""
    brokers = [{"id": "a:1", "capacity": 5.0}, {"id": "b:1"}]

    assert planned(tmp_path, [lookup()], brokers=brokers).cluster.assumed_capacity is None


def test_a_broker_is_known_by_every_address_it_ever_had(tmp_path: Path) -> None:
    """Ids come first; addresses of later registrations count as well."""
    data = [f'{{"pulsarServiceUrl":"pulsar://{name}:6650"}}' for name in ("old", "new")]
    rows = [{**REGISTERED, "lookup_data": data[0]}]
    rows += [{**REGISTERED, "ts": NOON + 9 * MICRO, "event": "updated", "lookup_data": data[1]}]
    plan = planned(tmp_path, [lookup(20, broker="pulsar://new:6650")], tables={"brokers": rows}, brokers=[])

    assert broker_names(plan.cluster.timeline) == {"a:1": 0, "pulsar://old:6650": 0, "pulsar://new:6650": 0}
    assert plan.cluster.logged == 1


def test_a_bundle_pinned_to_a_broker_is_told_by_its_namespace(tmp_path: Path) -> None:
    """Heartbeats of a known broker have its number, those of an unknown one -2, all others -1."""
    names = ("pulsar/a:1", "pulsar/zz:9", "t/n")
    plan = planned(tmp_path, [lookup(topic=f"persistent://{name}/x") for name in names])

    assert plan.cluster.pinned.tolist() == [0, -2, -1]


def test_units_are_the_bundles_the_run_begins_with(tmp_path: Path) -> None:
    """A split before the first lookup makes more of them, a later one does not."""
    split = {"cluster": "east", "bundle": WHOLE, "event": "split", "boundaries": ["0x80000000"]}
    early, late = (
        planned(tmp_path / name, [lookup(5)], tables={"ownership": [{**split, "ts": NOON + second * MICRO}]})
        for name, second in (("early", 5), ("late", 6))
    )

    assert early.cluster.units[0] == ("t/n/0x00000000_0x80000000", "t/n/0x80000000_0xffffffff")
    assert (late.cluster.units[0], late.cluster.units[1].tolist()) == ((WHOLE,), [0, 0])


def test_a_log_of_too_many_ticks_is_refused(tmp_path: Path) -> None:
    """Two lookups thousands of years apart are a mistake, not a quiet time."""
    with pytest.raises(InputError, match=r"lookups from 2026-01-01 to 5194-11-16, .* is a timestamp wrong\?$"):
        planned(tmp_path, [lookup(0), lookup(1e11)])


def test_a_broker_whose_row_cannot_be_used_is_told(tmp_path: Path) -> None:
    """A table of nothing but unusable rows is not said to have none: the first one's place and reason are named."""
    row = {**REGISTERED, "lookup_data": "{"}

    with pytest.raises(
        InputError,
        match=r"no usable row of it and 1 row that cannot be used, first .*brokers\.parquet, row 1: broker lookup data",
    ):
        planned(tmp_path, [lookup()], tables={"brokers": [row]}, brokers=[])
