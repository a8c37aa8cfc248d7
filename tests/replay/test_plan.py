"""The plan of a cluster: what intervals vary if policies differ in their bundles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.replay.plan import ClusterPlan
from tests.replay.plans import lookup, planned

_NAMESPACES = ("t/a", "t/b", "t/c")


def _cluster(folder: Path, counts: tuple[int | None, ...], default: int) -> ClusterPlan:
    """Return the plan of three namespaces, one of which has bundles of its own, for policies with other bundles."""
    policies: list[dict[str, Any]] = [{"name": f"p{n}", "selector": "best"} for n in range(len(counts))]
    for policy, count in zip(policies, counts, strict=True):
        policy |= {} if count is None else {"bundles": count}
    rows = [lookup(topic=f"persistent://{name}/topic") for name in _NAMESPACES]
    evaluation = {"incumbent": "p0", "default_bundles": default}
    own = [{"name": "t/b", "bundles": 5}]
    return planned(folder, rows, evaluation=evaluation, policies=policies, namespaces=own).cluster


@pytest.mark.parametrize(
    ("counts", "default", "units"),
    [
        ((None, 4), 4, 4),
        ((4, 16), 4, 4),
        ((16, 64, 8), 32, 8),
        ((5, None), 3, 1),
        # Pulsar cuts 2**32 / 6 off to a whole hash, so that three sixths are no half.
        ((4, 6), 4, 1),
    ],
)
def test_units_lie_between_the_hashes_at_which_all_policies_begin_a_bundle(
    tmp_path: Path, counts: tuple[int | None, ...], default: int, units: int
) -> None:
    """So many in each namespace without bundles of its own, and five in the other."""
    names, _ = _cluster(tmp_path, counts, default).units

    of = [name.rpartition("/")[0] for name in names]
    assert [of.count(name) for name in _NAMESPACES] == [units, 5, units]


@given(counts=st.lists(st.integers(1, 40), min_size=1, max_size=4), default=st.integers(1, 12))
def test_no_bundle_lies_in_two_units(tmp_path_factory: pytest.TempPathFactory, counts: list[int], default: int) -> None:
    """Whatever policies begin with; and units are bundles of ranges that follow each other."""
    cluster = _cluster(tmp_path_factory.mktemp("plan"), tuple(counts), default)
    names, unit_of = cluster.units

    for count in counts:
        for bundle, atoms in cluster.words.atoms.first_bundles(count):
            assert len(set(unit_of[atoms].tolist())) == 1
            assert names[unit_of[atoms.start]].rpartition("/")[0] == bundle.rpartition("/")[0]
    assert [cluster.words.atoms.slice_of(name) for name in names] == [
        slice(int(places[0]), int(places[-1]) + 1)
        for places in (np.flatnonzero(unit_of == unit) for unit in range(len(names)))
    ]
