"""What `[topics]` sets, as the rules that listings, watches, queries of owners and subscription clients go by.

The one place where a setting becomes a rule; the defaults of both are the same.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from lookup.settings import TopicsSection
from lookup.topics.actions import Pace
from lookup.topics.listing import ListLimits
from lookup.topics.scatter import ScatterLimits
from lookup.topics.watching import WatchRules

__all__ = ["TopicRules", "rules_of"]

_MICRO = 1_000_000


@dataclass(frozen=True, slots=True)
class TopicRules:
    """Everything that `[topics]` says of how topics are told."""

    listing: ListLimits = ListLimits()
    watching: WatchRules = WatchRules()
    scatter: ScatterLimits = ScatterLimits()
    pace: Pace = Pace()


def rules_of(settings: TopicsSection) -> TopicRules:
    """Return the rules that settings stand for."""
    listing = _listing(settings)
    return TopicRules(listing, _watching(settings, listing), _scatter(settings), _pace(settings))


def _listing(settings: TopicsSection) -> ListLimits:
    return ListLimits(
        pattern_filtering=settings.pattern_filtering,
        pattern_max_length=settings.pattern_max_length,
        max_properties=settings.max_properties,
        max_property_length=settings.max_property_length,
    )


def _watching(settings: TopicsSection, limits: ListLimits) -> WatchRules:
    return WatchRules(
        **asdict(limits),
        topic_list_watcher=settings.topic_list_watcher,
        queue_max=settings.queue_max,
        watchers_max=settings.watchers_max,
    )


def _scatter(settings: TopicsSection) -> ScatterLimits:
    return ScatterLimits(at_once=settings.scatter_at_once, owners=settings.scatter_owners)


def _pace(settings: TopicsSection) -> Pace:
    return Pace(poll_us=_us(settings.poll_s), retry_us=_us(settings.retry_s), grace_us=_us(settings.grace_s))


def _us(seconds: float) -> int:
    return round(seconds * _MICRO)
