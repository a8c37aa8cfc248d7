"""Compare settings with a log, and find valid settings that have no effect on it or are out of proportion to it.

All findings of `lookup inspect` and runs are here. They need no policy's call and no row, only counts of the coded log.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import MICRO
from lookup.engine.policy import Policy
from lookup.model.evidence import effective
from lookup.model.quoting import closest, join_names, quantity, shown
from lookup.replay.outcome import Finding, MetricSums
from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.replay.presence import about_times
from lookup.replay.proportions import blocks_in, longest_block, mean_load_of, published_labels, suggested_session
from lookup.settings.cluster import NamespaceEntry
from lookup.settings.evaluation import EvaluationFile
from lookup.settings.resolve import bundle_counts

__all__ = ["about_evidence", "find"]

#: Names this much alike (a ratio) are taken for one name and its misspelling.
_ALIKE = 0.7
#: Share of the lookups with a label that no broker answers, from which on it is worth a finding.
_MANY = 0.05
#: Lookups from which on it is no chance that all came at full quarters of an hour.
_TELLING = 10
#: Share of a sample that is there twice, from which on the log is.
_MOSTLY = 0.5
#: A session that is this many times shorter than the suggested one is worth a finding.
_SHORTER = 4
#: Mean loads above and below these multiples of a capacity are no mistake in an estimate, but another unit.
_ABOVE, _BELOW = 5.0, 0.001


def find(
    settings: EvaluationFile, policies: Sequence[Policy], clusters: Sequence[ClusterPlan], run: RunPlan
) -> list[Finding]:
    """List the settings without effect on a log or out of proportion to it, unless `lint.accept` names their kind.

    Args:
        policies: those of the settings.
        clusters: those of the log.
    """
    findings = [
        *about_times(clusters, run),
        *_check_client_rules(settings, clusters),
        *(finding for entry in settings.namespaces for finding in _check_namespace(entry, clusters)),
        *_check_bundle_counts(settings, clusters),
        *_check_new_namespaces(settings),
        *_check_labels(policies, clusters),
        *_check_times_of_day(clusters),
        *_check_blocks(settings, clusters, run),
    ]
    if settings.evaluation.load == "simulated":
        findings += [*_check_sessions(settings, policies, clusters), *_check_capacities(settings, clusters)]
    return [finding for finding in findings if finding.kind not in settings.lint.accept]


def _count_demand(clusters: Sequence[ClusterPlan]) -> int:
    return sum(cluster.words.counts["demand"] for cluster in clusters)


def _check_client_rules(settings: EvaluationFile, clusters: Sequence[ClusterPlan]) -> Iterator[Finding]:
    applied = np.sum([cluster.words.by_rule for cluster in clusters], axis=0)
    for index, entry in enumerate(settings.clients):
        if not applied[index]:
            yield Finding(
                "client-rule",
                f"clients[{index}], {shown(entry.match.cidr or entry.match.client)}, applies to none of "
                f"{quantity(_count_demand(clusters), 'lookup')}; compare it with the log's column `client`, or put it "
                "before an entry that takes all its clients",
                0,
            )


def _check_namespace(entry: NamespaceEntry, clusters: Sequence[ClusterPlan]) -> Iterator[Finding]:
    namespaces = {namespace for cluster in clusters for namespace in cluster.words.atoms.namespaces}
    if entry.name not in namespaces:
        like = closest(entry.name, namespaces, cutoff=_ALIKE)
        right = f"did you mean {shown(like)}?" if like else f"the log has {join_names(sorted(namespaces))}"
        yield Finding("namespace", f"nothing is looked up in the [[namespaces]] entry {shown(entry.name)}; {right}", 0)
    hosts = {broker.host for cluster in clusters for broker in cluster.timeline.brokers}
    for pattern in (pattern for rule in entry.isolation for pattern in (*rule.primary, *rule.secondary)):
        if not any(re.fullmatch(pattern, host) for host in hosts):
            yield Finding(
                "isolation",
                f"the isolation of {entry.name} names hosts {shown(pattern)}, which fits none of "
                f"{join_names(sorted(hosts))}; a pattern is a regular expression of the whole host name, without port",
                0,
            )


def _check_bundle_counts(settings: EvaluationFile, clusters: Sequence[ClusterPlan]) -> Iterator[Finding]:
    atoms = [cluster.words.atoms for cluster in clusters]
    reported = {name for cluster in clusters if cluster.bundle_loads for name in cluster.bundle_loads.unknown}
    # A table has all clusters, and a bundle that one of them has split is another's as a whole.
    missing = sorted(
        {name for name in reported if all(each.slice_of(name) is None for each in atoms)}
        | {name for cluster in clusters for name in _iter_foreign_bundles(cluster, None)}
    )
    if missing:
        yield Finding(
            "bundles",
            f"OWNERSHIP and BUNDLES name {quantity(len(missing), 'bundle')} that no namespace has in these settings, "
            f"such as {missing[0]}, so their owners, splits, unloads and loads are ignored; set "
            "evaluation.default_bundles, or the bundles of each namespace in [[namespaces]]",
            len(missing),
        )
    counts = bundle_counts(settings)
    for policy in (policy for policy in settings.policies if policy.bundles in counts):
        missing = sorted({bundle for cluster in clusters for bundle in _iter_foreign_bundles(cluster, policy.bundles)})
        if missing:
            yield Finding(
                "bundles",
                f"policy {shown(policy.name)} has {policy.bundles:,} bundles in a namespace, and OWNERSHIP names "
                f"{join_names(missing)}, whose owners, splits and unloads do not happen to it; leave inputs.ownership "
                "out to treat all policies alike",
                len(missing),
            )


def _check_new_namespaces(settings: EvaluationFile) -> Iterator[Finding]:
    """Find policies whose brokers create namespaces with another number of bundles, which the replay does not show."""
    counts = {policy.name: policy.bundles_of_new_namespaces for policy in settings.policies}
    today = counts.get(settings.evaluation.incumbent)
    others: dict[int, list[str]] = {}
    for policy in settings.policies:
        count = counts[policy.name]
        if count is not None and count != today and policy.bundles is None:
            others.setdefault(count, []).append(policy.name)
    for count, names in others.items() if today is not None else ():
        yield Finding(
            "new-namespaces",
            f"under {join_names(names)} brokers create a namespace with {count} bundles instead of {today}, but all "
            "namespaces keep their bundles here, as they do in an upgrade; to replay namespaces that begin in the log, "
            f"list all others in [[namespaces]], set bundles = {count} in these policies, and leave inputs.bundles out",
            len(names),
        )


def _iter_foreign_bundles(cluster: ClusterPlan, count: int | None) -> Iterator[str]:
    rule, timeline = cluster.words.atoms.rule, cluster.timeline
    own = {bundle for bundle, _ in cluster.words.atoms.first_bundles(count)}
    for parent, children in timeline.splits:
        own.update(children if parent in own else ())
    for bundle in (*timeline.owners, *(parent for parent, _ in timeline.splits), *timeline.unloads):
        name = bundle.rpartition("/")[0]
        if bundle in own or name not in cluster.words.atoms.base:
            continue
        # All policies have the same bundles of the other namespaces.
        if count is None or rule.first_boundaries(name) != rule.first_boundaries(name, count):
            yield bundle


def _check_labels(policies: Sequence[Policy], clusters: Sequence[ClusterPlan]) -> Iterator[Finding]:
    lookups, published = _count_demand(clusters), published_labels(clusters)
    sent: dict[str, Counter[str]] = {}
    for cluster in clusters:
        for properties, count in zip(cluster.words.properties, cluster.words.by_properties.tolist(), strict=True):
            for key, value in properties.items():
                sent.setdefault(key, Counter())[value] += count
    read: set[str] = set()
    for policy in policies:
        for part, reads in zip(policy.parts, policy.part_reads, strict=True):
            keys = sorted(name.partition(".")[2] for name in reads if name.startswith("properties."))
            read.update(keys)
            yield from _find_unsent_keys(f"policy {shown(policy.name)}: {part.name}", keys, sent, lookups)
    for key in sorted(read & sent.keys()):
        yield from _find_unmet_labels(key, sent[key], published, lookups)
    if published and not sent:
        yield Finding(
            "broker-label",
            f"brokers publish {join_names(sorted(published))}, and none of {quantity(lookups, 'lookup')} sends a "
            "property; label clients by [[clients]] or by the mapping of the log",
            0,
        )


def _find_unsent_keys(
    part: str, keys: Sequence[str], sent: Mapping[str, Counter[str]], lookups: int
) -> Iterator[Finding]:
    """Find the properties of a part that no client sends. Of several, like the levels of a place, one is enough."""
    for key in keys:
        like = closest(key, sent, cutoff=_ALIKE)
        if key in sent or (any(other in sent for other in keys) and like in (None, *keys)):
            continue
        hint = f"clients send {join_names(sorted(sent))}" if sent else "label clients by [[clients]]"
        right = f"did you mean {shown(like)}?" if like else hint
        problem = f"{part} uses the property {shown(key)}, which none of {quantity(lookups, 'lookup')} sends"
        yield Finding("policy-key", f"{problem}; {right}", 0)


def _find_unmet_labels(
    key: str, sent: Counter[str], published: Mapping[str, Counter[str]], lookups: int
) -> Iterator[Finding]:
    if key not in published:
        like = closest(key, published, cutoff=_ALIKE)
        right = f"did you mean {shown(like)}?" if like else f"give brokers a property `lookup.{key}`"
        problem = f"{sent.total():,} of {quantity(lookups, 'lookup')} send {shown(key)}, which no broker publishes"
        yield Finding("broker-key", f"{problem}; {right}", sent.total())
        return
    alone = {value: count for value, count in sent.items() if value not in published[key]}
    count = sum(alone.values())
    # A few odd clients are no mistake, and `lookup inspect` shows every label.
    if count >= _MANY * sent.total():
        yield Finding(
            "client-label",
            f"{count:,} of {quantity(lookups, 'lookup')} send {key} = {join_names(sorted(alone))}, which no broker "
            f"has; brokers have {join_names(sorted(published[key]))}",
            count,
        )


def _check_times_of_day(clusters: Sequence[ClusterPlan]) -> Iterator[Finding]:
    lookups = _count_demand(clusters)
    if lookups >= _TELLING and sum(cluster.words.counts["quarters"] for cluster in clusters) == lookups:
        yield Finding(
            "time-of-day",
            f"all of {quantity(lookups, 'lookup')} came at a full quarter of an hour, to the microsecond; read date "
            'and time of day together, like timestamp = { column = "{date} {time}", ... } in the mapping',
            lookups,
        )
    for words in (cluster.words for cluster in clusters):
        if words.even_ratio >= _MOSTLY:
            count = round(words.even_ratio * words.counts["demand"])
            yield Finding(
                "doubled",
                f"about {words.even_ratio:.0%} of the lookups of cluster {shown(words.cluster)} are there twice, with "
                "the same time and topic; see whether inputs.lookups holds the same rows in two files or folders",
                count,
            )


def _check_blocks(settings: EvaluationFile, clusters: Sequence[ClusterPlan], run: RunPlan) -> Iterator[Finding]:
    section, rules = settings.evaluation, settings.verdict
    first = run.first_scored(min(cluster.words.first_us for cluster in clusters))
    last = max(cluster.words.last_us for cluster in clusters)
    blocks = blocks_in(first, last, balance_s=section.balance_s, block_s=rules.block_s)
    if blocks >= rules.min_units:
        return
    length = longest_block(first, last, at_least=rules.min_units, tick_s=section.tick_s)
    block_s = section.balance_s * max(1, round(rules.block_s / section.balance_s))
    shorter = f", or give evaluation.balance_s = {length} and verdict.block_s = {length}" if length else ""
    yield Finding(
        "few-blocks",
        f"the log has {quantity(blocks, 'block')} of {block_s} s, fewer than verdict.min_units = {rules.min_units}, so "
        "that comparisons of figures over time are inconclusive; take a longer log, of "
        f"{rules.min_units * block_s:,} s at least{shorter}",
        blocks,
    )


def about_evidence(settings: EvaluationFile, sums: Iterable[MetricSums]) -> Iterator[Finding]:
    """Find traffic on so few bundles that comparisons over bundles have too little evidence.

    Args:
        sums: sums of a replay, among them `answered_ratio`, whose last column is the number of lookups of each bundle.
    """
    incumbent, by_cluster = settings.evaluation.incumbent, dict[str, NDArray[np.float64]]()
    for part in sums:
        if (part.metric, part.policy, part.by) == ("answered_ratio", incumbent, ()):
            by_cluster.setdefault(part.cluster, part.sums[:, -1])
    lookups = np.concatenate([np.zeros(0), *by_cluster.values()])
    worth, bundles = effective(lookups), np.count_nonzero(lookups)
    if 0 < worth < settings.verdict.min_units <= bundles and "skewed" not in settings.lint.accept:
        yield Finding(
            "skewed",
            f"one of {bundles:,} bundles carries {lookups.max() / lookups.sum():.0%} of the traffic, so that they have "
            f"the evidence of {worth:.1f} bundles of equal weight, fewer than verdict.min_units = "
            f"{settings.verdict.min_units}; take a log with more bundles that carry traffic, or split the namespace",
            int(bundles),
        )


def _check_sessions(
    settings: EvaluationFile, policies: Sequence[Policy], clusters: Sequence[ClusterPlan]
) -> Iterator[Finding]:
    section = settings.evaluation
    readers = [policy.name for policy in policies if "view.load" in policy.reads or policy.shedder is not None]
    for cluster in clusters if readers and settings.inputs.bundles is None else ():
        brokers = cluster.timeline.most_registered
        rate = cluster.words.counts["demand"] / _measure_seconds(cluster, section.tick_s) / brokers if brokers else 0.0
        needed = suggested_session(rate, section.tick_s) if rate else 0
        if needed > _SHORTER * section.session_s:
            yield Finding(
                "short-session",
                f"{join_names(readers)} {'goes' if len(readers) == 1 else 'go'} by load, and in evaluation.session_s = "
                f"{section.session_s} a broker of {cluster.name} serves {rate * section.session_s:,.1f} lookups on "
                f"average, so that load is mostly chance; give evaluation.session_s = {needed}, in which it serves "
                f"{rate * needed:,.0f}, if sessions of clients last that long",
                round(rate * section.session_s),
            )


def _check_capacities(settings: EvaluationFile, clusters: Sequence[ClusterPlan]) -> Iterator[Finding]:
    for cluster in clusters:
        capacities = [broker.capacity for broker in cluster.timeline.brokers if broker.capacity is not None]
        capacity = sum(capacities) / len(capacities) if capacities else 0.0
        seconds, brokers = _measure_seconds(cluster, settings.evaluation.tick_s), cluster.timeline.most_registered
        load = None if settings.inputs.bundles else mean_load_of(cluster.words.counts["micro"], seconds, brokers)
        if settings.inputs.bundles and not capacities:
            problem = f"BUNDLES gives bytes/s, and no broker of {cluster.name} has a capacity, so usage has no meaning"
            yield Finding("no-capacity", f"{problem}; give every broker one, in bytes/s", 0)
        if capacities and load is not None and not _BELOW * capacity <= load <= _ABOVE * capacity:
            yield Finding(
                "capacity-unit",
                f"a broker of {cluster.name} has a capacity of {capacity:g} weight/s on average, and serves {load:.4g} "
                f"weight/s; state it in weight/s, about {2 * load:.3g} if brokers are half used on average",
                len(capacities),
            )
        if without := cluster.without_capacity:
            yield Finding(
                "no-capacity",
                f"of {cluster.name} some brokers have a capacity, and {join_names(without)} have none, so that their "
                "usage is unknown; give every broker of a cluster one, or none of them",
                len(without),
            )


def _measure_seconds(cluster: ClusterPlan, tick_s: int) -> float:
    return max((cluster.words.last_us - cluster.words.first_us) / MICRO, float(tick_s))
