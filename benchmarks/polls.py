"""Polls of a list that did not change, measured beside filtering and hashing it anew, in the same run."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from statistics import median, quantiles

from figures import Figure

from lookup.model.catalog import selects
from lookup.topics.catalog import Catalog
from lookup.topics.catalog.naming import without_system_topics
from lookup.topics.listing import TopicLister, TopicQuery, TopicsPattern, topics_hash
from lookup.topics.listing.selectors import parse
from lookup_policies.listers import Default

__all__ = ["measure_polls"]

_NAMESPACE = "public/default"
_POLLS = 2_000


def measure_polls(catalog: Catalog) -> Iterator[Figure]:
    """Poll a namespace with a pattern that leaves a tenth of it, and with a selector that leaves a fifth.

    Args:
        catalog: made by `filled_catalog`.
    """
    # As a server does that is up: a collection of garbage that walks over a million topics stands still for a second.
    gc.collect()
    gc.freeze()
    by_pattern = TopicQuery(_NAMESPACE, pattern=f"persistent://{_NAMESPACE}/topic-.*7")
    by_selector = TopicQuery(_NAMESPACE, selector=parse("env=env-1"))
    with TopicLister(Default(), catalog) as lister:
        for request, what, verb in ((by_pattern, "pattern", "match"), (by_selector, "selector", "fit")):
            answer = lister.answer(request)
            again = replace(request, topics_hash=answer.topics_hash)
            spent = [_seconds(lister.answer, again) for _ in range(_POLLS)]
            if lister.answer(again).changed:
                raise AssertionError("the list of the last answer is called another one")
            anew = median(_seconds(_listed_anew, catalog, request) for _ in range(3))
            cuts = quantiles(spent, n=100)
            poll = f"unchanged poll with a {what} that {len(answer.topics):,} topics {verb}"
            yield Figure(f"{poll}, p50", cuts[49] * 1e6, "µs", 50.0, note=f"p99 {cuts[98] * 1e6:.0f} µs")
            yield Figure(
                f"{poll}: filtered and hashed anew / p50", anew / cuts[49], "", note=f"anew {anew * 1e3:,.0f} ms"
            )


def _listed_anew(catalog: Catalog, request: TopicQuery) -> str:
    """Make a list and its hash as before: a look at each name, or at the labels of each topic."""
    if request.pattern is not None:
        return topics_hash(TopicsPattern(request.pattern).filter(without_system_topics(catalog.topics(_NAMESPACE))))
    entries = filter(None, map(catalog.entry, catalog.topics(_NAMESPACE)))
    return topics_hash([entry.name for entry in entries if selects(request.selector, entry.labels)])


def _seconds(work: Callable[..., object], *arguments: object) -> float:
    began = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - began


if __name__ == "__main__":
    from topics import filled_catalog

    for figure in measure_polls(filled_catalog(1_000_000)):
        print(figure.row(), flush=True)
