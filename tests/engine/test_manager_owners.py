"""The load manager: how bundles lose their owners and get others, by losses, admins, splits and from before the run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lookup.engine.ownership import OwnershipChange
from lookup.errors import InputError
from lookup.model import LookupOptions
from tests.engine.parts import Odds, manager, owner_of, policy
from tests.engine.trio import BUNDLE, OTHER, TOPIC, VIEW, registered


def test_the_leader_gives_a_lost_owners_bundles_away_at_once() -> None:
    """In bundle order, by requests without topic, client or properties, and never to the lost broker."""
    asked = Odds({"b1:1": 9.0, "b2:1": 1.0}, reads=frozenset({"bundle", "topic", "client", "properties"}))
    made = manager(policy(asked), replace(VIEW, registered=registered("b1:1")), owner_loss="leader")
    for bundle in (OTHER, BUNDLE):
        made.assign(TOPIC, bundle, LookupOptions(properties={"rack": "a"}), client="c")
    asked.asked.clear()
    made.set_registry(VIEW.brokers, registered("b2:1", "b3:1"))

    assert [(one.bundle, one.topic, one.client, dict(one.properties)) for one in asked.asked] == [
        (BUNDLE, None, None, {}),
        (OTHER, None, None, {}),
    ]
    assert owner_of(made, BUNDLE) == "b2:1"
    assert owner_of(made, OTHER) == "b2:1"


def test_an_admin_unloads() -> None:
    """The bundle is free, by the admin's doing."""
    made = manager(policy(Odds({"b1:1": 1.0})), VIEW)
    made.assign(TOPIC, BUNDLE)
    made.unload(BUNDLE)

    assert [(change.source, change.broker, change.cause, change.decided) for change in made.take_changes()] == [
        (None, "b1:1", "first", True),
        ("b1:1", None, "admin", False),
    ]


def test_a_bundle_without_owner_is_not_unloaded() -> None:
    """The sentence says why, and nothing changes."""
    made = manager(policy(Odds({"b1:1": 1.0})), VIEW)
    made.assign(TOPIC, BUNDLE)
    with pytest.raises(InputError, match=f"bundle {OTHER} is not owned"):
        made.unload(OTHER)

    assert owner_of(made, BUNDLE) == "b1:1"


def test_children_of_a_split_keep_owner_and_past() -> None:
    """Each child is served by the parent's owner, and its next move comes from there."""
    made = manager(policy(Odds({"b1:1": 1.0})), VIEW)
    made.assign(TOPIC, BUNDLE)
    children = ("public/default/0x00000000_0x40000000", "public/default/0x40000000_0x80000000")
    made.split(BUNDLE, children)
    made.take_changes()

    assert made.ownership.owner(BUNDLE) is None
    assert all(owner_of(made, child) == "b1:1" for child in children)
    assert made.ownership.bundles().tolist() == [2, 0, 0]
    made.unload(children[0])
    assert made.take_changes()[0].source == "b1:1"


def test_children_of_an_unowned_bundle_are_unowned() -> None:
    """They remember the parent's last owner."""
    made = manager(policy(Odds({"b1:1": 1.0})), VIEW)
    made.assign(TOPIC, BUNDLE)
    made.unload(BUNDLE)
    made.split(BUNDLE, [OTHER])
    made.take_changes()
    made.assign(TOPIC, OTHER)

    assert [(change.source, change.cause) for change in made.take_changes()] == [("b1:1", "admin")]


def test_restored_owners_are_first_owners() -> None:
    """Those that are not registered, unknown or pinned are left out; nobody decided them."""
    made = manager(policy(Odds()), replace(VIEW, registered=registered("b1:1")))
    made.restore({BUNDLE: "b1:1", OTHER: "b2:1", "a/b/c": "gone:1", "pulsar/b1:1/0x00000000_0xffffffff": "b1:1"})

    assert made.take_changes() == [OwnershipChange(0, BUNDLE, None, "b1:1", "first", decided=False)]
    assert made.ownership.bundles().tolist() == [1, 0, 0]


def test_pinned_bundles_are_not_unloaded() -> None:
    """As in Pulsar, nothing happens."""
    manager(policy(Odds()), VIEW).unload("pulsar/b1:1/0x00000000_0xffffffff")
