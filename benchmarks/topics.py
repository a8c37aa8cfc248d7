"""Topic discovery, measured: selector queries against a plain scan, memory per topic, writes, the cost of the hash.

python benchmarks/topics.py 1000000 1000000      fill a catalog in steps of so many topics, and print the bytes per
                                                 topic by which this process has grown, and had grown at the most
"""

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import psutil
from figures import Figure

from lookup.model.catalog import Selector, selects
from lookup.topics.catalog import Catalog, SqliteStorage
from lookup.topics.catalog.namespace import NamespaceTopics
from lookup.topics.listing import topics_hash
from lookup.topics.listing.selectors import parse

__all__ = [
    "QUERIES", "Discovery", "Query", "filled_catalog", "hash_costs", "measure_discovery", "measure_filling",
    "measure_writes",
]  # fmt: skip

_NAMESPACE = "public/default"
_BATCH = 10_000
_NAMESPACES, _WRITES = 20_000, 400
#: The rival: a dictionary from names to labels, and a look at each.
_Plain = dict[str, dict[str, str]]

#: The text of the i-th query of each kind: of a million topics they match 1,000, with `in` 2,000. The values are those
#: of `_labels`: 5 environments, 1,000 teams and 200 tiers, each topic with one of each.
QUERIES: dict[str, Callable[[int], str]] = {
    "one label": lambda i: f"team=team-{i % 1000}",
    "two labels": lambda i: f"tier=tier-{i % 200},env=env-{i % 5}",
    "two labels, in": lambda i: f"tier in (tier-{i % 200},tier-{(i + 1) % 200}),env in (env-{i % 5})",
    "label and exists": lambda i: f"team=team-{i % 1000},env,tier",
}


@dataclass(frozen=True, slots=True)
class Query:
    """One kind of query: what it found, and the percentiles of the index beside the median of the scan."""

    matches: int
    p50_ms: float
    p99_ms: float
    scan_ms: float


@dataclass(frozen=True, slots=True)
class Discovery:
    """What one run over one catalog measured."""

    n_topics: int
    #: what the process grew by from before the first topic to after the first query
    bytes_per_topic: float
    #: by the name of the query
    queries: dict[str, Query]


def _labels(number: int) -> dict[str, str]:
    return {"env": f"env-{(number // 200) % 5}", "team": f"team-{(number // 7) % 1000}", "tier": f"tier-{number % 200}"}


def filled_catalog(n_topics: int, *, batch: int = _BATCH) -> Catalog:
    """Return a catalog of one namespace of topics, each with three labels."""
    catalog = Catalog()
    catalog.create_namespace(_NAMESPACE)
    for start in range(0, n_topics, batch):
        with catalog.together():
            for number in range(start, min(start + batch, n_topics)):
                catalog.create(f"persistent://{_NAMESPACE}/topic-{number:07d}", labels=_labels(number))
    return catalog


def measure_discovery(
    n_topics: int = 1_000_000, *, n_queries: int = 400, n_scans: int = 3
) -> tuple[Discovery, Catalog]:
    """Fill a catalog, ask it, and scan it in the same process; return the catalog as well."""
    gc.collect()
    before = _resident()
    catalog = filled_catalog(n_topics)
    catalog.topics(_NAMESPACE)
    gc.collect()
    grown = _resident() - before
    entries = filter(None, map(catalog.entry, catalog.topics(_NAMESPACE)))
    plain: _Plain = {entry.name: dict(entry.labels) for entry in entries}
    sides = (catalog, plain)
    queries = {name: _compare(sides, text, n_queries, n_scans) for name, text in QUERIES.items()}
    return Discovery(n_topics, grown / n_topics, queries), catalog


def hash_costs(sizes: Sequence[int] = (100, 1_000, 10_000, 100_000)) -> Iterator[tuple[int, float]]:
    """Yield the size of a list of topics and the median cost of its hash, µs."""
    for size in sizes:
        topics = [f"persistent://{_NAMESPACE}/topic-{number:07d}" for number in range(size)]
        yield size, 1e3 * float(np.median([_ms(topics_hash, topics) for _ in range(max(5, 100_000 // size))]))


def measure_filling(n_topics: int = 1_000_000) -> Iterator[Figure]:
    """Fill catalogs in one step and in many, each in a process of its own."""
    (grown, peak), (in_steps, _) = (_filled_elsewhere(n_topics, batch) for batch in (n_topics, _BATCH))
    what = f"{n_topics // 1_000_000} M topics, three labels each, filled in one step: memory per topic"
    yield Figure(what, grown, "bytes", 600.0, note=f"growth of a process of its own; {peak:.0f} bytes at the most")
    yield Figure(f"{what}: one step / steps of {_BATCH:,}", grown / in_steps, "", note=f"in steps {in_steps:.0f} bytes")


def _filled_elsewhere(n_topics: int, batch: int) -> tuple[float, float]:
    command = [sys.executable, __file__, str(n_topics), str(batch)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    grown, peak = map(float, printed.split())
    return grown, peak


def _print_growth(n_topics: int, batch: int) -> None:
    gc.collect()
    before = _resident()
    catalog = filled_catalog(n_topics, batch=batch)
    catalog.topics(_NAMESPACE)
    catalog.select(_NAMESPACE, parse(QUERIES["one label"](0)))
    gc.collect()
    # Not of `getrusage`, whose peak begins with that of the process that started this one.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = 1024 * int(status.partition("VmHWM:")[2].split()[0])
    print((_resident() - before) / n_topics, (peak - before) / n_topics)


def measure_writes() -> Iterator[Figure]:
    """Create topics in a catalog with many namespaces and in one with a single one, in turn, in a file."""
    with tempfile.TemporaryDirectory() as folder:
        yield from _written(SqliteStorage(Path(folder) / "one.db"), SqliteStorage(Path(folder) / "many.db"))


def _written(one: SqliteStorage, many: SqliteStorage) -> Iterator[Figure]:
    few, full = Catalog(one), Catalog(many)
    few.create_namespace(_NAMESPACE)
    with full.together():
        full.create_namespace(_NAMESPACE)
        for number in range(_NAMESPACES - 1):
            full.create_namespace(f"tenant-{number % 100}/namespace-{number}")
    known = {namespace: NamespaceTopics() for namespace in full.namespaces()}
    spent: list[tuple[float, float, float]] = []
    for number in range(_WRITES):
        topic = f"persistent://{_NAMESPACE}/topic-{number}"
        # Of a fair pair each is first as often.
        first, second = (few, full) if number % 2 else (full, few)
        times = {id(catalog): _ms(catalog.create, topic) for catalog in (first, second)}
        spent.append((times[id(few)], times[id(full)], _ms(_read_namespaces, many, known)))
    few_ms, full_ms, before_ms = (median(times) for times in zip(*spent, strict=True))
    few.close()
    full.close()
    what = f"write with {_NAMESPACES:,} namespaces, SQLite"
    note = f"p50 {1e3 * full_ms:.0f} µs over {1e3 * few_ms:.0f} µs, in turns"
    yield Figure(f"{what} / with one", full_ms / few_ms, "", 2.0, note=note)
    today = f"p50 of reading the names with every write, {1e3 * before_ms:,.0f} µs, and the write, over the write"
    yield Figure(f"{what}: every namespace read anew / now", (full_ms + before_ms) / full_ms, "", note=today)


def _read_namespaces(storage: SqliteStorage, known: dict[str, NamespaceTopics]) -> None:
    """Take in the namespaces of other processes as writes did before namespaces had events."""
    for namespace in storage.namespaces():
        known.setdefault(namespace, NamespaceTopics())


def _compare(sides: tuple[Catalog, _Plain], text: Callable[[int], str], n_queries: int, n_scans: int) -> Query:
    catalog, plain = sides
    selectors = [parse(text(number)) for number in range(n_queries)]
    for selector in selectors[:n_scans]:
        if list(catalog.select(_NAMESPACE, selector)) != _scan(plain, selector):
            raise AssertionError(f"index and scan differ for {text(0)}")
    times = [_ms(catalog.select, _NAMESPACE, selector) for selector in selectors]
    scans = [_ms(_scan, plain, selector) for selector in selectors[:n_scans]]
    half, most = np.percentile(times, [50, 99])
    found = catalog.select(_NAMESPACE, selectors[0])
    return Query(len(found), float(half), float(most), float(np.median(scans)))


def _scan(plain: _Plain, selector: Selector) -> list[str]:
    return sorted(name for name, labels in plain.items() if selects(selector, labels))


def _ms(work: Callable[..., object], *arguments: object) -> float:
    began = time.perf_counter()
    work(*arguments)
    return 1e3 * (time.perf_counter() - began)


def _resident() -> int:
    return int(psutil.Process().memory_info().rss)


if __name__ == "__main__":
    _print_growth(*map(int, sys.argv[1:]))
