"""Serve the topics of a cluster: a catalog that follows the cluster, a lister over it, labels and properties.

All that touches the catalog runs in one thread of its own, request by request, so that neither a long list nor a slow
disk holds up a decision. A list is answered as a whole or refused: many clients give up the topics that a list lacks.
"""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Protocol, TypeAlias, TypeVar

from lookup.engine.build import build_lister
from lookup.engine.plugins import load_plugins
from lookup.errors import ArgumentError, NotFoundError, PluginError, PulsarLookupError, SettingsError, StateError
from lookup.model.catalog import TopicEntry
from lookup.model.quoting import shown
from lookup.settings import CollectSection, ServingFile
from lookup.topics.catalog import Catalog, SqliteStorage
from lookup.topics.catalog.naming import namespace_of, without_partition
from lookup.topics.listing import ListRequest, TopicLister
from lookup.topics.listing.listers import interests_of
from lookup.topics.listing.rest import GetPairs, ListTopics, Operation, RemovePairs, SetPairs, print_map
from lookup.topics.rules import list_limits

__all__ = ["Reach", "ServedTopics", "TopicSource", "served_topics"]

Result = TypeVar("Result")


class TopicSource(Protocol):
    """The topics of a live cluster; every question may raise OSError, ValueError or InputError."""

    def namespaces(self) -> Sequence[str]:
        """Return the names of all namespaces."""

    def topics(self, namespace: str) -> Sequence[str]:
        """Return all topics of a namespace, in no order; HTTPError 404: there is no such namespace."""


#: Makes the source of topics.
Reach: TypeAlias = Callable[[CollectSection], TopicSource]


def served_topics(settings: ServingFile, reach: Reach, report: Callable[[str], None]) -> ServedTopics | None:
    """Build the lister that settings choose, and what serves it; None if they have no table of topics.

    Raises:
        SettingsError: if the lister cannot be built.
        InputError: for a file of the settings that is not what it should be.
    """
    if settings.topics is None:
        return None
    collect = settings.collect if settings.collect is not None and settings.collect.admin is not None else None
    return ServedTopics(settings, None if collect is None else reach(collect), report)


class ServedTopics:
    """A catalog and its lister; use it as an asynchronous context, which opens and closes the catalog.

    Args:
        source: the cluster that the catalog follows; None: it holds what is written to it.
        report: takes a sentence for the operator.

    Raises:
        SettingsError: if the lister cannot be built.
    """

    def __init__(self, settings: ServingFile, source: TopicSource | None, report: Callable[[str], None]) -> None:
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
        self._thread = ThreadPoolExecutor(1, "catalog")
        self._catalog: Catalog
        self._lister: TopicLister
        #: one look at a time: an older answer of the cluster must not undo a newer one
        self._looking = asyncio.Lock()
        #: namespace -> when it was looked at last, by the monotonic clock
        self._looked: dict[str, float] = {}
        #: why the cluster cannot be read; None while it can
        self.trouble: str | None = None

    async def __aenter__(self) -> ServedTopics:
        await self._run(self._open)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._run(self._close)
        self._thread.shutdown()

    def _open(self) -> None:
        # In its own thread: it may wait for the lock of another process.
        storage = SqliteStorage(self._section.catalog, lock_timeout_s=self._section.lock_timeout_s)
        self._catalog = Catalog(storage, allowed_label_keys=self._section.allowed_label_keys)
        self._lister = TopicLister(self._part, self._catalog, list_limits(self._section))
        self._lister.__enter__()

    def _close(self) -> None:
        try:
            self._lister.__exit__(None, None, None)
        finally:
            self._catalog.close()

    async def _run(self, work: Callable[..., Result], *arguments: object) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    # Requests

    async def listed(self, request: ListRequest) -> str:
        """Return the answer to a request for topics, as JSON.

        Raises:
            NotFoundError: for a namespace that does not exist.
            StateError: if the topics are not known, or the lister has a part of them only.
            PulsarLookupError: as the lister refuses.
        """
        await self._require_look(request.namespace)
        return await self._run(self._list, request)

    async def carried_out(self, operation: Operation) -> str | None:
        """Carry out a request of the admin API; return the body of its answer, None if that has none.

        Raises:
            NotFoundError: for a namespace or topic that does not exist.
            ArgumentError: for pairs that are not allowed, and for a bundle.
            PulsarLookupError: as `listed` does.
        """
        if isinstance(operation, ListTopics):
            await self._require_look(operation.namespace)
        try:
            return await self._run(self._carry_out, operation)
        except NotFoundError:
            if isinstance(operation, ListTopics) or self._source is None:
                raise
        # It may have been created since the last look.
        await self._look(namespace_of(operation.topic))
        return await self._run(self._carry_out, operation)

    async def labels_in(self, namespace: str) -> str:
        """Return every key of a label in a namespace with its values, as JSON."""
        await self._require_look(namespace)
        return await self._run(self._labels_in, namespace)

    def _list(self, request: ListRequest) -> str:
        self._catalog.refresh()
        answer = self._lister.answer(request)
        # The names are encoded once for each list, however often it is asked for.
        content = {
            "topicsHash": answer.topics_hash,
            "filtered": answer.filtered,
            "changed": answer.changed,
            "readsProperties": "properties" in self._lister.interests,
        }
        return f'{json.dumps(content)[:-1]}, "topics": {answer.topics.json}}}'

    def _labels_in(self, namespace: str) -> str:
        self._catalog.refresh()
        return json.dumps({key: list(values) for key, values in self._catalog.labels_in(namespace).items()})

    def _carry_out(self, operation: Operation) -> str | None:
        catalog = self._catalog
        catalog.refresh()
        match operation:
            case ListTopics():
                if operation.bundle is not None:
                    raise ArgumentError("topics are not listed by bundle here; leave it out")
                return self._lister.answer(operation).topics.json
            case GetPairs(kind, topic):
                return print_map(kind.read(catalog.meant_by(topic)[0]))
            case SetPairs(kind, topic, pairs):
                kind.write(catalog, topic, pairs)
            case RemovePairs(kind, topic, keys, everything):
                kind.remove(catalog, topic, keys, everything)
        return None

    # The cluster

    async def follow(self) -> None:
        """Look at all namespaces again and again, and report what stops it; return at once if there is no cluster."""
        while self._source is not None and self._collect is not None:
            trouble: str | None = None
            listed: set[str] = set()
            namespaces: list[str] = []
            try:
                listed = set(await asyncio.to_thread(self._source.namespaces))
                namespaces = sorted(listed.union(await self._run(self._known)))
            except (OSError, ValueError, PulsarLookupError) as error:
                trouble = f"namespaces: {error}"
            for namespace in namespaces:
                try:
                    await self._look(namespace, is_listed=namespace in listed)
                except NotFoundError:
                    continue
                except PulsarLookupError as error:
                    trouble = str(error)
            if (trouble is None) != (self.trouble is None):
                what = f"the topics of the cluster cannot be read: {trouble}"
                self._report("the topics of the cluster can be read again" if trouble is None else what)
            self.trouble = trouble
            await asyncio.sleep(self._collect.topics_every_s)

    async def _require_look(self, namespace: str) -> None:
        """Look at a namespace if its topics are not known, or were read too long ago; errors as of `_look`."""
        if self._source is not None and not self._is_fresh(namespace):
            await self._look(namespace, is_needed=lambda: not self._is_fresh(namespace))

    def _is_fresh(self, namespace: str) -> bool:
        looked = self._looked.get(namespace)
        assert self._collect is not None
        return looked is not None and time.monotonic() - looked <= self._collect.topics_stale_s

    async def _look(
        self, namespace: str, *, is_listed: bool = True, is_needed: Callable[[], bool] = lambda: True
    ) -> None:
        """Read the topics of a namespace, and bring the catalog up to date.

        Args:
            is_listed: whether the cluster has named the namespace, as far as is known.
            is_needed: asked after earlier looks have ended, one of which may have been at this namespace.

        Raises:
            NotFoundError: if there is no such namespace.
            StateError: if the cluster cannot be read; the catalog stays as it is.
            InputError: if the catalog cannot be written.
        """
        source = self._source
        assert source is not None
        async with self._looking:
            if not is_needed():
                return
            began = time.monotonic()
            try:
                topics = await asyncio.to_thread(source.topics, namespace)
            except (OSError, ValueError) as error:
                if not isinstance(error, urllib.error.HTTPError) or error.code != 404:
                    raise StateError(f"the topics of {namespace} cannot be read: {error}") from None
                self._looked.pop(namespace, None)
                # With its topics go their labels: a cluster that does not name the namespace either has said it twice.
                if not is_listed:
                    await self._run(self._take, namespace, None)
                raise NotFoundError(f"there is no namespace {shown(namespace)}") from None
            await self._run(self._take, namespace, topics)
            self._looked[namespace] = began

    def _known(self) -> Sequence[str]:
        return [namespace for namespace in self._catalog.namespaces() if self._catalog.topics(namespace, "all")]

    def _take(self, namespace: str, topics: Sequence[str] | None) -> None:
        """Give a namespace of the catalog the topics that the cluster has; those that stay keep their pairs.

        Args:
            topics: in no order; None: the namespace is gone.
        """
        catalog = self._catalog
        catalog.refresh()
        is_known = namespace in catalog.namespaces()
        if topics is None:
            if is_known:
                catalog.delete_namespace(namespace)
            return
        before, after = set(catalog.topics(namespace, "all")) if is_known else set(), set(topics)
        if before == after and is_known:
            return
        with catalog.together():
            catalog.create_namespace(namespace)
            # Removed first: a topic that was deleted and made again with partitions is another one.
            for topic in before - after:
                catalog.mirror(topic, None)
            for topic in sorted(after - before):
                # A new partition has what its topic has.
                siblings = catalog.parts(without_partition(topic))
                like = catalog.entry(siblings[0]) if siblings else None
                entry = TopicEntry(topic, {}, {}, is_loaded=False)
                catalog.mirror(topic, entry if like is None else replace(like, name=topic, is_loaded=False))
