"""Find labels of clients and brokers that never meet: keys that one side has, misspelt ones, values without a match."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from lookup.engine.policy import Policy
from lookup.model import Broker
from lookup.model.quoting import closest, listed, quantity, shown
from lookup.model.topology import LEVELS
from lookup.replay.outcome import Finding
from lookup.replay.plan import ClusterPlan
from lookup.settings.evaluation import EvaluationFile

__all__ = ["about_labels", "published_labels"]

#: Names this much alike (a ratio) are taken for one name and its misspelling.
_ALIKE = 0.7
#: Share of the lookups with a label that no broker answers, from which on it is worth a finding.
_MANY = 0.05


def about_labels(
    settings: EvaluationFile, policies: Sequence[Policy], clusters: Sequence[ClusterPlan]
) -> Iterator[Finding]:
    """Find keys that only one side has, misspelt ones, and values that never meet.

    Args:
        policies: those of the settings.
        clusters: those of the log.
    """
    lookups = sum(int(cluster.words.by_properties.sum()) for cluster in clusters)
    sent: dict[str, Counter[str]] = {}
    published = published_labels(clusters)
    for cluster in clusters:
        for properties, count in zip(cluster.words.properties, cluster.words.by_properties.tolist(), strict=True):
            for key, value in properties.items():
                sent.setdefault(key, Counter())[value] += count
    parts = [
        (policy, part, sorted(name.partition(".")[2] for name in reads if name.startswith("properties.")))
        for policy in policies
        for part, reads in zip(policy.parts, policy.part_reads, strict=True)
    ]
    read = {key for _, _, keys in parts for key in keys}
    for policy, part, keys in parts:
        # Of a part that reads several keys, like the levels of a place, a log need not have all.
        has_none = not any(key in sent for key in keys)
        for key in keys:
            if key not in sent and (has_none or closest(key, sent.keys() - read, cutoff=_ALIKE)):
                yield _unsent(policy.name, part.name, key, sent, lookups)
    for key in sorted(read & sent.keys()):
        yield from _unmet(key, sent[key], published, lookups)
    if published and not sent:
        yield _unlabelled(published, lookups)
    yield from _misspelt(settings, clusters, published, read)


def _unlabelled(published: Mapping[str, Counter[str]], lookups: int) -> Finding:
    """Return the finding of a log in which no client has a label that brokers could be chosen by."""
    return Finding(
        "broker-label",
        f"brokers publish {listed(sorted(published))}, and no client sends any property",
        f"0 of {quantity(lookups, 'lookup')} have one",
        "; ".join(f"{key} = {listed(sorted(values))}" for key, values in sorted(published.items())),
        "label clients by [[clients]] or by the mapping of the log; without that no policy can prefer a place",
    )


def _misspelt(
    settings: EvaluationFile,
    clusters: Sequence[ClusterPlan],
    published: Mapping[str, Counter[str]],
    read: Collection[str],
) -> Iterator[Finding]:
    """Find keys that settings give to clients and that are nearly those of brokers, once each."""
    labelled = np.sum([cluster.words.by_rule for cluster in clusters], axis=0)
    lookups = sum(cluster.words.counts["demand"] for cluster in clusters)
    found: dict[str, Finding] = {}
    for index, entry in enumerate(settings.clients):
        for key in sorted(entry.properties.keys() - published.keys() - set(read)):
            meant = closest(key, published.keys() - entry.properties.keys(), cutoff=_ALIKE)
            if meant:
                found[key] = Finding(
                    "client-key",
                    f"clients[{index}] gives clients the property {shown(key)}, which no broker publishes",
                    f"{int(labelled[index]):,} of {quantity(lookups, 'lookup')}",
                    f"brokers publish {listed(sorted(published))}",
                    f"did you mean {shown(meant)}?",
                )
    yield from found.values()


def _unsent(policy: str, part: str, key: str, sent: Mapping[str, Counter[str]], lookups: int) -> Finding:
    like = closest(key, sent, cutoff=_ALIKE)
    return Finding(
        "policy-key",
        f"policy {shown(policy)}: {part} goes by the property {shown(key)}, which no client sends",
        f"0 of {quantity(lookups, 'lookup')}",
        f"clients send {listed(sorted(sent))}" if sent else "clients send no properties",
        f"did you mean {shown(like)}?" if like else "label clients by [[clients]], or go by another property",
    )


def _unmet(key: str, sent: Counter[str], published: Mapping[str, Counter[str]], lookups: int) -> Iterator[Finding]:
    """Find values of one key that only clients or only brokers have."""
    if key not in published:
        like = closest(key, published, cutoff=_ALIKE)
        yield Finding(
            "broker-key",
            f"clients send {shown(key)}, which no broker publishes",
            f"{sent.total():,} of {quantity(lookups, 'lookup')}",
            f"brokers publish {listed(sorted(published))}" if published else "brokers publish no labels",
            f"did you mean {shown(like)}?" if like else f"give brokers a property `lookup.{key}`",
        )
        return
    values = published[key]
    alone = {value: count for value, count in sent.items() if value not in values}
    # A few odd clients are no mistake; `lookup inspect` shows every label.
    if sum(alone.values()) >= _MANY * sent.total():
        yield Finding(
            "client-label",
            f"clients send {key} = {listed(sorted(alone))}, which no broker has",
            f"{sum(alone.values()):,} of {quantity(lookups, 'lookup')}",
            f"brokers have {listed(sorted(values))}",
            _meant(alone, values) or "these clients are never served at their place",
        )
    idle = {value: count for value, count in values.items() if value not in sent}
    if idle:
        yield Finding(
            "broker-label",
            f"brokers have {key} = {listed(sorted(idle))}, which no client sends",
            quantity(sum(idle.values()), "broker"),
            f"clients send {listed(sorted(sent))}",
            _meant(idle, sent) or "no lookup is matched with these brokers",
        )


def _meant(alone: Mapping[str, int], others: Mapping[str, int]) -> str | None:
    """Return the clause for a value that another is but for case and blanks."""
    folded = {value.strip().casefold(): value for value in others}
    for value in sorted(alone):
        meant = folded.get(value.strip().casefold())
        if meant is not None:
            return f"{shown(value)} and {shown(meant)} are not the same; did you mean one of them for both?"
    return None


def published_labels(clusters: Sequence[ClusterPlan]) -> dict[str, Counter[str]]:
    """Return by key how many brokers have each label, as clients' properties are compared with them."""
    published: dict[str, Counter[str]] = {}
    for cluster in clusters:
        for broker in cluster.timeline.brokers:
            for key, value in _labels(broker).items():
                published.setdefault(key, Counter())[value] += 1
    return published


def _labels(broker: Broker) -> dict[str, str]:
    """Return what clients' properties are compared with: published labels, and the place as settings have it."""
    prefix = broker.property_prefix
    labels = {
        key.removeprefix(prefix): value
        for key, value in broker.lookup_data.properties.items()
        if key.startswith(prefix)
    }
    places = {level: getattr(broker.location, level) for level in LEVELS}
    return {**{level: place for level, place in places.items() if place is not None}, **labels}
