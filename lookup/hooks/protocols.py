"""The protocols a policy's parts follow, and those of listers, log readers and metrics.

Every part is a frozen dataclass of its parameters, all with defaults, with a `name` in kebab case. Parts are pure: no
clock, no dice, no I/O, no state outside `view.memory`; the same arguments give the same answer. The engine checks every
answer; a wrong length, a NaN or a number out of range ends the run whatever `on_error` says.

A part may declare what it reads, `reads: ClassVar[frozenset[str]]` or a property: fields of the request (`tenant`,
`properties.rack`, ...) and changing parts of the view (`view.load`, `view.ownership`, `view.now`, `view.memory`),
and `view.salt`, which every part that hashes mixes into its hash. Its arguments have only those, and requests that
agree on them are decided once. Without the attribute it reads everything. `view.load.rates` and the like
(`LOAD_DETAILS`) beside `view.load` say which of its figures matter.
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
    """Name the key of Pulsar's `broker.conf` that fills a parameter, `*` for all; `scale` turns its unit into ours."""

    key: str
    #: the parameter is the key's number times this; 0.01 for a percentage that becomes a ratio
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Unit:
    """Say that a parameter is a limit in bytes or messages per second, which a log of lookups need not know.

    A shedder with a limit in bytes above 0 sees loads in bytes per second if the run knows them, and is reported as
    unable to act if neither these nor the messages it may use instead are known.
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


#: Declarations beside `view.load` of a part that uses figures which not every replay knows: rates of messages, single
#: resources, topics, origins. If they are unknown, a warning says so before the run; nothing is hidden from the part,
#: but origins are counted for those that declare them only.
LOAD_DETAILS = frozenset({"view.load.origins", "view.load.rates", "view.load.resources", "view.load.topics"})

#: The better direction of a metric; "info": neither, it gets no verdict.
Better = Literal["up", "down", "info"]
#: The unit of one row of the figures behind a metric.
Grain = Literal["lookup", "change", "cell"]
#: What a row of a metric's sums is, and what intervals vary: a bundle, a cell of time (taken in blocks), a bundle or
#: (rows behind the bundles') an event that took bundles from their owners, or nothing that could be varied.
Resample = Literal["bundle", "time", "event", "none"]
#: Sources of luck in a figure: the lookups that came, the places that dice and hashes gave bundles, the brokers lost.
Luck = Literal["demand", "placement", "events"]
#: What a verdict may be about: the demand as it was, so that only luck of placement and events is luck, or demand like
#: this, drawn again.
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
        """Answer once per broker, in order: true keeps it.

        `brokers` are those the filters before this one kept; never empty. A list, an array or a generator will do; of a
        generator that raises half way, `on_error = "skip"` keeps the rejections so far, as Pulsar does. A filter that
        wants to explain itself also has `detail(request, broker, view) -> str`, called only for `lookup explain`. One
        that knows when no broker would gain if a bundle left its owner also has `should_unload(request, owner,
        brokers, view) -> bool`, asked about unloads without destination; `brokers` are those left before it.

        One that keeps namespaces to their brokers may have `may_admit`, with the arguments and the answer of `admit`:
        false of a broker that it never admits, whichever others are candidates or registered.
        """


@runtime_checkable
class Scorer(Part, Protocol):
    """Scores each broker for a request."""

    def score(
        self, request: LookupRequest, brokers: Candidates, view: ClusterView
    ) -> Sequence[float] | NDArray[np.float64]:
        """Return one number in [0, 1] per broker, in order; the engine adds them up by weight in listed order.

        A request of the engine itself has no properties: if one is missing, all brokers get the same number.
        """


@runtime_checkable
class Selector(Part, Protocol):
    """States the odds with which each broker is chosen; the engine rolls the dice."""

    def odds(
        self, request: LookupRequest, brokers: Candidates, scores: NDArray[np.float64], view: ClusterView
    ) -> Sequence[float] | NDArray[np.float64]:
        """Return one weight >= 0 per broker, in order; the engine normalises; all zero declines the request.

        Scores have shape (n_candidates,) and are all 1.0 if the policy has no scorers. The odds must not depend on
        the order of the candidates; a selector that cannot help it says `order_sensitive = True`. A wrapper passes
        the same candidates and scores, or a subset of both, to its children.
        """


class Remembering(Protocol):
    """A scorer or selector that keeps something between decisions, readable as `view.memory`."""

    def remember(self, memory: MutableMapping[str, Any], request: LookupRequest, broker: Broker) -> None:
        """Note an assignment in a JSON-able mapping; called once per assignment, never by an explanation.

        The mapping is the part's own under its `memory_key` (default: its name) per policy, cluster and seed.
        """


@dataclass(frozen=True, slots=True)
class Offer:
    """The brokers that the filters left when an assignment was decided, and the part's own view of that moment."""

    brokers: Candidates
    view: ClusterView
    #: False of a destination that a cycle of the modular manager has drawn: the bundle may stay where it is, and its
    #: traffic is not expected at the broker before the next reports
    is_assigned: bool = True


class Observing(Protocol):
    """A scorer or selector that keeps something of what it was asked about, not only of who was chosen."""

    def observe(self, memory: MutableMapping[str, Any], request: LookupRequest, broker: Broker, offer: Offer) -> None:
        """Note an assignment and what was offered for it; as `remember` otherwise, and called before it.

        The view is the one the decision was taken on: it does not show the assignment itself.
        """


@runtime_checkable
class Shedder(Part, Protocol):
    """Proposes bundles that their owners should give up, once per grid instant."""

    def propose(self, view: ClusterView, memory: MutableMapping[str, Any]) -> Generator[Proposal, Ruling, CycleOutcome]:
        """Yield proposals; each is judged at once and answered: `ruling = yield Unload(bundle, source)`.

        An accepted `Unload` is booked and takes place; a `Probe` is judged but not booked. The engine refuses bundles
        the source does not own, bundles already moved in this cycle or unloaded within the grace period (but for those
        that go in exchange for another), and destinations that are not registered or that the policy's filters reject.
        Without destination, a filter that has `should_unload` may refuse, unless a destination for the bundle was
        accepted in this cycle. Loads in the view stay those of the start of the cycle. `memory` outlives the cycle.
        """


@runtime_checkable
class SplitAlgorithm(Part, Protocol):
    """Chooses the hashes at which a bundle is cut."""

    def boundaries(
        self, bundle: NamespaceBundle, topics: NDArray[np.void], positions: Sequence[int] | None
    ) -> Sequence[int]:
        """Return hashes strictly inside the bundle, ascending; none if it should stay whole.

        Args:
            topics: the topics in the bundle, an array of `TOPIC_TRAFFIC` (hash, rate, throughput), in any order.
            positions: hashes an administrator asked for; None in a splitter's cycle.

        Raises:
            InputError: if the algorithm cannot work with `positions`; a splitter takes it for a failure.
        """


@runtime_checkable
class Splitter(Part, Protocol):
    """Proposes bundles to divide, once per grid instant; its child `algorithm` chooses the hashes.

    Scenarios and live brokers split; a replay does not, it honours the splits of the log.
    """

    @property
    def algorithm(self) -> SplitAlgorithm:
        """The part that chooses the hashes at which a bundle is cut."""

    def propose(self, view: ClusterView, memory: MutableMapping[str, Any]) -> Generator[Split, Ruling, CycleOutcome]:
        """Yield splits; each is judged at once and answered: `ruling = yield Split(bundle, source, boundaries)`.

        An accepted `Split` takes place at once: the children belong to the bundle's owner. The engine refuses bundles
        the source does not own or that were split in this cycle, and boundaries that do not ascend strictly inside the
        bundle. `view.load.traffic` stays that of the start of the cycle. `memory` outlives the cycle.
        """


@runtime_checkable
class Lister(Part, Protocol):
    """Lists the topics of a namespace for a client: PIP-452's `PulsarResourcesExtended`.

    A frozen dataclass like every part; one that inherits from this protocol has an empty `initialize` and `close`. The
    framework removes system topics, applies the client's pattern and computes the hash: a lister need not. A program
    with threads may ask it in several at the same time.
    """

    @property
    def interests(self) -> frozenset[EventKind]:
        """The kinds of events after which the answer may be another; a watch asks again on these."""

    def list_topics(self, namespace: str, mode: Mode, properties: Mapping[str, str], catalog: CatalogView) -> Listing:
        """Return the names of a namespace's topics in any order, partitions as names of their own.

        Args:
            properties: what the client sent with its request, checked and bounded; empty asks for no filtering.
            catalog: the topics there are, at one instant.

        Returns:
            The names; `partial=True` if some could not be had, which the framework reports as a failure, since clients
            drop subscriptions on topics that a list lacks.
        """

    def initialize(self, catalog: CatalogView) -> None:
        """Prepare for requests; called once, before the first."""
        return

    def close(self) -> None:
        """Let go of what `initialize` took; called once, after the last request."""
        return


@runtime_checkable
class LogReader(Part, Protocol):
    """Turns the lines of one source into canonical rows."""

    def parse(self, lines: Iterator[tuple[int, str]], source: str) -> Iterator[Row | Unreadable | Refuted]:
        """Yield rows and unreadable records in the order of the source, and what refutes rows of other sources.

        Args:
            lines: numbered from 1, without line ends.
            source: the file's path, for readers that take a date or a cluster from it.
        """


@runtime_checkable
class Metric(Part, Protocol):
    """A figure of merit that adds up: sums per unit that intervals vary, and a value of their totals.

    Every parameter has a default: one metric is made of each class. A class may list all keys it can ever have in
    `every_key`, a tuple of texts, and in `luck`, a tuple of `Luck`, what varies its figure; without it, its rows and
    the placement do. `bounds`, a pair of numbers, says between what its figure lies, and `question`, a `Question`, what
    its verdicts are about: "log" for what must not be lost on any log, else "demand". Batches are shared with all other
    metrics and cannot be written into.
    """

    #: unit of the value: "ratio", "ms", "lookups", ...
    unit: ClassVar[str]
    #: which direction is better
    better: ClassVar[Better]
    #: what it counts; batches without any change or cell are not shown to a metric that counts those
    grain: ClassVar[Grain]
    #: what a row of its sums is: one of the batch's bundles, its cells, its bundles and events, or its own business
    resample: ClassVar[Resample]

    def keys(self, batch: Batch) -> Sequence[str | None]:
        """Return the keys of the metric's numbers, `(None,)` if it has one number; empty if it cannot be computed."""

    def accumulate(self, batch: Batch, key: str | None) -> NDArray[np.float64]:
        """Return finite sums of shape (n_units, k), one row per bundle or cell; sums of several batches add up.

        k is at least 1 and the same for all batches. The last column is what the figure is relative to, if anything:
        units count in its proportion. If `resample` is "event", rows are the batch's bundles and,
        behind them, its events: a change that an event caused counts for the event.
        """

    def value(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn totals of shape (..., k) into values of shape (...), NaN if there is nothing to measure, never inf.

        If `resample` is none, nothing is totalled first: the argument is the whole (n_units, k) array, whose rows
        then mean what the metric likes, and the answer one number.
        """


def reads_of(part: object) -> frozenset[str]:
    """Return the declared reads of a part, everything if it declares nothing."""
    declared = getattr(part, "reads", ALL_READS)
    return frozenset(declared)
