"""Batches for tests: built from the happenings that the oracle walks, and drawn at random by Hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from lookup.model.batch import Batch, Cells, ClientClass, OwnerChanges, Served
from lookup.model.broker import Broker, BrokerLookupData, Location, Roster
from lookup.model.topology import Edge, Topology
from tests.score.oracle import CAUSES, Change, Happenings, Lookup

SECOND = 1_000_000
HOUR = 3600 * SECOND
#: Causes of changes that a policy has no part in.
OUTSIDE = ("forced", "admin", "split")
#: Cause, time in µs and the owner before.
Event = tuple[str, int, str | None]
_NOWHERE = Location()


def labelled(broker_id: str, rack: str | None = None, location: Location = _NOWHERE) -> Broker:
    """Build a broker that publishes a rack."""
    return Broker(broker_id, BrokerLookupData(properties={"lookup.rack": rack} if rack else {}), location=location)


def batch_of(world: Happenings, brokers: Sequence[Broker], *, cluster: str = "c", last: bool = True) -> Batch:
    """Lay happenings of one cluster out in columns.

    Args:
        brokers: every broker of the run, with the lookup data the lookups in `world` were answered with.
        last: whether changes and cells stand in this batch.
    """
    roster = Roster(brokers)
    bundles = tuple(f"b{number}" for number in range(8))
    clients = tuple(_classes(world.lookups))
    events = events_of(world.changes or ())
    return Batch(
        cluster=cluster,
        brokers=roster,
        bundles=bundles,
        clients=clients,
        served=_served(world.lookups, roster, bundles, clients),
        logged=_per_bundle(bundles, [one for one in world.lookups if one.broker and one.logged]),
        agreed=_per_bundle(bundles, [one for one in world.lookups if one.broker and one.logged == one.broker.id]),
        changes=None if world.changes is None else _changes(world.changes if last else [], roster, bundles, events),
        cells=_cells(world, roster) if last else _no_cells(len(roster), None if world.usage_s is None else 0.0),
        topology=world.topology,
        bytes_per_weight=world.bytes_per_weight,
        window_s=world.window_s,
        events=tuple(cause for cause, _, _ in events),
    )


def events_of(changes: Sequence[Change]) -> list[Event]:
    """Return what came from outside and took bundles from their owners: bundles that one broker lost are one event."""
    return list(dict.fromkeys(event for one in changes if (event := event_of(one)) is not None))


def event_of(change: Change) -> Event | None:
    """Return the event that led to a change, None if the policy did or the bundle had no owner."""
    return (change.cause, change.ts, change.source) if change.cause in OUTSIDE else None


def _classes(lookups: Sequence[Lookup]) -> list[ClientClass]:
    different: list[ClientClass] = []
    for one in lookups:
        if one.client not in different:
            different.append(one.client)
    return different


def _served(
    lookups: Sequence[Lookup], roster: Roster, bundles: Sequence[str], clients: Sequence[ClientClass]
) -> Served:
    return Served(
        bundle=np.array([bundles.index(one.bundle) for one in lookups], dtype=np.int64),
        broker=np.array([_number(roster, one.broker and one.broker.id) for one in lookups], dtype=np.int64),
        client=np.array([clients.index(one.client) for one in lookups], dtype=np.int64),
        lookups=np.ones(len(lookups)),
        weight=np.array([one.weight for one in lookups], dtype=np.float64),
    )


def _number(roster: Roster, broker_id: str | None) -> int:
    number = None if broker_id is None else roster.number(broker_id)
    return -1 if number is None else number


def _per_bundle(bundles: Sequence[str], lookups: Sequence[Lookup]) -> np.ndarray:
    return np.array([sum(one.bundle == name for one in lookups) for name in bundles], dtype=np.float64)


def _changes(
    changes: Sequence[Change], roster: Roster, bundles: Sequence[str], events: Sequence[Event]
) -> OwnerChanges:
    paths = sorted({one.path or one.bundle for one in changes})
    return OwnerChanges(
        bundle=np.array([bundles.index(one.bundle) for one in changes], dtype=np.int64),
        ts=np.array([one.ts for one in changes], dtype=np.int64),
        source=np.array([_number(roster, one.source) for one in changes], dtype=np.int64),
        broker=np.array([_number(roster, one.broker) for one in changes], dtype=np.int64),
        cause=np.array([one.cause for one in changes], dtype=object),
        decided=np.array([one.decided for one in changes], dtype=np.bool_),
        weight=np.array([one.weight for one in changes], dtype=np.float64),
        path=np.array([paths.index(one.path or one.bundle) for one in changes], dtype=np.int64),
        event=np.array([-1 if (event := event_of(one)) is None else events.index(event) for one in changes], np.int64),
    )


def _cells(world: Happenings, roster: Roster) -> Cells:
    starts = sorted(start for _, start in world.registered)
    served = np.zeros((len(starts), len(roster)))
    for one in world.lookups:
        if one.broker is not None:
            served[one.ts // world.cell_us, _number(roster, one.broker.id)] += one.weight
    registered = [[one.id in world.registered["c", start] for one in roster] for start in starts]
    usage = None if world.usage_s is None else np.array(world.usage_s).reshape(len(starts), len(roster), 2)
    return Cells(
        start=np.array(starts, dtype=np.int64),
        served=served,
        registered=np.array(registered, dtype=np.bool_).reshape(served.shape),
        known_s=None if usage is None else usage[:, :, 0],
        overloaded_s=None if usage is None else usage[:, :, 1],
    )


def _no_cells(brokers: int, usage: float | None) -> Cells:
    nothing = np.zeros((0, brokers))
    seconds = None if usage is None else nothing
    return Cells(np.zeros(0, dtype=np.int64), nothing, nothing.astype(np.bool_), seconds, seconds)


RACKS = st.sampled_from([None, "a", "b"])
LOCATIONS = st.builds(
    Location,
    st.sampled_from([None, "eu", "us", "as"]),
    st.sampled_from([None, "z1", "z2"]),
    st.sampled_from([None, "r1", "r2"]),
)
CLIENTS = st.builds(
    ClientClass,
    st.dictionaries(st.sampled_from(["rack", "zone", "tier"]), st.sampled_from(["a", "b"]), max_size=2),
    LOCATIONS,
)
TOPOLOGIES = st.sampled_from(
    [
        Topology(),
        Topology({"zone": 1.5}, {"region": 0.1}),
        Topology(edges=(Edge("eu", "us", 80.1, 0.05), Edge("us", "as", 0.2, 0.01), Edge("r1", "r2", 7.0))),
    ]
)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Happenings, list[Broker]]:
    """Draw one cluster over three cells: up to four brokers, eight bundles, thirty lookups, twenty changes."""
    brokers = [
        labelled(f"broker-{number}:8080", draw(RACKS), draw(LOCATIONS)) for number in range(draw(st.integers(1, 4)))
    ]
    lookups = draw(st.lists(_lookups(brokers), min_size=1, max_size=30))
    world = Happenings(
        lookups=lookups,
        changes=draw(st.none() | _changes_of(brokers)),
        registered=_registered(draw, brokers, lookups),
        cell_us=HOUR,
        topology=draw(TOPOLOGIES),
        bytes_per_weight=draw(st.sampled_from([None, 1e6])),
        window_s=draw(st.sampled_from([60, 3600])),
        usage_s=draw(st.none() | _usage(3 * len(brokers))),
    )
    return world, brokers


@st.composite
def _lookups(draw: st.DrawFn, brokers: Sequence[Broker]) -> Lookup:
    return Lookup(
        cluster="c",
        ts=draw(st.integers(0, 3 * HOUR - 1)),
        bundle=f"b{draw(st.integers(0, 7))}",
        broker=draw(st.none() | st.sampled_from(brokers)),
        client=draw(CLIENTS),
        weight=draw(st.integers(0, 8)) / 4,
        logged=draw(st.none() | st.sampled_from([one.id for one in brokers])),
    )


@st.composite
def _changes_of(draw: st.DrawFn, brokers: Sequence[Broker]) -> list[Change]:
    """Draw consistent histories: whoever is left was the owner."""
    owners: dict[str, str] = {}
    changes = []
    for ts in sorted(draw(st.lists(st.integers(0, 200 * SECOND), max_size=20))):
        bundle, broker = f"b{draw(st.integers(0, 2))}", draw(st.sampled_from(brokers)).id
        path = draw(st.sampled_from([bundle, f"{bundle}-child"]))
        cause = draw(st.sampled_from(CAUSES)) if path in owners else "first"
        weight = draw(st.integers(0, 4)) / 2
        changes.append(Change("c", ts, bundle, owners.get(path), broker, cause, draw(st.booleans()), weight, path))
        owners[path] = broker
    return changes


def _registered(
    draw: st.DrawFn, brokers: Sequence[Broker], lookups: Sequence[Lookup]
) -> dict[tuple[str, int], frozenset[str]]:
    registered = {}
    for start, end in pairwise(range(0, 4 * HOUR, HOUR)):
        used = {one.broker.id for one in lookups if one.broker and start <= one.ts < end}
        registered["c", start] = frozenset(used | draw(st.sets(st.sampled_from([one.id for one in brokers]))))
    return registered


@st.composite
def _usage(draw: st.DrawFn, size: int) -> list[tuple[float, float]]:
    known = draw(st.lists(st.integers(0, 60), min_size=size, max_size=size))
    return [(float(seconds), float(draw(st.integers(0, seconds)))) for seconds in known]
