"""Serve watchers of topic lists (PIP-145): the messages, the service, and one list per query kept right by events."""

from lookup.topics.watching.listings import carry_out, carrying_out
from lookup.topics.watching.messages import Closed, Message, Refused, Resync, Snapshot, Update, WatchQuery, WatchRequest
from lookup.topics.watching.service import TopicListService

__all__ = [
    "Closed", "Message", "Refused", "Resync", "Snapshot", "TopicListService", "Update", "WatchQuery", "WatchRequest",
    "carry_out", "carrying_out",
]  # fmt: skip
