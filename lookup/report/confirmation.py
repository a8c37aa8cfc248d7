"""Confirm a run by replaying its winner and its incumbent with new seeds, and report the remaining changes.

Chance makes the best of many candidates look better. With new seeds or another log only its real gain remains.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

from lookup.errors import Argument, SettingsError
from lookup.model.quoting import suggestion
from lookup.report.figures import Results, Run, settings_given
from lookup.report.numbers import signed_text
from lookup.report.sentences import mark_of, winner_of, word_of
from lookup.score.figures import Figure

__all__ = ["confirming", "new_seeds", "remaining_changes"]

#: Number of possible draws of seeds of a confirmation, large enough that two runs of one log hardly share one.
_DRAWS = 1_000_000


def confirming(run: Run, candidate: str | None = None) -> dict[str, Any]:
    """Build the settings of an evaluation that confirms a run, with incumbent, winner, and as many new seeds.

    Raises:
        SettingsError: if the run has no such candidate, or no candidate that is better in any figure.
    """
    results, settings = run.results, settings_given(run)
    candidates = results.candidates
    if candidate is not None and candidate not in candidates:
        right = suggestion(candidate, candidates) if candidates else "it has its incumbent only"
        raise SettingsError(Argument("candidate"), f": {run.path} has no candidate {candidate!r}; {right}")
    winner = candidate or winner_of(results)
    if winner is None:
        problem = f": {run.path} has no winner, since no candidate is better in any figure; name one with "
        raise SettingsError(Argument("confirm"), problem, Argument("candidate", "NAME"))
    names = (results.incumbent, winner)
    return {
        **settings,
        "evaluation": {**settings["evaluation"], **new_seeds(run)},
        "policies": [policy for policy in settings["policies"] if policy["name"] in names],
    }


def new_seeds(run: Run) -> dict[str, int]:
    """Build the settings that draw as many seeds as a run had, but different ones."""
    seeds = run.manifest["seeds"]
    draw = 1 + int.from_bytes(hashlib.blake2b(repr(seeds).encode(), digest_size=8).digest()) % _DRAWS
    return {"seeds": len(seeds), "draw": draw}


def remaining_changes(earlier: Run, now: Results) -> list[str]:
    """Describe how much of each significant change of the confirmed candidate remains."""
    (policy,) = now.candidates
    rows = [
        row for row in earlier.results.verdicts if row.policy == policy and (row.is_decided or row.alone is not None)
    ]
    head = f"Changes of {policy} in {earlier.path}, and with seeds that it has not seen:"
    return [head, *(_describe_remaining(before, now.pooled.get((policy, *before.name))) for before in rows)]


def _describe_remaining(before: Figure, after: Figure | None) -> str:
    if after is None or math.isnan(after.change):
        return f"{before.label}: was {word_of(before)}, and is not measured now"
    was, now = (f"{signed_text(row.change, row.unit)} {row.unit}" for row in (before, after))
    share = after.change / before.change if before.change else 0.0
    part = f", {share:.0%} of it" if share >= 0 else ", the opposite"
    return f"{before.label}: {was} before, {now} now{part}, {mark_of(after)} {word_of(after)}"
