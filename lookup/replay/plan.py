"""Plan a replay for its tasks, as the run's settings in numbers and everything about one cluster but its rows.

Plans are plain and picklable. Policies and metrics travel as settings and are built again by each worker, since a
class from a plug-in file does not unpickle elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lookup.engine.manager import Conditions, LoadManager, ManagerObserver
from lookup.engine.policy import Policy
from lookup.model import Location, NamespacePolicies, Topology
from lookup.model.batch import ClientClass
from lookup.model.names import pinned_broker
from lookup.model.time import FIRST_US
from lookup.model.topology import LEVELS
from lookup.replay.atoms import BundleMap
from lookup.replay.days import CodedPart
from lookup.replay.senders import Senders, senders_of
from lookup.replay.shares import ClusterWords
from lookup.replay.timeline import Span, Timeline
from lookup.settings.evaluation import OwnerLoss

__all__ = ["ClusterPlan", "RunPlan", "new_manager"]

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class RunPlan:
    """The settings of a run for every cluster, policy and seed, with times in µs."""

    tick_us: int
    session_us: int
    balance_us: int
    warmup_us: int
    owner_loss: OwnerLoss
    is_reported: bool
    #: policies see load as it was last published, not as it is
    is_published: bool
    overload_threshold: float
    bytes_per_weight: float | None
    window_s: int
    #: rows of all tables that a task holds of a cluster at a time, unless a tick has more
    slice_rows: int
    namespaces: NamespacePolicies
    topology: Topology
    #: dimensions by which figures are also divided
    by: tuple[str, ...] = ()
    #: numbers of bundles that policies begin with in place of the default, ascending
    bundle_counts: tuple[int, ...] = ()
    #: demand before it is not scored in any cluster
    scored_from_us: int = FIRST_US

    def first_scored(self, begins_us: int) -> int:
        """Compute the first scored instant of a cluster whose log begins at a given instant, µs."""
        return max(begins_us + self.warmup_us, self.scored_from_us)

    def cell_of(self, ts_us: int) -> int:
        """Compute the start of the balance cell of an instant, µs."""
        return ts_us // self.balance_us * self.balance_us


@dataclass(frozen=True)
class BrokerReports:
    """LOADS of one cluster."""

    #: parts by day, in which brokers have their roster numbers
    days: Mapping[int, Sequence[CodedPart]]
    #: names of the figures that any row gives
    figures: tuple[str, ...]


@dataclass(frozen=True)
class BundleReports:
    """BUNDLES of one cluster."""

    #: parts by day
    days: Mapping[int, Sequence[CodedPart]]
    #: atoms of each bundle by its code, [first, stop), shape (n_bundles, 2)
    spans: Ints
    #: whether any row gives rates of messages
    has_rates: bool
    #: names of bundles whose load is ignored, since they do not consist of whole atoms of their namespace
    unknown: Sequence[str] = ()


@dataclass(frozen=True)
class ClusterPlan:
    """The plan of one cluster, with the meaning of its codes, its events, and the files with its rows."""

    #: place among the sorted clusters of the run
    place: int
    words: ClusterWords
    timeline: Timeline
    #: parts of each day that has rows, by day since the epoch, in order of the log's files
    days: Mapping[int, Sequence[CodedPart]]
    #: weight per second at usage 1.0 of every broker if none of the cluster has a capacity, None if they have their own
    assumed_capacity: float | None
    #: when any broker is registered, also before and after the log
    registered: tuple[Span, ...] = ()
    #: lookups whose logged broker is one of the cluster's
    logged: int = 0
    #: load reports, None if the run has none
    loads: BrokerReports | None = None
    bundle_loads: BundleReports | None = None
    #: name of the work file with the bundles that lost their owner in the log, None if no owner is known
    marks: str | None = None

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self.words.cluster

    @property
    def without_capacity(self) -> list[str]:
        """The ids of brokers that are registered without a capacity although one of the cluster has one."""
        if self.assumed_capacity is not None:
            return []
        here = (zip(roster, registered, strict=True) for roster, registered in self.timeline.epochs)
        return sorted({broker.id for each in here for broker, is_in in each if is_in and broker.capacity is None})

    def first_bundles(self, count: int | None = None) -> BundleMap:
        """Build the bundles at the beginning of a policy's replay.

        Args:
            count: the policy's bundles of a namespace without boundaries of its own. None is the default number.
        """
        return BundleMap(self.words.atoms, self.timeline.initial_splits, count=count)

    @cached_property
    def units(self) -> tuple[tuple[str, ...], Ints]:
        """The units that intervals vary, and the unit of each atom, shape (n_atoms,).

        The units are the bundles at the beginning. If policies differ in these, a unit lies between neighbouring hashes
        at which a bundle of every policy begins, so no bundle lies in two units.
        """
        atoms = self.words.atoms
        maps = [self.first_bundles(count) for count in (None, *atoms.rule.counts)]
        starts, names = maps[0].sort_bundles()
        for other in maps[1:]:
            starts = np.intersect1d(starts, other.sort_bundles()[0])
        sizes = np.diff(np.append(starts, atoms.count))
        if len(maps) > 1:
            names = np.array(atoms.names_of(starts), dtype=object)
        return tuple(names.tolist()), np.repeat(np.arange(len(starts)), sizes)

    @cached_property
    def senders(self) -> Senders:
        """The senders to the units."""
        return senders_of(self.units[0])

    @cached_property
    def clients(self) -> tuple[ClientClass, ...]:
        """The client classes, by code of the lookup properties."""
        return tuple(
            ClientClass(properties, Location(*(properties.get(level) for level in LEVELS)))
            for properties in self.words.properties
        )

    @cached_property
    def pinned(self) -> NDArray[np.int32]:
        """The broker each atom is pinned to, shape (n_atoms,): -1 for none, -2 for an unknown one."""
        pinned = np.full(self.words.atoms.count, -1, dtype=np.int32)
        for bundle, atoms in self.words.atoms.bundles:
            broker = pinned_broker(bundle.rpartition("/")[0])
            if broker is not None:
                number = self.timeline.roster.number(broker)
                pinned[atoms] = -2 if number is None else number
        return pinned


def new_manager(
    cluster: ClusterPlan, run: RunPlan, policy: Policy, seed: int, observer: ManagerObserver | None = None
) -> LoadManager:
    """Build a load manager that runs a policy over a cluster, in its state before the first event."""
    per_weight = run.bytes_per_weight or 1.0
    namespaces = run.namespaces
    if policy.bundles is not None:
        namespaces = replace(namespaces, default_bundles=policy.bundles)
    conditions = Conditions(
        owner_loss=run.owner_loss,
        namespaces=namespaces,
        topology=run.topology,
        assumed_capacity=cluster.assumed_capacity,
        # BUNDLES and LOADS are in bytes already.
        broker_bytes=per_weight if cluster.loads is None and cluster.bundle_loads is None else 1.0,
        bundle_bytes=per_weight if cluster.bundle_loads is None else 1.0,
        # The result of a hash is as random as that of a seed, so each replicate has a seed and a salt of its own.
        salt=str(seed),
        observer=observer,
    )
    return LoadManager(policy, cluster.name, cluster.timeline.roster, seed=seed, conditions=conditions)
