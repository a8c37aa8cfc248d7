"""Build a policy's view from a broker's data about all brokers, live and when a record is verified.

Load is read as a replay reads LOADS, so that a policy sees the same figures in both.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lookup.engine.ledger import capacities
from lookup.engine.ownership import Ownership
from lookup.errors import InputError
from lookup.model import Broker, BrokerLookupData, ClusterView, Load, NamespacePolicies, Roster, Topology
from lookup.model.view import OwnershipView
from lookup.replay.loads import ReportedLoads
from lookup.replay.tables import broker_numbers, reported_load
from lookup.replay.timeline import Registration

__all__ = ["Surroundings", "View", "digest_of", "view_digest", "view_of"]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Circumstances of a cluster that views need in addition to brokers' data."""

    cluster: str
    prefix: str = "lookup."
    topology: Topology = Topology()
    namespaces: NamespacePolicies = NamespacePolicies()


@dataclass(frozen=True, eq=False)
class View:
    """The brokers of a cluster and their load, as one broker knew them."""

    #: digests of registry and load, and the time of the first use of the view, as `REGISTRY.LOAD@TS`
    reference: str
    #: µs since the Unix epoch
    ts_us: int
    #: by broker id a pair of JSON texts, of `BrokerLookupData` and of `BrokerLoadData`
    records: Mapping[str, tuple[str, str | None]]
    roster: Roster
    load: Load
    surroundings: Surroundings
    #: when the broker reported whose load is oldest, or started if it has not reported, ms since the Unix epoch
    oldest_load_ms: int
    #: sets of candidates that are known to be brokers of the view
    offered: set[tuple[str, ...]] = field(default_factory=set)

    def at(self, now_us: int, candidates: Sequence[str], owners: OwnershipView | None = None) -> ClusterView:
        """Build the view of a policy, in which only the candidates are registered.

        Args:
            candidates: ids of brokers of the view.
            owners: by the numbers of the view's roster, None if the policy does not read them.
        """
        offered = frozenset(candidates)
        registered = np.array([broker in offered for broker in self.roster.ids], dtype=bool)
        registered.flags.writeable = False
        return ClusterView(
            cluster=self.surroundings.cluster,
            brokers=self.roster,
            registered=registered,
            capacity=capacities(self.roster, None),
            epoch_us=self.ts_us,
            now_us=now_us,
            load=self.load,
            ownership=Ownership(self.roster.ids) if owners is None else owners,
            unloaded={},
            # Policies that keep memory are not served, since no broker knows the memory of all others.
            memory={},
            namespaces=self.surroundings.namespaces,
            topology=self.surroundings.topology,
        )


def view_of(records: Mapping[str, tuple[str, str | None]], ts_us: int, surroundings: Surroundings) -> View:
    """Build a view, or raise InputError with the broker whose data or load does not have Pulsar's form.

    Args:
        records: by broker id the JSON texts of `BrokerLookupData` and `BrokerLoadData`, None if it has not reported.
    """
    brokers, rows, reported_ms = [], [], []
    for broker, (data, load) in records.items():
        try:
            published = BrokerLookupData.from_json(data)
            registration = Registration(ts_us, broker, "registered", published)
            reported_ms.append(published.start_timestamp)
            brokers.append(registration.applied_to(Broker(broker, property_prefix=surroundings.prefix)))
            if load is not None:
                rows.append((0, broker, reported_load(load)))
                reported_ms[-1] = rows[-1][2].record.updated_at
        except InputError as error:
            raise InputError(f"broker {broker}: {error}") from None
    roster = Roster(brokers)
    base = Load.unknown(len(roster))
    loads = ReportedLoads.of(broker_numbers(rows, roster), len(roster)).figures(0, base) if rows else base
    reference = f"{view_digest(records)}@{ts_us}"
    oldest_ms = min((ms for ms in reported_ms if ms > 0), default=ts_us // 1000)
    return View(reference, ts_us, records, roster, loads.read_only(), surroundings, oldest_ms)


def view_digest(records: Mapping[str, tuple[str, str | None]]) -> str:
    """Compute digests of the registry and of the load of a view, with a dot between."""
    registry = {broker: data for broker, (data, _) in records.items()}
    loads = {broker: load for broker, (_, load) in records.items()}
    return f"{digest_of(registry)}.{digest_of(loads)}"


def digest_of(document: object) -> str:
    """Compute the digest of a document that JSON can hold, independent of the order of its keys."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
