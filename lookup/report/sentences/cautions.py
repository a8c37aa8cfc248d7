"""Describe the facts to know before a figure is trusted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from lookup.model.quoting import join_names, quantity
from lookup.report.figures import Results
from lookup.report.numbers import change_text, number_text
from lookup.report.sentences.decision import by_policy
from lookup.report.sentences.names import capitalise, condition_of
from lookup.score.figures import Figure
from lookup.score.luck import least_chance, quantile, replicates_for
from lookup.score.verdict import GATE_LEVEL

__all__ = ["cautions", "idle_sentences", "no_answer_sentences"]

#: With fewer replicates their cost is named.
_FEWEST = 5


def cautions(results: Results) -> list[str]:
    """List the facts that a reader should know, starting with facts that may invalidate all figures."""
    about = (
        no_answer_sentences, _describe_clusters, _describe_units, _describe_conditions, _describe_few_seeds,
        _describe_placement, _describe_inputs, _describe_fidelity, _describe_distances,
    )  # fmt: skip
    return [sentence for sentences in about for sentence in sentences(results)]


def no_answer_sentences(results: Results) -> Iterator[str]:
    """Name the clusters without any answer, since policies that answer no lookup look like a result."""
    rows = [row for row in results.figures if row.metric == "answered_ratio" and row.scope == "cluster"]
    answered = {row.cluster for row in rows if row.value != 0.0}
    for cluster in sorted({row.cluster for row in rows if row.cluster is not None} - answered):
        yield (
            f"No policy answered a single lookup of cluster {cluster}: no broker was registered when lookups came, or "
            "filters rejected all. Compare the times of brokers with those of the log, and see `lookup explain`."
        )


def idle_sentences(results: Results) -> Iterator[str]:
    """Name the policies that cannot act on this log, with a remedy, as the first line of every report."""
    for reason, names in _group_by_reason(results.cannot_act).items():
        yield f"{join_names(names)} cannot act on this log: {reason}."


def _group_by_reason(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    policies: dict[str, list[str]] = {}
    for policy, reason in reasons.items():
        policies.setdefault(reason, []).append(policy)
    return policies


def _describe_clusters(results: Results) -> Iterator[str]:
    of_figure: dict[tuple[str, str], list[Figure]] = {}
    for row in results.figures:
        if row.scope == "cluster" and row.has_interval:
            of_figure.setdefault((row.label, row.policy), []).append(row)
    for (label, policy), rows in of_figure.items():
        texts = []
        for row in rows:
            up = row.better == "up"
            is_gain, is_loss = (
                (row.change_low > 0, row.change_high < 0) if up else (row.change_high < 0, row.change_low > 0)
            )
            word = "better" if is_gain else "worse" if is_loss else "undecided"
            texts.append(f"{word} in {row.cluster} ({change_text(row.value - row.change, row.value, row)})")
        yield f"Clusters disagree on {label} of {policy}: {', '.join(texts)}."


def _find_demand(results: Results) -> Figure | None:
    """Find the figure with the units of the whole demand, which is answers, else the first one with units."""
    own = [row for row in results.pooled.values() if row.policy == results.incumbent and row.units is not None]
    return min(own, key=lambda row: row.metric != "answered_ratio", default=None)


def _describe_units(results: Results) -> Iterator[str]:
    row = _find_demand(results)
    if row is None or row.units is None or row.unit_count is None or not results.verdicts:
        return
    count = quantity(row.unit_count, row.units[:-1])
    text = f"The demand comes from {count}, as many as {row.unit_worth:.0f} of equal size"
    if row.units == "tenants":
        text += f". Namespaces of a tenant share their {results.label_of_tenants}"
    elif row.units_assumed:
        above = "namespaces" if row.units == "bundles" else "tenants"
        text += f". There are too few {above} to show that these are independent, so marks are open (△ ▽)"
    yield f"{text}."


def _describe_conditions(results: Results) -> Iterator[str]:
    figures: dict[str, list[Figure]] = {}
    # Where this holds for the whole demand, the units show it.
    demand = _find_demand(results)
    is_said = demand is not None and demand.units_assumed
    for row in results.verdicts:
        if row.is_decided and row.holds_for in ("hours", "" if is_said else "independence"):
            figures.setdefault(condition_of(row), []).append(row)
    for condition, rows in sorted(figures.items()):
        remedy = "a longer log" if condition == "only in these hours" else "a log with more namespaces or tenants"
        yield (
            f"{capitalise(condition)} (△ ▽): {by_policy(rows)}. These do not decide the exit code. "
            f"{capitalise(remedy)} would decide them."
        )


def _describe_few_seeds(results: Results) -> Iterator[str]:
    seeds, together = len(results.seeds), results.comparisons.deciding
    if results.verdicts and 1 < seeds < _FEWEST:
        # By Student's t and the number of replicates.
        few, enough = (quantile(n - 1) / math.sqrt(n) for n in (seeds, _FEWEST))
        yield (
            f"With {seeds} seeds intervals are {few / enough:.1f} times as wide as with {_FEWEST} where the placement "
            f"prevails, and no change is more certain than {1 - least_chance(seeds):.1%}."
        )
    if least_chance(seeds) * together > GATE_LEVEL:
        needed = replicates_for(GATE_LEVEL / together)
        yield (
            f"{seeds} seeds are too few for {quantity(together, 'comparison')} for the exit code: no loss can become "
            f"significant. {needed} seeds are enough."
        )


def _describe_placement(results: Results) -> Iterator[str]:
    decides = "decide" if results.rules.accept_placement else "do not decide"
    for reason, names in _group_by_reason(results.placed_once).items() if results.verdicts else ():
        yield (
            f"{', '.join(names)}: {reason}. Its verdicts hold for this placement only (△ ▽), and "
            f"{decides} the exit code."
        )


def _describe_inputs(results: Results) -> Iterator[str]:
    inputs, evaluation = results.inputs, results.evaluation
    if inputs.capacity == "assumed":
        yield (
            "No broker has a capacity, so all of a cluster were given the same one, with a mean usage of 0.5. Usage "
            "then compares brokers with each other, and not with their limits. overload_ratio is not computed."
        )
    if inputs.induced_ratio:
        yield (
            f"{inputs.induced_ratio:.2%} of the lookups came within {evaluation.reconnect_s} s after their bundle was "
            "unloaded or lost in the log. Another policy might not have caused them."
        )
    if inputs.quarantined:
        yield f"{quantity(inputs.quarantined, 'record')} could not be used and went to the quarantine table."
    for finding in inputs.findings or ():
        yield f"{finding.sentence}."


def _describe_fidelity(results: Results) -> Iterator[str]:
    own = [row for row in results.pooled.values() if row.policy == results.incumbent]
    compared = [row for row in own if row.no_gap is not None or not math.isnan(row.gap)]
    if compared and all(math.isnan(row.gap) for row in compared):
        yield f"Whether the replay resembles reality is unknown: {compared[0].no_gap}."
    margin, strange = results.rules.margin, []
    for row in compared:
        margins = [each.margin for each in results.verdicts if each.name == row.name and not math.isnan(each.margin)]
        # A guarded metric's own margin is for losses, and is far too small for the other effects in a log.
        if row.gap > max(*margins, 0.0, margin * abs(row.value)):
            logged, low, high = map(number_text, (row.logged, row.replay_low, row.replay_high))
            strange.append(f"{row.label} ({logged} logged, {low} to {high} replayed)")
    if strange:
        yield (
            f"The log was not written by {results.incumbent}: no replicate of it would show {', '.join(strange)}. "
            "Changes that are not larger than these distances stay open."
        )


def _describe_distances(results: Results) -> Iterator[str]:
    shares = [row.value for row in results.pooled.values() if row.metric == "network_covered_ratio"]
    least = min((share for share in shares if not math.isnan(share)), default=1.0)
    if least == 0.0:
        yield "Distances are unknown: no client and broker have locations that can be compared."
    # Below half a percent the remark would only be noise, and would round to 100 %.
    elif least < 0.995:
        yield f"Network figures cover {least:.1%} of the weight or more. For the rest no distance is known."
