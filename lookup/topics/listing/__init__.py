"""Answer requests for the topics of a namespace, with patterns, selectors, hashes, custom listers and many owners."""

from lookup.topics.listing.topic_list import TopicList, TopicsPattern, topics_hash
from lookup.topics.listing.topic_lister import ListAnswer, TopicLister
from lookup.topics.listing.topic_query import TopicQuery

__all__ = ["ListAnswer", "TopicList", "TopicLister", "TopicQuery", "TopicsPattern", "topics_hash"]
