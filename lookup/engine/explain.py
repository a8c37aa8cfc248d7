"""Explain a policy's answer to a request with the answers of every filter and scorer about every broker.

The same parts are called through the same facets as in a decision. Nothing is drawn, remembered or counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lookup.engine.answers import Failures
from lookup.engine.policy import Instant, Policy
from lookup.hooks.raised import describe_error
from lookup.model import Broker, BrokerVote, ClusterView, LookupRequest, Reason

__all__ = ["Explanation", "SeenBroker", "explain", "seen_brokers"]


@dataclass(frozen=True, slots=True)
class SeenBroker:
    """One registered broker as a policy could see it at an instant."""

    broker: str
    properties: Mapping[str, str]
    #: load / capacity, and weight per second, NaN if it has not reported
    usage: float
    throughput: float
    #: how many bundles it owns
    bundles: int


def seen_brokers(view: ClusterView) -> tuple[SeenBroker, ...]:
    """List the registered brokers as a view has them now."""
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
    #: why no broker was chosen, None if there are odds
    declined: Reason | None
    #: best score minus the best that is not tied with it, None if all are tied
    margin: float | None
    #: how many candidates share the best score
    ties: int
    #: factor of each scorer in the sum, by the name its scores have in `votes`
    weights: Mapping[str, float] = field(default_factory=dict)
    #: message of the first part that raised, if `on_error` lets the policy go on
    failure: str | None = None

    @property
    def chosen(self) -> tuple[BrokerVote, ...]:
        """The brokers the policy may answer with, likeliest first."""
        return tuple(sorted((vote for vote in self.votes if vote.probability), key=lambda vote: -vote.probability))

    def document(self) -> dict[str, Any]:
        """Convert the explanation to a JSON object."""
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
    """Evaluate a policy for a request, and keep the answer of every part.

    Raises:
        PolicyError: if a decision would raise it.
    """
    # An instant of its own, since cached or counted answers must not affect later decisions.
    ballot = policy.ballot(request, Instant(policy, view))
    # Under `skip` no part ends the collection. The ballot shows whether a failure ends the decision.
    lenient, failures, names = replace(policy, on_error="skip"), Failures(), _name_scorers(policy)
    instant = Instant(lenient, view, failures)
    pool, rejected = instant.offered, dict[str, BrokerVote]()
    for index, part in enumerate(policy.filters):
        if not len(pool) or (policy.on_error == "fail-closed" and failures.count):
            break
        mask = lenient.apply_filter(index, request, pool, instant)
        facet, part_view = lenient.cuts[index](request), instant.seen_by(index)
        for broker in pool.subset(~mask):
            rejected[broker.id] = BrokerVote(
                broker.id, reason=part.reason, detail=_find_detail(part, facet, broker, part_view)
            )
        pool = pool.subset(mask)
    totals, scores = dict[str, float](), dict[str, dict[str, float]]()
    if ballot.declined is not Reason.POLICY_ERROR and len(pool):
        for index, name in enumerate(names):
            for broker_id, score in zip(pool.ids, lenient.score(index, request, pool, instant).tolist(), strict=True):
                scores.setdefault(broker_id, {})[name] = score
        # Asked again instead of added up here, so that the sum is rounded as it is in a decision.
        totals = dict(zip(pool.ids, lenient.scores(request, pool, instant).tolist(), strict=True))
    votes = []
    for broker_id in instant.offered.ids:
        vote = BrokerVote(broker_id, score=totals.get(broker_id), scores=scores.get(broker_id, {}))
        # A second choice may fall on a broker that a filter rejected at the first.
        votes.append(replace(rejected.get(broker_id, vote), probability=ballot.odds.get(broker_id, 0.0)))
    return Explanation(
        policy=policy.name,
        votes=tuple(votes),
        declined=ballot.declined,
        margin=ballot.margin,
        ties=ballot.ties,
        weights={name: term.weight for name, term in zip(names, policy.scorers, strict=True)},
        failure=failures.first,
    )


def _find_detail(part: Any, request: LookupRequest, broker: Broker, view: ClusterView) -> str | None:
    try:
        return str(part.detail(request, broker, view)) if hasattr(part, "detail") else None
    except (Exception, SystemExit) as error:  # noqa: BLE001  a third party's explanation; its failure rejects no broker
        return f"(its detail raised {describe_error(error)})"


def _name_scorers(policy: Policy) -> list[str]:
    """Name the scorers as settings do. The second with the same name becomes `name#2`."""
    counts: Counter[str] = Counter()
    names = []
    for term in policy.scorers:
        name = term.scorer.name
        counts[name] += 1
        names.append(name if counts[name] == 1 else f"{name}#{counts[name]}")
    return names
