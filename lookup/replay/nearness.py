"""What makes a broker near to a lookup: a property that both have, or the distance between their places.

Brokers that are as near to every class of clients have one label. A lookup that a broker serves is worth what its class
gains with the broker's label: a property is matched or not, a distance is worth what it is shorter than the farthest.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lookup.model import Location, Roster, Topology
from lookup.model.batch import ClientClass
from lookup.placement.frontier import Reach

__all__ = ["Nearness", "farthest_ms", "near_by_distance", "near_by_property"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Nearness:
    """How near brokers are to clients by one figure of the run; labels are numbered from 0."""

    metric: str
    #: the property, None for distances
    key: str | None
    #: label of each text or place of a broker; those of others are `len(gains)`
    label_of: Mapping[Hashable, int]
    #: what a client class gains with each label, for each lookup, or micro-unit of weight; shape (n_labels, n_clients)
    gains: Floats
    #: whether it counts then, near or not; the last row is that of other brokers, shape (n_labels + 1, n_clients)
    counts: Mask

    def labels(self, roster: Roster, registered: Mask) -> Ints:
        """Return the label of each broker, -1 if it is not registered."""
        keys = (broker.location for broker in roster) if self.key is None else roster.labels(self.key)
        codes = np.array([self.label_of.get(key, len(self.gains)) for key in keys], dtype=np.int64)
        return np.where(registered, codes, -1)

    @cached_property
    def _layers(self) -> Sequence[tuple[Ints, Floats]]:
        """The first label with which each client gains, the second, ..., and what: with labels there is one at most."""
        order = np.argsort(self.gains == 0.0, axis=0, kind="stable")
        deepest = int((self.gains != 0.0).sum(axis=0).max(initial=0))
        return [(label, self.gains[label, np.arange(len(label))]) for label in order[:deepest]]

    def gained(self, piece: Ints, client: Ints, amount: Floats | float, n_pieces: int) -> Floats:
        """Return what pieces gain with each label, shape (n_pieces, n_labels).

        Args:
            piece: of each lookup, or group of lookups; shape (n_groups,).
            client: class of each group.
            amount: lookups, or weight, of each group, or of every one.
        """
        shape = n_pieces, len(self.gains)
        gained = np.zeros(n_pieces * len(self.gains))
        for label, gain in self._layers:
            places = piece * len(self.gains) + label[client]
            gained += np.bincount(places, weights=gain[client] * amount, minlength=len(gained))
        return gained.reshape(shape)

    def counted(
        self, piece: Ints, client: Ints, amount: Floats | float, labels: Ints, n_pieces: int, reach: Reach | None
    ) -> Floats:
        """Return what counts of each piece at most, with any label that is there, shape (n_pieces,).

        Args:
            labels: of each broker.
            reach: the brokers that pieces are kept to, None if each may be on any.
        """
        counted = np.zeros(n_pieces)
        for row in np.unique(self.counts[np.unique(labels[labels >= 0])], axis=0):
            of_piece = np.bincount(piece, weights=row[client] * amount, minlength=n_pieces)
            if reach is not None:
                has_row = (labels >= 0) & (self.counts[labels] == row).all(axis=1)
                of_piece = np.where((reach.members & has_row).any(axis=1)[reach.of], of_piece, 0.0)
            np.maximum(counted, of_piece, out=counted)
        return counted


def near_by_property(key: str, clients: Sequence[ClientClass], rosters: Sequence[Roster]) -> Nearness:
    """Return which lookups send the label of each broker."""
    sent = [client.properties.get(key) for client in clients]
    published = {label for roster in rosters for label in roster.labels(key)}
    labels = sorted({value for value in sent if value is not None and value in published})
    gains = np.array([[value == label for value in sent] for label in labels], dtype=np.float64)
    counts = np.array([value is not None for value in sent])
    return Nearness(
        "match_ratio",
        key,
        {label: code for code, label in enumerate(labels)},
        gains.reshape(len(labels), len(sent)),
        np.tile(counts, (len(labels) + 1, 1)),
    )


def near_by_distance(
    clients: Sequence[ClientClass], rosters: Sequence[Roster], topology: Topology, farthest: float
) -> Nearness:
    """Return by how many ms each broker is nearer than the farthest of the run; nothing if its distance is unknown."""
    places, distances = _distances(clients, rosters, topology)
    # Places that are as far from all clients are one label; NaN would not be equal to itself.
    kinds, codes = np.unique(np.nan_to_num(distances, nan=np.inf), axis=0, return_inverse=True)
    is_known = np.isfinite(kinds)
    return Nearness(
        "network_ms_mean",
        None,
        dict(zip(places, codes.ravel().tolist(), strict=True)),
        np.where(is_known, farthest - kinds, 0.0),
        np.vstack([is_known, np.zeros((1, len(clients)), dtype=bool)]),
    )


def farthest_ms(clients: Sequence[ClientClass], rosters: Sequence[Roster], topology: Topology) -> float:
    """Return the longest distance from any client to any broker, ms; 0.0 if none is known."""
    _, distances = _distances(clients, rosters, topology)
    return float(distances[~np.isnan(distances)].max(initial=0.0))


def _distances(
    clients: Sequence[ClientClass], rosters: Sequence[Roster], topology: Topology
) -> tuple[list[Location], Floats]:
    """Return the places of brokers, and the distance of each to each client class, ms, NaN if it is not known."""
    places = list(dict.fromkeys(broker.location for roster in rosters for broker in roster))
    # Hundreds of classes of clients stand at a few places.
    homes = list(dict.fromkeys(client.location for client in clients))
    figures = [[topology.distance(home, place) for home in homes] for place in places]
    by_home = np.array(figures, dtype=np.float64).reshape(len(places), len(homes))
    return places, by_home[:, [homes.index(client.location) for client in clients]]
