"""The protocols of a policy's parts, and of listers, log readers and metrics.

Every part is a frozen dataclass of its parameters, all with defaults, with a `name` in kebab case. Parts are pure. They
do not use a clock, random numbers, I/O, or state outside `view.memory`, so the same arguments give the same answer. The
engine checks every answer. A wrong length, a NaN or a number out of range ends the run for any `on_error`.

A part may declare its reads, `reads: ClassVar[frozenset[str]]` or a property. They are fields of the request (`tenant`,
`properties.rack`, ...), changing parts of the view (`view.load`, `view.ownership`, `view.now`, `view.memory`), and
`view.salt`, which every hashing part mixes into its hash. Its arguments have only those, and requests that agree on
them are decided once. Without the attribute it reads everything. `view.load.rates` and similar names (`LOAD_DETAILS`)
in addition to `view.load` declare which of its figures matter.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
import pluggy
from annotated_types import Ge, Gt, Le, Lt
from numpy.typing import NDArray

from lookup.model.batch import Batch
from lookup.model.broker import Broker, Candidates
from lookup.model.bundles import NamespaceBundle
from lookup.model.catalog import CatalogView, EventKind, Listing, Mode
from lookup.model.decision import CycleOutcome, Proposal, Reason, Ruling, Split
from lookup.model.documents import Refuted, Row, Unreadable
from lookup.model.request import LookupRequest
from lookup.model.view import ClusterView

__all__ = [
    "ALL_READS", "ENTRY_POINT_GROUP", "LOAD_DETAILS", "PROJECT", "Better", "Conf", "Filter", "Ge", "Grain", "Gt", "Le",
    "Lister", "LogReader", "Lt", "Luck", "Metric", "Observing", "Offer", "Part", "Question", "Remembering", "Resample",
    "Scorer", "Selector", "Shedder", "SplitAlgorithm", "Splitter", "Unit", "hookimpl", "reads_of",
]  # fmt: skip


#: Name under which pluggy keeps the project's hooks apart from those of others.
PROJECT = "lookup"
#: Entry-point group through which installed distributions, built-ins included, are found.
ENTRY_POINT_GROUP = "lookup"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@dataclass(frozen=True, slots=True)
class Conf:
    """Marker with the `broker.conf` key that fills a parameter, `*` for all. `scale` converts its unit into ours."""

    key: str
    #: factor from the key's number to the parameter, for example 0.01 for a percentage that becomes a ratio
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Unit:
    """Marker of a parameter that limits bytes or messages per second, which a log of lookups need not know.

    A shedder with a limit in bytes above 0 sees loads in bytes per second if the run knows them. It is reported
    as unable to act if neither these nor the messages it may use instead are known.
    """

    name: Literal["bytes/s", "MiB/s", "messages/s"]
    #: the parameter that switches this limit off by being 0
    switch: str | None = None


#: The reads of a part that declares none.
ALL_READS = frozenset(
    {
        "domain",
        "tenant",
        "namespace",
        "bundle",
        "topic",
        "client",
        "listener",
        "properties",
        "view.load",
        "view.ownership",
        "view.now",
        "view.memory",
        "view.salt",
    }
)


#: Declarations in addition to `view.load`, for a part with figures that not every replay knows, which are rates of
#: messages, single resources, topics and origins. If they are unknown, a warning appears before the run. No figure is
#: hidden from the part, but origins are counted only for parts that declare them.
LOAD_DETAILS = frozenset({"view.load.origins", "view.load.rates", "view.load.resources", "view.load.topics"})

#: The better direction of a metric. "info" is neither and does not get a verdict.
Better = Literal["up", "down", "info"]
#: The unit of one row of the figures behind a metric.
Grain = Literal["lookup", "change", "cell"]
#: The meaning of a row of a metric's sums, which intervals resample. It is a bundle, a cell of time (taken in blocks),
#: a bundle or (rows after the bundles') an event that took bundles from their owners, or none.
Resample = Literal["bundle", "time", "event", "none"]
#: Random sources of a figure, which are the log's lookups, random and hashed placement of bundles, and lost brokers.
Luck = Literal["demand", "placement", "events"]
#: The subject of a verdict, demand as logged, where only placement and events are random, or similar demand redrawn.
Question = Literal["log", "demand"]


class Part(Protocol):
    """Anything a policy is composed of."""

    #: the part's name in settings, kebab case
    name: ClassVar[str]


@runtime_checkable
class Filter(Part, Protocol):
    """Admits brokers to a request or rejects them."""

    #: why it rejects
    reason: ClassVar[Reason]

    def admit(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> Iterable[bool]:
        """Decide for each broker, in order, whether it is kept (true).

        `brokers` are the candidates that earlier filters kept, never empty. A list, an array or a generator is
        accepted. If a generator raises half way, `on_error = "skip"` keeps the rejections so far, as Pulsar does. A
        filter that explains itself also has `detail(request, broker, view) -> str`, called only for `lookup explain`. A
        filter that knows when no broker would gain from an unload also has `should_unload(request, owner, brokers,
        view) -> bool`, called for unloads without destination, with the candidates left by earlier filters.

        A filter that keeps namespaces to their brokers may have `may_admit`, with the arguments and the answer of
        `admit`. It is false for a broker that the filter never admits, for any other candidates or registered brokers.
        """


@runtime_checkable
class Scorer(Part, Protocol):
    """Scores each broker for a request."""

    def score(
        self, request: LookupRequest, brokers: Candidates, view: ClusterView
    ) -> Sequence[float] | NDArray[np.float64]:
        """Compute one number in [0, 1] per broker, in order. The engine adds them up by weight in listed order.

        A request of the engine itself lacks properties. If a property is missing, all brokers get the same number.
        """


@runtime_checkable
class Selector(Part, Protocol):
    """A part that computes the odds of each broker, from which the engine draws."""

    def odds(
        self, request: LookupRequest, brokers: Candidates, scores: NDArray[np.float64], view: ClusterView
    ) -> Sequence[float] | NDArray[np.float64]:
        """Compute one weight >= 0 per broker, in order. The engine normalises them. All zero declines.

        Scores have shape (n_candidates,) and are all 1.0 if the policy does not have scorers. The odds must not
        depend on the order of the candidates, or the selector sets `order_sensitive = True`. A wrapper passes the
        same candidates and scores, or a subset of both, to its children.
        """


class Remembering(Protocol):
    """A scorer or selector that keeps something between decisions, readable as `view.memory`."""

    def remember(self, memory: MutableMapping[str, Any], request: LookupRequest, broker: Broker) -> None:
        """Note an assignment in a JSON-able mapping. Called once per assignment, never by an explanation.

        The mapping is the part's own under its `memory_key` (default: its name) per policy, cluster and seed.
        """


@dataclass(frozen=True, slots=True)
class Offer:
    """The brokers that the filters left when an assignment was decided, and the part's own view of that moment."""

    brokers: Candidates
    view: ClusterView
    #: False for a destination that a cycle of the modular manager has drawn. The bundle may stay with its owner, and
    #: its traffic is not expected at the broker before the next reports
    is_assigned: bool = True


class Observing(Protocol):
    """A scorer or selector that also remembers the offered brokers, not only the chosen one."""

    def observe(self, memory: MutableMapping[str, Any], request: LookupRequest, broker: Broker, offer: Offer) -> None:
        """Note an assignment and its offer. Otherwise it works as `remember`, and is called before it.

        The view is that of the decision, so it does not show the assignment itself.
        """


@runtime_checkable
class Shedder(Part, Protocol):
    """Proposes bundles that their owners should give up, once per grid instant."""

    def propose(self, view: ClusterView, memory: MutableMapping[str, Any]) -> Generator[Proposal, Ruling, CycleOutcome]:
        """Yield proposals, each judged at once and answered, as in `ruling = yield Unload(bundle, source)`.

        An accepted `Unload` is booked and takes place. A `Probe` is judged but not booked. The engine rejects bundles
        that the source does not own, bundles already moved in this cycle or unloaded within the grace period (except
        bundles exchanged for others), and destinations that are not registered or that the policy's filters reject.
        Without destination, a filter with `should_unload` may reject, unless a destination for the bundle was accepted
        in this cycle. Loads in the view stay the same as at the start of the cycle. `memory` outlives the cycle.
        """


@runtime_checkable
class SplitAlgorithm(Part, Protocol):
    """Chooses the hashes at which a bundle is cut."""

    def boundaries(
        self, bundle: NamespaceBundle, topics: NDArray[np.void], positions: Sequence[int] | None
    ) -> Sequence[int]:
        """Compute hashes strictly inside the bundle, ascending, or none if it should stay whole.

        Args:
            topics: the topics in the bundle, an array of `TOPIC_TRAFFIC` (hash, rate, throughput), in any order.
            positions: hashes from an administrator, None in a splitter's cycle.

        Raises:
            InputError: if the algorithm cannot work with `positions`. A splitter counts it as a failure.
        """


@runtime_checkable
class Splitter(Part, Protocol):
    """A part that proposes bundles to divide, once per grid instant. Its child `algorithm` chooses the hashes.

    Scenarios and live brokers split. A replay does not, and applies the splits of the log.
    """

    @property
    def algorithm(self) -> SplitAlgorithm:
        """The part that chooses the hashes at which a bundle is cut."""

    def propose(self, view: ClusterView, memory: MutableMapping[str, Any]) -> Generator[Split, Ruling, CycleOutcome]:
        """Yield splits, each judged at once, as in `ruling = yield Split(bundle, source, boundaries)`.

        An accepted `Split` takes place at once, and children belong to the bundle's owner. The engine rejects bundles
        that the source does not own or that were split in this cycle, and boundaries that do not ascend strictly inside
        the bundle. `view.load.traffic` stays as at the cycle's start. `memory` outlives the cycle.
        """


@runtime_checkable
class Lister(Part, Protocol):
    """A part that lists the topics of a namespace for a client, like PIP-452's `PulsarResourcesExtended`.

    It is a frozen dataclass like every part. A class that inherits from this protocol has an empty `initialize`
    and `close`. The framework removes system topics, applies the client's pattern and computes the hash, so a
    lister need not. A program with threads may call it in several of them at the same time.
    """

    @property
    def interests(self) -> frozenset[EventKind]:
        """The kinds of events that may change the answer. A watch calls the lister again after these."""

    def list_topics(self, namespace: str, mode: Mode, properties: Mapping[str, str], catalog: CatalogView) -> Listing:
        """List a namespace's topics in any order, with partitions as separate names.

        Args:
            properties: properties of the client's request, checked and bounded. Without any, topics are not filtered.
            catalog: the existing topics at one instant.

        Returns:
            The names, with `partial=True` if some could not be found. The framework reports that as a failure, since
                clients drop subscriptions on topics that a list lacks.
        """

    def initialize(self, catalog: CatalogView) -> None:
        """Prepare for requests. Called once, before the first."""
        return

    def close(self) -> None:
        """Release the resources of `initialize`. Called once, after the last request."""
        return


@runtime_checkable
class LogReader(Part, Protocol):
    """Turns the lines of one source into canonical rows."""

    def parse(self, lines: Iterator[tuple[int, str]], source: str) -> Iterator[Row | Unreadable | Refuted]:
        """Yield rows and unreadable records in the order of the source, and refutations of rows of other sources.

        Args:
            lines: numbered from 1, without line ends.
            source: the file's path, for readers that take a date or a cluster from it.
        """


@runtime_checkable
class Metric(Part, Protocol):
    """A figure that adds up, with sums per unit for intervals, and a value of their totals.

    Every parameter has a default, and one metric is created from each class. A class may list all possible keys
    in `every_key`, a tuple of texts, and the random sources of its figure in `luck`, a tuple of `Luck`, by
    default its rows and the placement. `bounds`, a pair of numbers, is the range of its figure. `question`, a
    `Question`, is the subject of its verdicts, "log" for figures that must not get worse on any log, else
    "demand". Batches are shared with all other metrics and are read-only.
    """

    #: unit of the value: "ratio", "ms", "lookups", ...
    unit: ClassVar[str]
    #: which direction is better
    better: ClassVar[Better]
    #: the counted rows. Batches without any change or cell are skipped for a metric that counts those
    grain: ClassVar[Grain]
    #: the meaning of a row of its sums, one of the batch's bundles, cells, or bundles and events, or the metric's own
    resample: ClassVar[Resample]

    def keys(self, batch: Batch) -> Sequence[str | None]:
        """List the keys of the metric's numbers, `(None,)` for a single number, or none if it cannot be computed."""

    def accumulate(self, batch: Batch, key: str | None) -> NDArray[np.float64]:
        """Compute finite sums of shape (n_units, k), one row per bundle or cell. Sums of several batches add up.

        k is at least 1 and the same for all batches. The last column is the reference of a relative figure, and
        units count in its proportion. If `resample` is "event", the batch's events follow its bundles in the rows.
        A change that an event caused counts for the event.
        """

    def value(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute values of shape (...) from totals of shape (..., k), NaN if nothing was measured, never inf.

        If `resample` is none, nothing is totalled first. The argument is then the whole (n_units, k) array, whose
        rows have the metric's own meaning, and the answer is one number.
        """


def reads_of(part: object) -> frozenset[str]:
    """Find the declared reads of a part, or all reads if it does not declare any."""
    declared = getattr(part, "reads", ALL_READS)
    return frozenset(declared)
