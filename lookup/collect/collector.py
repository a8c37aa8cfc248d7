"""Record a live cluster until it is stopped. Sources feed an observer, whose rows go to files.

The rows of an interval wait in memory and are written together. A crash loses at most the rows of one interval. Changes
of ownership among them are read again from the state topic when the record continues.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from queue import Empty, Queue
from threading import Event

import pulsar

from lookup.collect import observing
from lookup.collect.folder import RecordFolder
from lookup.collect.sources import (
    AdminRest,
    AdminSource,
    Credentials,
    PulsarTopicSource,
    RegistrySource,
    Source,
    now_us,
    pulsar_client,
    reason_of,
)
from lookup.errors import Argument, InputError, Sentence
from lookup.logs.readers.system_topics import BROKER_LOAD_TOPIC, STATE_TOPIC, TOP_BUNDLES_TOPIC
from lookup.model.names import cluster_problem, endpoint_problem
from lookup.model.time import time_text

__all__ = ["READABLE", "CollectReport", "Endpoints", "asked_name", "collect", "reading"]

#: Maximum number of messages between the sources and the observer. A source waits when there are as many.
_MOST_WAITING = 10_000
#: Seconds within which a request to stop is noticed.
_PATIENCE_S = 0.2
#: Rows of a table after which it is written before its time.
_MOST_ROWS = 50_000


@dataclass(frozen=True, slots=True)
class Endpoints:
    """A cluster and its addresses. Sources without an address are not recorded.

    Raises:
        InputError: if an address is not valid.
    """

    #: its name, None to read it from the admin REST
    cluster: str | None = None
    admin: str | None = None
    service_url: str | None = None
    zookeeper: str | None = None
    credentials: Credentials = Credentials()

    def __post_init__(self) -> None:
        for name in ("admin", "service_url", "zookeeper"):
            text = getattr(self, name)
            problem = None if text is None else endpoint_problem(name, text)
            if problem is not None:
                raise InputError(Argument(name), f": {problem}")

    @property
    def missing(self) -> list[str]:
        """A sentence for each missing source, with the data that the record will lack."""
        lacks = {
            "zookeeper": "BROKERS will lack lookup properties"
            if self.admin is not None
            else "there will be no BROKERS, and no lookup properties",
            "service_url": "there will be no OWNERSHIP, LOADS and BUNDLES",
            "admin": "there will be no namespaces.toml and no splits of a time that was not recorded",
        }
        return [
            Sentence("without ", Argument(name), f" {lack}") for name, lack in lacks.items() if not getattr(self, name)
        ]


@dataclass(frozen=True)
class CollectReport:
    """The result of a recording."""

    output: str
    cluster: str
    #: rows written, by table
    rows: Mapping[str, int]
    #: messages that were left out because they are not in Pulsar's form, by source, and the latest reason of each
    refused: Mapping[str, int]
    reasons: Mapping[str, str]
    #: rows lost because nothing could be written, by table
    lost: Mapping[str, int]
    #: end of the continued record, µs, None for a new record
    gap_since_us: int | None


def collect(
    endpoints: Endpoints,
    output: str,
    stop: Event,
    *,
    for_s: float | None = None,
    every_s: float = 60.0,
    warn: Callable[[str], None],
) -> CollectReport:
    """Record a cluster until `stop` is set or the time is over.

    Args:
        output: a new folder, or one with a record of this cluster, which is continued.
        for_s: seconds, None until it is stopped.
        every_s: seconds between files.
        warn: called with a sentence about missing data, and about sources that fail or work again.

    Raises:
        InputError: if the cluster's name is not known, or the output cannot be a record of it.
    """
    rest = None if endpoints.admin is None else AdminRest(endpoints.admin, endpoints.credentials)
    name = endpoints.cluster or asked_name(rest)
    problem = cluster_problem(name)
    if problem is not None:
        raise InputError(problem)
    with RecordFolder(output) as folder:
        past = folder.past(name)
        observer = observing.Observer(name, past, has_state=endpoints.service_url is not None)
        recording = _Recording(folder, observer, warn=warn)
        recording.begin(past.until_us)
        with reading(endpoints, rest, name) as records:
            recording.run(records, stop, for_s=for_s, every_s=every_s)
        recording.end()
        return CollectReport(
            output=output,
            cluster=name,
            rows={table: recording.written[table] for table in observer.pending if table != "journal"},
            refused=dict(observer.refused),
            reasons=observer.reasons,
            # Rows that waited in memory for the disk are lost as well.
            lost=dict(observer.lost + Counter({table: len(rows) for table, rows in observer.pending.items()})),
            gap_since_us=past.until_us,
        )


def asked_name(rest: AdminRest | None) -> str:
    """Read the cluster's name from the admin REST."""
    name = Argument("cluster")
    if rest is None:
        raise InputError(name, " must be given where there is no ", Argument("admin"), " to ask")
    try:
        return rest.cluster()
    except (OSError, ValueError, InputError) as error:
        raise InputError(name, f" must be given, since it cannot be asked for: {reason_of(error)}") from None


@contextmanager
def reading(endpoints: Endpoints, rest: AdminRest | None, cluster: str) -> Iterator[Queue[observing.Record]]:
    """Start the sources of a cluster, yield the queue of their records, and stop them at the end."""
    records: Queue[observing.Record] = Queue(_MOST_WAITING)
    with ExitStack() as stack:
        sources, client = _build_sources(endpoints, rest, cluster, records)
        # At the end all are stopped, then joined, in reverse. A process that ends while the library waits is aborted.
        for source in sources:
            stack.callback(source.join, 5.0)
        if client is not None:
            stack.callback(client.close)
        for source in sources:
            stack.callback(source.stopped.set)
            source.start()
        yield records


def _build_sources(
    endpoints: Endpoints, rest: AdminRest | None, cluster: str, records: Queue[observing.Record]
) -> tuple[list[Source], pulsar.Client | None]:
    sources: list[Source] = []
    client: pulsar.Client | None = None
    if endpoints.zookeeper is not None:
        sources.append(RegistrySource(endpoints.zookeeper, records, endpoints.credentials))
    if rest is not None:
        sources.append(AdminSource(rest, records, cluster, lists_brokers=endpoints.zookeeper is None))
    if endpoints.service_url is not None:
        client = pulsar_client(endpoints.service_url, endpoints.credentials)
        topics = (STATE_TOPIC, BROKER_LOAD_TOPIC, TOP_BUNDLES_TOPIC)
        sources.extend(PulsarTopicSource(topic, client, records) for topic in topics)
    return sources, client


@dataclass
class _Recording:
    """A run, which is an observer and the folder of its rows."""

    folder: RecordFolder
    observer: observing.Observer
    warn: Callable[[str], None]
    written: Counter[str] = field(default_factory=Counter)
    _troubles: dict[str, str] = field(default_factory=dict)
    _failure: str | None = None

    def begin(self, until_us: int | None) -> None:
        """Mark the start, and the gap since the record that goes on."""
        now = now_us()
        self.observer.note("started", now)
        if until_us is not None:
            self.observer.note("gap", now, since_us=until_us)
            self.warn(f"the record goes on; nothing was recorded from {time_text(until_us)} until now")
        self._write()

    def run(self, records: Queue[observing.Record], stop: Event, *, for_s: float | None, every_s: float) -> None:
        """Process records and write files until it is time to end."""
        began = time.monotonic()
        write_at = began + every_s
        while not stop.is_set() and (for_s is None or time.monotonic() < began + for_s):
            with suppress(Empty):
                self.observer.take(records.get(timeout=_PATIENCE_S))
            self._report_troubles()
            is_full = any(len(rows) >= _MOST_ROWS for rows in self.observer.pending.values())
            if time.monotonic() >= write_at or (is_full and self._failure is None):
                self._write()
                write_at = time.monotonic() + every_s
        while not records.empty():
            self.observer.take(records.get_nowait())

    def end(self) -> None:
        self.observer.note("stopped", now_us())
        self._write()

    def _write(self) -> None:
        """Write the waiting rows. Rows that cannot be written continue to wait."""
        now, file = now_us(), ""
        try:
            for file, rows in self.observer.pending.items():
                if rows:
                    self.folder.write(file, rows, until_us=now, position=self.observer.position)
                    self.written[file] += len(rows)
                    rows.clear()
            file = "namespaces.toml"
            self.folder.write_namespaces(self.observer.first_boundaries)
        except OSError as error:
            if self._failure is None:
                problem = f": {self.folder.path}/{file} cannot be written, rows wait in memory: {error}"
                self.warn(Sentence(Argument("output"), problem))
            self._failure = str(error)
        else:
            if self._failure is not None:
                self.warn(f"{self.folder.path} can be written again")
            self._failure = None

    def _report_troubles(self) -> None:
        troubles = self.observer.troubles
        for source in [*self._troubles.keys() - troubles.keys()]:
            del self._troubles[source]
            self.warn(f"{READABLE[source]} can be read again")
        for source in troubles.keys() - self._troubles.keys():
            self._troubles[source] = troubles[source]
            self.warn(f"{READABLE[source]} cannot be read, and is tried again: {troubles[source]}")


#: Sources, as sentences name them.
READABLE = {
    "zookeeper": "the registry in ZooKeeper",
    "admin": "the admin REST",
    "state": "the state topic",
    "loads": "the topic of load reports",
    "bundles": "the topic of top bundles",
}
