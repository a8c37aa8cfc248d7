"""Areas of topic lists: hash, pattern filter, system topics; the section on topic vectors of the vectors' README."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lookup.topics.catalog.naming import without_system_topics
from lookup.topics.listing import TopicsPattern, topics_hash
from tests.vectors.reading import Handler, only

__all__ = ["AREAS"]


def _hash(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "topics")
    return {"hash": topics_hash(given["topics"])}


def _filter(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "topics", "pattern")
    return {"topics": TopicsPattern(given["pattern"]).filter(given["topics"])}


def _filter_system(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "topics")
    return {"topics": without_system_topics(given["topics"])}


AREAS: Mapping[str, Handler] = {"topics.filter": _filter, "topics.filter_system": _filter_system, "topics.hash": _hash}
