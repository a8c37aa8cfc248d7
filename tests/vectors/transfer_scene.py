"""What a vector of the areas `transfer_shedder*` is about, put to the engine: reports, a gate for bundles, a cycle.

How vectors are read and what is asked of a cycle is in `transfer.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np

from lookup.engine.cycles import CycleReport, Unloading, run_sheds
from lookup.engine.policy import Instant, Policy
from lookup.errors import SettingsError, StateError
from lookup.hooks.protocols import Selector, Shedder
from lookup.model.broker import Candidates
from lookup.model.bundles import NamespacePolicies
from lookup.model.decision import Reason, Unload
from lookup.model.load import BundleLoad
from lookup.model.request import LookupRequest
from lookup.model.view import ClusterView
from lookup.testing.clusters import cluster
from tests.vectors.parts import configured_part, named_part
from tests.vectors.reading import NotUnderstood

__all__ = ["NOW_US", "Bundles", "Report", "Scene", "Transferable", "policy_of", "shedder_of"]

#: The clock of all cycles, µs; late enough for reports of 1970 to be outdated.
NOW_US = 1_700_000_000_000_000
#: A broker's report is data here, however many bundles it names.
_ALL_BUNDLES = {"loadBalancerMaxNumberOfBundlesInBundleLoadReport": 1_000_000}

#: Names of bundles with bytes per second, ascending.
Bundles: TypeAlias = Sequence[tuple[str, float]]


@dataclass(frozen=True)
class Report:
    """What one broker reported: ratio, bytes per second, and its bundles with theirs, ascending; None without any."""

    usage: float
    ema: float
    load: float
    bundles: Bundles | None


@dataclass(frozen=True)
class Transferable:
    """Keeps every broker for bundles that are transferable and none for the others, or fails."""

    name: ClassVar[str] = "vector-transferable"
    reason: ClassVar[Reason] = Reason.FILTERED
    reads: ClassVar[frozenset[str]] = frozenset({"bundle", "namespace"})

    nothing: bool = False
    not_in: frozenset[str] = frozenset()
    only: str | None = None
    fails: bool = False

    def admit(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> list[bool]:
        """Answer alike for all brokers."""
        if self.fails:
            raise StateError("this filter fails")
        refused = self.nothing or request.namespace in self.not_in or self.only not in (None, request.bundle)
        return [not refused] * len(brokers)


@dataclass(frozen=True)
class Scene:
    """Everything a cycle is about."""

    reports: Mapping[str, Report]
    config: Mapping[str, Any]
    #: ids of brokers that are registered besides those that reported
    available: Iterable[str] = ()
    owned: bool = True
    order: Sequence[str] = ()
    updated_us: int = NOW_US
    unloaded: Iterable[str] = ()
    gate: Transferable = Transferable()
    namespaces: NamespacePolicies = field(default_factory=NamespacePolicies)

    def view(self) -> ClusterView:
        """Return the reports as the engine shows them."""
        owned = {bundle: name for name, report in self.reports.items() for bundle, _ in report.bundles or ()}
        view = cluster(
            *sorted({*self.reports, *self.available}),
            usage={name: report.usage for name, report in self.reports.items()},
            throughput={name: report.load for name, report in self.reports.items()},
            owned=owned if self.owned else {},
            unloaded=dict.fromkeys(self.unloaded, NOW_US),
            now_us=NOW_US,
            namespaces=self.namespaces,
        )
        told = [self.reports.get(broker.id, Report(0.0, 0.0, 0.0, None)) for broker in view.brokers]
        load = replace(
            view.load,
            smoothed_throughput=np.array([report.ema for report in told], dtype=np.float64),
            updated_us=np.full(len(told), self.updated_us, dtype=np.int64),
            store_order=[view.brokers.ids.index(name) for name in self.order or self.reports],
            top_bundles=[[BundleLoad(*entry) for entry in report.bundles or ()] for report in told],
        )
        return replace(view, load=load)

    def cycle(self, memory: MutableMapping[str, Any]) -> CycleReport[Unload]:
        """Run one cycle; nothing changes but the memory."""
        policy = policy_of(self.config, self.gate)
        instant = Instant(policy, self.view())
        return run_sheds(policy, instant, memory, Unloading(lambda unload: None))


def policy_of(config: Mapping[str, Any], *gates: Transferable) -> Policy:
    """Compose a policy of the shedder and gates; whom it would choose does not matter."""
    anybody: Selector = named_part("selectors", "random")
    return Policy("vector", anybody, filters=gates, shedder=shedder_of(config))


def shedder_of(config: Mapping[str, Any]) -> Shedder:
    """Build the shedder from Pulsar's configuration, as settings would.

    Raises:
        NotUnderstood: where a value is none.
    """
    try:
        return cast("Shedder", configured_part("shedders", "transfer", {**config, **_ALL_BUNDLES}))
    except SettingsError as error:
        raise NotUnderstood(f"config: {error.problems[0]}") from None
