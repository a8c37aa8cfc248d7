"""Explain why a policy answers a request as it does: the answers of every filter and scorer about every broker.

The same parts are asked through the same facets as in a decision; nothing is rolled, remembered or counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lookup.engine.answers import Failures
from lookup.engine.ballots import Ballot
from lookup.engine.facets import request_facet
from lookup.engine.policy import Instant, Policy
from lookup.hooks.protocols import reads_of
from lookup.hooks.raised import raised
from lookup.model import BrokerVote, ClusterView, LookupRequest, Reason

__all__ = ["Explanation", "SeenBroker", "explain", "seen_brokers"]


@dataclass(frozen=True, slots=True)
class SeenBroker:
    """One registered broker as a policy could see it at an instant."""

    broker: str
    properties: Mapping[str, str]
    #: load / capacity, and weight per second; NaN if it has not reported
    usage: float
    throughput: float
    #: how many bundles it owns
    bundles: int


def seen_brokers(view: ClusterView) -> tuple[SeenBroker, ...]:
    """Return the registered brokers as a view has them now."""
    bundles = view.ownership.bundles()
    return tuple(
        SeenBroker(
            broker.id,
            {key.removeprefix(broker.property_prefix): text for key, text in broker.lookup_data.properties.items()},
            float(view.load.usage[number]),
            float(view.load.throughput[number]),
            int(bundles[number]),
        )
        for number, broker in enumerate(view.brokers)
        if view.registered[number]
    )


@dataclass(frozen=True)
class Explanation:
    """One policy's answer to one request, broker by broker."""

    policy: str
    #: one per registered broker, in order of their ids
    votes: tuple[BrokerVote, ...]
    #: why no broker was chosen; None if there are odds
    declined: Reason | None
    #: best score minus the best that is not tied with it; None if all are tied
    margin: float | None
    #: how many candidates share the best score
    ties: int
    #: factor of each scorer in the sum, by the name its scores have in `votes`
    weights: Mapping[str, float] = field(default_factory=dict)
    #: message of the first part that raised, if `on_error` lets the policy go on
    failure: str | None = None

    @property
    def chosen(self) -> tuple[BrokerVote, ...]:
        """Return the brokers the policy may answer with, likeliest first."""
        return tuple(sorted((vote for vote in self.votes if vote.probability), key=lambda vote: -vote.probability))

    def document(self) -> dict[str, Any]:
        """Return the explanation as JSON has it."""
        return {
            "policy": self.policy,
            "declined": None if self.declined is None else self.declined.value,
            "margin": self.margin,
            "ties": self.ties,
            "failure": self.failure,
            "weights": dict(self.weights),
            "brokers": [
                {
                    "broker": vote.broker,
                    "reason": None if vote.reason is None else vote.reason.value,
                    "detail": vote.detail,
                    "score": vote.score,
                    "scores": dict(vote.scores),
                    "probability": vote.probability,
                }
                for vote in self.votes
            ],
        }


def explain(policy: Policy, request: LookupRequest, view: ClusterView) -> Explanation:
    """Ask a policy about a request and keep the answer of every part.

    Args:
        view: as a decision would see it.

    Raises:
        PolicyError: if a decision would raise it.
    """
    # An instant of its own: answers that are cached or counted must not leak into later decisions.
    ballot = policy.ballot(request, Instant(policy, view))
    collector = _Collector(policy, request, view)
    collector.ask_filters()
    if ballot.declined is not Reason.POLICY_ERROR and len(collector.kept):
        collector.ask_scorers()
    return collector.explanation(ballot)


class _Collector:
    """Collects the answers of a policy's parts to one request."""

    def __init__(self, policy: Policy, request: LookupRequest, view: ClusterView) -> None:
        # Under `skip` no part ends the collection; whether a failure ends the decision is known from the ballot.
        self._policy = replace(policy, on_error="skip")
        self._closes = policy.on_error == "fail-closed"
        self._request = request
        self._failures = Failures()
        self._instant = Instant(self._policy, view, self._failures)
        self._rejected: dict[str, BrokerVote] = {}
        self._totals: dict[str, float] = {}
        self._scores: dict[str, dict[str, float]] = {}
        self._names = _names(policy)
        self.kept = self._instant.offered

    def ask_filters(self) -> None:
        """Ask filter after filter about the brokers the ones before kept."""
        for index in range(len(self._policy.filters)):
            if not len(self.kept) or (self._closes and self._failures.count):
                return
            mask = self._policy.admitted(index, self._request, self.kept, self._instant)
            part, view = self._policy.filters[index], self._instant.seen_by(index)
            cut = request_facet(part.name, reads_of(part))(self._request)
            for broker in self.kept.subset(~mask):
                try:
                    detail = str(part.detail(cut, broker, view)) if hasattr(part, "detail") else None
                except (Exception, SystemExit) as error:  # noqa: BLE001  a third party's explanation; its failure rejects no broker
                    detail = f"(its detail raised {raised(error)})"
                self._rejected[broker.id] = BrokerVote(broker.id, reason=part.reason, detail=detail)
            self.kept = self.kept.subset(mask)

    def ask_scorers(self) -> None:
        """Ask every scorer about the brokers that are left."""
        for index, name in enumerate(self._names):
            answer = self._policy.score(index, self._request, self.kept, self._instant)
            for broker, score in zip(self.kept.ids, answer.tolist(), strict=True):
                self._scores.setdefault(broker, {})[name] = score
        # Asked again instead of added up here, so that the sum is rounded as it is in a decision.
        totals = self._policy.scores(self._request, self.kept, self._instant)
        self._totals = dict(zip(self.kept.ids, totals.tolist(), strict=True))

    def explanation(self, ballot: Ballot) -> Explanation:
        """Put the answers together with the odds of the decision itself."""
        votes = []
        for broker in self._instant.offered.ids:
            probability = ballot.odds.get(broker, 0.0)
            if broker in self._rejected:
                # A second choice may fall on a broker that a filter rejected at the first.
                votes.append(replace(self._rejected[broker], probability=probability))
            else:
                score, scores = self._totals.get(broker), self._scores.get(broker, {})
                votes.append(BrokerVote(broker, score=score, scores=scores, probability=probability))
        return Explanation(
            policy=self._policy.name,
            votes=tuple(votes),
            declined=ballot.declined,
            margin=ballot.margin,
            ties=ballot.ties,
            weights={name: term.weight for name, term in zip(self._names, self._policy.scorers, strict=True)},
            failure=self._failures.first,
        )


def _names(policy: Policy) -> list[str]:
    """Name the scorers as settings do; the second of one name becomes `name#2`."""
    seen: Counter[str] = Counter()
    names = []
    for term in policy.scorers:
        name = term.scorer.name
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return names
