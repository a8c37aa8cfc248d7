"""Patterns, measured: many watchers of patterns of their own, and a poll of a list that did not change.

Each figure stands beside today's way before sets of patterns, in the same run: every pattern asked by itself, every
list filtered and hashed anew.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from statistics import median, quantiles

from figures import Figure

from lookup.topics.catalog import Catalog
from lookup.topics.catalog.naming import is_system_topic, without_system_topics
from lookup.topics.listing import ListRequest, TopicLister, TopicsPattern, topics_hash
from lookup.topics.watching import TopicListService, WatchQuery, WatchRequest, carrying_out
from lookup_policies.listers import Default

__all__ = ["FORMS", "measure_patterns"]

_NAMESPACE = "public/default"
_WATCHERS, _FEW, _CREATIONS, _POLLS = 10_000, 100, 400, 2_000
#: Passes over all names, one for each pattern, from whose time that of ten thousand follows.
_PASSES = 5

#: The pattern of the i-th watcher, by its form. Names are `topic-` and seven digits.
FORMS: dict[str, Callable[[int], str]] = {
    "beginnings": lambda i: f"persistent://{_NAMESPACE}/topic-{i:05d}.*",
    "endings": lambda i: f".*-{i:04d}[0-9]*x{i % 7}?",
}


def measure_patterns(catalog: Catalog) -> Iterator[Figure]:
    """Measure over a catalog that `filled_catalog` made; topics are created in it, and deleted again."""
    # As a server does that is up: a collection of garbage that walks over a million topics stands still for a second.
    gc.collect()
    gc.freeze()
    for form, pattern in FORMS.items():
        yield from _watched(catalog, form, [pattern(number) for number in range(_WATCHERS)], bound_ms=5.0)
    few = [FORMS["beginnings"](number) for number in range(_FEW)]
    yield from _watched(catalog, "beginnings", few, bound_ms=1.0)
    yield from _polled(catalog)


def _watched(catalog: Catalog, form: str, patterns: list[str], *, bound_ms: float) -> Iterator[Figure]:
    service = TopicListService(revision=catalog.revision)
    leave = catalog.subscribe(service.heard)
    for number, pattern in enumerate(patterns):
        service.open(number, WatchRequest(1, 1, WatchQuery(_NAMESPACE, pattern=pattern)))
    among = f"{len(patterns):,} watchers of {form} of their own"
    names = catalog.topics(_NAMESPACE)
    # A pass of today before and after, so that a machine that slows down slows both.
    passes = [_seconds(_one_pass, names, pattern) for pattern in patterns[:_PASSES]]
    steps = list(_step_times(carrying_out(service, catalog)))
    passes += [_seconds(_one_pass, names, pattern) for pattern in patterns[-_PASSES:]]
    before_s = median(passes) * len(patterns)
    listings = f"{among}: first listings together"
    note = f"longest of {len(steps):,} steps {max(steps) * 1e3:.0f} ms, p50 {median(steps) * 1e3:.1f} ms"
    if len(patterns) == _WATCHERS:
        yield Figure(listings, sum(steps), "s", 60.0, note=note)
        today = f"a pass for each, {before_s:,.0f} s as {2 * _PASSES} passes make it, over all at once"
        yield Figure(f"{listings}: one by one / together", before_s / sum(steps), "", note=today)
    for connection in service.due():
        service.take(connection)
    compiled = [TopicsPattern(pattern) for pattern in patterns]
    spent, asked = [], []
    for number in range(_CREATIONS):
        topic = _new(number, len(names))
        spent.append(_seconds(_created, catalog, service, topic))
        asked += [_seconds(_asked, compiled, topic)] if number % 20 == 0 else []
    leave()
    for number in range(_CREATIONS):
        catalog.delete(_new(number, len(names)))
    most = quantiles(spent, n=100)[98] * 1e3
    creation = f"creation of a topic, {among}"
    yield Figure(f"{creation}, p99", most, "ms", bound_ms, note=f"p50 {median(spent) * 1e3:.3f} ms, messages included")
    today = f"p50 of asking each pattern, {median(asked) * 1e3:.2f} ms, over p50"
    yield Figure(f"{creation}: each asked / all at once", median(asked) / median(spent), "", note=today)


def _new(number: int, n_topics: int) -> str:
    """Return the name of a topic to create, somewhere among those that are there."""
    return f"persistent://{_NAMESPACE}/topic-{number * n_topics // _CREATIONS:07d}-{number:04d}"


def _polled(catalog: Catalog) -> Iterator[Figure]:
    """Poll a namespace with a pattern that leaves a tenth of it, and the hash of that."""
    pattern = f"persistent://{_NAMESPACE}/topic-.*7"
    with TopicLister(Default(), catalog) as lister:
        answer = lister.answer(ListRequest(_NAMESPACE, pattern=pattern))
        request = ListRequest(_NAMESPACE, pattern=pattern, topics_hash=answer.topics_hash)
        spent = [_seconds(lister.answer, request) for _ in range(_POLLS)]
        if lister.answer(request).changed:
            raise AssertionError("the list of the last answer is called another one")
    anew = median(_seconds(_listed_anew, catalog, pattern) for _ in range(3))
    cuts = quantiles(spent, n=100)
    poll = f"unchanged poll with a pattern that {len(answer.topics):,} topics match"
    yield Figure(f"{poll}, p50", cuts[49] * 1e6, "µs", 50.0, note=f"p99 {cuts[98] * 1e6:.0f} µs")
    yield Figure(f"{poll}: filtered and hashed anew / p50", anew / cuts[49], "", note=f"anew {anew * 1e3:,.0f} ms")


def _one_pass(names: tuple[str, ...], pattern: str) -> list[str]:
    """List one pattern as before: names without system topics, and the pattern asked for each."""
    return TopicsPattern(pattern).filter([topic for topic in names if not is_system_topic(topic)])


def _step_times(steps: Iterator[None]) -> Iterator[float]:
    is_over = False
    while not is_over:
        began = time.perf_counter()
        is_over = next(steps, _END) is _END
        yield time.perf_counter() - began


_END = object()


def _created(catalog: Catalog, service: TopicListService, topic: str) -> int:
    """Create a topic, and make every message about it."""
    catalog.create(topic)
    return sum(len(service.take(connection)) for connection in service.due())


def _asked(patterns: list[TopicsPattern], topic: str) -> int:
    return sum(pattern.matches(topic) for pattern in patterns)


def _listed_anew(catalog: Catalog, pattern: str) -> str:
    return topics_hash(TopicsPattern(pattern).filter(without_system_topics(catalog.topics(_NAMESPACE))))


def _seconds(work: Callable[..., object], *arguments: object) -> float:
    began = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - began


if __name__ == "__main__":
    from topics import filled_catalog

    for figure in measure_patterns(filled_catalog(1_000_000)):
        print(figure.row(), flush=True)
