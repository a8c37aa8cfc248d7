"""Write the sentences that all forms of the report share: what a run answers, what decides, and what its words mean."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from inspect import getdoc

from lookup.model.quoting import quantity
from lookup.report.comparison import (
    LIGHT_MARKS,
    MARKS,
    OPEN_MARKS,
    UNJUDGED,
    apart,
    is_unjudged,
    label,
    number_text,
    scope_of,
    word_of,
)
from lookup.report.words import amount_text, words_of
from lookup.score.luck import LEVEL
from lookup.score.metrics import lookup_register_metrics
from lookup.score.rules import Name
from lookup.score.scoring import Scored
from lookup.score.verdict import GATE_LEVEL, Verdict, Word, family, is_undecided

__all__ = [
    "IN_BRACKETS", "aims", "alarm", "comparisons", "conclusion", "differing", "is_fatal", "is_open", "joined", "legend",
    "locality", "meanings", "of_wholes", "opening", "outcomes", "shown", "terms", "undecided", "undecided_figures",
    "winners_luck",
]  # fmt: skip

_MEANINGS: Mapping[Word, str] = {
    "better": "the whole interval of the difference is on the good side",
    "worse": "the whole interval of the difference is on the bad side",
    "equivalent": "the interval, widened by the fidelity gap, lies within the margin",
    "identical": "both did the same in every bundle, event and stretch of time",
    "inconclusive": (
        "the interval reaches to both sides, the difference is not above the fidelity gap, or rests on "
        "too few observations; the reason says which"
    ),
}
#: What stands behind an undecided figure.
IN_BRACKETS = "in brackets the smallest effect that this log can show, or why it shows none"
#: Shares of a figure below this are no advantage worth a word.
_NO_ADVANTAGE = 0.001
#: Metrics that count some of what another counts; those of a metric's keys are found by their names.
_PARTS_OF: Mapping[str, str] = {"cycle_moves": "moves", "redundant_moves": "moves"}


def legend() -> str:
    """Explain the marks in one line."""
    marks = "  ".join(f"{mark} {word}" for word, mark in MARKS.items())
    open_marks = (
        f"{UNJUDGED} not judged  {LIGHT_MARKS['better']} {LIGHT_MARKS['worse']} if it were the only comparison  "
        f"{OPEN_MARKS['better']} {OPEN_MARKS['worse']} only in this placement, in these hours, or if bundles are "
        "independent"
    )
    return f"against the incumbent: {marks}  {open_marks};  ↑ ↓ which direction is better;  * decides the exit code"


def meanings() -> list[str]:
    """Explain each mark of a verdict in a phrase."""
    unjudged = f"{UNJUDGED} not judged: there is no interval, or no figure to compare; the reason says why"
    return [*(f"{MARKS[word]} {word}: {text}" for word, text in _MEANINGS.items()), unjudged]


def of_wholes(scored: Scored) -> list[Verdict]:
    """Return the verdicts on figures that are part of no other, as moves of one cause are of all moves."""
    names = {verdict.name for verdict in scored.verdicts}

    def whole(metric: str, key: str | None) -> str | None:
        return _PARTS_OF.get(metric) if key is None else metric

    return [verdict for verdict in scored.verdicts if (whole(*verdict.name), None) not in names]


def outcomes(scored: Scored) -> list[str]:
    """Summarise the verdicts on each candidate in one sentence, over all metrics and over the primary ones.

    What is part of another figure, like moves of one cause, counts with that one.
    """
    sentences = []
    for policy, head in apart(scored).items():
        verdicts = [verdict for verdict in of_wholes(scored) if verdict.policy == policy]
        counts = Counter(map(word_of, verdicts))
        sentence = (
            ", ".join(f"{counts[word]} {word}" for word in (*MARKS, "not judged") if counts[word]) or "no verdict"
        )
        scopes = Counter(scope_of(verdict) for verdict in verdicts if verdict.is_decided)
        sentence += "".join(f", {count} of these {scope}" for scope, count in scopes.items() if scope)
        worse = [
            label(*verdict.name)
            for verdict in scored.verdicts
            if verdict.policy == policy and verdict.primary and verdict.verdict == "worse"
        ]
        sentences.append(f"{head}: {sentence}" + (f"; worse on primary {', '.join(worse)}" if worse else ""))
    return sentences


def differing(scored: Scored, policy: str) -> str:
    """Name the figures in which a candidate is better and worse, parts of others left out; empty if there are none."""
    sentences = []
    for word in ("better", "worse"):
        figures = [
            f"{label(*verdict.name)}{' *' if verdict.primary else ''}"
            for verdict in of_wholes(scored)
            if verdict.policy == policy and verdict.verdict == word
        ]
        if figures:
            sentences.append(f"{word.capitalize()}: {', '.join(figures)}.")
    return " ".join(sentences)


def is_open(verdict: Verdict, scored: Scored) -> bool:
    """Return whether a verdict may not hold for the policy, and so decides nothing."""
    accepted = ("policy", "placement") if scored.plan.rules.accept_placement else ("policy",)
    return verdict.holds_for not in accepted


def is_fatal(verdict: Verdict, scored: Scored) -> bool:
    """Return whether a verdict fails the run: a primary loss that holds for the policy."""
    return verdict.primary and verdict.verdict == "worse" and not is_open(verdict, scored)


def undecided(scored: Scored) -> str | None:
    """Name the primary metrics that are undecided, with the smallest effects this log can show; None without any."""
    texts = undecided_figures(scored)
    return f"Undecided on {_share(scored)} ({IN_BRACKETS}): {'; '.join(texts)}." if texts else None


def undecided_figures(scored: Scored) -> list[str]:
    """Return each undecided primary figure with its candidates and the smallest effects that this log can show."""
    of_name: dict[Name, list[Verdict]] = {}
    for verdict in _undecided(scored):
        of_name.setdefault(verdict.name, []).append(verdict)
    return [
        f"{label(*name)} of {', '.join(verdict.policy for verdict in verdicts)} ({_effect(verdicts, scored)})"
        for name, verdicts in of_name.items()
    ]


def _effect(verdicts: list[Verdict], scored: Scored) -> str:
    # Without a p value a comparison rests on too little, so that its interval shows nothing.
    open_ = [verdict for verdict in verdicts if is_undecided(verdict) and not math.isnan(verdict.p_value)]
    if open_:
        ranked = sorted(open_, key=scored.least_shown)
        unit = scored.metric[ranked[0].metric].unit
        if math.isinf(scored.least_shown(ranked[0])):
            return f"none: {quantity(len(scored.plan.evaluation.drawn), 'seed')} can carry no verdict"
        texts = [shown(scored, verdict, number_text(scored.least_shown(verdict))) for verdict in ranked]
        return f"{' to '.join(dict.fromkeys((texts[0], texts[-1])))} {unit}"
    for verdict in verdicts:
        if verdict.verdict == "inconclusive" and math.isnan(verdict.p_value):
            return "not judged" if is_unjudged(verdict) else str(verdict.reason)
    return " and ".join(dict.fromkeys(scope_of(verdict) for verdict in verdicts if scope_of(verdict)))


def shown(scored: Scored, verdict: Verdict, text: str) -> str:
    """Return the smallest difference that this log can show, which a text writes, with what makes it so large."""
    least = scored.least_shown(verdict)
    if least == scored.gaps.get(verdict.name):
        return f"the fidelity gap of {text}"
    return f"more than {text}" if least > (verdict.high - verdict.low) / 2 else text


def _undecided(scored: Scored) -> list[Verdict]:
    return [
        verdict
        for verdict in scored.verdicts
        if verdict.primary and (is_open(verdict, scored) or is_undecided(verdict))
    ]


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
    wholes = {verdict.name for verdict in of_wholes(scored)}
    parts = [label(*name) for name in dict.fromkeys(v.name for v in scored.verdicts) if name not in wholes]
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
        unguarded = " ".join(_unguarded(scored))
        if unguarded:
            return f"{unguarded[:-1]} (exit code 4)."
        return (
            "A decision was required and at least one primary metric is inconclusive, or its verdict has an open mark "
            "(exit code 4)."
        )
    # Exit code 0 in spite of a primary "worse": its mark is open, so it does not decide.
    if any(verdict.primary and verdict.verdict == "worse" for verdict in scored.verdicts):
        return (
            "No candidate is worse than the incumbent on a primary metric as far as policies go; where one has an open "
            "mark (▽), other luck may turn it, so it does not count (exit code 0)."
        )
    return "No candidate is worse than the incumbent on a primary metric."


def _unguarded(scored: Scored) -> Iterator[str]:
    """Name the guarded figures of which it is not shown that nothing is lost, and those of which something is."""
    for guard, what in (
        ("lost", "On this log something is lost, for this placement only"),
        ("open", "It is not shown that nothing is lost on this log"),
    ):
        figures = [
            f"{label(*verdict.name)} of {verdict.policy}"
            for verdict in scored.verdicts
            if verdict.primary and verdict.guard == guard
        ]
        if figures:
            yield f"{what}: {', '.join(figures)}."


def alarm(scored: Scored) -> str | None:
    """Say which candidates make the exit code 3 or 4, and in what; None if it is 0."""
    if not scored.exit_code:
        return None
    what, chosen = "worse in", [verdict for verdict in scored.verdicts if is_fatal(verdict, scored)]
    if scored.exit_code == 4:
        what = "not shown to keep"
        chosen = [verdict for verdict in scored.verdicts if verdict.primary and verdict.guard in ("lost", "open")]
        if not chosen:
            what, chosen = "undecided in", _undecided(scored)
    figures: dict[str, list[str]] = {}
    for verdict in chosen:
        figures.setdefault(verdict.policy, []).append(words_of(verdict.name).name)
    policies: dict[str, list[str]] = {}
    for policy, names in figures.items():
        policies.setdefault(joined(names), []).append(policy)
    clauses = [f"{joined(who)} {'is' if len(who) == 1 else 'are'} {what} {names}" for names, who in policies.items()]
    return f"Exit code {scored.exit_code}: {'; '.join(clauses)}."


def joined(clauses: Sequence[str]) -> str:
    """Join clauses or names by commas, the last by "and"."""
    *most, last = clauses
    return f"{', '.join(most)} and {last}" if most else last


def opening(scored: Scored) -> list[str]:
    """Return the sentences that a terminal and a comment begin with: what decides, and what is undecided."""
    sentences = [undecided(scored), _decision(scored)]
    if scored.exit_code == 3:
        # A loss that is certain comes first, since it decides the exit code.
        sentences.reverse()
    return [sentence for sentence in (*sentences, winners_luck(scored)) if sentence]


def winners_luck(scored: Scored) -> str | None:
    """Say by how much the best of so many equals would look better here; None if there are not several candidates."""
    primary = {verdict.name for verdict in scored.verdicts if verdict.primary}
    named = {*primary, ("imbalance_max_mean", None), ("moves", None)}
    found = [winner for winner in scored.winners if (winner.metric, winner.key) in named and winner.value]
    shares = {label(winner.metric, winner.key): abs(winner.advantage / winner.value) for winner in found}
    texts = [f"{share:.1%} better in {name}" for name, share in shares.items() if share >= _NO_ADVANTAGE]
    if not texts:
        return None
    most = max(winner.candidates for winner in found)
    return f"By luck of the placement alone the best of {most} equal candidates would look {', '.join(texts)}."


def locality(scored: Scored) -> Name | None:
    """Return the figure that stands for locality: the match of a label that decides, else of a rack, else distance."""
    primary = {verdict.name for verdict in scored.verdicts if verdict.primary}
    keys = [key for _, metric, key in scored.pooled if metric == "match_ratio"]
    names: list[Name] = [*sorted((name for name in primary if name[0] == "match_ratio"), key=str)]
    names += [("match_ratio", "rack"), *(("match_ratio", key) for key in dict.fromkeys(keys))]
    for metric, key in (*names, ("network_ms_mean", None)):
        figures = [scored.pooled.get((policy, metric, key)) for policy in scored.plan.policies]
        if any(figure and math.isfinite(figure.value) and figure.value for figure in figures):
            return metric, key
    return None


def aims(scored: Scored) -> tuple[Name, ...]:
    """Return the figures that say what a policy is good for: locality and balance, as far as there are any."""
    near, even = locality(scored), ("imbalance_max_mean", None)
    names = [] if near is None else [near]
    return (*names, even) if any(key[1:] == even for key in scored.pooled) else tuple(names)


_DIRECTIONS = {"up": "more is better", "down": "less is better", "info": "neither more nor less is better"}
_WORDS = {
    "incumbent": ("the policy that all others are held against, as a rule the one that the cluster runs today"),
    "primary metric, *": (
        "one of the few metrics that decide whether a candidate is worse; all other figures are for people to weigh"
    ),
    "95 % interval": (
        "where the figure would lie with other luck of the demand, of the placement and of events; an "
        "interval of a difference that has 0 in it leaves open which policy is better"
    ),
    "margin": ("the difference that counts as none, a share of the incumbent's figure as the settings say"),
    "for demand like this, on this log": (
        "two questions that are never mixed: whether a policy is better for lookups like these, drawn again, and "
        "whether anything is lost on the lookups as they came; answers and overload are guarded on this log, "
        "everything else is judged for demand like this"
    ),
    "undecided, inconclusive": (
        "this log cannot tell whether the candidate is better or worse; a longer log or more replicates may"
    ),
    "fidelity": (
        "how far the replayed incumbent is from what the log says really happened; a difference between "
        "policies that is no larger may come from the replay itself"
    ),
    "at best": (
        "the figure if every bundle of a policy were, in every tick, on the broker that is nearest to most of its "
        "clients; owners would have to move freely for it"
    ),
    "only in this placement, △ ▽": (
        "one placement was replayed, or the policy places bundles in one way only, so that another draw of luck, like "
        "a broker of another name, may turn the verdict; it does not decide"
    ),
    "only in these hours, △ ▽": (
        "the difference drifts as slowly as the log is long, so that other hours may turn the verdict; it does not "
        "decide"
    ),
    "only if bundles are independent, △ ▽": (
        "the log has too few namespaces to show whether their bundles send independently; it does not decide"
    ),
    "▴ ▾": (
        "better or worse if it were the only comparison, but among so many candidates chance brings such differences"
    ),
    "weight": "how much load the session behind a lookup brings, 1 where the log does not say",
    "cell": "a stretch of time, as long as balance_s of the settings, in which what each broker served is added up",
    "replicate": ("the same log replayed once more with other dice; figures are the mean of all replicates"),
    "bundle": ("a range of a namespace's topics, which has one owner at a time; a move gives it to another broker"),
}


def at_best(scored: Scored) -> str | None:
    """Return a sentence on the best locality that freely moving owners could give; None if it is not known."""
    texts = []
    for name in aims(scored):
        metric = scored.metric[name[0]]
        bests = [best.value for best in scored.at_best if (best.metric, best.key) == name]
        if not bests:
            continue
        if metric.better == "up":
            texts.append(f"at most {amount_text(max(bests), metric)} could be served from their own {name[1]}")
        else:
            texts.append(f"the mean distance could be no less than {amount_text(min(bests), metric)}")
    return f"If owners could move freely, {' and '.join(texts)}." if texts else None


def terms(scored: Scored) -> list[tuple[str, str]]:
    """Return the names of the run's figures, then the words of its report, each with what it means."""
    described = {metric.name: getdoc(metric) or "" for metric in lookup_register_metrics()}
    keys: dict[str, list[str]] = {}
    for figure in scored.estimates:
        keys.setdefault(figure.series.metric.name, []).append(label(*figure.series.name))
    explained = []
    for metric in scored.metrics:
        text = described.get(metric.name, "").partition("\n\n")[0].replace("\n", " ").rstrip(".")
        if text and metric.name in keys:
            names = ", ".join(dict.fromkeys(keys[metric.name]))
            explained.append((names, f"{text} ({metric.unit}, {_DIRECTIONS[metric.better]})."))
    return [*explained, *((word, f"{text[0].upper()}{text[1:]}.") for word, text in _WORDS.items())]
