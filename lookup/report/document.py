"""Write what a run came to as blocks that all forms of its report share; each form arranges and draws them its own way.

`report.md` is drawn by `markdown`, `report.html` by `sections` and `page`, a terminal by `printing`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields

from lookup.engine.cycle_sums import CycleSums
from lookup.model.quoting import quantity
from lookup.model.time import moment_at
from lookup.report.blocks import Block, Bullets, Cell, Fold, Paragraph, Table
from lookup.report.cards import HERE, about_locality, cards, nothing_told, order_of_cards
from lookup.report.comparison import (
    NOTHING,
    WHOLE,
    Scope,
    interval_text,
    label,
    lines,
    mark_of,
    number_text,
    own_direction,
    scope_of,
    signed_text,
    value_text,
    word_of,
)
from lookup.report.wording import IN_BRACKETS, alarm, conclusion, undecided_figures, winners_luck
from lookup.score.scoring import Scored

__all__ = [
    "ABOUT_COUNTS", "ABOUT_CYCLES", "ABOUT_PARTS", "ABOUT_VERDICTS", "answer", "cycle_table", "cycles_in_words",
    "decision", "fidelity", "figure_table", "idle_shedders", "input_table", "setup", "verdict_table",
]  # fmt: skip

#: Stands above the tables of cycles.
ABOUT_CYCLES = Paragraph(
    "Every cycle of a policy's shedder ends with a reason and is a row of `cycles/`; here those after the warm-up are "
    "counted, of all clusters and seeds together. The excess says how far the most loaded broker was above what the "
    "shedder tolerates.",
    is_wrapped=True,
)
#: Stands above the verdicts.
ABOUT_VERDICTS = Paragraph(
    "Differences are candidate - incumbent: fewer moves are a negative number. Their 95 % intervals are over "
    "replicates, over who sends, blocks of time, and events; both policies meet the same. The margin is what "
    "counts as no difference. Answers and overload are judged on this log, everything else for demand like this; "
    "`summary.json` has both. A verdict that holds only in this placement, in these hours, or if bundles "
    "are independent has an open mark, △ or ▽. A light one, ▴ or ▾, is none among so many comparisons.",
    is_wrapped=True,
)
#: Stands above the comparison with the log.
_ABOUT_FIDELITY = Paragraph(
    "The incumbent as replayed, beside what the log says was answered. One more replicate would lie in the range, "
    "with 95 % for all figures together. The gap is the distance of the logged figure from that range. A difference "
    "between policies that is no larger than the gap is inconclusive: the replay itself may be the cause.",
    is_wrapped=True,
)
#: Stands above how many verdicts there are of each kind.
ABOUT_COUNTS = "All verdicts counted, and how many comparisons chance alone would decide"
#: Stands above figures of parts of the demand.
ABOUT_PARTS = "No verdicts are given for parts: many comparisons find chance differences."
#: Words for facts about the input; others stand under their own names, those that have another place have none.
_INPUTS: Mapping[str, str | None] = {
    "rows": "rows of the log",
    "lookups": "lookups replayed",
    "redirects": "redirects (hops, no demand)",
    "internal": "lookups of the load manager's own topics (no demand)",
    "quarantined": "records in quarantine",
    "first_us": "first lookup",
    "last_us": "last lookup",
    "induced_ratio": "share of lookups induced by logged losses",
    "ignored_unloads": "logged unloads that were not an administrator's (ignored)",
    "capacity": "capacity of brokers",
    "without_capacity": "brokers without a capacity, beside others with one",
    "decisions": "decisions taken",
    "failures": "failures that on_error let pass",
    "first_failure": "the first of them",
    "load": None,
    "cycles": None,
    "findings": None,
}


def answer(scored: Scored, folder: str = HERE) -> Iterator[Block]:
    """Yield the answer: a card for each candidate, who fails the run, and who is best in locality."""
    if not scored.candidates:
        yield Paragraph(conclusion(scored), role="lead")
        return
    told = nothing_told(scored)
    if told is not None:
        yield Paragraph(told, role="lead")
    yield cards(scored, folder)
    yield from (Paragraph(text) for text in (alarm(scored), about_locality(scored)) if text is not None)


def decision(scored: Scored) -> Iterator[Block]:
    """Yield what decides the exit code, in which order candidates stand, what luck does and what is open."""
    if scored.candidates:
        yield Paragraph(order_of_cards(scored), role="note")
        yield Paragraph(conclusion(scored))
    luck, open_ = winners_luck(scored), undecided_figures(scored)
    if luck is not None:
        yield Paragraph(luck, role="note")
    if open_:
        yield Fold(f"What is undecided: {IN_BRACKETS}", [Bullets(open_)])


def figure_table(scored: Scored, scope: Scope = WHOLE, *, head: str = "metric") -> Table:
    """Return the figures of a scope, their intervals as details and their verdicts as styles."""
    drawn = lines(scored, scope)
    has_best = any(line.at_best for line in drawn)
    rows: list[list[str | Cell]] = [
        [
            line.name.strip(),
            line.unit,
            *(
                Cell(
                    f"{figure.value} {figure.mark}".strip(),
                    "" if figure.interval == NOTHING else figure.interval,
                    figure.verdict.verdict if figure.verdict else "",
                )
                for figure in line.figures
            ),
            *([line.at_best or NOTHING] if has_best else []),
        ]
        for line in drawn
    ]
    heads = (
        head, "unit", f"{scored.incumbent} (incumbent)", *scored.candidates, *(["at best"] if has_best else [])
    )  # fmt: skip
    if scope == WHOLE:
        return Table(heads, rows, "comparison-table", "Every figure of every policy", texts=(0, 1))
    caption = f"Every figure in cluster {scope.cluster}"
    return Table(heads, rows, f"comparison-{scope.cluster}", caption, texts=(0, 1))


def verdict_table(scored: Scored, policy: str) -> Table:
    """Return the verdicts on a candidate, one row per figure."""
    rows = []
    for verdict in (verdict for verdict in scored.verdicts if verdict.policy == policy):
        metric, scope = scored.metric[verdict.metric], scope_of(verdict)
        change, low, high = own_direction(verdict, metric.better)
        rows.append(
            [
                f"{label(*verdict.name)}{' *' if verdict.primary else ''}",
                f"{mark_of(verdict)} {word_of(verdict)}{f', {scope}' if scope else ''}",
                NOTHING if math.isnan(change) else f"{signed_text(change, metric.unit)} {metric.unit}",
                interval_text(low, high, metric.unit),
                f"±{number_text(verdict.margin)}",
                verdict.reason or "",
            ]
        )
    heads = ("metric", "verdict", "difference", "95 % interval", "margin", "reason")
    return Table(heads, rows, f"verdicts-{policy}", f"Verdicts on {policy}", texts=(0, 1, 5))


def fidelity(scored: Scored) -> Iterator[Block]:
    """Yield the incumbent beside the log: figures that both have, and the others by the reason."""
    rows: list[list[str]] = []
    # Most figures without a gap share one reason, that of the log; each reason is written once.
    unknown: dict[str, list[str]] = {}
    for figure in scored.fidelity:
        name, unit = label(figure.metric, figure.key), scored.metric[figure.metric].unit
        if figure.reason is not None:
            unknown.setdefault(figure.reason, []).append(name)
            continue
        logged, replayed, gap = (value_text(value, unit) for value in (figure.logged, figure.resimulated, figure.gap))
        rows.append([name, logged, replayed, interval_text(figure.low, figure.high, unit), gap])
    yield _ABOUT_FIDELITY
    if rows:
        heads = ("metric", "logged", "replayed", "range", "gap")
        yield Table(heads, rows, "fidelity-table", "The incumbent as logged and as replayed")
    if unknown:
        yield Bullets([f"no gap for {', '.join(names)}: {reason}" for reason, names in unknown.items()])


def cycles_in_words(cycles: CycleSums) -> str:
    """Return one sentence on the cycles, unloads and refusals of a policy's shedder."""
    refused = ", ".join(f"{reason} {count:,}" for reason, count in cycles.refused.items())
    return (
        f"The shedder `{cycles.shedder}` ran {quantity(cycles.cycles, 'cycle')}: "
        f"{quantity(cycles.accepted, 'unload')} accepted, {sum(cycles.refused.values()):,} proposals refused"
        f"{f' ({refused})' if refused else ''}."
    )


def cycle_table(policy: str, cycles: CycleSums) -> Table:
    """Return how often a policy's shedder ended with each reason, the most frequent one first."""
    rows = [
        (words, f"{count:,}", number_text(cycles.excess[reason]) if reason in cycles.excess else NOTHING)
        for reason, words, count in cycles.named()
    ]
    return Table(("reason", "cycles", "largest excess"), rows, f"cycles-{policy}", f"Cycles of {policy}")


def idle_shedders(scored: Scored) -> list[str]:
    """Return a line for each policy whose shedder ran and unloaded nothing."""
    idle = {policy: cycles.idleness for policy, cycles in scored.inputs.cycles.items()}
    return [f"{policy}: {text}" for policy, text in idle.items() if text is not None]


def setup(scored: Scored) -> Bullets:
    """Return how the log was replayed, one phrase per setting."""
    evaluation = scored.plan.evaluation
    load = "what the replay itself placed" if evaluation.load == "simulated" else "what brokers reported"
    candidates = ", ".join(f"`{name}`" for name in scored.candidates) or "none"
    phrases = [
        f"incumbent: `{evaluation.incumbent}`, replayed like the others",
        f"candidates: {candidates}",
        f"load seen by the policies: {load}",
        f"ticks of {evaluation.tick_s} s; balance in cells of {evaluation.balance_s} s",
        f"warm-up, simulated but not scored: {evaluation.warmup_s} s",
        *([f"scored from {evaluation.scored_from.isoformat()} on"] if evaluation.scored_from is not None else []),
        f"replicates: {len(evaluation.drawn)}, seeds {', '.join(map(str, evaluation.drawn))}",
    ]
    return Bullets(phrases)


def input_table(scored: Scored) -> Table:
    """Return what was read, in words; what has a section of its own or did not happen is left out."""
    rows = []
    for name in (each.name for each in fields(scored.inputs)):
        value, words = getattr(scored.inputs, name), _INPUTS.get(name, name)
        if words is not None and value not in (None, {}, ()):
            text = f"{moment_at(value):%Y-%m-%d %H:%M:%S} UTC" if name.endswith("_us") else _text(value)
            rows.append((words, text))
    return Table(("input", "value"), rows, "input-table", "What was read", texts=(0, 1))


def _text(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_text(entry)}" for name, entry in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_text, value))
    return NOTHING if value is None else str(value)
