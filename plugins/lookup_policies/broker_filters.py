"""Keep or drop brokers by their load manager class, topics, version, or bundles of a namespace.

Source: "Load managers" in the documentation (the filters of the extensible load manager, and one of the modular one).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from lookup.errors import InputError
from lookup.hooks import Conf, Ge
from lookup.model import Broker, Candidates, ClusterView, LookupRequest, Reason, Roster

__all__ = ["EvenDistribution", "LoadManagerClass", "MaxTopics", "Version"]


@dataclass(frozen=True)
class LoadManagerClass:
    """Keep brokers whose registered load manager class is the expected one.

    During a change from one manager to another two brokers could otherwise own the same bundle. A broker compares with
    its own configured class, and up to Pulsar 4.2 it sends lookups to brokers with the class of the broker that started
    last. So without `class_name` that class is expected. Of brokers that started at the same instant the most frequent
    class counts, and of several the alphabetically first. Brokers without a class do not count.

    Match -> Result -> Reason:
        * the broker names the expected class -> kept
        * it names another class, or none -> rejected -> `load-manager-class`
        * no `class_name`, and no registered broker names a class -> all kept

    Source: BrokerLoadManagerClassFilter, RedirectManager.
    """

    name: ClassVar[str] = "load-manager-class"
    reason: ClassVar[Reason] = Reason.LOAD_MANAGER_CLASS
    reads: ClassVar[frozenset[str]] = frozenset()

    #: Java class name that brokers must have registered, None for that of the broker that started last
    class_name: Annotated[str | None, Conf("loadManagerClassName")] = None

    def admit(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> NDArray[np.bool_]:
        """Compare every candidate's class with the expected one."""
        expected = self._find_expected(view)
        # Once per roster and class, since a filter is asked at every assignment.
        mask = brokers.column((self.name, expected), lambda broker: expected is None or _class_of(broker) == expected)
        return mask.astype(np.bool_)

    def detail(self, request: LookupRequest, broker: Broker, view: ClusterView) -> str:
        """Name both classes."""
        return f"runs {_class_of(broker)}, expected {self._find_expected(view)}"

    def _find_expected(self, view: ClusterView) -> str | None:
        return self.class_name or _find_newest(view.brokers, view.registered.tobytes())


def _class_of(broker: Broker) -> str | None:
    return broker.lookup_data.load_manager_class_name


@lru_cache(maxsize=64)
def _find_newest(roster: Roster, registered: bytes) -> str | None:
    brokers = [broker for broker in compress(roster, registered) if _class_of(broker)]
    last = max((broker.lookup_data.start_timestamp for broker in brokers), default=0)
    named = Counter(_class_of(broker) for broker in brokers if broker.lookup_data.start_timestamp == last)
    # By name among equals, since the order of brokers must not decide.
    return min(named, key=lambda cls: (-named[cls], cls or ""), default=None)


@dataclass(frozen=True)
class MaxTopics:
    """Drop brokers that report as many topics as a broker may serve.

    Match -> Result -> Reason:
        * reported topics < `max_topics`, or no report -> kept
        * `manager = "extensible"`: reported topics >= `max_topics` -> rejected -> `max-topics`
        * `manager = "modular"`: reported topics > `max_topics` -> rejected, unless that holds for all candidates ->
          `max-topics`

    Source: BrokerMaxTopicCountFilter, LoadManagerShared.filterBrokersWithLargeTopicCount (Pulsar 4.0.4).
    """

    name: ClassVar[str] = "max-topics"
    reason: ClassVar[Reason] = Reason.MAX_TOPICS
    reads: ClassVar[frozenset[str]] = frozenset({"view.load", "view.load.topics"})

    #: topics at which a broker is full
    max_topics: Annotated[int, Ge(1), Conf("loadBalancerBrokerMaxTopics")] = 50_000
    #: whose rule it is
    manager: Literal["extensible", "modular"] = "extensible"

    def admit(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> NDArray[np.bool_]:
        """Compare every candidate's topics with the limit."""
        # Without a report topics are 0, so a broker that has just joined is kept.
        topics = view.load.topics[brokers.index]
        if self.manager == "extensible":
            mask: NDArray[np.bool_] = topics < self.max_topics
            return mask
        mask = topics <= self.max_topics
        return mask if mask.any() else np.ones(len(brokers), dtype=np.bool_)

    def detail(self, request: LookupRequest, broker: Broker, view: ClusterView) -> str:
        """Name the broker's topics and the limit."""
        number = view.brokers.number(broker.id)
        topics = 0 if number is None else int(view.load.topics[number])
        most = self.max_topics - (self.manager == "extensible")
        return f"serves {topics} topics, at most {most} leave room for one more"


_NUMBER = r"(0|[1-9][0-9]*)"
_PRE = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_BUILD = r"[0-9A-Za-z-]+"
_SEMANTIC = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_PRE}(?:\.{_PRE})*))?(?:\+{_BUILD}(?:\.{_BUILD})*)?")

#: Sort key of a version, from its numbers, whether it is a release, and the identifiers of a pre-release.
_Order = tuple[tuple[int, int, int], bool, tuple[tuple[bool, int, str], ...]]


@dataclass(frozen=True)
class Version:
    """Keep the candidates with the highest semantic version.

    A pre-release such as a SNAPSHOT is older than its release. Build metadata (`+...`) does not count. In Pulsar the
    outcome for versions that differ only in metadata depends on its library.

    In Pulsar a version that is missing or not semantic makes the filter fail. The policy's `on_error` then decides.
    `skip` continues with all candidates, as Pulsar does. A shedder counts the failure as a rejection, as Pulsar's do.

    Match -> Result -> Reason:
        * `prefer_later` is off -> all kept
        * a candidate's version is missing or not semantic, `unreadable = "keep"` -> all kept
        * such a version, `unreadable = "fail"` -> the filter fails, no broker is rejected
        * the version is the highest of the candidates -> kept
        * a candidate has a higher version -> rejected -> `version`

    Source: BrokerVersionFilter, semver.org 2.0.0, item 11.
    """

    name: ClassVar[str] = "version"
    reason: ClassVar[Reason] = Reason.VERSION
    reads: ClassVar[frozenset[str]] = frozenset()

    #: whether the filter does anything
    prefer_later: Annotated[bool, Conf("preferLaterVersions")] = False
    #: effect of a version that cannot be compared, "fail" in Pulsar
    unreadable: Literal["keep", "fail"] = "keep"

    def admit(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> NDArray[np.bool_]:
        """Compare every candidate's version with the highest."""
        if not self.prefer_later:
            return np.ones(len(brokers), dtype=np.bool_)
        ranks = _rank_versions(view.brokers)[brokers.index]
        if ranks.min() < 0 and self.unreadable == "fail":
            odd = brokers[int(np.argmin(ranks))]
            raise InputError(f"broker {odd.id} has version {odd.lookup_data.broker_version!r}, which is not semantic")
        # One version that cannot be compared keeps all brokers, since dropping its broker would be a guess.
        mask: NDArray[np.bool_] = (ranks == ranks.max()) | (ranks.min() < 0)
        return mask

    def detail(self, request: LookupRequest, broker: Broker, view: ClusterView) -> str:
        """Name the broker's version."""
        return f"runs version {broker.lookup_data.broker_version}, a later one is there"


@lru_cache(maxsize=64)
def _rank_versions(roster: Roster) -> NDArray[np.int64]:
    # Shape (n_brokers,). Equal versions have equal ranks, and later ones higher ranks. -1 means that versions cannot be
    # compared.
    orders: list[_Order | None] = []
    for broker in roster:
        match = _SEMANTIC.fullmatch(broker.lookup_data.broker_version or "")
        if match is None:
            orders.append(None)
            continue
        words = match[4].split(".") if match[4] else ()
        # Numbers sort before words, and numerically among themselves.
        pre = tuple((False, int(word), "") if word.isdigit() else (True, 0, word) for word in words)
        orders.append(((int(match[1]), int(match[2]), int(match[3])), not pre, pre))
    ascending = sorted({order for order in orders if order is not None})
    ranks = {order: rank for rank, order in enumerate(ascending)}
    return np.array([-1 if order is None else ranks[order] for order in orders], dtype=np.int64)


@dataclass(frozen=True)
class EvenDistribution:
    """Keep the brokers that own the fewest bundles of the bundle's own namespace.

    Part of the modular load manager while `loadBalancerDistributeBundlesEvenlyEnabled`, its default before Pulsar 5.0:
    load then counts only among brokers that own equally many, so a busy broker keeps getting bundles. It always
    holds for `pulsar/system`.

    Match -> Result -> Reason:
        * `only` names another namespace -> all kept
        * the broker owns as few bundles of the namespace as any candidate -> kept
        * another candidate owns fewer -> rejected -> `even-distribution`

    Source: LoadManagerShared.removeMostServicingBrokersForNamespace, ModularLoadManagerImpl
    (apache/pulsar at 009a9bf2, and 4.0.4).
    """

    name: ClassVar[str] = "even-distribution"
    reason: ClassVar[Reason] = Reason.EVEN_DISTRIBUTION
    reads: ClassVar[frozenset[str]] = frozenset({"namespace", "view.ownership"})

    #: the namespace that it applies to, empty for all
    only: str = ""

    def admit(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> NDArray[np.bool_]:
        """Compare the bundles of the namespace that every candidate owns with the fewest."""
        if self.only not in ("", request.namespace):
            return np.ones(len(brokers), dtype=np.bool_)
        counts = view.ownership.bundles_in(request.namespace)[brokers.index]
        mask: NDArray[np.bool_] = counts == counts.min()
        return mask

    def detail(self, request: LookupRequest, broker: Broker, view: ClusterView) -> str:
        """Name the number of bundles of the namespace that the broker owns."""
        number = view.brokers.number(broker.id)
        owned = 0 if number is None else int(view.ownership.bundles_in(request.namespace)[number])
        return f"owns {owned} bundles of {request.namespace}, another candidate fewer"
