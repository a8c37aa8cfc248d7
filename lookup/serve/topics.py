"""Serve the topics of a cluster with a catalog that follows the cluster, a lister over it, labels and properties.

Decisions do not wait for topics, and lists do not wait for writes:

    event loop   requests, their waiting, and messages to watchers (`watching.py`)
    questions    one thread: lists and other reads of the catalog, one after the other
    comparisons  one thread: whether the catalog matches the cluster (`lookup.topics.mirroring`)
    writes       one thread, which may wait for another process that writes to the catalog's file
    cluster      threads that read from it, and block as long as it does. The process ends without waiting for them

All threads share one interpreter with the event loop. `docs/live-topics.md` has the resulting delays.

A list is answered as a whole or refused, since many clients give up the topics that a list lacks.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, islice
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from lookup.engine.build import build_lister
from lookup.engine.plugins import load_plugins
from lookup.errors import InputError, NotFoundError, PluginError, SettingsError, StateError
from lookup.model.quoting import shown
from lookup.serve.watching import Watchers
from lookup.settings import CollectSection, ServingFile
from lookup.topics.catalog import Catalog, SqliteStorage
from lookup.topics.catalog.naming import namespace_of
from lookup.topics.catalog.operations import CatalogOperation, GetPairs, apply
from lookup.topics.listing import ListAnswer, TopicLister, TopicQuery
from lookup.topics.listing.listers import interests_of
from lookup.topics.mirroring import is_mirrored, make_anew, mirror

if TYPE_CHECKING:
    # With the client of Pulsar, which a server without a collector need not have.
    from lookup.collect.sources import AdminRest

__all__ = ["Reach", "ServedTopics"]

Result = TypeVar("Result")
#: Looks at the cluster at a time.
_LOOKS = 8
#: Seconds between two looks at a namespace that is watched, and of how many of its topics the creation is asked then.
_WATCHED_S, _CREATED = 0.2, 8


#: Makes the source of topics.
Reach: TypeAlias = Callable[[CollectSection], "AdminRest"]


@dataclass(slots=True, eq=False)
class _Look:
    """A look at a namespace in progress. All requests that need one share it, with its failure."""

    #: waiting requests, without which it need not begin
    waiting: int = 0
    task: asyncio.Task[None] = field(init=False)


class ServedTopics:
    """A catalog and its lister. Use it as an asynchronous context, which opens and closes the catalog.

    Args:
        source: the cluster that the catalog follows, None if the catalog only holds written topics.
        report: takes a sentence for the operator.

    Raises:
        SettingsError: if the lister cannot be built.
    """

    def __init__(self, settings: ServingFile, source: AdminRest | None, report: Callable[[str], None]) -> None:
        assert settings.topics is not None
        self._section, self._collect = settings.topics, settings.collect
        self._source, self._report = source, report
        try:
            registry = load_plugins(settings.plugin_files)
        except PluginError as error:
            raise SettingsError(str(error)) from None
        self._part = build_lister(registry, settings.topics.lister, "topics.lister")
        if "properties" not in interests_of(self._part):
            report(f"warning: lister {self._part.name!r} does not look at properties and lists every topic")
        self._questions = ThreadPoolExecutor(1, "questions")
        self._comparisons = ThreadPoolExecutor(1, "comparisons")
        self._writes = ThreadPoolExecutor(1, "writes")
        self._limit = asyncio.Semaphore(_LOOKS)
        #: cleanup at the end, the last first
        self._opened: AsyncExitStack
        self._catalog: Catalog
        self._lister: TopicLister
        #: namespace -> one look at a time, since an older answer of the cluster must not undo a newer one
        self._looks: dict[str, _Look] = {}
        #: namespace -> when it was looked at last, by the monotonic clock
        self._looked: dict[str, float] = {}
        #: namespace -> creation times of its topics, by topic, the latest checked one at the end
        self._created: dict[str, dict[str, datetime]] = {}
        #: why the cluster cannot be read, None while it can
        self.trouble: str | None = None
        self.watchers: Watchers

    async def __aenter__(self) -> ServedTopics:
        async with AsyncExitStack() as stack:
            for threads in (self._questions, self._writes):
                stack.callback(threads.shutdown, wait=False)
            # In a thread, since it may wait for the lock of another process.
            await self._write(self._open)
            stack.push_async_callback(self._write, self._catalog.close)
            # A comparison that is under way uses the catalog until its end.
            stack.push_async_callback(asyncio.to_thread, self._comparisons.shutdown, cancel_futures=True)
            # A lister has one thread from its beginning to its end.
            await self._ask(self._lister.__enter__)
            stack.push_async_callback(self._ask, self._lister.__exit__, None, None, None)
            # Pulsar's own listing follows only events. Any other lister is called again.
            is_driven = self._section.lister.use != "default"
            self.watchers = Watchers(self._catalog, self._lister, self._section, self._ask, is_driven=is_driven)
            stack.callback(self.watchers.close)
            self._opened = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        for look in self._looks.values():
            look.task.cancel()
        await self._opened.aclose()

    def _open(self) -> None:
        with ExitStack() as stack:
            storage = SqliteStorage(self._section.catalog, lock_timeout_s=self._section.lock_timeout_s)
            stack.callback(storage.close)
            self._catalog = Catalog(storage, allowed_label_keys=self._section.allowed_label_keys)
            self._lister = TopicLister(self._part, self._catalog, self._section)
            stack.pop_all()

    async def _ask(self, question: Callable[..., Result], *arguments: object) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._questions, question, *arguments)

    async def _write(self, write: Callable[..., Result], *arguments: object) -> Result:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._writes, write, *arguments)
        except InputError as error:
            raise InputError(f"topics.catalog: {error}") from error

    # Requests

    async def list_topics(self, request: TopicQuery) -> str:
        """Answer a request for topics as JSON.

        Raises:
            NotFoundError: for a namespace that does not exist.
            StateError: if the topics cannot be read, or the lister has only a part of them.
            PulsarLookupError: if the lister refuses.
        """
        await self.require_look(request.namespace)
        return await self._ask(
            lambda: _print_answer(
                self._build_list_answer(request), reads_properties="properties" in self._lister.interests
            )
        )

    async def carry_out(self, operation: CatalogOperation) -> str | None:
        """Carry out an operation on labels or properties. Return the body of its answer, None if there is none.

        Raises:
            NotFoundError: for a topic that does not exist.
            ArgumentError: for pairs that are not allowed.
            PulsarLookupError: as `list_topics` does.
        """
        run = self._ask if isinstance(operation, GetPairs) else self._write
        try:
            return await run(self._carry_out, operation)
        except NotFoundError:
            if self._source is None:
                raise
        # It may have been created since the last look.
        await self._look_from_now(namespace_of(operation.topic))
        return await run(self._carry_out, operation)

    def _build_list_answer(self, request: TopicQuery) -> ListAnswer:
        self._catalog.refresh()
        # One revision, since a lister may read several times, and a list of two may lack a topic that both have.
        with self._catalog.reading():
            return self._lister.answer(request)

    def _carry_out(self, operation: CatalogOperation) -> str | None:
        self._catalog.refresh()
        pairs = apply(operation, self._catalog)
        return None if pairs is None else json.dumps(dict(sorted(pairs.items())), ensure_ascii=False)

    # The cluster

    def jobs(self) -> Sequence[Coroutine[Any, Any, None]]:
        """List the jobs that run in addition to the answers to requests."""
        return self.follow(), self.follow_watched(), self.watchers.follow(), self.watchers.keep_alive()

    async def follow_watched(self) -> None:
        """Check watched topics more often, both writes of other processes and these namespaces of the cluster."""
        reasons: dict[str, str] = {}
        while True:
            began = time.monotonic()
            for namespace in self.watchers.namespaces:
                try:
                    await self._ask(self._catalog.refresh)
                    if self._source is not None:
                        await self._look(namespace)
                        await self._look_at_created(namespace, self._source)
                    reasons.pop(namespace, None)
                except NotFoundError:
                    continue
                # Any error, since without this job watchers would only receive signs of life.
                except Exception as error:  # noqa: BLE001
                    if reasons.get(namespace) != (reason := _describe_error(error)):
                        reasons[namespace] = reason
                        self.watchers.report(namespace, reason)
            # Where a look takes long, four fifths of the time are left to others.
            await asyncio.sleep(max(_WATCHED_S, 4 * (time.monotonic() - began)))

    async def _look_at_created(self, namespace: str, source: AdminRest) -> None:
        """Read the creation times of some topics in turn, since a recreated topic looks the same in a list."""
        names = await self._ask(lambda: self._catalog.topics(namespace, "persistent"))
        here, before = frozenset(names), self._created.get(namespace, {})
        times = self._created[namespace] = {topic: when for topic, when in before.items() if topic in here}
        some = [*islice(chain((topic for topic in names if topic not in times), [*times]), _CREATED)]
        again = []
        for topic in some:
            # A token that may list topics may lack this right, and then the time is unknown.
            with suppress(OSError, ValueError):
                when = await _run_in_daemon(source.creation_time, topic)
                if when is not None and times.pop(topic, when) != when:
                    again.append(topic)
                times |= {} if when is None else {topic: when}
        if again:
            await self._write(make_anew, self._catalog, again)

    async def follow(self) -> None:
        """Look at all namespaces repeatedly, and report errors that stop it. Return at once without a cluster."""
        while self._source is not None and self._collect is not None:
            try:
                trouble = await self._follow_once(self._source)
            # Any error, since without this job the catalog would never change again.
            except Exception as error:  # noqa: BLE001
                trouble = f"namespaces: {_describe_error(error)}"
            if (trouble is None) != (self.trouble is None):
                problem = f"the topics of the cluster cannot be read: {trouble}"
                self._report("the topics of the cluster can be read again" if trouble is None else problem)
            self.trouble = trouble
            await asyncio.sleep(self._collect.topics_every_s)

    async def _follow_once(self, source: AdminRest) -> str | None:
        trouble: str | None = None
        listed = set(await _run_in_daemon(source.namespaces))
        for namespace in sorted(listed.union(await self._ask(self._list_namespaces))):
            try:
                await self._look(namespace, is_listed=namespace in listed)
            except NotFoundError:
                continue
            except StateError as error:
                trouble = str(error)
        return trouble

    async def require_look(self, namespace: str) -> None:
        """Look at a namespace if its topics are not known, or were read too long ago. Errors are those of `_look`."""
        if self._source is None:
            return
        assert self._collect is not None
        looked = self._looked.get(namespace)
        if looked is None or time.monotonic() - looked > self._collect.topics_stale_s:
            await self._look(namespace)

    async def _look_from_now(self, namespace: str) -> None:
        """Look at a namespace without using an earlier look. Errors are those of `_look`."""
        if namespace in self._looks:
            with suppress(NotFoundError):
                await self._look(namespace)
        await self._look(namespace)

    async def _look(self, namespace: str, *, is_listed: bool = True) -> None:
        """Read the topics of a namespace, and bring the catalog up to date, or wait for a look in progress.

        Args:
            is_listed: whether the cluster has named the namespace, as far as is known.
        """
        look = self._looks.get(namespace)
        if look is None:
            look = self._looks[namespace] = _Look()
            look.task = asyncio.create_task(self._read(namespace, look, is_listed=is_listed))
            # If all clients have left, its failure is reported to none of them.
            look.task.add_done_callback(lambda task: task.cancelled() or task.exception())
        look.waiting += 1
        try:
            await asyncio.wait([look.task])
        finally:
            look.waiting -= 1
        look.task.result()

    async def _read(self, namespace: str, look: _Look, *, is_listed: bool) -> None:
        assert self._source is not None
        try:
            async with self._limit:
                if not look.waiting:
                    return
                began = time.monotonic()
                topics = await _run_in_daemon(_topics_of, self._source, namespace)
            # Labels are lost with topics, so this needs a second sign, that the cluster does not name the namespace.
            is_believed, loop = topics is not None or not is_listed, asyncio.get_running_loop()
            arguments = self._catalog, namespace, topics
            if is_believed and not await loop.run_in_executor(self._comparisons, is_mirrored, *arguments):
                await self._write(mirror, self._catalog, namespace, topics)
        # Any error, since clients are answered, and the next round may succeed.
        except Exception as error:
            raise StateError(f"the topics of {namespace} cannot be read: {_describe_error(error)}") from error
        finally:
            del self._looks[namespace]
        if topics is None:
            self._looked.pop(namespace, None)
            raise NotFoundError(f"there is no namespace {shown(namespace)}")
        self._looked[namespace] = began

    def _list_namespaces(self) -> Sequence[str]:
        catalog = self._catalog
        with catalog.reading():
            return [namespace for namespace in catalog.namespaces() if catalog.topics(namespace, "all")]


def _print_answer(answer: ListAnswer, *, reads_properties: bool) -> str:
    # The names are encoded once for each list, however often it is asked for.
    content = {"topicsHash": answer.topics_hash, "changed": answer.changed, "readsProperties": reads_properties}
    return f'{json.dumps(content)[:-1]}, "topics": {answer.topics.json}}}'


def _topics_of(source: AdminRest, namespace: str) -> tuple[str, ...] | None:
    topics = source.topics(namespace)
    if topics is None:
        return None
    names = sorted(topics)
    return tuple(name for name, before in zip(names, chain((None,), names), strict=False) if name != before)


async def _run_in_daemon(question: Callable[..., Result], *arguments: object) -> Result:
    """Ask the cluster in a thread of its own, which the end of the process does not wait for."""
    answer: Future[Result] = Future()
    # From now on it is not cancelled together with its waiting requests.
    answer.set_running_or_notify_cancel()

    def ask() -> None:
        try:
            answer.set_result(question(*arguments))
        # Any error belongs to the requests that wait for the answer.
        except BaseException as error:  # noqa: BLE001
            answer.set_exception(error)

    Thread(target=ask, name="cluster", daemon=True).start()
    return await asyncio.wrap_future(answer)


def _describe_error(error: Exception) -> str:
    return str(error) or type(error).__name__
