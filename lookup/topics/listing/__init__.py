"""Answer requests for the topics of a namespace: patterns, selectors, hashes, custom listers, REST and many owners."""

from lookup.topics.listing.topic_list import TopicsPattern, topics_hash
from lookup.topics.listing.topic_lister import ListAnswer, ListRequest, TopicLister

__all__ = ["ListAnswer", "ListRequest", "TopicLister", "TopicsPattern", "topics_hash"]
