"""Explanations agree with the decision and leave no trace; of two policies they name the first stage that differs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lookup.engine.explain import Explanation, explain
from lookup.engine.manager import LoadManager
from lookup.engine.policy import Instant, OnError, Policy, WeightedScorer
from lookup.hooks import Filter, Scorer
from lookup.model import Broker, Candidates, ClusterView, LookupRequest, NamespacePolicies, Reason, Roster
from lookup.testing import cluster, request, three_racks
from lookup_policies.broker_filters import MaxTopics
from lookup_policies.isolation import Isolation
from lookup_policies.score_selectors import Best, Softmax
from lookup_policies.scorers import Headroom, PropertyMatch


@dataclass(frozen=True)
class Refuse:
    """Rejects some brokers, and says so without words."""

    name: ClassVar[str] = "refuse"
    reason: ClassVar[Reason] = Reason.FILTERED
    reads: ClassVar[frozenset[str]] = frozenset()
    brokers: tuple[str, ...] = ()

    def admit(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> list[bool]:
        """Keep what is not listed."""
        return [broker.id not in self.brokers for broker in brokers]


@dataclass(frozen=True)
class Breaks:
    """A filter, scorer and selector that raises."""

    name: ClassVar[str] = "breaks"
    reason: ClassVar[Reason] = Reason.FILTERED

    def admit(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> Iterable[bool]:
        """Reject the first broker, then raise."""
        yield False
        raise RuntimeError("no table")

    def score(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> list[float]:
        """Raise."""
        raise RuntimeError("no scores")


@dataclass(frozen=True)
class Wordy(Refuse):
    """Rejects some brokers in words that read the rack, which it may or may not declare."""

    reads: ClassVar[frozenset[str]] = frozenset({"properties.rack"})
    key: str = "rack"

    def detail(self, request: LookupRequest, broker: Broker, view: ClusterView) -> str:
        """Name the client's label."""
        return f"client's {self.key} is {request.property_of(self.key)}"


@dataclass(frozen=True)
class Counting:
    """A selector that remembers every assignment."""

    name: ClassVar[str] = "counting"

    def odds(
        self, request: LookupRequest, brokers: Candidates, scores: Sequence[float], view: ClusterView
    ) -> list[float]:
        """Choose the broker whose turn it is."""
        turn = view.memory.get("count", 0) % len(brokers)
        return [float(place == turn) for place in range(len(brokers))]

    def remember(self, memory: MutableMapping[str, Any], request: LookupRequest, broker: Broker) -> None:
        """Count."""
        memory["count"] = memory.get("count", 0) + 1


def _policy(*filters: Filter, scorers: Sequence[tuple[Scorer, float]] = (), on_error: OnError = "stop") -> Policy:
    return Policy("p", Best(), filters, tuple(WeightedScorer(*term) for term in scorers), on_error=on_error)


def _explained(policy: Policy, view: ClusterView, asked: LookupRequest | None = None) -> Explanation:
    return explain(policy, asked or request(properties={"rack": "a"}), view)


def test_rejections_name_filter_and_words() -> None:
    """A rejected broker carries the reason and words of the first filter that refused it, and no score."""
    view = cluster("b1:8080", "b2:8080", "b3:8080", topics={"b1:8080": 7})
    policy = _policy(MaxTopics(max_topics=5), Wordy(("b1:8080", "b2:8080")))

    votes = {vote.broker: vote for vote in _explained(policy, view).votes}

    assert votes["b1:8080"].reason is Reason.MAX_TOPICS
    assert "7" in (votes["b1:8080"].detail or "")
    assert (votes["b2:8080"].reason, votes["b2:8080"].detail) == (Reason.FILTERED, "client's rack is a")
    assert votes["b2:8080"].score is None
    assert (votes["b3:8080"].reason, votes["b3:8080"].probability) == (None, 1.0)


def test_words_that_read_too_much_are_told() -> None:
    """A `detail` that reads what its filter did not declare says so in its place and rejects nobody else."""
    votes = _explained(_policy(Wordy(("b1:8080",), key="zone")), cluster("b1:8080", "b2:8080")).votes

    assert "ReadsError" in (votes[0].detail or "")
    assert votes[1].probability == 1.0


def test_scores_are_listed_by_scorer() -> None:
    """Each scorer's own number is there, the second of one name under a name of its own, and the weighted sum."""
    policy = _policy(scorers=[(PropertyMatch(), 2.0), (PropertyMatch(key="zone", unasked=0.25), 1.0)])

    found = _explained(policy, three_racks(1))

    assert found.votes[0].scores == {"property-match": 1.0, "property-match#2": 0.25}
    assert found.votes[0].score == 2.25
    assert dict(found.weights) == {"property-match": 2.0, "property-match#2": 1.0}
    assert (found.margin, found.ties) == (2.0, 1)


def test_a_failure_closes() -> None:
    """Under `fail-closed` the filters after the one that failed are not asked, and the message is there."""
    policy = _policy(Breaks(), Refuse(("b2:8080",)), scorers=[(Headroom(), 1.0)], on_error="fail-closed")

    found = _explained(policy, cluster("b1:8080", "b2:8080"))

    assert found.declined is Reason.POLICY_ERROR
    assert "part 'breaks' raised RuntimeError: no table" in (found.failure or "")
    assert (found.votes[1].reason, found.votes[1].score) == (None, None)


def test_a_failure_is_skipped() -> None:
    """Under `skip` a filter's rejections so far count, a scorer that fails adds nothing, and the message is there."""
    policy = _policy(Breaks(), scorers=[(Breaks(), 1.0), (Headroom(unreported=0.25), 1.0)], on_error="skip")

    found = _explained(policy, cluster("b1:8080", "b2:8080", "b3:8080"))

    assert [vote.reason for vote in found.votes] == [Reason.FILTERED, None, None]
    assert found.votes[1].scores == {"breaks": 0.0, "headroom": 0.25}
    assert "no table" in (found.failure or "")


def test_nothing_is_remembered_rolled_or_counted() -> None:
    """Explaining changes neither memory, dice, owners nor decisions of the manager it looks at."""
    policy = Policy("p", Counting(), on_error="skip", filters=(Breaks(),))
    manager = LoadManager(policy, "c", Roster([Broker(f"b{n}:1") for n in range(3)]))
    manager.set_registry(manager.roster, np.ones(3, dtype=bool))
    manager.assign("persistent://a/b/t", "a/b/0x00000000_0xffffffff")
    before = (dict(manager.memory), len(manager.ownership), manager.failures.count)
    manager.take_decisions()

    found = explain(policy, request(), manager.view())

    assert [vote.broker for vote in found.chosen] == ["b2:1"]
    assert (dict(manager.memory), len(manager.ownership), manager.failures.count) == before
    assert manager.take_decisions() == []


_USAGES = st.dictionaries(st.sampled_from([f"{rack}{n}:8080" for rack in "abc" for n in (1, 2)]), st.floats(0, 2))
_RACKS = st.sampled_from([{}, {"rack": "a"}, {"rack": "c"}, {"rack": "z"}])


@given(_USAGES, _RACKS, st.sets(st.sampled_from(["a1:8080", "b2:8080", "c1:8080"])), st.booleans())
def test_votes_agree_with_the_decision(
    usage: Mapping[str, float], properties: Mapping[str, str], refused: set[str], is_soft: bool
) -> None:
    """Odds, rejections, margin, ties and the reason to decline are those of the ballot, whatever is asked."""
    selector = Softmax() if is_soft else Best(min_score=0.4)
    scorers = (WeightedScorer(PropertyMatch(), 0.7), WeightedScorer(Headroom(), 0.3))
    policy = Policy("p", selector, (Isolation(), Refuse(tuple(refused))), scorers)
    instant = Instant(policy, three_racks(2, usage=usage, namespaces=NamespacePolicies()))
    ballot = policy.ballot(request(properties=properties), instant)

    found = explain(policy, request(properties=properties), instant.view)

    assert {vote.broker: vote.probability for vote in found.votes if vote.probability} == dict(ballot.odds)
    assert sum(vote.reason is not None for vote in found.votes) == sum(ballot.rejected.values())
    assert (found.declined, found.margin, found.ties) == (ballot.declined, ballot.margin, ballot.ties)
