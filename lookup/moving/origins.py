"""Find where the clients of bundles are, by their lookups, and how much load is near them.

A client looks a topic up when it connects, and stays connected for hours. So the rows of LOOKUPS of one day count, and
in them the properties that clients send. Load is near on a broker that publishes the same values as its clients send.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache, reduce

import pyarrow as pa
import pyarrow.compute as pc

from lookup.errors import InputError, InvalidNameError
from lookup.logs.columns import MAX_WEIGHT
from lookup.logs.sources import list_log
from lookup.model import Roster
from lookup.model.bundles import BundleRange, NamespaceBundle, topic_hash
from lookup.model.documents import json_value
from lookup.model.names import TopicName
from lookup.model.time import US_PER_S
from lookup.moving.reading import Rows, rows_between

__all__ = ["Origins", "near_loads", "origins_of", "with_lookups"]

#: Weight per second by client property, bundle and value.
Origins = Mapping[str, Mapping[str, Mapping[str, float]]]

#: Seconds before the instant whose lookups count.
_SECONDS = 24 * 3600
_PAIR = ("topic", "properties")
#: Sums of so many rows at least are added up.
_MANY = 1 << 19
_SUMS = pa.schema({"topic": pa.string(), "properties": pa.string(), "weight": pa.float64()})


def with_lookups(rows: Rows, folder: str) -> Rows:
    """Add lookups with properties to a cluster's rows.

    Args:
        folder: LOOKUPS, as `lookup serve` records it or `lookup ingest` writes it, as a path or URI.

    Raises:
        InputError: if there is no such table, or its columns are not those of LOOKUPS.
    """
    from_us, sums, most = rows.at_us - _SECONDS * US_PER_S, [_SUMS.empty_table()], _MANY
    try:
        files = list_log(folder, "lookups")
        for some in rows_between(files, "lookups", from_us, rows.at_us, ("ts", "cluster", *_PAIR, "weight", "result")):
            weight, is_ours = pc.fill_null(some.column("weight"), 1.0), pc.equal(some.column("cluster"), rows.cluster)
            # A redirect is a hop of a lookup, which counts where it ends.
            is_demand = pc.not_equal(pc.fill_null(some.column("result"), ""), "redirect")
            is_sound = pc.and_(pc.greater(weight, 0.0), pc.less_equal(weight, MAX_WEIGHT))
            has_properties = pc.is_valid(some.column("properties"))
            columns = pa.table([*(some.column(name) for name in _PAIR), weight], schema=_SUMS)
            sums.append(_sum_by_origin(columns.filter(reduce(pc.and_, (is_ours, is_demand, is_sound, has_properties)))))
            # Memory grows with the pairs, not with the length of the day.
            if sum(map(len, sums)) > most:
                sums = [_sum_by_origin(pa.concat_tables(sums))]
                most = max(_MANY, 2 * len(sums[0]))
    except pa.ArrowException as error:
        raise InputError(f"{folder}: {error}") from None
    in_order = _sum_by_origin(pa.concat_tables(sums)).sort_by([(name, "ascending") for name in _PAIR])
    return replace(rows, lookups=in_order)


def _sum_by_origin(rows: pa.Table) -> pa.Table:
    by_pair = rows.group_by(list(_PAIR), use_threads=False).aggregate([("weight", "sum")])
    return by_pair.rename_columns([*_PAIR, "weight"]).cast(_SUMS)


def origins_of(rows: Rows, bundles: Iterable[str]) -> tuple[Origins, tuple[str, ...]]:
    """Sum where the lookups of bundles come from, with a sentence if read lookups do not show it."""
    if rows.lookups is None:
        return {}, ()
    bundle_of = _build_finder(bundles)
    sums: defaultdict[str, defaultdict[str, defaultdict[str, float]]]
    sums = defaultdict(lambda: defaultdict(lambda: defaultdict(float)))
    for topic, text, weight in zip(*(rows.lookups.column(name).to_pylist() for name in _SUMS.names), strict=True):
        bundle = bundle_of(topic)
        if bundle is not None:
            for key, value in _parse_properties(text):
                sums[key][bundle][value] += weight / _SECONDS
    if not sums:
        return {}, ("no lookup of the day before has properties that locate its client",)
    return {key: {name: dict(sums[key][name]) for name in sorted(sums[key])} for key in sorted(sums)}, ()


@lru_cache(maxsize=1 << 12)
def _parse_properties(text: str) -> tuple[tuple[str, str], ...]:
    """Read the properties of a client, empty if the text is not in the form of LOOKUPS."""
    try:
        sent = json_value(text)
    except ValueError:
        return ()
    pairs = sent.items() if isinstance(sent, dict) else ()
    return tuple((key, value) for key, value in pairs if isinstance(value, str))


def _build_finder(bundles: Iterable[str]) -> Callable[[str], str | None]:
    """Build a function from a topic to its bundle, None if that is not among the bundles."""
    ranges: defaultdict[str, list[tuple[BundleRange, str]]] = defaultdict(list)
    for name in bundles:
        bundle = NamespaceBundle.parse(name)
        ranges[str(bundle.namespace)].append((bundle.range, name))
    for of_namespace in ranges.values():
        of_namespace.sort()

    def find(topic: str) -> str | None:
        try:
            parsed = TopicName.parse(topic)
        except InvalidNameError:
            return None
        of_namespace, hashed = ranges.get(str(parsed.namespace), []), topic_hash(topic)
        place = bisect_right(of_namespace, hashed, key=lambda bundle: bundle[0].lower) - 1
        return of_namespace[place][1] if place >= 0 and hashed in of_namespace[place][0] else None

    return find


def near_loads(
    origins: Origins, loads: Mapping[str, float], owner_of: Callable[[str], int | None], brokers: Roster
) -> dict[str, float]:
    """Compute the share of load that is near its clients, by client property that brokers publish.

    The share of a bundle's load that is near is that of its lookups. Bundles count if load and lookups are known.

    Args:
        loads: bytes per second by bundle.
        owner_of: returns the number of a bundle's broker, None if it has none.
    """
    shares = {}
    for key, by_bundle in origins.items():
        labels = [broker.property_of(key) for broker in brokers]
        if all(label is None for label in labels):
            continue
        near = total = 0.0
        for bundle, by_value in by_bundle.items():
            load, number = loads.get(bundle, 0.0), owner_of(bundle)
            total += load
            if number is not None and labels[number] is not None:
                near += load * by_value.get(str(labels[number]), 0.0) / sum(by_value.values())
        if total > 0.0:
            shares[key] = near / total
    return shares
