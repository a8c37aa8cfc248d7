"""Topic discovery, measured: selector queries against a plain scan, memory per topic, the cost of the hash by size."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import psutil

from lookup.model.catalog import Selector, selects
from lookup.topics.catalog import Catalog
from lookup.topics.listing import topics_hash
from lookup.topics.listing.selectors import parse

__all__ = ["QUERIES", "Discovery", "Query", "filled_catalog", "hash_costs", "measure_discovery"]

_NAMESPACE = "public/default"
_BATCH = 10_000
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
    return {
        "env": f"env-{(number // 200) % 5}",
        "team": f"team-{(number // 7) % 1000}",
        "tier": f"tier-{number % 200}",
    }


def filled_catalog(n_topics: int) -> Catalog:
    """Return a catalog in memory with one namespace of topics, each with three labels."""
    catalog = Catalog()
    catalog.create_namespace(_NAMESPACE)
    for start in range(0, n_topics, _BATCH):
        with catalog.together():
            for number in range(start, min(start + _BATCH, n_topics)):
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
    plain: _Plain = {entry.name: dict(entry.labels) for entry in catalog.entries(_NAMESPACE)}
    sides = (catalog, plain)
    queries = {name: _compare(sides, text, n_queries, n_scans) for name, text in QUERIES.items()}
    return Discovery(n_topics, grown / n_topics, queries), catalog


def hash_costs(sizes: Sequence[int] = (100, 1_000, 10_000, 100_000)) -> Iterator[tuple[int, float]]:
    """Yield the size of a list of topics and the median cost of its hash, µs."""
    for size in sizes:
        topics = [f"persistent://{_NAMESPACE}/topic-{number:07d}" for number in range(size)]
        yield size, 1e3 * float(np.median([_ms(topics_hash, topics) for _ in range(max(5, 100_000 // size))]))


def _compare(sides: tuple[Catalog, _Plain], text: Callable[[int], str], n_queries: int, n_scans: int) -> Query:
    catalog, plain = sides
    selectors = [parse(text(number)) for number in range(n_queries)]
    for selector in selectors[:n_scans]:
        if list(catalog.selected(_NAMESPACE, selector)) != _scan(plain, selector):
            raise AssertionError(f"index and scan differ for {text(0)}")
    times = [_ms(catalog.selected, _NAMESPACE, selector) for selector in selectors]
    scans = [_ms(_scan, plain, selector) for selector in selectors[:n_scans]]
    half, most = np.percentile(times, [50, 99])
    found = catalog.selected(_NAMESPACE, selectors[0])
    return Query(len(found), float(half), float(most), float(np.median(scans)))


def _scan(plain: _Plain, selector: Selector) -> list[str]:
    return sorted(name for name, labels in plain.items() if selects(selector, labels))


def _ms(work: Callable[..., object], *arguments: object) -> float:
    began = time.perf_counter()
    work(*arguments)
    return 1e3 * (time.perf_counter() - began)


def _resident() -> int:
    return int(psutil.Process().memory_info().rss)
