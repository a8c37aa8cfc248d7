"""The filter `max-topics`: no broker that already serves as many topics as it may."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Conf, Ge
from lookup.model import Broker, Candidates, ClusterView, LookupRequest, Reason

__all__ = ["MaxTopics"]


@dataclass(frozen=True)
class MaxTopics:
    """Drop brokers that report as many topics as a broker may serve, or more.

    Match -> Result -> Reason:
        * reported topics < `max_topics`, or no report -> kept
        * reported topics >= `max_topics` -> rejected -> `max-topics`

    Source: BrokerMaxTopicCountFilter.
    """

    name: ClassVar[str] = "max-topics"
    reason: ClassVar[Reason] = Reason.MAX_TOPICS
    reads: ClassVar[frozenset[str]] = frozenset({"view.load", "view.load.topics"})

    #: topics at which a broker is full
    max_topics: Annotated[int, Ge(1), Conf("loadBalancerBrokerMaxTopics")] = 50_000

    def admit(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> NDArray[np.bool_]:
        """Compare every candidate's topics with the limit."""
        mask: NDArray[np.bool_] = view.load.topics[brokers.index] < self.max_topics
        return mask

    def detail(self, request: LookupRequest, broker: Broker, view: ClusterView) -> str:
        """Name the broker's topics and the limit."""
        number = view.brokers.number(broker.id)
        topics = 0 if number is None else int(view.load.topics[number])
        return f"serves {topics} topics, at most {self.max_topics - 1} leave room for one more"
