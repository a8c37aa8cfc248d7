"""Confirm a run: its winner against its incumbent once more, with seeds that the run has not seen, and what is left.

The best of many candidates looks better than it is, since it was chosen for its luck as well; on other luck, or another
log, it has its merit only.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

from lookup.errors import Argument, SettingsError
from lookup.model.quoting import suggestion
from lookup.report.cards import winner_of
from lookup.report.comparison import label, mark_of, own_direction, signed_text, word_of
from lookup.report.folder import Run, settings_given
from lookup.score.scoring import Scored
from lookup.score.verdict import Verdict

__all__ = ["confirming", "new_seeds", "what_is_left"]

#: Draws of seeds that a confirmation may be: so many, so that two runs of one log hardly share one.
_DRAWS = 1_000_000


def confirming(run: Run, candidate: str | None = None) -> dict[str, Any]:
    """Return the settings of an evaluation that confirms a run: incumbent and winner, as many seeds, drawn anew.

    Raises:
        SettingsError: if the run has no such candidate, or none that is better in anything.
    """
    scored, settings = run.scored, settings_given(run)
    candidates = scored.candidates
    if candidate is not None and candidate not in candidates:
        right = suggestion(candidate, candidates) if candidates else "it has its incumbent only"
        raise SettingsError(Argument("candidate"), f": {run.path} has no candidate {candidate!r}; {right}")
    winner = candidate or winner_of(scored)
    if winner is None:
        what = f": {run.path} has no winner, since no candidate is better in any figure; name one with "
        raise SettingsError(Argument("confirm"), what, Argument("candidate", "NAME"))
    names = (scored.incumbent, winner)
    return {
        **settings,
        "evaluation": {**settings["evaluation"], **new_seeds(run)},
        "policies": [policy for policy in settings["policies"] if policy["name"] in names],
    }


def new_seeds(run: Run) -> dict[str, int]:
    """Return the settings that draw as many seeds as a run had, and others."""
    seeds = run.manifest["seeds"]
    draw = 1 + int.from_bytes(hashlib.blake2b(repr(seeds).encode(), digest_size=8).digest()) % _DRAWS
    return {"seeds": len(seeds), "draw": draw}


def what_is_left(earlier: Run, now: Scored) -> list[str]:
    """Say of each figure in which the confirmed candidate was told apart from the incumbent what is left of it."""
    (policy,) = now.candidates
    verdicts = {verdict.name: verdict for verdict in now.verdicts}
    told = [
        verdict
        for verdict in earlier.scored.verdicts
        if verdict.policy == policy and (verdict.is_decided or verdict.alone is not None)
    ]
    head = f"What is left of {policy} in {earlier.path}, with seeds that it has not seen:"
    return [head, *(_left(before, verdicts.get(before.name), now) for before in told)]


def _left(before: Verdict, after: Verdict | None, now: Scored) -> str:
    name = label(*before.name)
    if after is None or math.isnan(after.delta):
        return f"{name}: was {word_of(before)}, and is not measured now"
    metric = now.metric[before.metric]
    (was, *_), (is_now, *_) = (own_direction(one, metric.better) for one in (before, after))
    changes = f"{signed_text(was, metric.unit)} {metric.unit} before, {signed_text(is_now, metric.unit)} now"
    share = f", {after.delta / before.delta:.0%} of it" if before.delta else ""
    return f"{name}: {changes}{share}: {mark_of(after)} {word_of(after)}"
