"""Writes `docs/gallery.md`: every part that ships, with its parameters, what these may be, and what the part reads.

`python scripts/gallery.py` writes the page.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt

from lookup.commands.plugins import WITHOUT_READS, describe_class
from lookup.engine.build import child_kinds, hints_of, parameters_of
from lookup.engine.plugins import load_plugins
from lookup.hooks import Unit
from lookup.model.quoting import printed_line

__all__ = ["PAGE", "page"]

PAGE = Path(__file__).parents[1] / "docs" / "gallery.md"
#: How bounds of a parameter are worded; both of an interval that has its ends are `0 to 1`.
_BOUNDS = ((Ge, "ge", "at least {}"), (Gt, "gt", "above {}"), (Le, "le", "at most {}"), (Lt, "lt", "below {}"))
_HEAD = """\
# Gallery of plug-ins

Here you find the filters, scorers, selectors and other parts of policies, the listers, log readers and metrics that
ship. `use` in settings takes a name of the first column. *Reads* are the inputs of a part with its defaults.
`lookup plugins list` prints all installed parts, including yours.
"""


def page() -> str:
    """Return the page: a table for each kind."""
    lines = [_HEAD]
    for kind, classes in load_plugins().classes.items():
        lines += [f"## {kind.replace('_', ' ').capitalize()}", "", *_table(kind, classes), ""]
    return "\n".join(lines)


def _table(kind: str, classes: Mapping[str, type[Any]]) -> Iterator[str]:
    has_reads = kind not in WITHOUT_READS
    yield "| name | what it does | parameters |" + (" reads |" if has_reads else "")
    yield "|---|---|---|" + ("---|" if has_reads else "")
    for name, registered in classes.items():
        entry = describe_class(kind, name, registered, {})
        ranges = {key: f", {may_be}" for key, may_be in _ranges(registered).items()}
        parameters = "<br>".join(
            _cell(f"`{parameter}`{ranges.get(parameter.partition(' = ')[0], '')}") for parameter in entry["parameters"]
        )
        reads = f" {', '.join(f'`{read}`' for read in entry['reads'])} |" if has_reads else ""
        yield f"| `{name}` | {_cell(entry['summary'])} | {parameters} |{reads}"


def _cell(text: str) -> str:
    """Return a text for a cell, in which nothing but pairs of backticks is markup."""
    spans = printed_line(text).split("`")
    spans[::2] = [html.escape(span, quote=False).replace("*", "\\*") for span in spans[::2]]
    return "`".join(spans).replace("|", "\\|")


def _ranges(registered: type[Any]) -> dict[str, str]:
    """Return what parameters may be, by name; those of which a default says enough are left out."""
    hints, children, ranges = hints_of(registered), child_kinds(registered), {}
    for name in (entry.name for entry in parameters_of(registered)):
        if name in children:
            kind = children[name].kind.replace("_", " ")
            ranges[name] = kind if children[name].is_many else f"a {kind.removesuffix('s')}"
        elif words := [*_limits(hints[name])]:
            ranges[name] = ", ".join(words)
    return ranges


def _limits(annotation: Any) -> Iterator[str]:
    """Yield the choices, the bounds and the unit that an annotation states, in parts of it as well."""
    if get_origin(annotation) is Literal:
        yield f"one of {', '.join(json.dumps(choice, default=str) for choice in get_args(annotation))}"
        return
    marks = getattr(annotation, "__metadata__", ())
    bounds = {
        words: getattr(mark, attribute)
        for bound, attribute, words in _BOUNDS
        for mark in marks
        if isinstance(mark, bound)
    }
    if {*bounds} == {"at least {}", "at most {}"}:
        yield " to ".join(map(str, bounds.values()))
    else:
        yield from (words.format(value) for words, value in bounds.items())
    yield from (mark.name for mark in marks if isinstance(mark, Unit))
    for inner in get_args(annotation):
        yield from _limits(inner)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
