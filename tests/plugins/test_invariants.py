"""What every built-in part promises, whatever the world: checked on drawn worlds."""

from __future__ import annotations

import pickle
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookup_policies
from lookup.hooks import ALL_READS, LOAD_DETAILS, Filter, Scorer, Selector, reads_of
from lookup.testing import candidates
from lookup_policies.broker_filters import Version
from lookup_policies.hashing import BoundedConsistentHash, Rendezvous
from lookup_policies.isolation import AntiAffinity
from lookup_policies.round_robin import RoundRobin
from lookup_policies.score_selectors import Best, PowerOfTwo, Softmax, WeightedRandom
from lookup_policies.scorers import Headroom, PropertyMatch
from lookup_policies.wrappers import Explore, Fallback, ZoneSpill
from tests.plugins.worlds import World, worlds

#: Every selector as it comes, and some with other parameters.
SELECTORS: list[Selector] = [
    *(found() for found in lookup_policies.SELECTORS),
    Best(min_score=0.7),
    WeightedRandom(power=3),
    WeightedRandom(power=0),
    Softmax(temperature=1e-6),
    PowerOfTwo(by="usage", choices=3),
    PowerOfTwo(by="bundles"),
    Rendezvous(key="properties.rack", weight_property="weight"),
    Rendezvous(key="client"),
    BoundedConsistentHash(epsilon=0.01, points=3),
    Explore(epsilon=1.0, child=Fallback((Best(min_score=0.9), Rendezvous()))),
    ZoneSpill(min_cluster_size=2, child=Explore(child=Softmax())),
]
SCORERS: list[Scorer] = [
    *(found() for found in lookup_policies.SCORERS),
    PropertyMatch(keys={"rack": 0.7, "zone": 0.1}, unlabelled=0.3),
    Headroom(unreported=0.0),
]
FILTERS: list[Filter] = [
    *(found() for found in lookup_policies.FILTERS),
    Version(prefer_later=True),
    AntiAffinity(failure_domains_enabled=True),
]
PARTS: list[Any] = [*FILTERS, *SCORERS, *SELECTORS, *(found() for found in lookup_policies.SHEDDERS)]


@pytest.mark.parametrize("part", SELECTORS, ids=repr)
@settings(max_examples=40)
@given(world=worlds())
def test_odds_are_finite_and_not_negative(part: Selector, world: World) -> None:
    """A selector answers one finite weight of at least 0 per candidate."""
    odds = world.odds(part, world.ids)

    assert odds.shape == (len(world.ids),)
    assert np.isfinite(odds).all()
    assert (odds >= 0).all()


@pytest.mark.parametrize("part", [part for part in SELECTORS if not isinstance(part, RoundRobin)], ids=repr)
@settings(max_examples=40)
@given(world=worlds(), data=st.data())
def test_odds_belong_to_the_broker_and_not_to_its_place(part: Selector, world: World, data: st.DataObject) -> None:
    """Another order of the candidates gives every broker the same odds."""
    order = data.draw(st.permutations(world.ids))
    expected = dict(zip(world.ids, world.odds(part, world.ids).tolist(), strict=True))

    assert dict(zip(order, world.odds(part, order).tolist(), strict=True)) == expected


@pytest.mark.parametrize("part", SCORERS, ids=repr)
@settings(max_examples=40)
@given(world=worlds())
def test_scores_lie_between_zero_and_one(part: Scorer, world: World) -> None:
    """A scorer answers one number in [0, 1] per candidate."""
    scores = np.asarray(part.score(world.request, candidates(world.view), world.view))

    assert scores.shape == (len(world.ids),)
    assert ((scores >= 0) & (scores <= 1)).all()


@pytest.mark.parametrize("part", FILTERS, ids=repr)
@settings(max_examples=40)
@given(world=worlds())
def test_filters_answer_once_per_broker_and_can_say_why(part: Any, world: World) -> None:
    """A filter answers one boolean per candidate, and a sentence about each one it rejects."""
    offered = candidates(world.view)
    mask = np.asarray(part.admit(world.request, offered, world.view))

    assert mask.shape == (len(world.ids),)
    assert mask.dtype == np.bool_
    assert all(part.detail(world.request, one, world.view) for one, good in zip(offered, mask, strict=True) if not good)


@pytest.mark.parametrize("part", FILTERS, ids=repr)
@settings(max_examples=40)
@given(world=worlds())
def test_a_filter_judges_a_broker_the_same_in_any_order(part: Filter, world: World) -> None:
    """Who is kept does not depend on the order of the candidates."""
    backwards = candidates(world.view, *world.ids[::-1])
    mask = np.asarray(part.admit(world.request, candidates(world.view), world.view))

    assert np.asarray(part.admit(world.request, backwards, world.view)).tolist() == mask.tolist()[::-1]


@pytest.mark.parametrize("part", PARTS, ids=repr)
def test_a_part_is_rebuilt_by_its_repr_and_by_pickle(part: Any) -> None:
    """Parts are values: printed or pickled and read again, they are equal."""
    classes = {found.__name__: found for found in map(type, PARTS)}

    assert eval(repr(part), classes) == part
    assert pickle.loads(pickle.dumps(part)) == part


@pytest.mark.parametrize("part", PARTS, ids=repr)
def test_what_a_part_reads_is_known_to_the_framework(part: Any) -> None:
    """A part declares fields that exist, and none declares everything."""
    fields_read = {name.partition(".")[0] if name.startswith("properties.") else name for name in reads_of(part)}

    assert fields_read - LOAD_DETAILS < ALL_READS


@pytest.mark.parametrize("part", PARTS, ids=repr)
def test_every_parameter_has_a_default(part: Any) -> None:
    """A part can be named in settings without any parameter."""
    assert type(part)() is not None
    assert all(entry.init for entry in fields(part))


def test_every_part_is_registered_once_and_every_file_holds_one() -> None:
    """A part that is exported and forgotten in the root would be there, but not to be named in settings."""
    registered = [
        *lookup_policies.FILTERS,
        *lookup_policies.SCORERS,
        *lookup_policies.SELECTORS,
        *lookup_policies.SHEDDERS,
        *lookup_policies.SPLITTERS,
        *lookup_policies.SPLIT_ALGORITHMS,
        *lookup_policies.LISTERS,
    ]
    paths = [path for path in Path(str(lookup_policies.__file__)).parent.glob("*.py") if not path.stem.startswith("_")]
    modules = [import_module(f"lookup_policies.{path.stem}") for path in paths]
    exported = [getattr(module, name) for module in modules for name in module.__all__]
    parts = [found for found in exported if hasattr(found, "name")]

    assert sorted(map(repr, parts)) == sorted(map(repr, registered))
    assert {found.__module__ for found in registered} == {module.__name__ for module in modules}
