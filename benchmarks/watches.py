"""One label change with a thousand watchers, of which ten match: how long until every message is made.

Each of the ten watches a thousand topics by a selector of its own, so nothing is shared between them; each of the
others watches a label value of its own. The plain way, in the same run: ask every selector, and list and hash every set
that changed anew.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import quantiles
from typing import Any

from figures import Figure

from lookup.model.catalog import Equals, TopicEvent
from lookup.topics.catalog import Catalog
from lookup.topics.listing import topic_list
from lookup.topics.listing.steps import Steps
from lookup.topics.watching import TopicListService, WatchQuery, WatchRequest, carry_out

__all__ = ["measure_watches"]

_MATCHING, _WATCHERS, _TOPICS, _ROUNDS = 10, 1000, 1000, 100
_NAMESPACE = "public/default"


def _catalog() -> Catalog:
    """Return a catalog of a thousand topics, with a label for each of the ten selectors, and one that has none yet."""
    catalog = Catalog()
    catalog.create_namespace(_NAMESPACE)
    labels = {f"key{number}": "yes" for number in range(_MATCHING)}
    for number in range(_TOPICS):
        catalog.create(f"persistent://{_NAMESPACE}/a-topic-with-a-name-of-usual-length-{number:06d}", labels=labels)
    catalog.create(_changing())
    return catalog


def _changing() -> str:
    return f"persistent://{_NAMESPACE}/a-topic-whose-labels-change"


def _watches(catalog: Catalog) -> TopicListService:
    watches = TopicListService(revision=catalog.revision)
    for number in range(_WATCHERS):
        term = Equals(f"key{number}", "yes") if number < _MATCHING else Equals("team", f"team{number}")
        watches.open(number, WatchRequest(1, 1, WatchQuery(_NAMESPACE, selector=(term,))))
    carry_out(watches, catalog)
    for connection in watches.due():
        watches.take(connection)
    return watches


def _notify(watches: TopicListService, event: TopicEvent) -> int:
    """Hand in an event and make every message; return how many there were."""
    watches.heard(event)
    return sum(len(watches.take(connection)) for connection in watches.due())


def measure_watches() -> list[Figure]:
    """Measure label changes that let a topic join ten sets and leave them again, in turn."""
    catalog = _catalog()
    watches = _watches(catalog)
    events: list[TopicEvent] = []
    catalog.subscribe(events.append)
    spent, plain = [], []
    for number in range(_ROUNDS):
        _change(catalog, is_set=number % 2 == 0)
        spent.append(_seconds(_notify, watches, events[-1]))
        plain.append(_seconds(_plainly, catalog, events[-1]))
    hashes = _hashes(catalog, watches, events)
    middle, most = _percentiles(spent)
    note = f"p50 {middle * 1e3:.2f} ms; {_WATCHERS:,} watchers, {_MATCHING} match, {_TOPICS:,} topics each"
    return [
        Figure("one label change among watchers, p99", most * 1e3, "ms", bound=2, note=note),
        Figure("one label change / asking and hashing all", middle / _percentiles(plain)[0], "", note="same run, p50"),
        Figure("hashes per coalesced batch of 51 changes and watcher", hashes / _MATCHING, "", bound=1),
    ]


def _change(catalog: Catalog, *, is_set: bool) -> None:
    labels = {f"key{number}": "yes" for number in range(_MATCHING)}
    if is_set:
        catalog.set_labels(_changing(), labels)
    else:
        catalog.remove_labels(_changing(), tuple(labels))


def _hashes(catalog: Catalog, watches: TopicListService, events: list[TopicEvent]) -> int:
    """Count the hashes of a batch: fifty-one changes, one round of messages."""
    counted = 0
    original = topic_list.hashing

    def count(names: Sequence[str], rows: int) -> Steps[str]:
        nonlocal counted
        counted += 1
        return original(names, rows)

    topic_list.hashing = count
    for number in range(51):
        _change(catalog, is_set=number % 2 == 0)
        watches.heard(events[-1])
    for connection in watches.due():
        watches.take(connection)
    topic_list.hashing = original
    return counted


def _plainly(catalog: Catalog, event: TopicEvent) -> int:
    """Ask every watcher's selector by itself, list each set that changed anew, and hash it."""
    changed = 0
    for number in range(_WATCHERS):
        term = Equals(f"key{number}", "yes") if number < _MATCHING else Equals("team", f"team{number}")
        if term.matches(event.old) != term.matches(event.new):
            entries = (catalog.entry(topic) for topic in catalog.topics(_NAMESPACE))
            topic_list.topics_hash(
                [entry.name for entry in entries if entry is not None and term.matches(entry.labels)]
            )
            changed += 1
    return changed


def _seconds(call: Any, *arguments: Any) -> float:
    start = time.perf_counter()
    assert call(*arguments) == _MATCHING
    return time.perf_counter() - start


def _percentiles(values: list[float]) -> tuple[float, float]:
    cuts = quantiles(values, n=100)
    return cuts[49], cuts[98]


if __name__ == "__main__":
    for figure in measure_watches():
        print(figure.row())
