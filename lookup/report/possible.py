"""Say what any placement could reach in a log, and how far policies come: a table, a line, and faults in the bounds."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator

from lookup.model.quoting import listed, quantity
from lookup.report.blocks import Block, Cell, Paragraph, Table
from lookup.report.cards import ranked
from lookup.report.comparison import NOTHING, label, value_text
from lookup.report.wording import aims
from lookup.report.words import amount_text, words_of
from lookup.score.possible import Best, Share
from lookup.score.scoring import Scored

__all__ = ["beyond", "reach", "what_is_possible"]

_SCOPES = {"policy": "", "placement": ", for this placement only", "hours": ", for these hours only"}


def reach(scored: Scored) -> str | None:
    """Say what is possible in the figures that matter, and how far the best candidate goes; None if it is not known."""
    possible = scored.possible
    if possible is None:
        return None
    bests = {(best.metric, best.key): best for best in possible.figures}
    names = [name for name in aims(scored) if name in bests]
    if not names:
        return None
    limits = ", ".join(f"{words_of(name).name} {_limit_text(scored, bests[name])}" for name in names)
    sentence = f"possible in hindsight: {limits}"
    shares = {(share.policy, share.metric, share.key): share for share in possible.shares}
    for policy in ranked(scored)[:1]:
        ways = [_way(shares.get((policy, *name))) for name in names]
        if any(way != NOTHING for way in ways):
            sentence += f"; {policy} goes {' and '.join(ways)} of the way there"
    return sentence


def what_is_possible(scored: Scored, rejected: Collection[str] = ()) -> Iterator[Block]:
    """Yield what is possible figure by figure, with the share of it that each candidate reaches.

    Args:
        rejected: reasons by which filters kept brokers out of decisions.
    """
    possible = scored.possible
    if possible is None or not possible.figures:
        return
    moves = "" if possible.moves is None else f", and with the {quantity(possible.moves, 'move')} of the incumbent"
    yield Paragraph(
        "No placement of this demand surpasses these figures, under the isolation that all of these policies share: "
        f"with free moves{moves}. It is proven, not estimated, and need not be reachable. Under each candidate stands "
        "how far it goes from the incumbent's figure to the one with free moves, with its 95 % interval.",
        is_wrapped=True,
    )
    shares = {(share.policy, share.metric, share.key): share for share in possible.shares}
    rows: list[list[str | Cell]] = []
    for best in possible.figures:
        unit = scored.metric[best.metric].unit
        values = [value_text(value, unit) for value in (best.incumbent, best.free, best.few)]
        cells = [_way(shares.get((policy, best.metric, best.key))) for policy in scored.candidates]
        rows.append([label(best.metric, best.key), *values, *cells])
    heads = ("metric", f"{scored.incumbent} (incumbent)", "free moves", "the incumbent's moves", *scored.candidates)
    yield Table(heads, rows, "possible-table", "What is possible, and how far policies go", texts=(0,))
    reasons = dict.fromkeys(
        f"{label(share.metric, share.key)}: {share.reason}" for share in possible.shares if share.reason
    )
    yield from (Paragraph(reason, "note") for reason in reasons)
    others = sorted(set(rejected).difference(possible.filters))
    if others:
        yield Paragraph(
            f"Filters also kept brokers out by {listed(others)}, which the bounds do not go by: if all policies have "
            "such a filter, every share is too small by the same factor.",
            "note",
        )


def beyond(scored: Scored) -> list[str]:
    """Return a sentence for each policy with figures beyond what is possible: one of the two is wrong."""
    names: dict[str, list[str]] = {}
    for each in () if scored.possible is None else scored.possible.beyond:
        names.setdefault(each.policy, []).append(" with ".join(label(*name) for name in each.figures))
    return [
        f"{policy} lies beyond what is possible in {listed(list(dict.fromkeys(figures)))}: this is a fault of "
        "pulsar-lookup, in its bounds or in its replay; please report it, and do not rely on this run."
        for policy, figures in names.items()
    ]


def _limit_text(scored: Scored, best: Best) -> str:
    metric, possible = scored.metric[best.metric], scored.possible
    free, few = (amount_text(value, metric) for value in (best.free, best.few))
    if possible is None or possible.moves is None or few in (free, NOTHING):
        return free
    return f"{free} ({few} with the {quantity(possible.moves, 'move')} of {scored.incumbent})"


def _way(share: Share | None) -> str:
    """Write a share in percent with its interval and what it holds for, a dash if there is none."""
    if share is None or math.isnan(share.share):
        return NOTHING
    span = ""
    if not math.isnan(share.low):
        span = f" ({_percent(share.low)} to {_percent(share.high)}{_SCOPES[share.holds_for]})"
    return f"{_percent(share.share)} %{span}"


def _percent(share: float) -> int:
    return round(100 * share)
