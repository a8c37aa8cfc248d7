"""The policy `rack-then-load` written as one plain Python function: the floor for the engine's single decision.

As a good engineer would write it who needs this one policy and nothing else: dictionaries and attributes, one loop over
the brokers, early exits, what does not change between decisions worked out beforehand. It answers what the engine
answers: odds, rejected brokers by reason, margin and ties.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lookup.model.broker import Broker
from lookup.model.request import LookupRequest

__all__ = ["BareAnswer", "BareCluster", "decide"]

_TIED = 1e-9


@dataclass
class BareCluster:
    """What the rules need to know of a cluster, by broker id."""

    brokers: list[Broker]
    usage: dict[str, float]
    topics: dict[str, int]
    expected_class: str | None
    max_topics: int = 50_000
    prefer_later: bool = False
    #: sortable version by broker
    versions: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    #: namespace -> group, (group, broker) -> bundles
    groups: Mapping[str, str] = field(default_factory=dict)
    group_bundles: Mapping[tuple[str, str], int] = field(default_factory=dict)
    #: namespace -> hosts it may use, and all hosts that are somebody's
    isolated: Mapping[str, frozenset[str]] = field(default_factory=dict)
    claimed: frozenset[str] = frozenset()


@dataclass
class BareAnswer:
    """Odds by broker, rejected brokers by reason, and how clear the choice was."""

    odds: dict[str, float]
    rejected: dict[str, int]
    margin: float | None
    ties: int


def decide(request: LookupRequest, cluster: BareCluster) -> BareAnswer:  # noqa: C901  one bare loop is the point
    """Filter, score and choose."""
    rejected: dict[str, int] = {}
    candidates = []
    expected, topics, limit = cluster.expected_class, cluster.topics, cluster.max_topics
    for broker in cluster.brokers:
        if expected is not None and broker.lookup_data.load_manager_class_name != expected:
            rejected["load-manager-class"] = rejected.get("load-manager-class", 0) + 1
        elif topics.get(broker.id, 0) >= limit:
            rejected["max-topics"] = rejected.get("max-topics", 0) + 1
        else:
            candidates.append(broker)
    if cluster.prefer_later and candidates:
        latest = max(cluster.versions[broker.id] for broker in candidates)
        kept = [broker for broker in candidates if cluster.versions[broker.id] == latest]
        if len(kept) < len(candidates):
            rejected["version"] = len(candidates) - len(kept)
        candidates = kept
    group = cluster.groups.get(request.namespace)
    if group and candidates:
        counts = cluster.group_bundles
        fewest = min(counts.get((group, broker.id), 0) for broker in candidates)
        kept = [broker for broker in candidates if counts.get((group, broker.id), 0) == fewest]
        if len(kept) < len(candidates):
            rejected["anti-affinity"] = len(candidates) - len(kept)
        candidates = kept
    own = cluster.isolated.get(request.namespace)
    persistent = request.domain != "non-persistent"
    wanted = request.properties.get("rack")
    best = second = -1.0
    scored = []
    for broker in candidates:
        data = broker.lookup_data
        if own is not None:
            if broker.host not in own:
                rejected["isolation"] = rejected.get("isolation", 0) + 1
                continue
        elif not (data.persistent_topics_enabled if persistent else data.non_persistent_topics_enabled) or (
            cluster.claimed and broker.host in cluster.claimed
        ):
            rejected["isolation"] = rejected.get("isolation", 0) + 1
            continue
        if wanted is None:
            match = 0.5
        else:
            match = 1.0 if data.properties.get("lookup.rack") == wanted else 0.0
        usage = cluster.usage.get(broker.id)
        room = 0.5 if usage is None else 1.0 - min(max(usage, 0.0), 1.0)
        score = 0.7 * match + 0.3 * room
        scored.append((broker.id, score))
        if score > best + _TIED:
            best, second = score, best
        elif second < score < best - _TIED:
            second = score
    if not scored:
        return BareAnswer({}, rejected, None, 0)
    tied = [name for name, score in scored if score >= best - _TIED]
    share = 1.0 / len(tied)
    margin = best - second if len(tied) < len(scored) else None
    return BareAnswer(dict.fromkeys(tied, share), rejected, margin, len(tied))
