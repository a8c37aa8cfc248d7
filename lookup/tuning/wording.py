"""Say in sentences what `tune.json` holds, for a terminal and for a page; loads without any extra."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "answers", "beside_today", "confirmation", "figure_rows", "gain_text", "label", "reopened", "restart_text",
    "sentences",
]  # fmt: skip


def label(name: str, document: Mapping[str, Any]) -> str:
    """Return the name of a figure; one that is a total over time is that of a day."""
    return f"{name} a day" if name in document["per_day"] else name


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
            value = today + figure["delta"] * (1 if name in document["rising"] else -1)
            # Where both batches have a figure of 0 or more, so has what is written.
            figure = figure | {"value": max(value, 0.0) if min(today, figure["value"]) >= 0.0 else value}
        figures[name] = figure
    return {**one, "search": figures}


def answers(document: Mapping[str, Any]) -> list[str]:
    """Return the answer by each log: by the one that was asked last first, and by the search last."""
    return [*(log["conclusion"] for log in reversed(document["against"])), document["conclusion"]]


def reopened(times: int) -> str:
    """Say what days are worth that were opened before."""
    return f"these days were opened {times} times: they confirm nothing that was chosen by what they had shown"


def confirmation(document: Mapping[str, Any]) -> str:
    """Return what finalists were tried on after the search."""
    return "the sealed days" if document["sealed_from"] else "the same days, other luck"


def restart_text(lines: Sequence[str]) -> str:
    """Say what of an answer no command makes in a running cluster."""
    return f"only after a restart: {', '.join(lines)}; until then the cluster does something that was not tried"


@dataclass(frozen=True, slots=True)
class _Days:
    """A part of the log, or another log, for which a search has figures."""

    name: str
    today: Mapping[str, Any]
    #: by number
    finalists: Mapping[int, Mapping[str, Any]]


def _days(document: Mapping[str, Any]) -> Iterator[_Days]:
    """Yield the days of the search, those of the confirmation, and every other log."""
    today, judged = document["incumbent"], document["finalists"]
    searched = [{**one, "sealed": beside_today(one, document)["search"]} for one in judged]
    yield _Days("the search", today["search"], {one["candidate"]: one for one in searched})
    if judged:
        yield _Days(confirmation(document), today["sealed"], {one["candidate"]: one for one in judged})
    for log in document["against"]:
        yield _Days(log["log"], log["incumbent"], {one["candidate"]: one for one in log["finalists"]})


def figure_rows(document: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return heads and rows of a table: figures of today and of the finalists, apart for each part of the log."""
    days, aims = list(_days(document)), [*document["objectives"], *document["prices"]]
    heads = ["candidate", *(f"{label(name, document)}, {of.name}" for name in aims for of in days)]
    rows = [["today", *(_number(of.today[name]) for name in aims for of in days), *([""] * (len(days) - 1))]]
    for number in days[0].finalists:
        figures = [of.finalists[number]["sealed"][name] for name in aims for of in days]
        answers = [of.finalists[number]["objection"] or "recommended" for of in days[1:]]
        rows.append([str(number), *(f"{_number(figure)}, {gain_text(figure)}" for figure in figures), *answers])
    return [*heads, *(f"answer, {of.name}" for of in days[1:])], rows


def _number(figure: Mapping[str, Any]) -> str:
    return "-" if figure["value"] is None else f"{figure['value']:.4g}"


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
