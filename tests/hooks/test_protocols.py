"""The protocols, as parts are held against them."""

from __future__ import annotations

import pytest

import lookup_policies
from lookup.hooks import ALL_READS, Conf, Filter, Ge, Le, Remembering, Scorer, Selector, Shedder, reads_of
from lookup_policies.scorers import Headroom, PropertyMatch
from lookup_policies.wrappers import Explore


@pytest.mark.parametrize(
    ("protocol", "classes"),
    [
        (Filter, lookup_policies.FILTERS),
        (Scorer, lookup_policies.SCORERS),
        (Selector, lookup_policies.SELECTORS),
        (Shedder, lookup_policies.SHEDDERS),
    ],
)
def test_built_in_parts_follow_exactly_their_own_protocol(protocol: type, classes: tuple[type, ...]) -> None:
    """An object is told by its methods which part it is."""
    protocols = {Filter, Scorer, Selector, Shedder}

    for found in classes:
        assert [other for other in protocols if isinstance(found(), other)] == [protocol]


def test_reads_are_declared_or_everything() -> None:
    """By the class, by a property, or not at all."""
    assert reads_of(Headroom()) == {"view.load"}
    assert reads_of(PropertyMatch(key="zone")) == {"properties.zone"}
    assert reads_of(Explore(child=Explore())) == frozenset()
    assert reads_of(object()) == ALL_READS


def test_markers_are_values() -> None:
    """Two of the same are equal, so that parts can be compared by their annotations."""
    assert Conf("a") == Conf("a", 1.0) != Conf("a", 0.01)
    assert (Ge(0), Le(1)) == (Ge(0), Le(1))


def test_remembering_is_a_protocol_of_one_method() -> None:
    """A part has it or not; there is nothing else to implement."""
    assert [name for name in vars(Remembering) if not name.startswith("_")] == ["remember"]
