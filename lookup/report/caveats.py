"""Write what a reader should know before trusting the figures of a run, one sentence for each fact."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from lookup.model.quoting import listed, quantity
from lookup.report.comparison import alike, label, number_text, scope_of, signed_text
from lookup.score.luck import least_chance, quantile, replicates_for
from lookup.score.rules import margin_of
from lookup.score.scoring import Scored
from lookup.score.verdict import GATE_LEVEL, family

__all__ = ["caveats", "no_answers", "what_cannot_act"]

#: With fewer replicates it is said what that costs.
_FEW_SEEDS = 5


def caveats(scored: Scored) -> list[str]:
    """Return the facts a reader should know; those that may invalidate all figures come first."""
    about = (
        no_answers, _clusters_that_disagree, _units, _open_marks, _few_seeds, _this_placement, _input, _alike,
        _fidelity, _distances,
    )  # fmt: skip
    return [sentence for sentences in about for sentence in sentences(scored)]


def no_answers(scored: Scored) -> Iterator[str]:
    """Say in which clusters nothing was answered: policies that answer nobody are alike, which looks like a result."""
    ratios = [each for each in scored.estimates if each.series.metric.name == "answered_ratio" and not each.series.by]
    answered = {each.cluster for each in ratios if each.value != 0.0}
    for cluster in sorted({each.cluster for each in ratios if each.cluster is not None} - answered):
        yield (
            f"No policy answered a single lookup of cluster {cluster}: no broker was registered when lookups came, or "
            "filters left none. Compare the times of brokers with those of the log, and see `lookup explain`."
        )


def _by_reason(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    policies: dict[str, list[str]] = {}
    for policy, reason in reasons.items():
        policies.setdefault(reason, []).append(policy)
    return policies


def what_cannot_act(scored: Scored) -> Iterator[str]:
    """Say which shedders cannot act on this log, and what would make them act: the first line of every report."""
    for reason, names in _by_reason(scored.cannot_act).items():
        who = names[0] if len(names) == 1 else f"each of {listed(names)}"
        end = f"; {scored.incumbent} is the incumbent, so there is no verdict" if scored.incumbent in names else ""
        yield f"{who} is not what it says: {reason}{end}"


def _clusters_that_disagree(scored: Scored) -> Iterator[str]:
    for verdict in (verdict for verdict in scored.verdicts if verdict.clusters):
        metric = scored.metric[verdict.metric]
        sign = 1.0 if metric.better == "up" else -1.0
        texts = []
        for one in verdict.clusters:
            word = "better" if one.low > 0 else "worse" if one.high < 0 else "undecided"
            texts.append(f"{word} in {one.cluster} ({signed_text(sign * one.delta, metric.unit)} {metric.unit})")
        yield f"{label(*verdict.name)} of {verdict.policy}: clusters disagree, {', '.join(texts)}."


def _units(scored: Scored) -> Iterator[str]:
    if scored.verdicts and (units := scored.units) is not None:
        count = quantity(units.count, units.kind[:-1])
        text = f"The demand comes from {count}, worth {units.worth:.0f} of equal weight"
        if units.kind == "tenants":
            text += f"; namespaces of a tenant share their {scored.label_of_tenants}"
        elif units.is_taken_for_granted:
            above = "namespaces" if units.kind == "bundles" else "tenants"
            text += f". These are of too few {above} to show that they are independent: marks are open (△ ▽)"
        yield f"{text}."


def _open_marks(scored: Scored) -> Iterator[str]:
    figures: dict[str, dict[str, list[str]]] = {}
    # Where it is so of the lookups as a whole, the units say it.
    is_said = scored.units is not None and scored.units.is_taken_for_granted
    for verdict in scored.verdicts:
        if verdict.is_decided and verdict.holds_for in ("hours", "" if is_said else "independence"):
            figures.setdefault(scope_of(verdict), {}).setdefault(label(*verdict.name), []).append(verdict.policy)
    for scope, by_name in sorted(figures.items()):
        listing = "; ".join(f"{name} of {', '.join(policies)}" for name, policies in by_name.items())
        remedy = "a longer log" if scope == "only in these hours" else "a log with more namespaces or tenants"
        yield f"{scope.capitalize()} (△ ▽): {listing}. These do not decide the exit code; {remedy} would say more."


def _few_seeds(scored: Scored) -> Iterator[str]:
    seeds = len(scored.plan.evaluation.drawn)
    if scored.verdicts and 1 < seeds < _FEW_SEEDS:
        # By Student's t and the number of replicates.
        few, enough = (quantile(n - 1) / math.sqrt(n) for n in (seeds, _FEW_SEEDS))
        yield (
            f"{seeds} seeds: intervals are {few / enough:.1f} times as wide as with {_FEW_SEEDS} where luck of the "
            f"placement prevails, and no difference is more certain than {1 - least_chance(seeds):.1%}."
        )
    together, *_ = family(scored.verdicts, scored.plan.rules)
    if least_chance(seeds) * together > GATE_LEVEL:
        needed = replicates_for(GATE_LEVEL / together)
        yield (
            f"{seeds} seeds cannot carry {quantity(together, 'comparison')} for the exit code: of so many no loss can "
            f"be told from chance, however large it is; with {needed} seeds one can."
        )


def _this_placement(scored: Scored) -> Iterator[str]:
    decides = "decide" if scored.plan.rules.accept_placement else "do not decide"
    for reason, names in _by_reason(scored.placed_once).items() if scored.verdicts else ():
        yield (
            f"{', '.join(names)}: {reason}, so verdicts that involve it hold for this placement only (△ ▽) and "
            f"{decides} the exit code: another draw of luck may turn them."
        )


def _input(scored: Scored) -> Iterator[str]:
    inputs, evaluation = scored.inputs, scored.plan.evaluation
    if inputs.capacity == "assumed":
        yield (
            "capacity: assumed. No broker has a capacity, so each was given the same as all of its cluster, at which "
            "mean usage is 0.5. Usage then compares brokers and does not say how full they are; overload_ratio is not "
            "computed."
        )
    if inputs.induced_ratio:
        yield (
            f"{inputs.induced_ratio:.2%} of the lookups came within {evaluation.reconnect_s} s after their "
            "bundle was unloaded or lost in the log; another policy might not have caused them."
        )
    if inputs.quarantined:
        yield f"{quantity(inputs.quarantined, 'record')} could not be used and went to the quarantine table."
    for finding in inputs.findings or ():
        yield f"{finding.sentence}."


def _alike(scored: Scored) -> Iterator[str]:
    for names in alike(scored):
        yield f"{', '.join(names)} have the same figures in every metric: on this log they are one policy."


def _fidelity(scored: Scored) -> Iterator[str]:
    if scored.fidelity and all(math.isnan(figure.gap) for figure in scored.fidelity):
        reason = scored.fidelity[0].reason
        yield f"Fidelity is unknown: {reason}. Whether the replayed incumbent is what really happened was not checked."
    rules, strange = scored.plan.rules, []
    for figure in scored.fidelity:
        margin = margin_of(scored.metric[figure.metric], figure.key, rules, figure.resimulated)
        # A guarded metric's own margin is about losses, and far too small for what a log has besides its policy.
        if figure.gap > max(margin, rules.margin * abs(figure.resimulated)):
            logged, low, high = map(number_text, (figure.logged, figure.low, figure.high))
            strange.append(f"{label(figure.metric, figure.key)} ({logged} logged, {low} to {high} replayed)")
    if strange:
        yield (
            f"The log was not written by {scored.incumbent}: no replicate of it would show {', '.join(strange)}. "
            "Differences between policies that are not above these gaps are left open."
        )


def _distances(scored: Scored) -> Iterator[str]:
    shares = [figure.value for (_, metric, _), figure in scored.pooled.items() if metric == "network_covered_ratio"]
    least = min((share for share in shares if not math.isnan(share)), default=1.0)
    if least == 0.0:
        yield "Distances are unknown: no client and broker have locations that can be compared."
    # Below half a percent the remark would only be noise, and would round to 100 %.
    elif least < 0.995:
        yield f"Network figures cover at least {least:.1%} of the weight; for the rest no distance is known."
