"""The limits of listings, watches, queries of owners and clients; `[topics]` sets those of listings and watches.

Each of these is named as its setting and has its default, so that a caller who gives no limits gets those of an empty
`[topics]`. Queries of owners and clients run in programs built on the library, which give their limits as arguments.

Source: `docs/pulsar/protocol.md` for Pulsar's own limits.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from lookup.errors import ArgumentError
from lookup.settings import ListingSection, TopicsSection

__all__ = ["QUEUE_MAX", "ListLimits", "Pace", "ScatterLimits", "TopicRules", "WatchRules", "list_limits", "rules_of"]

#: Changes or events that may wait per watcher; Pulsar's bound (`docs/pulsar/protocol.md`).
QUEUE_MAX = 10_000


def _refuse_below(least: int, **values: int) -> None:
    for name, value in values.items():
        if value < least:
            raise ArgumentError(f"{name} is {value}, and must be {least} or more")


@dataclass(frozen=True, slots=True)
class ListLimits:
    """The limits of one request for a list of topics."""

    #: whether patterns are applied at all (Pulsar: enableBrokerSideSubscriptionPatternEvaluation)
    pattern_filtering: bool = True
    #: a longer pattern is left to the client, as Pulsar does; UTF-16 code units (Pulsar: subscriptionPatternMaxLength)
    pattern_max_length: int = 50
    #: properties of one request
    max_properties: int = 64
    #: characters of one key or value
    max_property_length: int = 256


@dataclass(frozen=True, slots=True)
class WatchRules(ListLimits):
    """The limits of a server's watchers, beside those of listings.

    A listing leaves a pattern that is too long, or any pattern if they are off, to its client; a watch is refused
    for it. The length of a watched pattern is counted without its scheme.
    """

    #: off: nothing is watched (Pulsar: enableBrokerTopicListWatcher)
    topic_list_watcher: bool = True
    #: changes that may wait per watcher, events per listing, refusals and confirmations per connection
    queue_max: int = QUEUE_MAX
    #: watchers of one connection
    watchers_max: int = 10_000

    def __post_init__(self) -> None:
        _refuse_below(1, queue_max=self.queue_max, watchers_max=self.watchers_max)


@dataclass(frozen=True, slots=True)
class ScatterLimits:
    """The fan-out of one query to the owners of a namespace's bundles."""

    #: owners asked at the same time
    at_once: int = 16
    #: owners asked in all; the others count as failed
    owners: int = 256

    def __post_init__(self) -> None:
        _refuse_below(1, at_once=self.at_once, owners=self.owners)


@dataclass(frozen=True, slots=True)
class Pace:
    """The waiting times of a client, in µs."""

    #: between two looks at a namespace, also beside a watch (Pulsar: patternAutoDiscoveryPeriod)
    poll_us: int = 60_000_000
    #: before it tries a failed request again
    retry_us: int = 1_000_000
    #: before it gives up the subscription of a topic that is no longer listed
    grace_us: int = 60_000_000

    def __post_init__(self) -> None:
        _refuse_below(1, poll_us=self.poll_us, retry_us=self.retry_us)
        _refuse_below(0, grace_us=self.grace_us)


@dataclass(frozen=True, slots=True)
class TopicRules:
    """All limits that `[topics]` sets."""

    listing: ListLimits = ListLimits()
    watching: WatchRules = WatchRules()


def list_limits(settings: ListingSection) -> ListLimits:
    """Return the limits of listings that settings stand for."""
    return ListLimits(
        pattern_filtering=settings.pattern_filtering,
        pattern_max_length=settings.pattern_max_length,
        max_properties=settings.max_properties,
        max_property_length=settings.max_property_length,
    )


def rules_of(settings: TopicsSection) -> TopicRules:
    """Return the limits that settings stand for."""
    listing = list_limits(settings)
    watching = WatchRules(
        **asdict(listing),
        topic_list_watcher=settings.topic_list_watcher,
        queue_max=settings.queue_max,
        watchers_max=settings.watchers_max,
    )
    return TopicRules(listing, watching)
