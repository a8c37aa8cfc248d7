"""Say in sentences what `tune.json` holds, for a terminal and for a page; loads without any extra."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["gain_text", "sentences"]


def gain_text(figure: Mapping[str, Any]) -> str:
    """Write the difference of a figure from the incumbent's, up is better, with its interval."""
    if figure["delta"] is None:
        return "-"
    span = "" if figure["low"] is None else f" ({figure['low']:.3g} to {figure['high']:.3g})"
    return f"{figure['delta']:+.3g}{span}"


def sentences(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a reader should know besides the answer."""
    tried = sum(1 for one in document["candidates"] if one["search"] is not None)
    sealed = document["sealed_from"]
    unit = document["unit"]
    days = f"sealed from {sealed} to {document['last']}" if sealed else f"no {unit} were sealed"
    yield f"{tried} candidates from {document['first']} on; {days}"
    if document["opened"] > 1:
        yield f"these {unit} were opened {document['opened']} times: what was chosen by them is not confirmed by them"
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
