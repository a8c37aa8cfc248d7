"""Write a search as JSON, with the results of each batch, and in the end the recommendations and rejections."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter

from lookup.model.quoting import quantity
from lookup.score.figures import Figure, json_row
from lookup.score.rules import name_of
from lookup.settings.policy import PolicySpec, is_path
from lookup.settings.pulsar_keys import BUNDLES_KEY
from lookup.tuning.advice import back_lines, dynamic_lines, objection, of_bundles, patch, restart_lines
from lookup.tuning.racing import Aims, Standing, figure_name
from lookup.tuning.search import Candidate, Search
from lookup.tuning.trials import Shown
from lookup.tuning.wording import SEALED, SEARCHED, Figures, label

__all__ = [
    "aims_document", "aims_of", "conclusion", "entry", "figures_of_search", "figures_on", "is_open", "json_bytes",
    "json_rows", "judged_entry", "list_confirmed", "read_figures", "read_standing", "settings_entries",
]  # fmt: skip


def json_bytes(content: Mapping[str, Any]) -> bytes:
    """Write a document. The same content gives the same bytes."""
    return (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


#: Reads a row of FIGURES back.
_ROW = TypeAdapter(Figure)


def json_rows(of: Standing) -> list[dict[str, Any]]:
    """Write the figures of a candidate as rows of FIGURES."""
    return list(map(json_row, of.figures.values()))


def read_standing(rows: Sequence[Mapping[str, Any]], idle: str | None) -> Standing:
    """Read back how a candidate stood."""
    figures = map(_ROW.validate_python, rows)
    return Standing({figure.name: figure for figure in figures}, idle)


def figures_on(days: str, standings: Mapping[int, Standing]) -> list[dict[str, Any]]:
    """Write the figures of candidates as rows of FIGURES with two columns of their own, the candidate and the days."""
    return [{"candidate": number, "days": days, **row} for number, of in standings.items() for row in json_rows(of)]


def figures_of_search(search: Search, sealed: Shown | None) -> list[dict[str, Any]]:
    """Write the figures of all candidates, each as its last batch had it, and those of the finalists."""
    tried = {candidate.number: candidate.standing for candidate in search.candidates if candidate.standing is not None}
    return figures_on(SEARCHED, tried) + (figures_on(SEALED, sealed.standings) if sealed else [])


def read_figures(document: Mapping[str, Any]) -> Figures:
    """Read the figures of a search, by candidate and days, then by name."""
    figures: dict[tuple[int, str], dict[str, Figure]] = {}
    for row in document["figures"]:
        figure = _ROW.validate_python(row)
        figures.setdefault((row["candidate"], row["days"]), {})[figure_name(figure.name)] = figure
    return figures


def aims_document(aims: Aims) -> dict[str, Any]:
    """Convert the aims to a JSON object."""
    return {
        "objectives": list(map(figure_name, aims.objectives)),
        "prices": list(map(figure_name, aims.prices)),
        "limits": {figure_name(name): times for name, times in aims.limits.items()},
        "tolerance": aims.tolerance,
        "rising": sorted(map(figure_name, aims.rising)),
        "per_day": sorted(map(figure_name, aims.per_day)),
    }


def aims_of(written: Mapping[str, Any]) -> Aims:
    """Read the aims from the result of `aims_document`."""
    return Aims(
        tuple(map(name_of, written["objectives"])),
        tuple(map(name_of, written["prices"])),
        {name_of(name): times for name, times in written["limits"].items()},
        written["tolerance"],
        frozenset(map(name_of, written["rising"])),
        frozenset(map(name_of, written["per_day"])),
    )


def entry(candidate: Candidate, search: Search) -> dict[str, Any]:
    """Describe a candidate by its changes, the previous values, and its figures in the search."""
    point = candidate.point
    space = search.spaces[point.space] if candidate.number else None
    return {
        "candidate": candidate.number,
        "space": point.space or None,
        "origin": candidate.origin,
        "of": candidate.of,
        "changes": dict(point.changes),
        "before": {} if space is None else {key: space.before(key) for key in point.changes},
        "idle": None if candidate.standing is None else candidate.standing.idle,
        "beaten_by": candidate.beaten_by,
        "raced": search.has_raced(candidate) if candidate.number else None,
    }


def _verdict_entry(number: int, outcome: Shown) -> dict[str, Any]:
    return {
        "objection": objection(outcome.standings[number], outcome.standings[0], outcome.aims),
        "as_good": list(outcome.as_good.get(number, ())),
        "cycles": outcome.cycles.get(number),
    }


def list_confirmed(judged: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """List the finalists without an objection, the one with the fewest changes first.

    A finalist that is significantly worse than another follows it. Two searches of one log with other seeds
    differ in their best candidate, but hardly in the changes that all good ones have in common.
    """
    finalists = [finalist for finalist in judged if finalist["objection"] is None]

    def rank(finalist: Mapping[str, Any]) -> tuple[bool, int]:
        is_worse = any(finalist["candidate"] not in other["as_good"] for other in finalists if other is not finalist)
        return is_worse, len(finalist["changes"])

    return sorted(finalists, key=rank)


def settings_entries(search: Search) -> list[dict[str, Any]]:
    """List every varied setting with its place, its value today, and its scale."""
    return [
        {
            "space": space.name,
            "key": axis.key,
            "today": space.today(axis),
            "scale": "choices" if axis.choices else "log" if axis.is_log else "linear",
        }
        for space in search.spaces.values()
        for axis in space.axes
    ]


def judged_entry(candidate: Candidate, search: Search, shown: Shown) -> dict[str, Any]:
    """Describe a finalist with its results on the sealed days, and how its changes are made."""
    row, base = entry(candidate, search), search.spaces[candidate.point.space].base
    written = {BUNDLES_KEY if key == "bundles" else key: key for key in row["changes"]}
    keys = {key: row["changes"][of] for key, of in written.items() if not is_path(key)}
    before = {key: row["before"][written[key]] for key in keys}
    return (row | _verdict_entry(candidate.number, shown)) | {
        "patch": patch(keys, before),
        "caution": of_bundles(keys[BUNDLES_KEY]) if BUNDLES_KEY in keys else None,
        "dynamic": list(dynamic_lines(keys)),
        "restart": list(restart_lines(keys)),
        "back": list(back_lines(before)),
        "policy": _build_table(candidate, search, base),
    }


def _build_table(candidate: Candidate, search: Search, base: PolicySpec) -> dict[str, Any]:
    name, changes = f"{base.name}-{candidate.number}", dict(candidate.point.changes)
    if base.conf_file is not None and not any(map(is_path, changes)):
        return {"name": name, "from_broker_conf": base.conf_file, "pulsar": base.release, "broker_conf": changes}
    return (
        search.spaces[candidate.point.space].policy(candidate.point, name).model_dump(mode="json", exclude_unset=True)
    )


def conclusion(recommended: Sequence[Mapping[str, Any]], shown: Shown | None, days: str | None) -> str:
    """Write the answer in one sentence.

    Args:
        recommended: entries of the confirmed finalists, the first answer first.
        shown: results of the confirmation, None without finalists.
        days: where they were judged, as "on days that the search has not seen", None if no days were sealed.
    """
    if shown is None:
        return "Keep today's settings: no candidate gained more than chance explains"
    if days is None:
        return (
            "Nothing is confirmed: no days were sealed, and the best of many candidates tends to look better than it is"
        )
    for best in recommended[:1]:
        changes = ", ".join(f"{key} = {value}" for key, value in best["changes"].items())
        of = shown.standings[best["candidate"]]
        scope = ", only if bundles are independent" if is_open(of.figures.values()) else ""
        return f"Change {changes}: {', '.join(_describe_gains(of, shown.aims))}, {days}{scope}"
    today, *judged = shown.standings.values()
    smallest = []
    for name in shown.aims.objectives:
        figures = (of.figures[name] for of in judged)
        # Two identical ones do not have a difference to decide.
        halves = [(figure.change_high - figure.change_low) / 2 for figure in figures if figure.has_interval]
        gap = today.figures[name].gap
        effects = [max(half, 0.0 if math.isnan(gap) else gap) for half in halves if half > 0.0]
        least = min(effects, default=0.0)
        note = " (the fidelity gap)" if least == gap else ""
        smallest += [f"{figure_name(name)} {least:.2g}{note}"] if effects else []
    could = f". The smallest gain that a single finalist could have shown: {', '.join(smallest)}" if smallest else ""
    return f"Keep today's settings: none of {quantity(len(judged), 'finalist')} is confirmed {days}{could}"


def is_open(figures: Iterable[Figure]) -> bool:
    """Check whether a finalist is better only if units of demand are independent, of which there are too few."""
    return all(figure.holds_for == "independence" for figure in figures if figure.verdict == "better")


def _describe_gains(of: Standing, aims: Aims) -> Iterator[str]:
    written = aims_document(aims)
    for name in aims.figures:
        figure = of.figures[name]
        before = figure.value - (0.0 if math.isnan(figure.change) else figure.change)
        span = f" ({figure.change_low:+.3g} to {figure.change_high:+.3g})" if figure.has_interval else ""
        yield f"{label(figure_name(name), written)} from {before:.4g} to {figure.value:.4g}{span}"
