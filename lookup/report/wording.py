"""Write the sentences that all forms of the report share: outcomes, caveats, and reasons of shedding cycles."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from scipy import special

from lookup.engine.cycle_sums import CycleSums
from lookup.model.quoting import listed, quantity
from lookup.model.time import WHOLE_NUMBERS, moment_at, unlikely_span
from lookup.replay.findings import Finding
from lookup.report.comparison import (
    LIGHT_MARKS,
    MARKS,
    NOTHING,
    OPEN_MARKS,
    UNJUDGED,
    is_unjudged,
    label,
    number_text,
    policies_in_order,
    scope_of,
    signed_text,
    word_of,
)
from lookup.score.luck import LEVEL, least_chance
from lookup.score.rules import Name, margin_of
from lookup.score.scoring import Scored
from lookup.score.verdict import GATE_LEVEL, Verdict, Word, family, is_undecided

__all__ = [
    "ABOUT_COUNTS", "ABOUT_CYCLES", "ABOUT_FIDELITY", "ABOUT_PARTS", "ABOUT_UNDECIDED", "ABOUT_VERDICTS",
    "PolicyCycles", "caveats", "comparisons", "conclusion", "cycles_of", "differing", "floors", "idle_shedders",
    "input_rows", "is_open", "is_part", "legend", "meanings", "opening", "outcomes", "setup", "undecided",
    "undecided_figures", "winners_luck",
]  # fmt: skip

_MEANINGS: Mapping[Word, str] = {
    "better": "the whole interval of the difference is on the good side",
    "worse": "the whole interval of the difference is on the bad side",
    "equivalent": "the interval, widened by the fidelity gap, lies within the margin",
    "identical": "both did the same in every bundle, event and stretch of time",
    "inconclusive": "the interval reaches to both sides, or rests on too few observations; the reason says which",
}
_NOT_JUDGED = "there is no interval, or no figure to compare; the reason says why"
#: Shares of a figure below this are no advantage worth a word.
_NO_ADVANTAGE = 0.001
#: With fewer replicates it is said what that costs.
_FEW_SEEDS = 5
#: Metrics that count some of what another counts; those of a metric's keys are found by their names.
_PARTS_OF: Mapping[str, str] = {"cycle_moves": "moves", "redundant_moves": "moves"}

#: Stands above the tables of the report.
ABOUT_CYCLES = (
    "Every cycle of a policy's shedder ends with a reason and is a row of `cycles/`; here all clusters and seeds are",
    "counted together. The excess says how far the most loaded broker was above what the shedder tolerates.",
)
#: Stands above the verdicts.
ABOUT_VERDICTS = (
    "Differences are candidate - incumbent: fewer moves are a negative number. Their 95 % intervals are over",
    "replicates, over bundles or blocks of time, and over events; both policies meet the same. The margin is what",
    "counts as no difference. Answers and overload are judged on this log, everything else for demand like this;",
    "`summary.json` has both. A verdict that holds for this placement or these hours only has an open mark, △ or ▽:",
    "other luck may turn it. A light one, ▴ or ▾, is none among so many comparisons.",
)
#: Stands above the comparison with the log.
ABOUT_FIDELITY = (
    "The incumbent as replayed, beside what the log says was answered. One more replicate would lie in the range,",
    "with 95 % for all figures together. The gap is the distance of the logged figure from that range. A difference",
    "between policies that is no larger than the gap is inconclusive: the replay itself may be the cause.",
)
#: Stands above what is undecided, and above how many verdicts there are of each kind.
ABOUT_UNDECIDED = "What is undecided: in brackets the smallest effect that this log can show, or why it shows none"
ABOUT_COUNTS = "All verdicts counted, and how many comparisons chance alone would decide"
#: Stands above figures of parts of the demand.
ABOUT_PARTS = "No verdicts are given for parts: many comparisons find chance differences."

#: Words for well-known inputs; others stand under their own names.
_INPUTS: Mapping[str, str] = {
    "rows": "rows of the log",
    "lookups": "lookups replayed",
    "redirects": "redirects (hops, no demand)",
    "internal": "lookups of the load manager's own topics (no demand)",
    "quarantined": "records in quarantine",
    "first_us": "first lookup",
    "last_us": "last lookup",
    "induced_ratio": "share of lookups induced by logged losses",
    "ignored_unloads": "logged unloads that were not an administrator's (ignored)",
    "late_splits": "logged splits that waited for a bundle in flight",
    "refused_unloads": "administrators' unloads of bundles in flight (left out)",
    "capacity": "capacity of brokers",
    "imbalance_floor": "imbalance_max_mean of a per-lookup round-robin (floor)",
    "decisions": "decisions taken",
    "failures": "failures that on_error let pass",
    "first_failure": "the first of them",
}
#: Inputs that have a section of their own, or are in `summary.json` only.
_SHOWN_ELSEWHERE = frozenset({"cycles", "findings", "load", "ownership"})


def legend() -> str:
    """Explain the marks in one line."""
    marks = "  ".join(f"{mark} {word}" for word, mark in MARKS.items())
    open_marks = (
        f"{UNJUDGED} not judged  {LIGHT_MARKS['better']} {LIGHT_MARKS['worse']} if it were the only comparison  "
        f"{OPEN_MARKS['better']} {OPEN_MARKS['worse']} for this placement or these hours only"
    )
    return f"against the incumbent: {marks}  {open_marks};  ↑ ↓ which direction is better;  * decides the exit code"


def meanings() -> list[str]:
    """Explain each mark of a verdict in a phrase."""
    return [
        *(f"{MARKS[word]} {word}: {text}" for word, text in _MEANINGS.items()),
        f"{UNJUDGED} not judged: {_NOT_JUDGED}",
    ]


def outcomes(scored: Scored) -> list[str]:
    """Summarise the verdicts on each candidate in one sentence, over all metrics and over the primary ones.

    What is part of another figure, like moves of one cause, counts with that one.
    """
    sentences = []
    names = {(verdict.metric, verdict.key) for verdict in scored.verdicts}
    for policy in policies_in_order(scored)[1:]:
        verdicts = [verdict for verdict in scored.verdicts if verdict.policy == policy]
        whole = [verdict for verdict in verdicts if not is_part(verdict, names)]
        counts = Counter(map(word_of, whole))
        sentence = (
            ", ".join(f"{counts[word]} {word}" for word in (*MARKS, "not judged") if counts[word]) or "no verdict"
        )
        scopes = Counter(scope_of(v) for v in whole if v.verdict in ("better", "worse"))
        sentence += "".join(f", {count} of these {scope}" for scope, count in scopes.items() if scope)
        worse = [label(v.metric, v.key) for v in verdicts if v.primary and v.verdict == "worse"]
        sentences.append(f"{policy}: {sentence}" + (f"; worse on primary {', '.join(worse)}" if worse else ""))
    return sentences


def differing(scored: Scored, policy: str) -> str:
    """Name the figures in which a candidate is better and worse, parts of others left out; empty if there are none."""
    names = {(verdict.metric, verdict.key) for verdict in scored.verdicts}
    sentences = []
    for word in ("better", "worse"):
        figures = [
            f"{label(verdict.metric, verdict.key)}{' *' if verdict.primary else ''}"
            for verdict in scored.verdicts
            if verdict.policy == policy and verdict.verdict == word and not is_part(verdict, names)
        ]
        if figures:
            sentences.append(f"{word.capitalize()}: {', '.join(figures)}.")
    return " ".join(sentences)


def is_part(verdict: Verdict, names: Collection[Name]) -> bool:
    """Return whether a figure is part of another, like moves of one cause.

    Args:
        names: of all figures that were judged.
    """
    whole = verdict.metric if verdict.key is not None else _PARTS_OF.get(verdict.metric)
    return (whole, None) in names


def is_open(verdict: Verdict, scored: Scored) -> bool:
    """Return whether a verdict holds for this placement or these hours only, and so decides nothing."""
    if verdict.holds_for == "placement":
        return not scored.plan.rules.accept_placement
    return verdict.holds_for == "hours"


def undecided(scored: Scored) -> str | None:
    """Name the primary metrics that are undecided, with the smallest effects this log can show; None without any."""
    texts = undecided_figures(scored)
    if not texts:
        return None
    brackets = "(in brackets the smallest effect that this log can show, or why it shows none)"
    return f"Undecided on {_share(scored)} {brackets}: {'; '.join(texts)}."


def undecided_figures(scored: Scored) -> list[str]:
    """Return each undecided primary figure with its candidates and the smallest effects that this log can show.

    An effect is half the width of the difference's interval: chance alone brings smaller ones.
    """
    of_name: dict[Name, list[Verdict]] = {}
    for verdict in _undecided(scored):
        of_name.setdefault((verdict.metric, verdict.key), []).append(verdict)
    units, texts = {metric.name: metric.unit for metric in scored.metrics}, []
    for (metric, key), verdicts in of_name.items():
        # Without a p value a comparison rests on too little, so that its interval shows nothing.
        halves = sorted(
            (verdict.high - verdict.low) / 2
            for verdict in verdicts
            if is_undecided(verdict) and not math.isnan(verdict.p_value)
        )
        weak = [verdict for verdict in verdicts if verdict.verdict == "inconclusive" and math.isnan(verdict.p_value)]
        effect = " and ".join(dict.fromkeys(scope_of(verdict) for verdict in verdicts if scope_of(verdict)))
        if halves:
            effect = f"{' to '.join(dict.fromkeys(map(number_text, (halves[0], halves[-1]))))} {units[metric]}"
        elif weak:
            effect = "not judged" if is_unjudged(weak[0]) else str(weak[0].reason)
        names = ", ".join(verdict.policy for verdict in verdicts)
        texts.append(f"{label(metric, key)} of {names} ({effect})")
    return texts


def _undecided(scored: Scored) -> list[Verdict]:
    primary = [verdict for verdict in scored.verdicts if verdict.primary]
    return [verdict for verdict in primary if is_open(verdict, scored) or is_undecided(verdict)]


def _share(scored: Scored) -> str:
    """Return how many primary comparisons are undecided, as the object of a sentence."""
    count, primary = len(_undecided(scored)), sum(verdict.primary for verdict in scored.verdicts)
    if count == primary:
        return "every primary comparison"
    return f"{count} of {quantity(primary, 'primary comparison')}"


def comparisons(scored: Scored) -> Iterator[str]:
    """State the number of comparisons, and how many of them chance alone would decide."""
    together, alone, figures = family(scored.verdicts, scored.plan.rules)
    if together:
        yield (
            f"{quantity(together, 'comparison decides', 'comparisons decide')} the exit code (*), judged together: "
            f"between equals at most {LEVEL:.0%} of all runs would call any of them better or worse, and at most "
            f"{GATE_LEVEL / 2:.1%} worse."
        )
    if alone:
        yield (
            f"{quantity(alone, 'further comparison was', 'further comparisons were')} judged, those of a figure "
            f"together: between equals chance alone would tell candidates apart in at most {LEVEL * figures:.2g} of "
            f"{quantity(figures, 'figure')}."
        )
    names = {(verdict.metric, verdict.key): verdict for verdict in scored.verdicts}
    parts = [label(*name) for name, verdict in names.items() if is_part(verdict, names)]
    if parts:
        yield f"Figures that are parts of another are counted once, with the whole: {', '.join(parts)}."


def conclusion(scored: Scored) -> str:
    """Explain the exit code, and say how many of the comparisons that decide are undecided."""
    if not _undecided(scored):
        return _decision(scored)
    return f"{_decision(scored)} Undecided: {_share(scored)}."


def _decision(scored: Scored) -> str:
    if len(scored.plan.policies) == 1:
        return "Only the incumbent was replayed: figures, no verdicts."
    if scored.exit_code == 3:
        return "At least one candidate is worse than the incumbent on a primary metric (exit code 3)."
    if scored.exit_code == 4:
        unguarded = [*_unguarded(scored)]
        if unguarded:
            return f"{' '.join(unguarded)[:-1]} (exit code 4)."
        return (
            "A decision was required and at least one primary metric is inconclusive, or decided for this placement "
            "or these hours only (exit code 4)."
        )
    # Exit code 0 in spite of a primary "worse": it holds for one placement only, so it does not decide.
    if any(verdict.primary and verdict.verdict == "worse" for verdict in scored.verdicts):
        return (
            "No candidate is worse than the incumbent on a primary metric as far as policies go; where one is worse "
            "for this placement or these hours only (▽), other luck may turn it, so it does not count (exit code 0)."
        )
    return "No candidate is worse than the incumbent on a primary metric."


def _unguarded(scored: Scored) -> Iterator[str]:
    """Name the guarded figures of which it is not shown that nothing is lost, and those of which something is."""
    of_guard: dict[str, list[str]] = {"lost": [], "open": []}
    for verdict in scored.verdicts:
        if verdict.primary and verdict.guard in of_guard:
            of_guard[verdict.guard].append(f"{label(verdict.metric, verdict.key)} of {verdict.policy}")
    if of_guard["lost"]:
        yield f"On this log something is lost, for this placement only: {', '.join(of_guard['lost'])}."
    if of_guard["open"]:
        yield f"It is not shown that nothing is lost on this log: {', '.join(of_guard['open'])}."


def opening(scored: Scored) -> list[str]:
    """Return the sentences that a terminal and a comment begin with: what decides, and what is undecided."""
    open_, luck = undecided(scored), [sentence for sentence in [winners_luck(scored)] if sentence]
    if open_ is None:
        return [_decision(scored), *luck]
    # A loss that is certain comes first, since it decides the exit code.
    first = [_decision(scored), open_] if scored.exit_code == 3 else [open_, _decision(scored)]
    return [*first, *luck]


def winners_luck(scored: Scored) -> str | None:
    """Say by how much the best of so many equals would look better here; None if there are not several candidates."""
    primary = {(verdict.metric, verdict.key) for verdict in scored.verdicts if verdict.primary}
    named = {*primary, ("imbalance_max_mean", None), ("moves", None)}
    found = [winner for winner in scored.winners if (winner.metric, winner.key) in named and winner.value]
    shares = {label(winner.metric, winner.key): abs(winner.advantage / winner.value) for winner in found}
    texts = [f"{share:.1%} better in {name}" for name, share in shares.items() if share >= _NO_ADVANTAGE]
    if not texts:
        return None
    most = max(winner.candidates for winner in found)
    return f"By luck of the placement alone the best of {most} equal candidates would look {', '.join(texts)}."


def floors(scored: Scored) -> list[str]:
    """Write the imbalance of a per-lookup round-robin in each cluster, below which no policy has to go."""
    known = scored.inputs.get("imbalance_floor")
    if not isinstance(known, Mapping):
        return []
    return [f"{cluster} {number_text(_number(value))}" for cluster, value in known.items() if value is not None]


def caveats(scored: Scored) -> list[str]:
    """Return the facts a reader should know before trusting the figures."""
    # Those that may invalidate all figures come first.
    return [*_about_replay(scored), *_about_inputs(scored), *_about_findings(scored), *_about_fidelity(scored)]


def _by_reason(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the policies by what is said of them, so that each text is said once."""
    policies: dict[str, list[str]] = {}
    for policy, reason in reasons.items():
        policies.setdefault(reason, []).append(policy)
    return policies


def _about_replay(scored: Scored) -> Iterator[str]:
    best: dict[str, float] = {}
    for figure in scored.estimates:
        if figure.series.metric.name == "answered_ratio" and figure.cluster is not None and not figure.series.by:
            best[figure.cluster] = max(figure.value, best.get(figure.cluster, 0.0))
    for cluster in sorted(cluster for cluster, ratio in best.items() if ratio == 0.0):
        yield (
            f"No policy answered a single lookup of cluster {cluster}: was any broker registered there while the log "
            "was written? Compare the times of BROKERS, or `from` and `until`, with those of the log."
        )
    first = scored.inputs.get("first_us")
    early = unlikely_span(first, first) if isinstance(first, int) else None
    if early is not None:
        yield f"{early} {WHOLE_NUMBERS}"
    for reason, names in _by_reason(scored.cannot_act).items():
        yield f"{names[0] if len(names) == 1 else f'each of {listed(names)}'} is not what it says: {reason}"
    yield from _about_luck(scored)
    decides = "decide" if scored.plan.rules.accept_placement else "do not decide"
    for reason, names in _by_reason(scored.placed_once).items() if scored.verdicts else ():
        yield (
            f"{', '.join(names)}: {reason}, so verdicts that involve it hold for this placement only (△ ▽) and "
            f"{decides} the exit code: another draw of luck may turn them."
        )


def _about_luck(scored: Scored) -> Iterator[str]:
    """Say where clusters disagree, which verdicts other hours may turn, and what few seeds cost."""
    metrics = {metric.name: metric for metric in scored.metrics}
    for verdict in scored.verdicts:
        if verdict.clusters:
            metric = metrics[verdict.metric]
            sign = 1.0 if metric.better == "up" else -1.0
            texts = []
            for one in verdict.clusters:
                word = "better" if one.low > 0 else "worse" if one.high < 0 else "undecided"
                texts.append(f"{word} in {one.cluster} ({signed_text(sign * one.delta, metric.unit)} {metric.unit})")
            yield f"{label(verdict.metric, verdict.key)} of {verdict.policy}: clusters disagree, {', '.join(texts)}."
    drifting: dict[str, list[str]] = {}
    for verdict in scored.verdicts:
        if verdict.holds_for == "hours" and verdict.verdict in ("better", "worse"):
            drifting.setdefault(label(verdict.metric, verdict.key), []).append(verdict.policy)
    if drifting:
        names = "; ".join(f"{name} of {', '.join(policies)}" for name, policies in drifting.items())
        yield (
            f"For these hours only (△ ▽): {names}. These differences drift as slowly as the log is long, so they do "
            "not decide the exit code; a longer log would say whether they last."
        )
    seeds = len(scored.plan.evaluation.drawn)
    if scored.verdicts and 1 < seeds < _FEW_SEEDS:
        yield (
            f"{seeds} seeds: intervals are {_widening(seeds):.1f} times as wide as with {_FEW_SEEDS} where luck of the "
            f"placement prevails, and no difference is more certain than {1 - least_chance(seeds):.1%}."
        )
    together, *_ = family(scored.verdicts, scored.plan.rules)
    if least_chance(seeds) * together > GATE_LEVEL:
        enough = next(n for n in count(seeds) if least_chance(n) * together <= GATE_LEVEL)
        yield (
            f"{seeds} seeds cannot carry {quantity(together, 'comparison')} for the exit code: of so many no loss can "
            f"be told from chance, however large it is; with {enough} seeds one can."
        )


def _widening(seeds: int) -> float:
    """Return how much wider than with enough replicates an interval is, by Student's t and their number."""
    few, enough = (special.stdtrit(n - 1, 1 - LEVEL / 2) / math.sqrt(n) for n in (seeds, _FEW_SEEDS))
    return float(few / enough)


def _about_inputs(scored: Scored) -> Iterator[str]:
    inputs, evaluation = scored.inputs, scored.plan.evaluation
    if inputs.get("capacity") == "assumed":
        yield (
            "capacity: assumed. No broker has a capacity, so each was given the same as all of its cluster, at which "
            "mean usage is 0.5. Usage then compares brokers and does not say how full they are; overload_ratio is not "
            "computed."
        )
    if _number(inputs.get("induced_ratio")) > 0:
        yield (
            f"{_number(inputs['induced_ratio']):.2%} of the lookups came within {evaluation.reconnect_s} s after their "
            "bundle was unloaded or lost in the log; another policy might not have caused them."
        )
    if _number(inputs.get("quarantined")) > 0:
        records = quantity(int(_number(inputs["quarantined"])), "record")
        yield f"{records} could not be used and went to the quarantine table."
    if evaluation.ownership == "shared":
        yield "Ownership is shared: no bundle has an owner, so metrics of assignments and moves have no meaning."


def _about_findings(scored: Scored) -> Iterator[str]:
    """Say what in the settings had no effect on the log, and which policies are alike."""
    findings = scored.inputs.get("findings", ())
    for finding in findings if isinstance(findings, list) else ():
        yield f"{Finding(**finding).sentence}."
    figures: dict[str, list[object]] = {}
    for figure in scored.estimates:
        # As text, since a figure that is unknown (NaN) equals no other.
        key = figure.cluster, figure.series.name, figure.series.by, repr(figure.value)
        figures.setdefault(figure.series.policy, []).append(key)
    alike: dict[str, list[str]] = {}
    for policy in scored.plan.policies:
        alike.setdefault(repr(figures.get(policy)), []).append(policy)
    for names in (names for names in alike.values() if len(names) > 1):
        yield f"{', '.join(names)} have the same figures in every metric: on this log they are one policy."


def _about_fidelity(scored: Scored) -> Iterator[str]:
    if scored.fidelity and all(math.isnan(figure.gap) for figure in scored.fidelity):
        reason = scored.fidelity[0].reason
        yield f"Fidelity is unknown: {reason}. Whether the replayed incumbent is what really happened was not checked."
    metrics = {metric.name: metric for metric in scored.metrics}
    strange = [
        figure
        for figure in scored.fidelity
        # A guarded metric's own margin is about losses, and far too small for what a log has besides its policy.
        if figure.gap
        > max(
            margin_of(metrics[figure.metric], figure.key, scored.plan.rules, figure.resimulated),
            scored.plan.rules.margin * abs(figure.resimulated),
        )
    ]
    if strange:
        figures = ", ".join(
            f"{label(figure.metric, figure.key)} ({number_text(figure.logged)} logged, {number_text(figure.low)} to "
            f"{number_text(figure.high)} replayed)"
            for figure in strange
        )
        yield (
            f"The log was not written by {scored.plan.evaluation.incumbent}: no replicate of it would show {figures}. "
            "Differences between policies that are not above these gaps are left open."
        )
    shares = [
        figure.value
        for figure in scored.estimates
        if figure.series.metric.name == "network_covered_ratio" and figure.cluster is None and not figure.series.by
    ]
    least = min((share for share in shares if not math.isnan(share)), default=1.0)
    if least == 0.0:
        yield "Distances are unknown: no client and broker have locations that can be compared."
    # Below half a percent the remark would only be noise, and would round to 100 %.
    elif least < 0.995:
        yield f"Network figures cover at least {least:.1%} of the weight; for the rest no distance is known."


def _number(value: object) -> float:
    # Inputs are untyped: an absent figure counts as 0.
    return float(value) if isinstance(value, int | float) else 0.0


class PolicyCycles(CycleSums):
    """The cycles of one policy's shedder, as `ReplayOutcome.inputs` has them."""

    @property
    def summary(self) -> str:
        """Return one sentence on the cycles, unloads and refusals."""
        refused = ", ".join(f"{reason} {count:,}" for reason, count in self.refused.items())
        return (
            f"The shedder `{self.shedder}` ran {quantity(self.cycles, 'cycle')}: "
            f"{quantity(self.accepted, 'unload')} accepted, {sum(self.refused.values()):,} proposals refused"
            f"{f' ({refused})' if refused else ''}."
        )

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """Return reason, cycles and largest excess, the most frequent reason first."""
        return [
            (words, f"{count:,}", number_text(self.excess[reason]) if reason in self.excess else NOTHING)
            for reason, words, count in self.named()
        ]


def cycles_of(inputs: Mapping[str, Any]) -> dict[str, PolicyCycles]:
    """Return the cycles of every policy that has a shedder, by policy.

    Args:
        inputs: of a scored replay.
    """
    return {policy: PolicyCycles.read(sums) for policy, sums in inputs.get("cycles", {}).items()}


def idle_shedders(inputs: Mapping[str, Any]) -> list[str]:
    """Return a line for each policy whose shedder ran and unloaded nothing."""
    idle = {policy: cycles.idleness for policy, cycles in cycles_of(inputs).items()}
    return [f"{policy}: {text}" for policy, text in idle.items() if text is not None]


def setup(scored: Scored) -> list[str]:
    """Return how the log was replayed, one phrase per setting."""
    evaluation = scored.plan.evaluation
    load = "what the replay itself placed" if evaluation.load == "simulated" else "what brokers reported"
    candidates = ", ".join(f"`{name}`" for name in policies_in_order(scored)[1:]) or "none"
    return [
        f"incumbent: `{evaluation.incumbent}`, replayed like the others",
        f"candidates: {candidates}",
        f"ownership: {evaluation.ownership}; load seen by the policies: {load}",
        f"ticks of {evaluation.tick_s} s; balance in cells of {evaluation.balance_s} s",
        f"warm-up, simulated but not scored: {evaluation.warmup_s} s",
        f"replicates: {len(evaluation.drawn)}, seeds {', '.join(map(str, evaluation.drawn))}",
        *([f"hand-overs: {evaluation.handover_s:g} s in each state"] if evaluation.handover_s else []),
    ]


def input_rows(scored: Scored) -> list[tuple[str, str]]:
    """Return what was read, in words; what has a section of its own or did not happen is left out."""
    rows = []
    for name, value in scored.inputs.items():
        if name in _SHOWN_ELSEWHERE or value in (None, {}):
            continue
        text = _text(value)
        if name.endswith("_us") and isinstance(value, int):
            text = f"{moment_at(value):%Y-%m-%d %H:%M:%S} UTC"
        rows.append((_INPUTS.get(name, name), text))
    return rows


def _text(value: object) -> str:
    # bool comes first: it is an int as well
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: NOTHING}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_text(entry)}" for name, entry in value.items()) or NOTHING
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_text, value)) or NOTHING
    return str(value)
