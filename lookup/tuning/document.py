"""Write a search as JSON: what each batch has shown, and in the end what is recommended and what is not."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from lookup.model.quoting import quantity
from lookup.score.rules import name_of
from lookup.settings.policy import PolicySpec, is_path
from lookup.settings.pulsar_keys import BUNDLES_KEY
from lookup.tuning.advice import back_lines, dynamic_lines, objection, of_bundles, patch, restart_lines
from lookup.tuning.racing import MOVES, Aims, Figure, Standing, figure_name
from lookup.tuning.search import Candidate, Search
from lookup.tuning.trials import Span

__all__ = [
    "aims_document", "aims_of", "conclusion", "entry", "figures", "json_bytes", "judged_entry",
    "standing",
]  # fmt: skip


def json_bytes(content: Mapping[str, Any]) -> bytes:
    """Write a document: the same content gives the same bytes."""
    return (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def figures(of: Standing | None) -> dict[str, Any] | None:
    """Return the figures of a candidate by name, None for what is unknown."""
    return None if of is None else {figure_name(name): _plain(figure) for name, figure in of.figures.items()}


def standing(written: Mapping[str, Any], idle: str | None) -> Standing:
    """Return how a candidate stood, from what `figures` returned."""
    found = {}
    for name, figure in written.items():
        numbers = {key: math.nan if figure[key] is None else figure[key] for key in ("value", "delta", "low", "high")}
        found[name_of(name)] = Figure(
            **numbers, verdict=figure["verdict"], guard=figure["guard"], gap=figure.get("gap", 0.0)
        )
    return Standing(found, idle)


def aims_document(aims: Aims) -> dict[str, Any]:
    """Return what is sought."""
    return {
        "objectives": list(map(figure_name, aims.objectives)),
        "prices": list(map(figure_name, aims.prices)),
        "limits": {figure_name(name): times for name, times in aims.limits.items()},
        "tolerance": aims.tolerance,
        "rising": sorted(map(figure_name, aims.rising)),
    }


def aims_of(written: Mapping[str, Any]) -> Aims:
    """Return what was sought, from what `aims_document` returned."""
    return Aims(
        tuple(map(name_of, written["objectives"])),
        tuple(map(name_of, written["prices"])),
        {name_of(name): times for name, times in written["limits"].items()},
        written["tolerance"],
        frozenset(map(name_of, written["rising"])),
    )


def entry(candidate: Candidate, search: Search) -> dict[str, Any]:
    """Return a candidate: what it changes, what stood there before, and its figures in the search."""
    point = candidate.point
    space = search.spaces[point.space] if candidate.number else None
    return {
        "candidate": candidate.number,
        "space": point.space or None,
        "origin": candidate.origin,
        "of": candidate.of,
        "changes": dict(point.changes),
        "before": {} if space is None else {key: space.before(key) for key in point.changes},
        "search": figures(candidate.standing),
        "idle": None if candidate.standing is None else candidate.standing.idle,
        "beaten_by": candidate.beaten_by,
        "raced": search.has_raced(candidate) if candidate.number else None,
    }


def judged_entry(
    candidate: Candidate, search: Search, sealed: Standing, today: Standing, aims: Aims, *, days: float
) -> dict[str, Any]:
    """Return a finalist with what the sealed days say of it, and how its changes are made.

    Args:
        sealed: of the candidate on these days.
        today: of the incumbent on them.
        days: how many they are.
    """
    known, base = entry(candidate, search), search.spaces[candidate.point.space].base
    written = {BUNDLES_KEY if key == "bundles" else key: key for key in known["changes"]}
    keys = {key: known["changes"][of] for key, of in written.items() if not is_path(key)}
    before = {key: known["before"][written[key]] for key in keys}
    moves = sealed.figures[MOVES].value
    return known | {
        "sealed": figures(sealed),
        "objection": objection(sealed, today, aims),
        "moves_per_day": moves / days if days and math.isfinite(moves) else None,
        "patch": patch(keys, before),
        "caution": of_bundles(keys[BUNDLES_KEY]) if BUNDLES_KEY in keys else None,
        "dynamic": list(dynamic_lines(keys)),
        "restart": list(restart_lines(keys)),
        "back": list(back_lines(before)),
        "policy": _table(candidate, search, base),
    }


def _table(candidate: Candidate, search: Search, base: PolicySpec) -> dict[str, Any]:
    name, changes = f"{base.name}-{candidate.number}", dict(candidate.point.changes)
    if base.conf_file is not None and not any(map(is_path, changes)):
        return {
            "name": name,
            "from_broker_conf": base.conf_file,
            "pulsar": base.release,
            "broker_conf": changes,
        }
    return (
        search.spaces[candidate.point.space].policy(candidate.point, name).model_dump(mode="json", exclude_unset=True)
    )


def conclusion(
    recommended: Sequence[Mapping[str, Any]],
    judged: Sequence[Mapping[str, Any]],
    aims: Aims,
    span: Span,
    *,
    opened: int,
) -> str:
    """Return the answer in one sentence.

    Args:
        recommended: entries of what is confirmed, the best first.
        judged: entries of all finalists.
        span: what was searched and what was sealed.
        opened: how often what is sealed was opened.
    """
    if recommended:
        best = recommended[0]
        changes = ", ".join(f"{key} = {value}" for key, value in best["changes"].items())
        seen = "that the search has not seen" if opened == 1 else f"that were opened {quantity(opened, 'time')}"
        return f"change {changes}: {'; '.join(_gains(best['sealed'], aims))}, on days {seen}"
    if not judged:
        return "keep what you have: of nothing that was tried the search could tell a gain from luck"
    if span.sealed_from is None:
        return "nothing is confirmed: no days were sealed, and the best of many looks better than it is"
    smallest = []
    for name in map(figure_name, aims.objectives):
        known = [figure for one in judged if (figure := one["sealed"][name])["low"] is not None]
        # Of two that are identical there is nothing to be told apart.
        apart = [figure for figure in known if figure["high"] > figure["low"]]
        effects = [max((figure["high"] - figure["low"]) / 2, figure["gap"]) for figure in apart]
        least = min(effects, default=0.0)
        is_gap = any(figure["gap"] == least for figure in apart)
        smallest += [f"{name} {least:.2g}{' (the fidelity gap)' if is_gap else ''}"] if effects else []
    could = f"; the smallest effect that one alone could have shown: {', '.join(smallest)}" if smallest else ""
    return f"keep what you have: the sealed days confirm none of {quantity(len(judged), 'finalist')}{could}"


def _gains(sealed: Mapping[str, Any], aims: Aims) -> Iterator[str]:
    for name in aims.figures:
        figure, sign = sealed[figure_name(name)], 1.0 if name in aims.rising else -1.0
        before = figure["value"] - sign * (figure["delta"] or 0.0)
        ends = sorted(sign * end for end in (figure["low"], figure["high"]) if end is not None)
        span = f" ({ends[0]:+.3g} to {ends[1]:+.3g})" if ends else ""
        yield f"{figure_name(name)} from {before:.4g} to {figure['value']:.4g}{span}"


def _plain(figure: Figure) -> dict[str, Any]:
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in asdict(figure).items()
    }
