"""Atoms, the finest ranges of hashes, and the bundles that are made of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.model.bundles import NamespacePolicies, topic_hash
from lookup.replay.atoms import AtomRule, Atoms, BundleMap

RULE = AtomRule(NamespacePolicies(default_bundles=2), {"t/b": (0x40000000,)})
ATOMS = Atoms.of(RULE, ["t/b", "t/a", "t/b"])


def test_atoms_are_numbered_by_namespace_and_hash() -> None:
    """A namespace that is split has an atom more, and numbers go on from one namespace to the next."""
    assert (ATOMS.namespaces, ATOMS.base, ATOMS.count) == (("t/a", "t/b"), {"t/a": 0, "t/b": 2}, 5)


def test_the_first_bundles_are_runs_of_atoms() -> None:
    """A bundle that is split later consists of several atoms from the start."""
    assert dict(ATOMS.bundles)["t/b/0x00000000_0x80000000"] == slice(2, 4)


def test_a_bundle_that_is_not_made_of_whole_atoms_has_none() -> None:
    """Names of bundles that never exist, in known or unknown namespaces, mean no atoms."""
    assert ATOMS.slice_of("t/b/0x40000000_0xffffffff") == slice(3, 5)
    assert ATOMS.slice_of("t/b/0x10000000_0xffffffff") is None
    assert ATOMS.slice_of("t/c/0x00000000_0xffffffff") is None


@given(st.text())
def test_a_topic_lies_in_the_atom_that_holds_its_hash(name: str) -> None:
    """The place of a topic is that of the range which holds its CRC-32."""
    boundaries = RULE.boundaries("t/b")
    topic = f"persistent://t/b/{name.encode(errors='replace').decode()}"
    place = RULE.place(topic_hash(topic), boundaries)

    assert boundaries[place] <= topic_hash(topic) <= boundaries[place + 1]


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


def test_atoms_lie_between_the_boundaries_of_all_policies() -> None:
    """Two bundles and three: four ranges, of which each policy has its own slices; names of bundles are its own."""
    third, half = 0x100000000 // 3, 0x80000000
    atoms = Atoms.of(AtomRule(NamespacePolicies(default_bundles=2), {}, (3,)), ["t/a"])

    assert atoms.boundaries == ((0, third, half, 2 * third, 0xFFFFFFFF),)
    assert [span for _, span in atoms.first_bundles()] == [slice(0, 2), slice(2, 4)]
    assert [span for _, span in atoms.first_bundles(3)] == [slice(0, 1), slice(1, 3), slice(3, 4)]
    assert BundleMap(atoms, count=3).names[1] == f"t/a/0x{third:08x}_0x{2 * third:08x}"


def test_a_namespace_with_boundaries_of_its_own_has_them_under_every_policy() -> None:
    """Numbers are of the other namespaces."""
    policies = NamespacePolicies(default_bundles=2, boundaries={"t/a": (0, 7, 0xFFFFFFFF)})

    assert AtomRule(policies, {}, (3, 16)).boundaries("t/a") == (0, 7, 0xFFFFFFFF)
