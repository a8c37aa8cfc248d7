"""Batches for metrics, which hold the outcome of a replay in small columns that do not grow with the log.

Batches add up. A replay yields one for every registry epoch, a stretch in which no broker came, left or changed its
lookup data. Ownership changes and cells are in the last batch, and empty in the others. Units and clients have the same
numbers in all batches. Every metric gets the same batches, so columns are read-only views.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from lookup.model.broker import Location, Roster
from lookup.model.bundles import NamespacePolicies
from lookup.model.topology import Topology

__all__ = ["UNLOADED_BY", "Batch", "Cells", "ClientClass", "OwnerChanges", "Served"]

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.int64]


class _Columns:
    """Base of records of arrays, whose columns become read-only views when a record is created."""

    def __post_init__(self) -> None:
        for name, value in list(vars(self).items()):
            if isinstance(value, np.ndarray):
                view = value.view()
                view.flags.writeable = False
                object.__setattr__(self, name, view)


@dataclass(frozen=True, slots=True)
class ClientClass:
    """Clients with equal lookup properties (logged or from `[[clients]]`) and location."""

    properties: Mapping[str, str] = field(default_factory=dict)
    location: Location = Location()

    def __post_init__(self) -> None:
        """Make the properties read-only."""
        object.__setattr__(self, "properties", MappingProxyType(self.properties))

    def __reduce__(self) -> tuple[type[ClientClass], tuple[dict[str, str], Location]]:
        """Pickle plain properties, since a `MappingProxyType` cannot be pickled."""
        return ClientClass, (dict(self.properties), self.location)


@dataclass(frozen=True, eq=False)
class Served(_Columns):
    """Lookups by bundle, client class and answering broker, in columns of shape (n_groups,)."""

    #: resampling unit for intervals, which is the number of the bundle at the start of the run, in [0, n_bundles)
    bundle: IndexArray
    #: number in the roster, -1 for unanswered
    broker: IndexArray
    #: number of the client class
    client: IndexArray
    lookups: FloatArray
    weight: FloatArray


#: Who unloads a bundle, either a policy's shedder or an administrator.
UNLOADED_BY = ("shed", "admin")


@dataclass(frozen=True, eq=False)
class OwnerChanges(_Columns):
    """All owner assignments and unloads in order of time, in columns of shape (n_changes,).

    An unload is one row. The assignment that follows, then or with the next lookup, is another.
    """

    bundle: IndexArray
    #: µs since the Unix epoch
    ts: IndexArray
    #: owner before, -1 if the bundle never had one
    source: IndexArray
    #: owner after the change, equal to `source` if a bundle returned to its last owner, -1 for an unload
    broker: IndexArray
    #: why the owner was lost: "first", "forced" (it left), "shed", "admin", "split", for an unload "shed" or "admin"
    cause: NDArray[np.object_]
    #: whether a policy decided (an initial owner and a transfer's destination were not decided by odds)
    decided: NDArray[np.bool_]
    #: the bundle's ledger weight at that moment, weight per second
    weight: FloatArray
    #: number of the bundle as it was at that moment, >= 0: children of a split differ from each other and their parent
    path: IndexArray
    #: number in `events` of the event that took the bundle from its last owner, -1 if the policy did or it had none
    event: IndexArray


@dataclass(frozen=True, eq=False)
class Cells(_Columns):
    """Cells of `balance_s` in order of time, in arrays of shape (n_cells, n_brokers)."""

    #: start of each cell, µs, shape (n_cells,)
    start: IndexArray
    #: weight served
    served: FloatArray
    #: whether the broker was registered at any time in the cell
    registered: NDArray[np.bool_]
    #: seconds registered with a known usage, and those above the overload threshold, None if capacities are assumed
    known_s: FloatArray | None
    overloaded_s: FloatArray | None


@dataclass(frozen=True, eq=False)
class Batch(_Columns):
    """One stretch of one replay of one policy in one cluster."""

    cluster: str
    #: brokers with the lookup data of this stretch
    brokers: Roster
    #: names of the units, index is the unit's number
    bundles: tuple[str, ...]
    clients: tuple[ClientClass, ...]
    served: Served
    #: lookups answered with a logged broker, and of these the ones answered as logged, shape (n_bundles,)
    logged: FloatArray
    agreed: FloatArray
    #: None for the brokers that answered according to the log, and for a part of the clients
    changes: OwnerChanges | None
    cells: Cells
    topology: Topology
    #: isolation policies, for isolation_ratio
    namespaces: NamespacePolicies = field(default_factory=NamespacePolicies)
    #: for network_cost, None if it is not set
    bytes_per_weight: float | None = None
    #: for redundant_moves, seconds
    window_s: int = 3600
    #: external events that took bundles from their owners, in order of time, the same for all policies: "forced" for a
    #: broker that left, "admin" for a bundle that an administrator unloaded, "split" for a bundle that was split
    events: tuple[str, ...] = ()
    #: number of the registry epoch, the same for all policies
    epoch: int = 0

    @cached_property
    def pairs(self) -> IndexArray:
        """The number of each group's pair of broker and client class, shape (n_groups,).

        They number the elements of shape (1 + n_brokers, n_clients), whose first row is for unanswered lookups.
        """
        return (self.served.broker + 1) * len(self.clients) + self.served.client

    @cached_property
    def distance_ms(self) -> FloatArray:
        """The distance of every pair, NaN if it is unknown, shape (1 + n_brokers, n_clients)."""
        return self._compute_by_pair(self.topology.distance)

    @cached_property
    def price_per_gb(self) -> FloatArray:
        """The price of a gigabyte for every pair, NaN if it is unknown, shape (1 + n_brokers, n_clients)."""
        return self._compute_by_pair(self.topology.price)

    def _compute_by_pair(self, between: Callable[[Location, Location], float | None]) -> FloatArray:
        # Hundreds of clients and brokers share a few locations.
        here, sources = _number_locations([client.location for client in self.clients])
        there, targets = _number_locations([Location(), *(broker.location for broker in self.brokers)])
        figures = [[between(source, target) for source in sources] for target in targets]
        by_location = np.array(figures, dtype=np.float64).reshape(len(targets), len(sources))
        return by_location[there][:, here]


def _number_locations(locations: Sequence[Location]) -> tuple[IndexArray, list[Location]]:
    different = list(dict.fromkeys(locations))
    numbers = {location: number for number, location in enumerate(different)}
    return np.array([numbers[location] for location in locations], dtype=np.int64), different
