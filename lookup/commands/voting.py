"""Print how a policy answers a request: odds and scores of every candidate, rejections, the choice and its margin."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from lookup.commands.streams import plain, plain_table
from lookup.engine.explain import Explanation

__all__ = ["print_explanation"]

#: Brokers that a conclusion names; of many with equal odds the table has the rest.
_SHOWN_BROKERS = 5


def print_explanation(console: Console, explanation: Explanation) -> None:
    """Print one policy's answer."""
    console.print()
    console.print(plain(f"policy {explanation.policy}", style="bold"))
    # By odds, then by score, since policies that choose the best give all others odds of 0; ties by name.
    candidates = sorted(
        (vote for vote in explanation.votes if vote.reason is None),
        key=lambda vote: (-vote.probability, -(vote.score or 0.0), vote.broker),
    )
    if candidates:
        scorers = [f"{name} × {weight:g}" for name, weight in explanation.weights.items()]
        rows = []
        for vote in candidates:
            scores = [f"{vote.scores[name]:.4f}" if name in vote.scores else "" for name in explanation.weights]
            total = "" if vote.score is None else f"{vote.score:.4f}"
            rows.append((vote.broker, f"{vote.probability:.4f}", total, *scores))
        plain_table(console, ("broker", "odds", "score", *scorers), rows)
    for line in _sentences(explanation):
        # Soft: in a file or a pipe a reason stays one line, however long a plug-in words it.
        console.print(plain(line), soft_wrap=not console.is_terminal)


def _sentences(explanation: Explanation) -> Iterator[str]:
    for vote in explanation.votes:
        if vote.reason is not None:
            why = f"{vote.reason.value}: {vote.detail}" if vote.detail else vote.reason.value
            yield f"Rejected: {vote.broker} by {why}"
    if explanation.failure:
        yield f"A part failed: {explanation.failure}"
    if explanation.declined is not None:
        yield f"Declined: {explanation.declined.value}."
        return
    chosen = explanation.chosen
    shown = ", ".join(f"{vote.broker} ({vote.probability:.4f})" for vote in chosen[:_SHOWN_BROKERS])
    rest = f" and {len(chosen) - _SHOWN_BROKERS} more" if len(chosen) > _SHOWN_BROKERS else ""
    yield f"Chosen: {'one of, by odds: ' if len(chosen) > 1 else ''}{shown}{rest}."
    if explanation.margin is None:
        yield f"Margin: none, all {explanation.ties} candidates have the same score."
    else:
        tied = "" if explanation.ties == 1 else f"; {explanation.ties} brokers share the best score"
        yield f"Margin: {explanation.margin:.4f} to the next best score{tied}."
