"""Reasons, decisions, proposals of shedders and splitters, and the engine's rulings on them.

A rejection is data, never an exception. `Reason` is the closed list of rejections.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

from lookup.model.broker import BrokerLookupData
from lookup.model.bundles import BundleRange, NamespaceBundle

__all__ = [
    "CYCLE_WORDS", "Assigned", "BrokerVote", "CycleLabel", "CycleOutcome", "CycleReason", "Decision", "Probe",
    "Proposal", "Reason", "Ruling", "Shortfall", "Split", "Unanswered", "Unload",
]  # fmt: skip


class Reason(StrEnum):
    """Reasons why a broker is not offered, a request not answered or a proposal not accepted."""

    #: the broker runs another load manager class
    LOAD_MANAGER_CLASS = "load-manager-class"
    #: the broker holds as many topics as it may
    MAX_TOPICS = "max-topics"
    #: a later broker version is preferred
    VERSION = "version"
    #: an isolation policy, or the kind of topic the broker does not serve
    ISOLATION = "isolation"
    #: another broker or failure domain holds fewer bundles of the anti-affinity group
    ANTI_AFFINITY = "anti-affinity"
    #: another broker holds fewer bundles of the namespace
    EVEN_DISTRIBUTION = "even-distribution"
    #: a filter of a third party rejected it
    FILTERED = "filtered"
    #: no broker is registered, or none was left to choose from
    NO_CANDIDATES = "no-candidates"
    #: the selector gave every candidate weight zero
    NO_ODDS = "no-odds"
    #: a part failed and the policy is fail-closed
    POLICY_ERROR = "policy-error"
    #: a read-only lookup of a bundle that no broker owns
    READ_ONLY = "read-only"
    #: shedding, if the named source does not own the bundle
    NOT_OWNER = "not-owner"
    #: shedding, if the bundle was already moved in this cycle
    MOVED_THIS_CYCLE = "moved-this-cycle"
    #: shedding, if the bundle was unloaded within the grace period
    GRACE_PERIOD = "grace-period"
    #: the broker in a pinned bundle's name is not registered, or for shedding the destination is not
    NOT_REGISTERED = "not-registered"
    #: shedding, if a filter of the policy rejects the destination
    DESTINATION_FILTERED = "destination-filtered"
    #: shedding, if the policy would give the bundle to its owner again
    OWNER_CHOSEN = "owner-chosen"
    #: shedding, if the bundle belongs to a system namespace
    SYSTEM_NAMESPACE = "system-namespace"
    #: shedding, if the policy does not shed bundles of this namespace
    EXCLUDED_NAMESPACE = "excluded-namespace"
    #: splitting, if the bundle was already split in this cycle
    SPLIT_THIS_CYCLE = "split-this-cycle"
    #: splitting, if a boundary does not lie strictly inside the bundle, or boundaries do not ascend
    BAD_BOUNDARY = "bad-boundary"


@dataclass(frozen=True, slots=True)
class BrokerVote:
    """One broker in a decision, either rejected with a reason or scored and given a probability."""

    broker: str
    #: None for a broker that passed every filter
    reason: Reason | None = None
    #: the filter's own words, only in explanations
    detail: str | None = None
    #: weighted sum of the scorers, None for a rejected broker
    score: float | None = None
    #: each scorer's own answer, by its name in the policy, only in explanations
    scores: Mapping[str, float] = field(default_factory=dict)
    #: normalised odds, in [0, 1]
    probability: float = 0.0


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision of one policy, with its distribution over brokers and the random choice from it."""

    policy: str
    bundle: str
    #: None if the policy declined
    broker: str | None
    #: why it declined, None if it did not
    declined: Reason | None
    #: probability of the chosen broker, None if the policy declined
    propensity: float | None
    #: normalised odds by broker id, only those above 0, sorted by id
    odds: Mapping[str, float]
    #: rejected brokers by reason
    rejected: Mapping[Reason, int]
    #: best score minus the best score that is not tied with it, None with fewer than two distinct scores
    margin: float | None
    #: how many candidates' scores lie within 1e-9 of the best
    ties: int
    #: name of the instant that the decision depends on. Requests with one decision key and fingerprint have equal odds
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Assigned:
    """The answer of `LoadManager.assign`, which is the owner, and the decision that chose it if there was one."""

    broker: str
    lookup_data: BrokerLookupData
    decision: Decision | None = None


@dataclass(frozen=True, slots=True)
class Unanswered:
    """The answer of `LoadManager.assign` if no broker serves the topic."""

    reason: Reason
    #: that of the policy, if it was asked
    decision: Decision | None = None


@dataclass(frozen=True, slots=True)
class Unload:
    """A shedder's proposal to take a bundle from its owner. Without destination the next lookup assigns it."""

    bundle: str
    source: str
    destination: str | None = None
    #: why, in Pulsar's words, if the shedder distinguishes its unloads
    reason: CycleReason | None = None
    #: whether it leaves in exchange for an arriving bundle. The grace period does not spare such bundles (Pulsar:
    #: TransferShedder looks at recently unloaded bundles of the fuller broker only)
    in_exchange: bool = False


@dataclass(frozen=True, slots=True)
class Probe:
    """A shedder's question whether an unload would be accepted. It is judged but not booked."""

    unload: Unload


Proposal = Unload | Probe


@dataclass(frozen=True, slots=True)
class Ruling:
    """The engine's answer to a proposal."""

    accepted: bool
    #: None if accepted
    reason: Reason | None = None


class CycleLabel(StrEnum):
    """Outcome of a cycle of a shedder or a splitter (Pulsar: UnloadDecision.Label, SplitDecision.Label)."""

    SUCCESS = "success"
    SKIP = "skip"
    FAILURE = "failure"


class CycleReason(StrEnum):
    """Reasons why a cycle ended so, or a bundle is split (Pulsar: UnloadDecision.Reason, SplitDecision.Reason)."""

    OVERLOADED = "overloaded"
    UNDERLOADED = "underloaded"
    #: shedding, if the bundle is nearer to its clients elsewhere. Pulsar does not have this reason
    LOCALITY = "locality"
    HIT_COUNT = "hit-count"
    NO_BUNDLES = "no-bundles"
    #: shedding, if overloaded brokers would give up too little. Pulsar only logs it
    TOO_LITTLE = "too-little"
    COOL_DOWN = "cool-down"
    OUT_DATED_DATA = "out-dated-data"
    NO_LOAD_DATA = "no-load-data"
    NO_BROKERS = "no-brokers"
    #: splitting, for more topics, sessions, messages per second or bytes per second than a bundle may have
    TOPICS = "topics"
    SESSIONS = "sessions"
    MSG_RATE = "msg-rate"
    BANDWIDTH = "bandwidth"
    ADMIN = "admin"
    UNKNOWN = "unknown"


#: Words for the reasons with which a shedder's cycle ends. Reasons of third parties are printed unchanged.
CYCLE_WORDS: Mapping[str, str] = {
    "overloaded": "unloaded from overloaded brokers",
    "underloaded": "unloaded to relieve or fill a broker far from the average",
    "locality": "moved nearer to their clients",
    "hit-count": "balanced, or not for long enough out of balance",
    "no-bundles": "overloaded, but no bundle could be unloaded",
    "too-little": "too little to offload",
    "cool-down": "waiting after the last unload",
    "out-dated-data": "load reports too old",
    "no-load-data": "no load known yet",
    "no-brokers": "fewer than two brokers",
    "admin": "on an administrator's behalf",
    "unknown": "failed",
}


@dataclass(frozen=True, slots=True)
class Split:
    """A splitter's proposal to divide a bundle. Its children stay with its owner or do not have one."""

    bundle: str
    source: str
    #: hashes at which it is cut, ascending, strictly inside the bundle
    boundaries: tuple[int, ...]
    #: which limit the bundle exceeds
    reason: CycleReason = CycleReason.UNKNOWN

    @property
    def children(self) -> tuple[str, ...]:
        """The names of the bundles that replace it, lower hashes first.

        Raises:
            InvalidNameError: if `bundle` is not the name of a bundle.
        """
        parent = NamespaceBundle.parse(self.bundle)
        ends = (parent.range.lower, *self.boundaries, parent.range.upper)
        return tuple(str(NamespaceBundle(parent.namespace, BundleRange(*pair))) for pair in pairwise(ends))


@dataclass(frozen=True, slots=True)
class Shortfall:
    """The figure that kept a shedder from acting, with the limit that it did not reach.

    Example:
        >>> str(Shortfall(8.0, "MiB/s to unload", 10.0))
        '8 MiB/s to unload, minimum 10'
    """

    figure: float
    #: name of the figure, beginning with its unit
    what: str
    limit: float

    def __str__(self) -> str:
        # As many digits as needed to distinguish the two, since "10, minimum 10" would be a riddle.
        pairs = ((_write_number(self.figure, digits), _write_number(self.limit, digits)) for digits in range(3, 16))
        figure, limit = next((pair for pair in pairs if pair[0] != pair[1]), (_write_number(self.figure, 3),) * 2)
        return f"{figure} {self.what}, minimum {limit}"

    @property
    def nearness(self) -> float:
        """How near the figure came to the limit, 1.0 at it."""
        return self.figure / self.limit if self.limit else 1.0


def _write_number(number: float, digits: int) -> str:
    return f"{number:,.{digits - 3}f}" if abs(number) >= 1000 else f"{number:.{digits}g}"


@dataclass(frozen=True, slots=True)
class CycleOutcome:
    """The result that a shedder returns at the end of its cycle, with label, reason and the usage figures it used."""

    label: CycleLabel
    reason: CycleReason
    #: mean usage over the brokers with load data, ratio, None if there were none
    average: float | None = None
    #: population standard deviation of usage before and, as modelled, after the accepted unloads
    deviation: float | None = None
    modelled_deviation: float | None = None
    #: bundles that a splitter could not handle (Pulsar: its counter Failure/Unknown)
    failures: int = 0
    #: brokers above the part's tolerance, even if they could not give up anything, None if the part does not report it
    over: int | None = None
    #: distance of the farthest of them above it, 0.0 if there is none, as a ratio of usage or of the part's own figure
    excess: float | None = None
    #: for a cycle without changes, the missing amount, None if the part does not report it
    short: Shortfall | None = field(default=None, compare=False)
