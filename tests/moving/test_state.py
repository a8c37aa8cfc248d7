"""The state of a cluster is what its rows say, and what they do not say is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from lookup.errors import InputError
from lookup.model.bundles import BundleRange
from lookup.moving.reading import read_record
from lookup.moving.state import state_of
from tests.moving.worlds import START_US, World, broker, bundle, with_owners


def test_a_state_has_brokers_owners_and_loads(tmp_path: Path) -> None:
    """Each bundle has its owner and since when; loads are those of the last minute."""
    world = World.crowded()

    state = world.state(tmp_path / "record")

    name = bundle(20)
    assert state.view.brokers.ids == tuple(world.ids)
    assert (state.owners[name].broker, state.owners[name].since_us) == (world.owners[name], START_US)
    assert state.loads[name] == pytest.approx(world.load(name, 9))
    assert state.view.load.throughput[0] == pytest.approx(sum(world.load(bundle(number), 9) for number in range(18)))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"owners": {}, "loads": {}}, "no bundle has an owner"),
        ({"silent": {broker(0), broker(1), broker(2)}}, "its load within 60 minutes"),
    ],
)
def test_a_state_without_what_a_plan_needs_is_refused(tmp_path: Path, change: dict[str, object], sentence: str) -> None:
    """By one sentence that says where and when."""
    world = World.crowded()
    vars(world).update(change)

    with pytest.raises(InputError, match=sentence) as refused:
        world.state(tmp_path / "record")
    assert "2026-11-26T12:0" in str(refused.value)


def test_a_state_without_brokers_is_refused(tmp_path: Path) -> None:
    """All are gone, though their reports are there."""
    rows = read_record(str(World.crowded().write(tmp_path / "record")))
    tables = {**rows.tables, "brokers": rows.tables["brokers"].slice(0, 0)}

    with pytest.raises(InputError, match="no broker is registered"):
        state_of(type(rows)(rows.cluster, rows.at_us, rows.source, tables))


def test_brokers_that_cannot_take_part_are_named(tmp_path: Path) -> None:
    """One that does not report, and one of the modular load manager, to which nothing can be moved."""
    world = World.crowded()
    world.silent = {broker(1)}
    world.managers = {broker(2): "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"}

    state = world.state(tmp_path / "record")

    sentences = " ".join(state.missing)
    assert f"no load report of {broker(1)} is known" in sentences
    assert f"{broker(2)} run no extensible load manager" in sentences
    assert state.view.registered.tolist() == [True, True, False]


def test_a_manager_of_the_operators_own_can_be_steered(tmp_path: Path) -> None:
    """Its class may be a subclass of the extensible one, as the bridge's is."""
    world = World.crowded()
    world.managers = dict.fromkeys(world.ids, "lookup.bridge.LookupPolicyLoadManager")

    assert world.state(tmp_path / "record").view.registered.all()


def test_children_of_a_split_have_the_owner_of_their_parent(tmp_path: Path) -> None:
    """The parent is gone, as the rows of OWNERSHIP have it."""
    rows = read_record(str(World.crowded().write(tmp_path / "record")))
    split = {"ts": 1, "bundle": bundle(0), "event": "split", "broker": broker(0), "boundaries": ["0x02000000"]}

    owners = state_of(with_owners(rows, split)).owners

    child = f"shop/orders/{BundleRange(0, 0x02000000)}"
    assert bundle(0) not in owners
    assert (owners[child].broker, owners[child].since_us) == (broker(0), START_US + 60_000_000)
