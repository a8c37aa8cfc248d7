"""Find settings that are valid and do nothing on a log: rules that never apply, labels that never meet, idle parts.

Parts are not read but asked: every policy is probed with the requests of the log, on the brokers of the log, under
several states of load. What depends on owners or memory, which a probe does not have, is left alone.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ballots import Ballot
from lookup.engine.policy import Instant, Policy
from lookup.errors import PulsarLookupError
from lookup.model import ClusterView, Reason
from lookup.model.quoting import closest, listed, quantity, shown
from lookup.replay.findings import Finding
from lookup.replay.labels import about_labels
from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.replay.probing import Case, brokers_of, cases_of
from lookup.replay.proportions import about_proportions
from lookup.settings.cluster import ClientMatch
from lookup.settings.evaluation import EvaluationFile

__all__ = ["lint"]

#: Scores and odds this close are equal.
_CLOSE = 1e-9
#: Names this much alike (a ratio) are taken for one name and its misspelling.
_ALIKE = 0.7
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
        *_about_clients(settings, clusters),
        *_about_namespaces(settings, clusters),
        *about_labels(settings, policies, clusters),
        *_about_places(settings, clusters),
        *about_proportions(settings, policies, clusters, quiet),
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
    """Find namespaces that nobody looks up, isolation from hosts that no broker has, groups of one."""
    known = {namespace for cluster in clusters for namespace in cluster.words.atoms.namespaces}
    hosts = {broker.host for cluster in clusters for broker in brokers_of(cluster)}
    groups: Counter[str] = Counter()
    for entry in settings.namespaces:
        if entry.anti_affinity_group and entry.name in known:
            groups[entry.anti_affinity_group] += 1
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
    for group, members in groups.items():
        if members == 1:
            yield Finding(
                "anti-affinity",
                f"the anti-affinity group {shown(group)} has one namespace, which has nobody to keep away from",
                "1 namespace of the log",
                "a group keeps its namespaces on different brokers",
                "name the others in [[namespaces]]",
            )


def _about_places(settings: EvaluationFile, clusters: Sequence[ClusterPlan]) -> Iterator[Finding]:
    """Find links between places at which there is neither a broker nor a client."""
    places = {
        place
        for cluster in clusters
        for location in (*(broker.location for broker in brokers_of(cluster)), *(c.location for c in cluster.clients))
        for place in (location.region, location.zone, location.rack)
        if place is not None
    }
    for index, edge in enumerate(settings.topology.edges):
        for end in (edge.a, edge.b):
            if places and end not in places:
                like = closest(end, places, cutoff=0.5)
                yield Finding(
                    "topology",
                    f"topology.edges[{index}] leads to {shown(end)}, where there is neither a broker nor a client",
                    f"0 of {quantity(len(places), 'place')}",
                    f"places are {listed(sorted(places))}",
                    f"did you mean {shown(like)}?" if like else "leave it out",
                )


# Parts of policies


def _about_parts(policies: Sequence[Policy], clusters: Sequence[ClusterPlan], run: RunPlan) -> Iterator[Finding]:
    """Find parts that change nothing, and policies that decide alike."""
    cases = [case for cluster in clusters for case in cases_of(cluster, run)]
    odds: dict[str, NDArray[np.float64]] = {}
    for policy in policies:
        # Brokers without load may make a part divide by zero; numpy's warnings of that would only confuse.
        with np.errstate(all="ignore"):
            try:
                probed = _Probed(policy, cases)
            except PulsarLookupError:
                # A part that fails ends the run with a sentence of its own, if the settings do not let it pass.
                continue
            yield from probed.findings()
        if not policy.reads & _STATES:
            stated = {id(ballot): _odds(ballot, case.view) for ballot, case in zip(probed.ballots, cases, strict=True)}
            odds[policy.name] = np.array(list(chain.from_iterable(stated[id(ballot)] for ballot in probed.ballots)))
    by_name = {policy.name: policy for policy in policies}
    for first, second in combinations(odds, 2):
        one, other = by_name[first], by_name[second]
        rules = [
            (policy.shedder, policy.second_choice, policy.destination_first, policy.excluded_namespaces)
            for policy in (one, other)
        ]
        if rules[0] == rules[1] and np.allclose(odds[first], odds[second], rtol=0, atol=_CLOSE):
            yield Finding(
                "alike",
                f"policies {shown(first)} and {shown(second)} decide alike",
                f"{len(cases):,} of {quantity(len(cases), 'case')} that were tried",
                "same odds for every broker, request and state of load, and the same shedder",
                "leave one of them out, or see which setting was to tell them apart",
            )


def _odds(ballot: Ballot, view: ClusterView) -> tuple[float, ...]:
    return tuple([ballot.odds.get(broker, 0.0) for broker in view.brokers.ids])


def _ballots(policy: Policy, cases: Sequence[Case]) -> list[Ballot]:
    """Return a policy's answer to each case."""
    instants: dict[int, Instant] = {}
    return [
        policy.ballot(case.request, instants.setdefault(id(case.view), Instant(policy, case.view))) for case in cases
    ]


class _Probed:
    """The answers of a policy and of its parts to all cases."""

    def __init__(self, policy: Policy, cases: Sequence[Case]) -> None:
        self._policy = policy.unforgiving
        self._instants = {
            id(view): Instant(self._policy, view) for view in {id(c.view): c.view for c in cases}.values()
        }
        # Requests that agree on what a policy reads are one case to it.
        keys = [(id(case.view), policy.decision_key(case.request)) for case in cases]
        distinct = dict(zip(keys, cases, strict=True))
        self._cases = list(distinct.values())
        self._ballots = _ballots(self._policy, self._cases)
        by_key = dict(zip(distinct, self._ballots, strict=True))
        #: the answer to each case
        self.ballots = [by_key[key] for key in keys]

    def findings(self) -> Iterator[Finding]:
        """Find parts that change nothing."""
        yield from self._about_filters()
        yield from self._about_scorers()

    def _about_filters(self) -> Iterator[Finding]:
        policy, tried = self._policy, f"all of {quantity(len(self._cases), 'case')} that were tried"
        alone = []
        for index, part in enumerate(policy.filters):
            if policy.part_reads[index] & _STATES:
                continue
            if all(not self._admitted(index, case).any() for case in self._cases):
                alone.append(part.name)
                yield Finding(
                    "filter",
                    f"policy {shown(policy.name)}: the filter {part.name} rejects every broker",
                    tried,
                    f"asked alone, about every broker of the log; its reason is {part.reason.value}",
                    "see its parameters, and with `lookup explain` what it says of a broker",
                )
        if not alone and all(ballot.declined is Reason.NO_CANDIDATES for ballot in self.ballots):
            rejected: Counter[str] = Counter()
            for ballot in self.ballots:
                rejected.update({reason.value: count for reason, count in ballot.rejected.items()})
            yield Finding(
                "filters",
                f"policy {shown(policy.name)}: its filters leave no broker together, though each alone does",
                tried,
                "rejections by " + ", ".join(f"{reason} {count:,}" for reason, count in rejected.most_common()),
                "leave one of them out",
            )

    def _admitted(self, index: int, case: Case) -> NDArray[np.bool_]:
        instant = self._instants[id(case.view)]
        return self._policy.admitted(index, case.request, instant.offered, instant)

    def _about_scorers(self) -> Iterator[Finding]:
        policy, tried = self._policy, quantity(len(self._cases), "case")
        known = [
            index
            for index in range(len(policy.scorers))
            if not policy.part_reads[len(policy.filters) + index] & _STATES
        ]
        spreads = {index: [self._scores(index, case) for case in self._cases] for index in known}
        differing = [index for index in known if any(np.ptp(scores) > _CLOSE for scores in spreads[index])]
        for index in known:
            if index not in differing:
                yield Finding(
                    "scorer",
                    f"policy {shown(policy.name)}: the scores of {self._name(index)} never differ",
                    f"0 of {tried} that were tried",
                    f"every broker gets the same score, {spreads[index][0][0]:g} in the first case",
                    "leave it out, or see whether the log and the brokers have what it goes by",
                )
        if len(known) < len(policy.scorers) or not differing:
            return
        terms = [
            [policy.scorers[index].weight * spreads[index][number] for index in known]
            for number in range(len(self._cases))
        ]
        if len(differing) > 1 and all(np.ptp(np.sum(term, axis=0)) <= _CLOSE for term in terms):
            yield Finding(
                "cancel",
                f"policy {shown(policy.name)}: {' and '.join(map(self._name, differing))} cancel each other",
                f"all of {tried} that were tried",
                "their weighted scores add up to the same for every broker",
                "leave one out, or give it another weight",
            )
            return
        idle = [index for index in differing if self._changes_nothing(index)]
        if idle and len(idle) == len(differing):
            yield Finding(
                "selector",
                f"policy {shown(policy.name)}: the selector {policy.selector.name} does not go by its scores",
                f"0 of {tried} that were tried",
                f"without {', '.join(map(self._name, idle))} the odds are the same",
                "take a selector that goes by scores, such as best, or leave the scorers out",
            )
            return
        for index in idle:
            yield Finding(
                "weight",
                f"policy {shown(policy.name)}: the weight {policy.scorers[index].weight:g} of {self._name(index)} "
                "changes nothing",
                f"0 of {tried} that were tried",
                "without it the odds are the same",
                "leave it out, or give it a greater weight",
            )

    def _changes_nothing(self, index: int) -> bool:
        rest = tuple(term for place, term in enumerate(self._policy.scorers) if place != index)
        without = _ballots(replace(self._policy, scorers=rest), self._cases)
        return all(
            np.allclose(_odds(other, case.view), _odds(ballot, case.view), rtol=0, atol=_CLOSE)
            for case, ballot, other in zip(self._cases, self._ballots, without, strict=True)
        )

    def _scores(self, index: int, case: Case) -> NDArray[np.float64]:
        instant = self._instants[id(case.view)]
        return self._policy.score(index, case.request, instant.offered, instant)

    def _name(self, index: int) -> str:
        return self._policy.scorers[index].scorer.name
