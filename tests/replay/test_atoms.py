"""Atoms: the finest ranges that bundles are ever made of."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lookup.model.bundles import topic_hash
from lookup.model.namespaces import NamespacePolicies
from lookup.replay.atoms import AtomRule, Atoms

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
