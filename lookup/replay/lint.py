"""Find settings that are valid and do nothing on a log: rules that never apply, labels that never meet, idle parts.

Parts are not read but asked: every policy is probed with the requests of the log, on the brokers of the log, under
several states of load. What depends on owners or memory, which a probe does not have, is left alone.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ballots import Ballot
from lookup.engine.ledger import capacities
from lookup.engine.ownership import Ownership
from lookup.engine.policy import Instant, Policy
from lookup.errors import PulsarLookupError
from lookup.model import ClusterView, Load, LookupOptions, LookupRequest, Reason, Roster
from lookup.model.quoting import closest, listed, quantity, shown
from lookup.model.request import request_of
from lookup.replay.outcome import Finding
from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.replay.presence import about_times
from lookup.replay.proportions import about_proportions, published_labels
from lookup.settings.cluster import ClientMatch
from lookup.settings.evaluation import EvaluationFile
from lookup.settings.resolve import bundle_counts

__all__ = ["lint"]

#: Scores and odds this close are equal.
_CLOSE = 1e-9
#: Names this much alike (a ratio) are taken for one name and its misspelling.
_ALIKE = 0.7
#: Combinations of labels, and bundles, of a cluster with which policies are probed: those with the most lookups, and
#: some from all over the cluster.
_LABELS, _BUNDLES = 32, 4
#: Parts that read one of these answer by a state that a probe does not have.
_STATES = frozenset({"view.ownership", "view.memory"})


def lint(
    settings: EvaluationFile,
    policies: Sequence[Policy],
    clusters: Sequence[ClusterPlan],
    run: RunPlan,
    quiet: Mapping[str, float],
) -> list[Finding]:
    """Return what has no effect on a log, is out of proportion to it, or hardly meant, unless `lint.accept` names it.

    Args:
        policies: those of the settings.
        clusters: those of the log.
        quiet: by cluster the share of lookups before which, in the time that load is taken from, brokers had served
            less than one lookup each.
    """
    findings = (
        *about_times(clusters, run),
        *_about_clients(settings, clusters),
        *_about_namespaces(settings, clusters),
        *_about_bundles(settings, clusters),
        *_about_labels(settings, policies, clusters),
        *about_proportions(settings, policies, clusters, run, quiet),
        *_about_parts(policies, clusters, run),
    )
    return [finding for finding in findings if finding.rule not in settings.lint.accept]


# Rules of the settings


def _about_clients(settings: EvaluationFile, clusters: Sequence[ClusterPlan]) -> Iterator[Finding]:
    """Find rules for clients that apply to no lookup."""
    applied = np.sum([cluster.words.by_rule for cluster in clusters], axis=0)
    lookups = sum(cluster.words.counts["demand"] for cluster in clusters)
    for index, entry in enumerate(settings.clients):
        if applied[index]:
            continue
        earlier = next((n for n in range(index) if _covers(settings.clients[n].match, entry.match)), None)
        if earlier is not None:
            evidence, remedy = (
                f"clients[{earlier}] comes first and matches all of its clients",
                "put the narrower first",
            )
        else:
            others = int(applied.sum())
            evidence = f"other rules apply to {others:,} lookups" if others else "no rule applies to any lookup"
            remedy = "compare it with the log's column `client`, which has to name clients"
        match = entry.match.cidr or entry.match.client
        yield Finding(
            "client-rule",
            f"clients[{index}], {shown(match)}, labels no client",
            f"0 of {lookups:,} lookups",
            evidence,
            remedy,
        )


def _covers(wide: ClientMatch, narrow: ClientMatch) -> bool:
    """Return whether everything that `narrow` matches is certainly matched by `wide`."""
    if wide.cidr is not None and narrow.cidr is not None:
        outer, inner = ipaddress.ip_network(wide.cidr), ipaddress.ip_network(narrow.cidr)
        return outer.version == inner.version and inner.subnet_of(outer)  # type: ignore[arg-type]
    return wide.client is not None and wide.client in {narrow.client, "*"}


def _about_namespaces(settings: EvaluationFile, clusters: Sequence[ClusterPlan]) -> Iterator[Finding]:
    """Find namespaces in which nothing is looked up, and isolation from hosts that no broker has."""
    known = {namespace for cluster in clusters for namespace in cluster.words.atoms.namespaces}
    hosts = {broker.host for cluster in clusters for broker in cluster.timeline.brokers}
    for entry in settings.namespaces:
        if entry.name not in known:
            like = closest(entry.name, known, cutoff=_ALIKE)
            yield Finding(
                "namespace",
                f"[[namespaces]] names {shown(entry.name)}, in which nothing is looked up",
                f"0 of {quantity(len(known), 'namespace')} of the log",
                f"the log has {listed(sorted(known))}",
                f"did you mean {shown(like)}?" if like else "leave it out if the log is complete",
            )
        patterns = [pattern for rule in entry.isolation for pattern in (*rule.primary, *rule.secondary)]
        for pattern in patterns:
            if not any(re.fullmatch(pattern, host) for host in hosts):
                yield Finding(
                    "isolation",
                    f"the isolation of {entry.name} names hosts {shown(pattern)}, and no broker has such a host",
                    f"0 of {quantity(len(hosts), 'host')}",
                    f"hosts are {listed(sorted(hosts))}",
                    "a pattern is a regular expression of the whole host name, without port",
                )


def _about_bundles(settings: EvaluationFile, clusters: Sequence[ClusterPlan]) -> Iterator[Finding]:
    """Find policies that begin with other bundles than those that the log of owners names."""
    counts = bundle_counts(settings)
    for policy in settings.policies:
        if policy.bundles not in counts:
            continue
        named = dict(item for cluster in clusters for item in _named_bundles(cluster, policy.bundles).items())
        if missing := sorted(bundle for bundle, is_own in named.items() if not is_own):
            yield Finding(
                "bundles",
                f"policy {shown(policy.name)} has {policy.bundles:,} bundles in a namespace, OWNERSHIP names others",
                f"{len(missing):,} of {quantity(len(named), 'bundle')} that it names",
                f"owners from before the run, splits and unloads of {listed(missing)} do not happen to it",
                "leave inputs.ownership out to treat all policies alike",
            )


def _named_bundles(cluster: ClusterPlan, count: int | None) -> dict[str, bool]:
    """Return the bundles that the log of owners names, and whether a policy has them that begins with so many."""
    rule, timeline = cluster.words.atoms.rule, cluster.timeline
    own = {bundle for bundle, _ in cluster.words.atoms.first_bundles(count)}
    for parent, children in timeline.splits:
        own.update(children if parent in own else ())
    return {
        bundle: bundle in own
        for bundle in (*timeline.owners, *(parent for parent, _ in timeline.splits), *timeline.unloads)
        # All policies have the same bundles of the others.
        if (name := bundle.rpartition("/")[0]) in cluster.words.atoms.base
        and rule.first_boundaries(name) != rule.first_boundaries(name, count)
    }


# Parts of policies


@dataclass(frozen=True)
class _ProbeCase:
    """A request of the log, on the brokers of its cluster under one state of load."""

    request: LookupRequest
    view: ClusterView


def _about_parts(policies: Sequence[Policy], clusters: Sequence[ClusterPlan], run: RunPlan) -> Iterator[Finding]:
    """Find parts that change nothing, and policies that decide alike."""
    cases = [
        _ProbeCase(request, view)
        for cluster in clusters
        for view in _views(cluster, run)
        for request in _requests(cluster)
    ]
    probed: dict[str, tuple[Policy, NDArray[np.float64]]] = {}
    for policy in policies:
        # Brokers without load may make a part divide by zero; numpy's warnings of that would only confuse.
        with np.errstate(all="ignore"):
            try:
                answers = _ProbeAnswers(policy.unforgiving, cases)
            except PulsarLookupError:
                # A part that fails ends the run with a sentence of its own, if the settings do not let it pass.
                continue
            yield from answers.findings()
        if not policy.reads & _STATES:
            probed[policy.name] = policy, answers.odds_of_every_case()
    for names in _alike(probed):
        yield Finding(
            "alike",
            f"policies {', '.join(map(shown, names[:-1]))} and {shown(names[-1])} decide alike",
            f"{len(cases):,} of {quantity(len(cases), 'case')} that were tried",
            "same odds for every broker, request and state of load, and the same shedder",
            "leave one of them out, or see which setting was to tell them apart"
            if len(names) == 2
            else "keep one of them, or see which setting was to tell them apart",
        )


def _alike(probed: Mapping[str, tuple[Policy, NDArray[np.float64]]]) -> Iterator[list[str]]:
    """Yield the names of policies with the same odds and shedder, two or more."""
    groups: list[list[str]] = []
    for name, (policy, odds) in probed.items():
        for group in groups:
            first, theirs = probed[group[0]]
            if _moves_of(first) == _moves_of(policy) and np.allclose(odds, theirs, rtol=0, atol=_CLOSE):
                group.append(name)
                break
        else:
            groups.append([name])
    yield from (group for group in groups if len(group) > 1)


def _moves_of(policy: Policy) -> tuple[object, ...]:
    """Return what decides about moves, and about bundles that no odds place."""
    chosen = policy.second_choice, policy.destination_first, policy.excluded_namespaces
    return policy.shedder, *chosen, policy.bundles


class _ProbeAnswers:
    """The answers of a policy and of its scorers to all cases."""

    def __init__(self, policy: Policy, cases: Sequence[_ProbeCase]) -> None:
        self._policy = policy
        # Requests that agree on what a policy reads are one case to it.
        self._keys: list[Hashable] = [(id(case.view), policy.decision_key(case.request)) for case in cases]
        self._cases = dict(zip(self._keys, cases, strict=True))
        self._instants = self._instants_of(policy)
        self._ballots = self._ballots_of(policy, self._instants)

    def _instants_of(self, policy: Policy) -> dict[int, Instant]:
        views = {id(case.view): case.view for case in self._cases.values()}
        return {number: Instant(policy, view) for number, view in views.items()}

    def _ballots_of(self, policy: Policy, instants: Mapping[int, Instant]) -> dict[Hashable, Ballot]:
        return {key: policy.ballot(case.request, instants[id(case.view)]) for key, case in self._cases.items()}

    def _odds_of(self, ballots: Mapping[Hashable, Ballot]) -> dict[Hashable, list[float]]:
        """Return the odds of each broker by case."""
        ids = {key: case.view.brokers.ids for key, case in self._cases.items()}
        return {key: [ballot.odds.get(broker, 0.0) for broker in ids[key]] for key, ballot in ballots.items()}

    def odds_of_every_case(self) -> NDArray[np.float64]:
        """Return the odds of all brokers in all cases, one after another."""
        odds = self._odds_of(self._ballots)
        return np.array([share for key in self._keys for share in odds[key]])

    def findings(self) -> Iterator[Finding]:
        """Find parts that change nothing."""
        ballots = [self._ballots[key] for key in self._keys]
        if all(ballot.declined is Reason.NO_CANDIDATES for ballot in ballots):
            rejected: Counter[str] = Counter()
            for ballot in ballots:
                rejected.update({reason.value: count for reason, count in ballot.rejected.items()})
            yield Finding(
                "filters",
                f"policy {shown(self._policy.name)}: its filters leave no broker",
                f"all of {quantity(len(self._cases), 'case')} that were tried",
                "rejections by " + ", ".join(f"{reason} {count:,}" for reason, count in rejected.most_common()),
                "see their parameters, and with `lookup explain` what they say of a broker",
            )
        yield from self._about_scorers()

    def _about_scorers(self) -> Iterator[Finding]:
        policy, tried = self._policy, f"0 of {quantity(len(self._cases), 'case')} that were tried"
        part_reads = policy.part_reads[len(policy.filters) :]
        known = [index for index in range(len(policy.scorers)) if not part_reads[index] & _STATES]
        names = [term.scorer.name for term in policy.scorers]
        differing = []
        for index in known:
            scores = [self._scores(index, case) for case in self._cases.values()]
            if any(np.ptp(each) > _CLOSE for each in scores):
                differing.append(index)
            else:
                yield Finding(
                    "scorer",
                    f"policy {shown(policy.name)}: the scores of {names[index]} never differ",
                    tried,
                    f"every broker gets the same score, {scores[0][0]:g} in the first case",
                    "leave it out, or see whether the log and the brokers have what it goes by",
                )
        if len(known) < len(policy.scorers):
            return
        idle = [index for index in differing if self._changes_nothing(index)]
        if idle and len(idle) == len(differing):
            yield Finding(
                "selector",
                f"policy {shown(policy.name)}: the selector {policy.selector.name} does not go by its scores",
                tried,
                f"without {', '.join(names[index] for index in idle)} the odds are the same",
                "take a selector that goes by scores, such as best, or leave the scorers out",
            )
            return
        for index in idle:
            yield Finding(
                "weight",
                f"policy {shown(policy.name)}: the weight {policy.scorers[index].weight:g} of {names[index]} "
                "changes nothing",
                tried,
                "without it the odds are the same",
                "leave it out, or give it a greater weight",
            )

    def _scores(self, index: int, case: _ProbeCase) -> NDArray[np.float64]:
        instant = self._instants[id(case.view)]
        return self._policy.score(index, case.request, instant.offered, instant)

    def _changes_nothing(self, index: int) -> bool:
        rest = tuple(term for place, term in enumerate(self._policy.scorers) if place != index)
        policy = replace(self._policy, scorers=rest)
        without = self._odds_of(self._ballots_of(policy, self._instants_of(policy)))
        odds = self._odds_of(self._ballots)
        return all(np.allclose(without[key], odds[key], rtol=0, atol=_CLOSE) for key in odds)


def _requests(cluster: ClusterPlan) -> list[LookupRequest]:
    """Return requests with the labels that most lookups carry, for bundles from all over the cluster."""
    words = cluster.words
    frequent = np.argsort(-words.by_properties, kind="stable")[:_LABELS].tolist()
    names = [bundle for bundle, _ in words.atoms.bundles]
    bundles = names[:: -(-len(names) // _BUNDLES) or 1]
    clients, listeners = words.extras.get("client", (None,)), words.extras.get("listener", (None,))
    topics = [topic for topic in words.extras.get("topic", ()) if topic is not None]
    requests = []
    for number, (code, bundle) in enumerate((code, bundle) for code in frequent for bundle in bundles):
        options = LookupOptions(
            advertised_listener_name=listeners[number % len(listeners)], properties=words.properties[code]
        )
        of_bundle = f"persistent://{bundle.rpartition('/')[0]}/probe-{number}"
        topic = topics[number % len(topics)] if topics else of_bundle
        requests.append(request_of(topic, bundle, options, clients[number % len(clients)]))
    return requests


def _views(cluster: ClusterPlan, run: RunPlan) -> list[ClusterView]:
    """Return the cluster with all its brokers, without load and with loads that tell any two brokers apart."""
    roster = Roster(cluster.timeline.brokers)
    count = len(roster)
    if not count:
        return []
    capacity = capacities(roster, cluster.assumed_capacity)
    unknown = Load.unknown(count)
    registered = np.ones(count, dtype=bool)
    registered.flags.writeable = False
    view = ClusterView(
        cluster=cluster.name,
        brokers=roster,
        registered=registered,
        capacity=capacity,
        epoch_us=cluster.words.first_us,
        now_us=cluster.words.last_us,
        load=unknown.read_only(),
        ownership=Ownership(roster.ids),
        unloaded={},
        memory={},
        namespaces=run.namespaces,
        topology=run.topology,
    )
    steps = (np.arange(count) + 0.5) / count
    # Once ascending by place and once in another order, so that load agrees with no label by accident.
    orders = (steps, steps[np.argsort((np.arange(count) * 7919) % max(count, 1), kind="stable")[::-1]])
    return [view, *(replace(view, load=_loaded(usage, capacity).read_only()) for usage in orders)]


def _loaded(usage: NDArray[np.float64], capacity: NDArray[np.float64]) -> Load:
    """Return a load in which every figure differs between brokers as usage does."""
    count = len(usage)
    full = np.where(np.isnan(capacity), 1.0, capacity)
    return Load(
        usage=usage,
        throughput=usage * full,
        topics=np.rint(usage * 100).astype(np.int64),
        top_bundles=[()] * count,
        resources=np.repeat(usage[:, None] * 100.0, 5, axis=1),
        rates=usage * 1000.0,
        long_term_rates=usage * 1000.0,
        updated_us=np.zeros(count, dtype=np.int64),
    )


#: Share of the lookups with a label that no broker answers, from which on it is worth a finding.
_MANY = 0.05


def _about_labels(
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
        yield Finding(
            "broker-label",
            f"brokers publish {listed(sorted(published))}, and no client sends any property",
            f"0 of {quantity(lookups, 'lookup')} have one",
            "; ".join(f"{key} = {listed(sorted(values))}" for key, values in sorted(published.items())),
            "label clients by [[clients]] or by the mapping of the log; without that no policy can prefer a place",
        )
    yield from _misspelt(settings, clusters, published, read)


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
