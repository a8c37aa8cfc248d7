"""Looks at a cluster in this process, where a test sees what waits for what."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lookup.errors import StateError
from lookup.serve.topics import ServedTopics
from lookup.settings import ServingFile
from lookup.topics.catalog.operations import LABELS, GetPairs, SetPairs
from lookup.topics.listing import TopicQuery
from tests.processes import PATIENCE_S

Serve = Callable[[Callable[[ServedTopics], Coroutine[Any, Any, None]]], None]

NS = "public/default"
HERE = f"persistent://{NS}/"


class Cluster:
    """A source of topics, whose answers a test holds back."""

    def __init__(self) -> None:
        self.topics_of: dict[str, list[str]] = {NS: [f"{HERE}a"]}
        self.asked: list[str] = []
        self._held: threading.Event | None = None

    def namespaces(self) -> list[str]:
        """Return the names of all namespaces."""
        return list(self.topics_of)

    def topics(self, namespace: str) -> list[str] | None:
        """Return the topics of a namespace as they are now, when they are no longer held back."""
        names, held = self.topics_of.get(namespace), self._held
        names = None if names is None else [*names]
        self.asked.append(namespace)
        if held is not None:
            held.wait()
        return names

    @contextmanager
    def holding(self) -> Iterator[Callable[[], None]]:
        """Hold back the answers to what is asked in the block, until its end; the function ends that for later ones."""
        self.asked.clear()
        self._held = held = threading.Event()

        def only_these() -> None:
            self._held = None

        try:
            yield only_these
        finally:
            only_these()
            held.set()


@pytest.fixture
def cluster() -> Cluster:
    """Return a cluster with one topic."""
    return Cluster()


@pytest.fixture
def serve(tmp_path: Path, cluster: Cluster) -> Serve:
    """Return a function that runs a test beside topics that are never read but for a request."""
    settings = ServingFile.model_validate(
        {
            "serving": {"cluster": "c1", "record": "record"},
            "collect": {"admin": "http://127.0.0.1:1", "topics_every_s": 0.1, "topics_stale_s": 3600.0},
            "topics": {"catalog": str(tmp_path / "topics.db"), "lister": {"use": "indexed"}},
        }
    )

    def serve(test: Callable[[ServedTopics], Coroutine[Any, Any, None]]) -> None:
        async def run() -> None:
            async with ServedTopics(settings, cluster, print) as served:
                await test(served)

        asyncio.run(asyncio.wait_for(run(), PATIENCE_S))

    return serve


async def seen(look: Callable[[], object]) -> None:
    """Let others work until something is to be seen."""
    while not look():
        await asyncio.sleep(0.001)


async def listed_long_ago(served: ServedTopics) -> None:
    """Have a list made, and the next one looked for again."""
    await served.list_topics(TopicQuery(NS))
    served._looked.clear()


async def waiting(served: ServedTopics, namespace: str, work: Awaitable[Any], number: int = 1) -> asyncio.Future[Any]:
    """Begin some work, and wait until so many requests wait for one look at a namespace."""
    future = asyncio.ensure_future(work)
    await seen(lambda: namespace in served._looks and served._looks[namespace].waiting == number)
    return future


def test_requests_that_wait_for_a_look_share_its_failure(serve: Serve, cluster: Cluster) -> None:
    """The cluster is not asked once more for each of them."""

    async def test(served: ServedTopics) -> None:
        await listed_long_ago(served)
        cluster.topics_of[NS] = ["no name of a topic"]
        with cluster.holding():
            lists = [await waiting(served, NS, served.list_topics(TopicQuery(NS)), number) for number in range(1, 6)]
        for failed in lists:
            with pytest.raises(StateError, match=f"the topics of {NS} cannot be read"):
                await failed

    serve(test)
    assert cluster.asked == [NS]


def test_look_that_nobody_waits_for_does_not_begin(serve: Serve, cluster: Cluster) -> None:
    """If more namespaces hang than are asked for at once, the list of a client that has left is not looked for."""
    hung = {f"public/n{number}" for number in range(8)}
    cluster.topics_of |= {namespace: [] for namespace in (*hung, "public/last")}

    async def test(served: ServedTopics) -> None:
        with cluster.holding():
            lists = [await waiting(served, namespace, served.list_topics(TopicQuery(namespace))) for namespace in hung]
            await seen(lambda: set(cluster.asked) == hung)
            left = await waiting(served, "public/left", served.list_topics(TopicQuery("public/left")))
            left.cancel()
            await seen(left.done)
            lists.append(await waiting(served, "public/last", served.list_topics(TopicQuery("public/last"))))
        await asyncio.gather(*lists)

    serve(test)
    assert set(cluster.asked) == {*hung, "public/last"}


def test_older_answer_does_not_undo_a_newer_one(serve: Serve, cluster: Cluster) -> None:
    """A topic that was created after a look began is looked for after that look, and keeps what it is given."""

    async def test(served: ServedTopics) -> None:
        await listed_long_ago(served)
        with cluster.holding() as only_these:
            older = await waiting(served, NS, served.list_topics(TopicQuery(NS)))
            await seen(lambda: cluster.asked)
            only_these()
            cluster.topics_of[NS].append(f"{HERE}new")
            labels = SetPairs(LABELS, f"{HERE}new", {"env": "prod"})
            given = await waiting(served, NS, served.carry_out(labels), 2)

        await older
        assert await given is None
        assert await served.carry_out(GetPairs(LABELS, f"{HERE}new")) == '{"env": "prod"}'

    serve(test)
