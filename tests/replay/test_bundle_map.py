"""Which bundles exist, and the atoms of each."""

from __future__ import annotations

import pytest

from lookup.model.namespaces import NamespacePolicies
from lookup.replay.atoms import AtomRule, Atoms
from lookup.replay.bundle_map import BundleMap

PARENT = "t/a/0x00000000_0x80000000"
CHILDREN = ("t/a/0x00000000_0x40000000", "t/a/0x40000000_0x80000000")
OTHER = "t/a/0x80000000_0xffffffff"


@pytest.fixture
def bundles() -> BundleMap:
    """Return two bundles, the first of two atoms."""
    rule = AtomRule(NamespacePolicies(default_bundles=2), {"t/a": (0x40000000,)})
    return BundleMap(Atoms.of(rule, ["t/a"]))


def test_a_split_replaces_a_bundle_by_its_children(bundles: BundleMap) -> None:
    """Children take the parent's atoms, in names, slices and order."""
    assert bundles.ordered()[0].tolist() == [0, 2]
    assert bundles.split(PARENT, CHILDREN)

    assert bundles.names.tolist() == [*CHILDREN, OTHER]
    assert bundles.ordered()[0].tolist() == [0, 1, 2]
    assert PARENT not in bundles
    assert bundles.atoms_of(CHILDREN[1]) == slice(1, 2)


def test_a_split_of_what_is_not_there_or_into_one_changes_nothing(bundles: BundleMap) -> None:
    """Unknown parents and splits without cut leave all as it was."""
    assert not bundles.split(CHILDREN[0], CHILDREN)
    assert not bundles.split(PARENT, (PARENT,))
    assert bundles.names.tolist() == [PARENT, PARENT, OTHER]


def test_splits_before_the_run_leave_its_first_bundles() -> None:
    """A map may begin after some splits."""
    rule = AtomRule(NamespacePolicies(default_bundles=2), {"t/a": (0x40000000,)})

    assert BundleMap(Atoms.of(rule, ["t/a"]), [(PARENT, CHILDREN)]).names.tolist() == [*CHILDREN, OTHER]
