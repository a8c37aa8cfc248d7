"""Say in sentences what `tune.json` holds, for a terminal and for a page; loads without any extra."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["beside_today", "confirmation", "gain_text", "reopened", "restart_text", "sentences"]


def gain_text(figure: Mapping[str, Any]) -> str:
    """Write the difference of a figure from the incumbent's, up is better, with its interval."""
    if figure["delta"] is None:
        return "-"
    span = "" if figure["low"] is None else f" ({figure['low']:.3g} to {figure['high']:.3g})"
    return f"{figure['delta']:+.3g}{span}"


def beside_today(one: Mapping[str, Any], document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a candidate with its figures of the search as far from today's as they were in its own batch.

    Batches have luck of their own: what they show can be compared only by what the incumbent did in each.
    """
    if one["search"] is None:
        return one
    figures = {}
    for name, figure in one["search"].items():
        today = document["incumbent"]["search"][name]["value"]
        if figure["delta"] is not None and today is not None:
            figure = figure | {"value": today + figure["delta"] * (1 if name in document["rising"] else -1)}
        figures[name] = figure
    return {**one, "search": figures}


def reopened(times: int) -> str:
    """Say what days are worth that were opened before."""
    return f"these days were opened {times} times: they confirm nothing that was chosen by what they had shown"


def confirmation(document: Mapping[str, Any]) -> str:
    """Return what finalists were tried on after the search."""
    return "the sealed days" if document["sealed_from"] else "the same days, other luck"


def restart_text(lines: Sequence[str]) -> str:
    """Say what of an answer no command makes in a running cluster."""
    return f"only after a restart: {', '.join(lines)}; until then the cluster does something that was not tried"


def sentences(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a reader should know besides the answer."""
    tried = sum(1 for one in document["candidates"] if one["search"] is not None)
    sealed = document["sealed_from"]
    days = f"sealed from {sealed} to {document['last']}" if sealed else "no days were sealed"
    yield f"{tried} candidates from {document['first']} on; {days}"
    if document["opened"] > 1:
        yield reopened(document["opened"])
    if (cycles := document["incumbent"]["cycles"]) is not None:
        yield f"today {cycles}"
    idle: dict[str, str] = {}
    for one in document["candidates"]:
        if one["idle"] is not None:
            idle.setdefault(one["space"], one["idle"])
    for space, why in idle.items():
        yield f"space {space} cannot act on this log: {why}"
    answers = {False: "no effect of these could be told from luck", None: "too few candidates to tell what these do"}
    for matters, text in answers.items():
        keys = dict.fromkeys(one["key"] for one in document["settings"] if one["matters"] is matters)
        if keys:
            yield f"{text}: {', '.join(keys)}"
