"""Write the contents of `tune.json` in sentences, for a terminal and for a page, without any extra."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    # It needs modules that only a search uses.
    from lookup.score.figures import Figure

__all__ = [
    "SEALED", "SEARCHED", "Figures", "beside_today", "confirmation", "describe_reopened", "figure_rows", "gain_text",
    "label", "number_of", "restart_text", "sentences",
]  # fmt: skip


#: The days of a figure, either of the search or of the confirmation of finalists.
SEARCHED: Final = "search"
SEALED: Final = "sealed"
#: Figures by candidate and days, then by name.
Figures: TypeAlias = "Mapping[tuple[int, str], Mapping[str, Figure]]"


def label(name: str, document: Mapping[str, Any]) -> str:
    """Write the name of a figure. The name of a total over time is that of a day."""
    return f"{name} a day" if name in document["per_day"] else name


def gain_text(figure: Figure) -> str:
    """Write the difference of a figure from the incumbent's, up is better, with its interval."""
    if math.isnan(figure.change):
        return "-"
    low, high = figure.gain_interval
    return f"{figure.gain:+.3g} ({low:.3g} to {high:.3g})" if figure.has_interval else f"{figure.gain:+.3g}"


def beside_today(figures: Figures) -> Figures:
    """Shift each candidate's figures in the search to the same distance from today's as in its own batch.

    Batches have seeds of their own, so their results can be compared only relative to the incumbent in each.
    """
    today = figures[0, SEARCHED]

    def shift_figure(figure: Figure, before: float) -> Figure:
        value = before + figure.change
        if math.isnan(value):
            return figure
        # If both batches have a figure of 0 or more, the written value is also 0 or more.
        return replace(figure, value=max(value, 0.0) if min(before, figure.value) >= 0.0 else value)

    return {
        (number, days): {name: shift_figure(figure, today[name].value) for name, figure in of.items()}
        if days == SEARCHED
        else of
        for (number, days), of in figures.items()
    }


def describe_reopened(times: int) -> str:
    """Describe the value of days that were opened before."""
    return (
        f"these days were opened {times} times, so they cannot confirm a candidate that was chosen by an earlier look"
    )


def confirmation(document: Mapping[str, Any]) -> str:
    """Describe the confirmation of finalists after the search."""
    return "the sealed days" if document["sealed_from"] else "the same days with new seeds"


def restart_text(lines: Sequence[str]) -> str:
    """Name the changes that no command makes in a running cluster."""
    return f"Only a restart applies: {', '.join(lines)}. Until then the cluster runs a combination that was not tested."


def figure_rows(document: Mapping[str, Any], figures: Figures) -> tuple[list[str], list[list[str]]]:
    """Build heads and rows of a table of today's figures and the finalists', separate for each part of the log.

    Args:
        figures: as `beside_today` returns them.
    """
    aims, finalists = [*document["objectives"], *document["prices"]], document["finalists"]
    days = {SEARCHED: "the search"} | ({SEALED: confirmation(document)} if finalists else {})
    heads = ["candidate", *(f"{label(name, document)}, {of}" for name in aims for of in days.values())]
    rows = [["today", *(number_of(figures[0, key][name]) for name in aims for key in days), *([""] * (len(days) - 1))]]
    for finalist in finalists:
        number = finalist["candidate"]
        cells = [
            f"{number_of(of)}, {gain_text(of)}" for name in aims for of in (figures[number, key][name] for key in days)
        ]
        rows.append([str(number), *cells, finalist["objection"] or "recommended"])
    return [*heads, *(f"answer, {name}" for key, name in days.items() if key == SEALED)], rows


def number_of(figure: Figure) -> str:
    """Write the value of a figure."""
    return "-" if math.isnan(figure.value) else f"{figure.value:.4g}"


def sentences(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the facts that a reader should know in addition to the answer."""
    tried = len({row["candidate"] for row in document["figures"]})
    sealed = document["sealed_from"]
    days = f"the days from {sealed} to {document['last']} were sealed" if sealed else "no days were sealed"
    yield f"{tried} candidates were tried on the days from {document['first']}, {days}"
    if document["opened"] > 1:
        yield describe_reopened(document["opened"])
    if (cycles := document["incumbent"]["cycles"]) is not None:
        yield f"today {cycles}"
    idle: dict[str, str] = {}
    for entry in document["candidates"]:
        if entry["idle"] is not None:
            idle.setdefault(entry["space"], entry["idle"])
    for space, why in idle.items():
        yield f"space {space} cannot act on this log: {why}"
