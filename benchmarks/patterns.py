"""Patterns, measured: many watchers of patterns of their own, and a poll of a list that did not change.

Each figure stands beside today's way before sets of patterns, in the same run: every pattern asked by itself, every
list filtered and hashed anew.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from statistics import median, quantiles

from figures import Figure

from lookup.model.catalog import selects
from lookup.topics.catalog import Catalog
from lookup.topics.catalog.naming import is_system_topic, without_system_topics
from lookup.topics.listing import ListRequest, TopicLister, TopicsPattern, topics_hash
from lookup.topics.listing.pattern_set import PatternSet
from lookup.topics.listing.selectors import parse
from lookup.topics.listing.steps import ROWS_PER_STEP
from lookup.topics.watching import TopicListService, WatchQuery, WatchRequest, carrying_out
from lookup_policies.listers import Default

__all__ = ["FORMS", "measure_patterns"]

_NAMESPACE = "public/default"
_WATCHERS, _FEW, _CREATIONS, _POLLS = 10_000, 100, 400, 2_000
#: Passes over all names, one for each pattern, from whose time that of ten thousand follows.
_PASSES = 5
#: Loops over the names of one step.
_LOOPS = 20

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
    yield from _listed_whole(catalog)
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
    steps, pauses = _step_times(carrying_out(service, catalog))
    passes += [_seconds(_one_pass, names, pattern) for pattern in patterns[-_PASSES:]]
    before_s = median(passes) * len(patterns)
    listings = f"{among}: first listings together"
    if len(patterns) == _WATCHERS:
        note = f"in {len(steps):,} steps; Python's garbage collector beside it {sum(pauses) * 1e3:.0f} ms"
        yield Figure(listings, sum(steps), "s", 60.0, note=note)
        yield _longest(listings, steps, pauses, _one_loop(names, patterns))
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


def _longest(what: str, steps: list[float], pauses: list[float], loop_s: float) -> Figure:
    """Compare the longest step with a loop over as many names as a step may look at."""
    pause = (
        f"the longest pause of the collector, which walks over all watchers, {max(pauses, default=0.0) * 1e3:.0f} ms"
    )
    note = f"{max(steps) * 1e3:.1f} ms over {loop_s * 1e3:.1f} ms, p50 of steps {median(steps) * 1e3:.2f} ms; {pause}"
    return Figure(f"{what}: longest step / a loop over {ROWS_PER_STEP:,} names", max(steps) / loop_s, "", note=note)


def _one_loop(names: tuple[str, ...], patterns: list[str]) -> float:
    """Return the seconds in which as many names as a step may look at are matched against all patterns, as a median."""
    together = PatternSet(_NAMESPACE, patterns)
    starts = range(0, len(names), len(names) // _LOOPS)
    return median(_seconds(_matched, together, names[start : start + ROWS_PER_STEP]) for start in starts)


def _matched(together: PatternSet, names: tuple[str, ...]) -> int:
    return sum(len(together.matching(topic)) for topic in names)


def _listed_whole(catalog: Catalog) -> Iterator[Figure]:
    """List every topic for one watcher, and once more after a change."""
    names = catalog.topics(_NAMESPACE)
    with TopicLister(Default(), catalog) as lister:
        service = TopicListService(revision=catalog.revision, interests={"created", "deleted"})
        leave = catalog.subscribe(service.heard)
        service.open(1, WatchRequest(1, 1, WatchQuery(_NAMESPACE, pattern=".*")))
        for number, when in enumerate(("first listing", "listing after a change")):
            # The catalog puts its names in order in one call; see `docs/watches.md`.
            catalog.topics(_NAMESPACE)
            steps, pauses = _step_times(carrying_out(service, catalog, lister))
            service.take(1)
            yield _longest(f"one watcher of {len(names):,} topics: {when}", steps, pauses, _one_loop(names, [".*"]))
            catalog.create(_new(number, len(names)))
        leave()
    for number in range(2):
        catalog.delete(_new(number, len(names)))


def _new(number: int, n_topics: int) -> str:
    """Return the name of a topic to create, somewhere among those that are there."""
    return f"persistent://{_NAMESPACE}/topic-{number * n_topics // _CREATIONS:07d}-{number:04d}"


def _polled(catalog: Catalog) -> Iterator[Figure]:
    """Poll a namespace with a pattern that leaves a tenth of it, and with a selector that leaves a fifth."""
    by_pattern = ListRequest(_NAMESPACE, pattern=f"persistent://{_NAMESPACE}/topic-.*7")
    by_selector = ListRequest(_NAMESPACE, selector=parse("env=env-1"))
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


def _one_pass(names: tuple[str, ...], pattern: str) -> list[str]:
    """List one pattern as before: names without system topics, and the pattern asked for each."""
    return TopicsPattern(pattern).filter([topic for topic in names if not is_system_topic(topic)])


def _step_times(steps: Iterator[None]) -> tuple[list[float], list[float]]:
    """Return the seconds of each step, without the pauses of the garbage collector, and these pauses."""
    spent: list[float] = []
    pauses: list[float] = []

    def collecting(phase: str, _: object) -> None:
        # The beginning of a pause as a negative time, to which its end is added.
        if phase == "start":
            pauses.append(-time.perf_counter())
        else:
            pauses[-1] += time.perf_counter()

    gc.callbacks.append(collecting)
    is_over = False
    while not is_over:
        began, n_pauses = time.perf_counter(), len(pauses)
        is_over = next(steps, _END) is _END
        spent.append(time.perf_counter() - began - sum(pauses[n_pauses:]))
    gc.callbacks.remove(collecting)
    return spent, pauses


_END = object()


def _created(catalog: Catalog, service: TopicListService, topic: str) -> int:
    """Create a topic, and make every message about it."""
    catalog.create(topic)
    return sum(len(service.take(connection)) for connection in service.due())


def _asked(patterns: list[TopicsPattern], topic: str) -> int:
    return sum(pattern.matches(topic) for pattern in patterns)


def _listed_anew(catalog: Catalog, request: ListRequest) -> str:
    """Make a list and its hash as before: a look at each name, or at the labels of each topic."""
    if request.pattern is not None:
        return topics_hash(TopicsPattern(request.pattern).filter(without_system_topics(catalog.topics(_NAMESPACE))))
    return topics_hash([e.name for e in catalog.entries(_NAMESPACE) if selects(request.selector, e.labels)])


def _seconds(work: Callable[..., object], *arguments: object) -> float:
    began = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - began


if __name__ == "__main__":
    from topics import filled_catalog

    for figure in measure_patterns(filled_catalog(1_000_000)):
        print(figure.row(), flush=True)
