"""Answer a run on one screen: a card for each candidate, the best first.

A card says in a sentence what the candidate does better and worse than the incumbent, shows the figures behind it, and
says how sure that is and what to do next. Only verdicts make sentences; figures that merely look different do not.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lookup.model.quoting import quantity
from lookup.report.blocks import Card, Cards, Facet
from lookup.report.comparison import alike, label, own_direction, scope_of
from lookup.report.steps import confirmation, explanation
from lookup.report.wording import aims, is_fatal, joined, locality, of_wholes, shown
from lookup.report.words import amount_text, change_text, filled, is_share, size_text, span_text, words_of
from lookup.score.luck import least_chance, replicates_for
from lookup.score.rules import Name
from lookup.score.scoring import Scored
from lookup.score.verdict import GATE_LEVEL, Verdict, Word, family

__all__ = [
    "HERE", "PRICE", "about_locality", "cards", "facet_text", "nothing_told", "order_of_cards", "ranked", "sentences",
    "who_is_alike", "winner_of",
]  # fmt: skip

#: Stands for the folder of a run in a command, where it is not known.
HERE = "RUN_DIR"
#: What changes an owner is a price, whatever else a policy is for.
PRICE: Name = ("moves", None)
#: So many times the log, or the replicates, is more than anybody has.
_TOO_LARGE = 50.0
#: Replicates to ask for where there is one.
_SEEDS = 10
#: Replicates that a verdict asks for which has too few to carry any.
_LEAST = 5
#: Part of an interval from which on luck of the placement prevails.
_PREVAILS = 0.7
#: Greatest chances between equals of what is very sure, and of what is sure; at most LEVEL is fairly sure.
_VERY, _SURE = 0.001, 0.01
#: What figures of a card are called by their verdicts.
_FACET_WORDS: Mapping[Word, str] = {
    "better": "better", "worse": "worse", "equivalent": "the same", "identical": "the same", "inconclusive": "open"
}  # fmt: skip
#: Policies named in a title; the others are counted.
_NAMED = 2


@dataclass
class _Found:
    """The verdicts on one candidate that its sentence is made of."""

    same: list[Verdict] = field(default_factory=list)
    gains: list[Verdict] = field(default_factory=list)
    losses: list[Verdict] = field(default_factory=list)
    #: would be told apart if each were the only comparison
    perhaps: list[Verdict] = field(default_factory=list)
    open: list[Verdict] = field(default_factory=list)
    #: losses that fail the run
    fatal: list[Verdict] = field(default_factory=list)

    @property
    def told(self) -> list[Verdict]:
        return [*self.gains, *self.losses]


def cards(scored: Scored, folder: str = HERE) -> Cards:
    """Return a card for each candidate, one for all that decide alike."""
    return Cards([_card(scored, group, folder, is_best=not place) for place, group in enumerate(_groups(scored))])


def facet_text(facet: Facet) -> str:
    """Write a figure of a card in a line, with the interval of the difference."""
    return (
        f"{facet.words} (`{facet.name}`) {facet.before} → {facet.after} ({facet.change}, 95 % interval {facet.span}), "
        f"{facet.word}"
    )


def sentences(scored: Scored) -> list[str]:
    """Return the sentence of each card behind its title and a colon."""
    return [f"{card.title}: {card.sentence}" for card in cards(scored).items]


def ranked(scored: Scored) -> list[str]:
    """Return the candidates, the best first.

    Fewest certain losses on primary metrics come first, then most gains less losses in primary metrics and in `aims`,
    then in all. A verdict counts 1, one with an open mark a half, and as the only comparison a
    quarter. Among equals differences in `aims` are added up, whether or not they are told from chance.
    """
    aimed, of_policy = aims(scored), defaultdict[str, list[Verdict]](list)
    for verdict in of_wholes(scored):
        of_policy[verdict.policy].append(verdict)

    def size(verdict: Verdict) -> float:
        before = abs(_values(scored, verdict)[0])
        part = verdict.delta if is_share(scored.metric[verdict.metric]) else verdict.delta / (before or math.inf)
        return part if math.isfinite(part) else 0.0

    def rank(policy: str) -> tuple[float, float, float, float]:
        every = of_policy[policy]
        of_aims = [verdict for verdict in every if verdict.name in aimed]
        deciding = [verdict for verdict in every if verdict.primary or verdict.name in aimed]
        return (
            -sum(is_fatal(verdict, scored) for verdict in every),
            _score(deciding),
            _score(every),
            sum(map(size, of_aims)),
        )

    return sorted(scored.candidates, key=rank, reverse=True)


def winner_of(scored: Scored) -> str | None:
    """Return the candidate that stands first of those that are better in anything; None if none is."""
    better = {verdict.policy for verdict in scored.verdicts if verdict.verdict == "better"}
    return next((policy for policy in ranked(scored) if policy in better), None)


def order_of_cards(scored: Scored) -> str:
    """Explain the order of the cards, and what decides the exit code."""
    primary = dict.fromkeys(f"{words_of(v.name).name} (`{label(*v.name)}`)" for v in of_wholes(scored) if v.primary)
    decides = f" What decides the exit code (*): {', '.join(primary)}." if primary else ""
    return (
        f"Each candidate is held against {scored.incumbent}, the incumbent. The best comes first, by what is shown "
        f"against the incumbent; neighbours in this order need not differ.{decides}"
    )


def nothing_told(scored: Scored) -> str | None:
    """Say that no candidate is told from the incumbent, and which log would do; None if one is."""
    if not scored.verdicts or any(verdict.is_decided for verdict in scored.verdicts):
        return None
    if all(verdict.verdict == "identical" for verdict in scored.verdicts):
        return f"Every candidate did what {scored.incumbent} did, in every bundle and event."
    open_ = [v for v in of_wholes(scored) if v.name in (*aims(scored), PRICE) and v.verdict == "inconclusive"]
    text = f"This run tells no candidate from {scored.incumbent}."
    # As the first card says that knows it: of two numbers for one thing neither would be believed.
    for policy in ranked(scored):
        found = _found(scored, policy)
        is_able = policy not in scored.cannot_act and (found.perhaps or found.open)
        needed = _needed(scored, policy, found) if is_able else None
        if needed is not None:
            return f"{text} If the {needed.difference} of {policy} is as large as it looks, {needed.words} would."
    reason = next((verdict.reason for verdict in open_ if verdict.reason), None)
    return f"{text} The reason for the first figure: {reason}." if reason else text


def about_locality(scored: Scored) -> str | None:
    """Return the sentence of the candidate that serves most from near; None if the first card has it.

    If none is better, that is said; if there is no locality, nothing is.
    """
    near = locality(scored)
    verdicts = [verdict for verdict in scored.verdicts if verdict.name == near]
    if near is None or not verdicts:
        return None
    what = words_of(near).name
    better = [verdict for verdict in verdicts if "better" in (verdict.verdict, verdict.alone)]
    best = max(better, key=lambda verdict: (verdict.is_decided, verdict.delta), default=None)
    if best is None:
        known = [v for v in verdicts if not math.isnan(v.p_value) and math.isfinite(scored.least_shown(v))]
        most = max(known, key=scored.least_shown, default=None)
        seen = "" if most is None else f"; this run shows differences above {_least(scored, most)}"
        return f"No candidate is shown to have a better {what} than {scored.incumbent}{seen}."
    if best.policy == ranked(scored)[0]:
        return None
    sentence = _sentence(scored, _found(scored, best.policy))
    return f"The best {what} has {best.policy}: {sentence[0].lower()}{sentence[1:]}"


def who_is_alike(scored: Scored) -> str:
    """Say which policies decide alike."""
    groups = [f"{_title(group)}" for group in alike(scored)]
    return "; ".join(groups) or "no two decide alike"


def _groups(scored: Scored) -> Iterator[tuple[str, ...]]:
    """Yield the policies that share a card, in the order of the best of each; the incumbent is in one or in none."""
    group_of = {name: group for group in alike(scored) for name in group}
    seen: set[str] = set()
    for policy in ranked(scored):
        if policy not in seen:
            group = group_of.get(policy, (policy,))
            seen.update(group)
            yield group


def _card(scored: Scored, group: tuple[str, ...], folder: str, *, is_best: bool) -> Card:
    names = [name for name in group if name != scored.incumbent]
    policy, found = names[0], _found(scored, names[0])
    step, command = _next(scored, policy, found, folder)
    perhaps = {word: [v for v in found.perhaps if v.alone == word] for word in ("better", "worse")}
    named = [*found.told, *found.perhaps]
    price = [v for v in scored.verdicts if v.policy == policy and v.name == PRICE and v not in named]
    if len(names) < len(group):
        sentence = f"Decides as {scored.incumbent}, the incumbent, does: on this log they are one policy."
        step, command = "nothing to do", ""
    else:
        sentence = _sentence(scored, found)
    return Card(
        title=_title(names),
        note=f"best of {len(scored.candidates)} against {scored.incumbent}" if is_best else "",
        sentence=sentence,
        gains=[_facet(scored, verdict) for verdict in (*found.gains, *perhaps["better"])],
        costs=[_facet(scored, verdict) for verdict in (*found.losses, *perhaps["worse"], *price)],
        certainty=_certainty(scored, found),
        step=step,
        command=command,
        style=_style(scored, found),
    )


def _style(scored: Scored, found: _Found) -> str:
    if found.fatal or (found.losses and not found.gains):
        return "worse"
    net = _score([verdict for verdict in found.told if verdict.primary or verdict.name in aims(scored)])
    is_firm = any(verdict.holds_for == "policy" for verdict in found.gains)
    return "better" if is_firm and (net > 0 or not found.losses) else "inconclusive"


def _title(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    more = len(names) - _NAMED
    listed = f"{', '.join(names[:_NAMED])} and {more} more" if more > 0 else " and ".join(names)
    return f"{listed} decide alike"


def _found(scored: Scored, policy: str) -> _Found:
    """Sort the verdicts on primary figures, on `aims` and on moves by what they say."""
    found = _Found()
    found.fatal = [v for v in of_wholes(scored) if v.policy == policy and is_fatal(v, scored)]
    named = [v for v in of_wholes(scored) if v.policy == policy and (v.primary or v.name in (*aims(scored), PRICE))]
    for verdict in sorted(named, key=lambda verdict: not verdict.primary):
        if verdict.is_decided:
            (found.gains if verdict.verdict == "better" else found.losses).append(verdict)
        elif verdict.verdict == "inconclusive":
            (found.open if verdict.alone is None else found.perhaps).append(verdict)
        # What neither has anything of is not worth a word.
        elif any(_values(scored, verdict)):
            found.same.append(verdict)
    return found


def _sentence(scored: Scored, found: _Found) -> str:
    shared = _shared_scope(found)

    def clauses(verdicts: Sequence[Verdict]) -> list[str]:
        texts = []
        for verdict in verdicts:
            before, after = _values(scored, verdict)
            words = words_of(verdict.name)
            text = filled(words.more if after > before else words.less, before, after)
            scope = scope_of(verdict)
            texts.append(text if scope in (shared, "") else f"{text} ({scope})")
        return texts

    against = found.fatal
    others = [verdict for verdict in found.losses if verdict not in against]
    equal = [words_of(verdict.name).same for verdict in found.same if verdict.primary]
    parts = []
    if against:
        parts.append(f"{joined(clauses(against))}, which decides against it")
    gains = clauses(found.gains)
    if against and gains:
        parts = [f"{parts[0]}, but {joined(gains)}"]
    elif not against and (equal or gains):
        parts.append(joined([*equal, *gains]))
    if others:
        parts.append(joined(clauses(others)))
    if found.perhaps:
        parts.append(f"perhaps {joined(clauses(found.perhaps))}")
    open_ = [words_of(verdict.name).name for verdict in found.open]
    # Of moves the cost says so already.
    open_ = [] if parts and found.told and open_ == [words_of(PRICE).name] else open_
    if open_:
        parts.append(f"no difference is shown in {joined(open_)}")
    same = [words_of(verdict.name).same for verdict in found.same if not verdict.primary]
    if same and not found.told:
        parts.append(joined(same))
    text = "; ".join(parts) or "nothing was measured by which to judge it"
    text = f"{shared}: {text}" if shared else text
    return f"{text[0].upper()}{text[1:]}."


def _shared_scope(found: _Found) -> str:
    """Return when all that is told holds only; empty if that is not the same, or has to be said of each."""
    scopes = {scope_of(verdict) for verdict in found.told}
    scope = scopes.pop() if len(scopes) == 1 else ""
    # What is not told does not depend on a placement or on hours.
    is_mixed = found.perhaps or found.open or any(verdict.primary for verdict in found.same)
    return "" if is_mixed and scope.startswith("only in") else scope


def _values(scored: Scored, verdict: Verdict) -> tuple[float, float]:
    before, after = (scored.pooled.get((policy, *verdict.name)) for policy in (verdict.against, verdict.policy))
    return math.nan if before is None else before.value, math.nan if after is None else after.value


def _facet(scored: Scored, verdict: Verdict) -> Facet:
    metric = scored.metric[verdict.metric]
    before, after = _values(scored, verdict)
    _, low, high = own_direction(verdict, metric.better)
    return Facet(
        words=words_of(verdict.name).name,
        name=label(*verdict.name),
        before=amount_text(before, metric),
        after=amount_text(after, metric),
        change=change_text(before, after, metric),
        span=span_text(low, high, metric),
        word=f"perhaps {verdict.alone}" if verdict.alone else _FACET_WORDS[verdict.verdict],
    )


def _certainty(scored: Scored, found: _Found) -> str:
    texts = []
    firm = [verdict for verdict in found.told if verdict.holds_for == "policy"]
    if firm:
        chances = [verdict.p_family for verdict in firm if not math.isnan(verdict.p_family)]
        what = "a difference this large" if len(firm) == 1 else "each difference"
        chance = max(chances, default=0.0)
        # Among how many runs it occurs once, rounded down to one digit.
        runs = min(1000, int(1 / chance)) if chance > 0 else 1000
        runs -= runs % 10 ** (len(str(runs)) - 1)
        grade = "very sure" if chance <= _VERY else "sure" if chance <= _SURE else "fairly sure"
        texts.append(
            f"{grade} (if both were equal, chance would show {what} in fewer than 1 of {runs:,} evaluations)"
            if chances
            else "certain on this log"
        )
    by_scope: dict[str, list[str]] = {}
    for verdict in found.told:
        by_scope.setdefault(scope_of(verdict), []).append(words_of(verdict.name).name)
    texts += [f"{scope}: {joined(names)}" for scope, names in by_scope.items() if scope]
    if found.perhaps:
        texts.append("not sure of what is “perhaps”: among so many candidates chance may bring it")
    open_ = [verdict for verdict in found.open if not math.isnan(verdict.p_value)]
    if open_ and not firm and math.isinf(scored.least_shown(open_[0])):
        seeds = quantity(len(scored.plan.evaluation.drawn), "seed")
        texts.append(f"{seeds} can carry no verdict, however large the differences are")
    elif open_ and not firm:
        least = [f"{_least(scored, verdict)} in {words_of(verdict.name).name}" for verdict in open_]
        texts.append(f"this run shows differences above {joined(least)}")
    if not texts:
        reason = next((verdict.reason for verdict in found.open if verdict.reason), None)
        texts.append(reason or "both did the same, up to the margin")
    return "; ".join(texts)


def _least(scored: Scored, verdict: Verdict) -> str:
    """Write above which size a difference would be shown; "above" says already that it is more."""
    text = shown(scored, verdict, size_text(scored.least_shown(verdict), scored.metric[verdict.metric]))
    return text.removeprefix("more than ")


@dataclass(frozen=True, slots=True)
class _Needed:
    """What would show a difference that this run leaves open, if it is as large as it looks."""

    #: the interval shrinks with the root of what it rests on
    factor: float
    #: of the replicates, else of the log
    seeds: int | None
    #: the figure that differs; None: any
    name: Name | None = None

    @property
    def difference(self) -> str:
        return "difference" if self.name is None else f"difference in {words_of(self.name).name}"

    @property
    def words(self) -> str:
        if self.seeds is not None:
            return f"{self.seeds} seeds"
        return f"a log about {max(2, math.ceil(self.factor))} times as long"


def _needed(scored: Scored, policy: str, found: _Found) -> _Needed | None:
    """Return the least that would show a difference of a candidate; None if it is nothing that anybody has."""
    seeds = len(scored.plan.evaluation.drawn)
    if seeds == 1:
        # Another placement is what is missing, and cheap.
        return _Needed(1.0, _SEEDS)
    together, *_ = family(scored.verdicts, scored.plan.rules)
    # Fewer seeds carry no verdict, however narrow intervals become.
    least, needs = max(_LEAST, replicates_for(GATE_LEVEL / max(1, together))), []
    for verdict in (*found.perhaps, *found.open) if policy not in scored.placed_once else ():
        # In the answer about this log there is no luck of the demand.
        half, placed = ((span.high - span.low) / 2 for span in (verdict, verdict.on_log))
        # A difference that the replay itself may bring is not worth the trouble.
        small = max(np.nan_to_num(verdict.margin), scored.gaps.get(verdict.name, 0.0))
        if not abs(verdict.delta) > small or math.isnan(verdict.p_value):
            continue
        factor = (half / abs(verdict.delta)) ** 2
        if 1 < factor <= _TOO_LARGE:
            is_placement = placed > _PREVAILS * half
            needs.append(_Needed(factor, max(least, math.ceil(factor * seeds)) if is_placement else None, verdict.name))
        elif factor <= 1 and seeds < least and verdict.p_value <= least_chance(seeds):
            needs.append(_Needed(1.0, least, verdict.name))
    # More seeds cost an hour, a longer log weeks.
    return min(needs, key=lambda needed: (needed.seeds is None, needed.seeds or needed.factor), default=None)


def _next(scored: Scored, policy: str, found: _Found, folder: str) -> tuple[str, str]:
    candidate = None if policy == winner_of(scored) else policy
    if policy in scored.cannot_act:
        return f"it is not what it says on this log: {scored.cannot_act[policy]}", ""
    if found.fatal or (found.losses and not found.gains):
        return "compare the owners of a topic with those under the incumbent", explanation(
            folder, policy, scored.incumbent
        )
    if any(verdict.holds_for == "policy" for verdict in found.gains):
        return "first see with new seeds what was luck", confirmation(folder, candidate)
    needed = _needed(scored, policy, found)
    if needed is None and policy in scored.placed_once:
        return f"more of this log cannot tell: {scored.placed_once[policy]}", ""
    if needed is not None:
        other = {"on_other_log": True} if needed.seeds is None else {"seeds": needed.seeds}
        what = "" if needed.name is None else f" a {needed.difference}"
        return f"{needed.words} would tell{what}", confirmation(folder, candidate, **other)
    if found.gains:
        return "another day's log would tell", confirmation(folder, candidate, on_other_log=True)
    open_ = [verdict for verdict in (*found.perhaps, *found.open) if abs(verdict.delta) > verdict.margin]
    hidden = [v for v in open_ if abs(v.delta) <= scored.gaps.get(v.name, 0.0) and not math.isnan(v.p_value)]
    if hidden:
        gaps = [f"{size_text(scored.gaps[v.name], scored.metric[v.metric])} in {words_of(v.name).name}" for v in hidden]
        return f"more of this log cannot tell: no difference is above the fidelity gap of {joined(gaps)}", ""
    return "nothing to do: on this log it is no different from the incumbent", ""


def _score(verdicts: Sequence[Verdict]) -> float:
    """Return gains less losses, each by how sure it is."""
    total = 0.0
    for verdict in verdicts:
        sign = {"better": 1.0, "worse": -1.0}.get(verdict.alone or verdict.verdict, 0.0)
        total += sign * (0.25 if verdict.alone else 1.0 if verdict.holds_for == "policy" else 0.5)
    return total
