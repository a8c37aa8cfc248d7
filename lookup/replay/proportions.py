"""Find settings out of proportion to a log: too few blocks of time, too short a session, capacities in another unit.

Beside them: labels that one broker each has, so that a policy that goes by them has nothing left to choose.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import MICRO
from lookup.engine.policy import Policy
from lookup.model.evidence import effective
from lookup.model.quoting import listed, quantity, shown
from lookup.model.topology import LEVELS
from lookup.replay.outcome import Finding, MetricSums
from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.settings.evaluation import EvaluationFile

__all__ = [
    "about_evidence",
    "about_proportions",
    "blocks_in",
    "longest_block",
    "mean_load_of",
    "published_labels",
    "suggested_session",
]

#: Lengths of blocks that are proposed, s.
_ROUND_S = (3600, 1800, 900, 600, 300, 60)
#: Lookups that a broker should serve in the time load is taken from: chance then makes a tenth of its load.
_ENOUGH = 100
#: No longer session is suggested, s.
_LONGEST_S = 3600
#: A session that is this many times shorter than the suggested one is worth a finding.
_SHORTER = 4
#: Lookups from which on it is no chance that all came at full quarters of an hour.
_TELLING = 10
#: Share of lookups without load to go by, above which load is no more than chance.
_MOSTLY = 0.5
#: Mean loads above and below these multiples of a capacity are no mistake in an estimate, but another unit.
_ABOVE, _BELOW = 5.0, 0.001


def about_proportions(
    settings: EvaluationFile,
    policies: Sequence[Policy],
    clusters: Sequence[ClusterPlan],
    run: RunPlan,
    quiet: Mapping[str, float],
) -> Iterator[Finding]:
    """Find settings that are valid and far from what the log would need.

    Args:
        policies: those of the settings.
        clusters: those of the log.
        quiet: by cluster the share of lookups before which, in the time that load is taken from, brokers had served
            less than one lookup each.
    """
    yield from _about_times(clusters)
    yield from _about_repeats(clusters)
    yield from _about_blocks(settings, clusters, run)
    if settings.evaluation.load == "simulated":
        yield from _about_load(settings, policies, clusters, quiet)
        yield from _about_capacities(settings, clusters)
        yield from _about_missing_capacities(clusters)
    yield from _about_places(policies, clusters)


# Time


def blocks_in(first_us: int, last_us: int, *, balance_s: int, block_s: int) -> int:
    """Return of how many blocks of neighbouring cells a time consists, as verdicts count them.

    Args:
        first_us: of the first lookup that is scored, µs.
        last_us: of the last one, µs.
        balance_s: length of a cell.
        block_s: length of a block; it is rounded to whole cells.
    """
    cell_us = balance_s * MICRO
    cells = max(0, last_us // cell_us - first_us // cell_us + 1)
    return -(-cells // max(1, round(block_s / balance_s)))


def longest_block(first_us: int, last_us: int, *, at_least: int, tick_s: int) -> int | None:
    """Return the longest round length of a cell and a block of which a time has enough, s; None if there is none.

    Args:
        first_us: of the first lookup that is scored, µs.
        last_us: of the last one, µs.
        at_least: how many blocks are enough.
        tick_s: of which a cell is a multiple.
    """
    return next(
        (
            length
            for length in _ROUND_S
            if not length % tick_s and blocks_in(first_us, last_us, balance_s=length, block_s=length) >= at_least
        ),
        None,
    )


def _about_times(clusters: Sequence[ClusterPlan]) -> Iterator[Finding]:
    """Find a log whose times are days, which have lost their time of day on the way."""
    lookups = sum(cluster.words.counts["demand"] for cluster in clusters)
    if lookups >= _TELLING and sum(cluster.words.counts["quarters"] for cluster in clusters) == lookups:
        yield Finding(
            "time-of-day",
            "every lookup came at a full quarter of an hour, to the microsecond",
            f"all {lookups:,} lookups",
            "figures over time, and what policies see of load, are of that and not of the cluster",
            'read date and time of day together, like timestamp = { column = "{date} {time}", ... } in the mapping',
        )


def _about_repeats(clusters: Sequence[ClusterPlan]) -> Iterator[Finding]:
    """Find a log that is there twice, as when a folder is ingested into a table that has its rows already."""
    for cluster in clusters:
        words = cluster.words
        if words.even_ratio >= _MOSTLY:
            lookups = words.counts["demand"]
            yield Finding(
                "doubled",
                f"lookups of cluster {shown(words.cluster)} are there twice, with the same time and topic",
                f"about {words.even_ratio:.0%} of {quantity(lookups, 'lookup')}",
                "every figure counts them twice: load, weights, and how much a log can tell",
                "see whether inputs.lookups holds the same rows in two files or folders",
            )


def _about_blocks(settings: EvaluationFile, clusters: Sequence[ClusterPlan], run: RunPlan) -> Iterator[Finding]:
    """Find a log with fewer blocks of time than a verdict needs."""
    section, rules = settings.evaluation, settings.verdict
    first = run.first_scored(min(cluster.words.first_us for cluster in clusters))
    last = max(cluster.words.last_us for cluster in clusters)
    blocks = blocks_in(first, last, balance_s=section.balance_s, block_s=rules.block_s)
    if blocks >= rules.min_units:
        return
    length = longest_block(first, last, at_least=rules.min_units, tick_s=section.tick_s)
    block_s = section.balance_s * max(1, round(rules.block_s / section.balance_s))
    yield Finding(
        "few-blocks",
        f"the log has {quantity(blocks, 'block')} of {block_s} s, fewer than verdict.min_units = {rules.min_units}",
        f"{max(0, last - first) / MICRO:,.0f} s are scored",
        "every comparison of imbalance, overload and other figures over time is inconclusive for that",
        f"take a longer log, of {rules.min_units * block_s:,} s at least"
        + (
            f", or give evaluation.balance_s = {length} and verdict.block_s = {length}, which drift makes longer again"
            if length
            else ""
        ),
    )


def about_evidence(settings: EvaluationFile, sums: Iterable[MetricSums]) -> Iterator[Finding]:
    """Find traffic on so few bundles that comparisons over bundles rest on too little.

    Args:
        sums: of a replay, with those of `answered_ratio`: their last column is how many lookups each bundle had.
    """
    incumbent, seen = settings.evaluation.incumbent, dict[str, NDArray[np.float64]]()
    for part in sums:
        if (part.metric, part.policy, part.by) == ("answered_ratio", incumbent, ()):
            seen.setdefault(part.cluster, part.sums[:, -1])
    lookups = np.concatenate([np.zeros(0), *seen.values()])
    worth, bundles = effective(lookups), np.count_nonzero(lookups)
    if 0 < worth < settings.verdict.min_units <= bundles and "skewed" not in settings.lint.accept:
        yield Finding(
            "skewed",
            f"one bundle carries {lookups.max() / lookups.sum():.0%} of the traffic",
            f"{bundles:,} bundles",
            f"this log has the evidence of {worth:.1f} bundles of equal weight, fewer than verdict.min_units = "
            f"{settings.verdict.min_units}, so that comparisons over bundles are inconclusive",
            "take a log with more bundles that carry traffic, or split the namespace",
        )


# Load


def suggested_session(rate: float, tick_s: int) -> int:
    """Return the shortest session, in whole ticks, in which a broker serves enough lookups; an hour at most, s.

    Args:
        rate: lookups per second of a broker.
    """
    return math.ceil(min(_LONGEST_S, _ENOUGH / rate) / tick_s) * tick_s


def mean_load_of(micro: int, seconds: float, brokers: int) -> float | None:
    """Return the weight per second that a broker serves on average; None without a broker.

    Args:
        micro: weight of the log, in millionths.
        seconds: from its first lookup to its last, a tick at least.
        brokers: that are registered.
    """
    return micro / MICRO / seconds / brokers if brokers else None


def _seconds(cluster: ClusterPlan, tick_s: int) -> float:
    return max((cluster.words.last_us - cluster.words.first_us) / MICRO, float(tick_s))


def _about_load(
    settings: EvaluationFile, policies: Sequence[Policy], clusters: Sequence[ClusterPlan], quiet: Mapping[str, float]
) -> Iterator[Finding]:
    """Find policies that go by load in clusters whose sessions are too short to have one."""
    section = settings.evaluation
    readers = [policy.name for policy in policies if "view.load" in policy.reads or policy.shedder is not None]
    if not readers:
        return
    goes = f"{listed(readers)} {'goes' if len(readers) == 1 else 'go'} by load"
    rates: dict[str, float] = {}
    for cluster in clusters:
        if brokers := cluster.timeline.most_registered:
            rates[cluster.name] = cluster.words.counts["demand"] / _seconds(cluster, section.tick_s) / brokers
    suggested = {name: suggested_session(rate, section.tick_s) for name, rate in sorted(rates.items())}
    without = {name: share for name, share in sorted(quiet.items()) if share > _MOSTLY}
    if without:
        longest = max((suggested[name] for name in without if name in suggested), default=_LONGEST_S)
        yield Finding(
            "no-load",
            f"{goes}, and load was 0 or nearly so",
            "at " + ", ".join(f"{share:.0%} of the lookups of {name}" for name, share in without.items()),
            f"in the {section.session_s} s before, brokers had served less than one lookup each",
            f"a longer evaluation.session_s, {longest} or more",
        )
    short = {name: s for name, s in suggested.items() if s > _SHORTER * section.session_s and name not in without}
    if short:
        served = ", ".join(f"{rates[name] * section.session_s:,.1f} lookups in {name}" for name in short)
        yield Finding(
            "short-session",
            f"{goes}, and in evaluation.session_s = {section.session_s} a broker serves few lookups",
            f"on average {served}",
            f"load is then mostly chance; in {max(short.values())} s a broker serves about {_ENOUGH}",
            f"give evaluation.session_s = {max(short.values())}, if sessions of clients last that long",
        )


def _about_capacities(settings: EvaluationFile, clusters: Sequence[ClusterPlan]) -> Iterator[Finding]:
    """Find capacities that are hardly in weight per second."""
    for cluster in clusters:
        capacities = [broker.capacity for broker in cluster.timeline.brokers if broker.capacity is not None]
        seconds = _seconds(cluster, settings.evaluation.tick_s)
        load = mean_load_of(cluster.words.counts["micro"], seconds, cluster.timeline.most_registered)
        if not capacities or load is None:
            continue
        capacity = sum(capacities) / len(capacities)
        if _BELOW * capacity <= load <= _ABOVE * capacity:
            continue
        yield Finding(
            "capacity-unit",
            f"a broker of {cluster.name} has a capacity of {capacity:g} weight/s on average, and serves {load:.4g} "
            "weight/s",
            f"{load / capacity:.3g} times the capacity",
            "a capacity is the weight per second at which a broker is fully used; a lookup weighs 1 where the log does "
            "not say",
            f"state it in weight/s: about {2 * load:.3g} if brokers are half used on average",
        )


def _about_missing_capacities(clusters: Sequence[ClusterPlan]) -> Iterator[Finding]:
    """Find brokers without a capacity among others that have one."""
    for cluster in clusters:
        if without := cluster.without_capacity:
            yield Finding(
                "no-capacity",
                f"of {cluster.name} some brokers have a capacity, and others have none: {listed(without)}",
                f"{len(without):,} of {quantity(len(cluster.timeline.roster), 'broker')}",
                "their usage is unknown to policies and shedders, and overload_ratio leaves them out; a capacity is "
                "assumed only where no broker of a cluster has one",
                "give every broker a capacity, in [[brokers]] or in its profile, or none of them",
            )


# Places


def _about_places(policies: Sequence[Policy], clusters: Sequence[ClusterPlan]) -> Iterator[Finding]:
    """Find labels that one broker each has, and that policies go by."""
    lone: dict[str, Counter[str]] = {}
    for cluster in clusters:
        sent = {key for properties in cluster.words.properties for key in properties}
        for key, brokers in published_labels([cluster]).items():
            if key in sent and len(brokers) > 1 and max(brokers.values()) == 1:
                lone.setdefault(key, Counter()).update(brokers)
    for key, brokers in sorted(lone.items()):
        readers = [policy.name for policy in policies if f"properties.{key}" in policy.reads]
        if readers:
            yield Finding(
                "single-broker",
                f"{listed(readers)} {'goes' if len(readers) == 1 else 'go'} by {key}, and each {key} has one broker",
                quantity(len(brokers), "label"),
                "a lookup with a label has no second broker to be placed on, so that other dice change nothing, and "
                "verdicts may hold for this placement only",
                f"two or more brokers for each {key}, in [[brokers]] or in the table BROKERS",
            )


def published_labels(clusters: Sequence[ClusterPlan]) -> dict[str, Counter[str]]:
    """Return by key how many brokers have each label, as clients' properties are compared with them."""
    published: dict[str, Counter[str]] = {}
    for broker in (broker for cluster in clusters for broker in cluster.timeline.brokers):
        prefix = broker.property_prefix
        # The place as settings have it, and the labels that the broker publishes.
        labels = {level: place for level in LEVELS if (place := getattr(broker.location, level)) is not None}
        labels |= {
            key.removeprefix(prefix): value
            for key, value in broker.lookup_data.properties.items()
            if key.startswith(prefix)
        }
        for key, value in labels.items():
            published.setdefault(key, Counter())[value] += 1
    return published
