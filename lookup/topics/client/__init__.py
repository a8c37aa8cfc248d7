"""Keep a consumer's subscriptions equal to a set of topics, by watching or by polling."""

from lookup.topics.client.actions import Listed, Poll, ServerFeatures, Subscribe, TopicSet, Unsubscribe, Unwatch
from lookup.topics.client.list_copy import ListChange, ListCopy
from lookup.topics.client.subscriber import Subscriber

__all__ = [
    "ListChange", "ListCopy", "Listed", "Poll", "ServerFeatures", "Subscribe", "Subscriber", "TopicSet", "Unsubscribe",
    "Unwatch",
]  # fmt: skip
