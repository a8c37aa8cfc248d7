"""Cycles of shedders without an engine: small clusters by name, and a judge that refuses what it is told to."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from lookup.hooks import Shedder
from lookup.model import ClusterView, CycleOutcome, Probe, Reason, Ruling
from lookup.testing import cluster


def cycle(
    part: Shedder, view: ClusterView, memory: dict[str, Any] | None = None, refused: Collection[str] = ()
) -> tuple[list[str], CycleOutcome]:
    """Run a cycle and return the local names of the accepted bundles in order, and the outcome."""
    running = part.propose(view, {} if memory is None else memory)
    accepted: list[str] = []
    try:
        unload = next(running)
        while True:
            assert not isinstance(unload, Probe)
            assert view.brokers[view.ownership.owner(unload.bundle) or 0].id == unload.source
            assert unload.destination is None
            good = local(unload.bundle) not in refused
            if good:
                accepted.append(local(unload.bundle))
            unload = running.send(Ruling(good, None if good else Reason.GRACE_PERIOD))
    except StopIteration as ended:
        return accepted, ended.value


def loaded(loads: Mapping[str, Mapping[str, float]], **figures: Any) -> ClusterView:
    """Build a cluster from load by bundle (its local name) by broker; all brokers have reported."""
    owned = {f"t/n/{bundle}": owner for owner, bundles in loads.items() for bundle in bundles}
    bundle_loads = {f"t/n/{bundle}": load for bundles in loads.values() for bundle, load in bundles.items()}
    given = {"throughput": {broker: float(sum(bundles.values())) for broker, bundles in loads.items()}}
    rates = {f"t/n/{bundle}": rate for bundle, rate in figures.pop("bundle_rates", {}).items()}
    whole: Any = {**given, "owned": owned, "bundle_loads": bundle_loads, "bundle_rates": rates, **figures}
    return cluster(*loads, **whole)


def loading(view: ClusterView, **changes: Any) -> ClusterView:
    """Return a view with some fields of its load replaced."""
    return replace(view, load=replace(view.load, **changes))


def local(bundle: str) -> str:
    """Return the name of a bundle without its namespace."""
    return bundle.rpartition("/")[2]
