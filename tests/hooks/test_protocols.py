"""The protocols, as parts are held against them."""

from __future__ import annotations

import pytest

import lookup_policies
from lookup.hooks import ALL_READS, Filter, Scorer, Selector, Shedder, reads_of
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
