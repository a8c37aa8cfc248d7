"""Carry out `lookup plugins list`: print every registered class, its origin and its parameters, or a page of them."""

from __future__ import annotations

import argparse
import html
import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from rich.text import Text

from lookup.commands.options import Command, Parser, add_format, add_plugin_files
from lookup.commands.streams import data_console, plain_table, print_json, stdout
from lookup.engine.build import child_kinds, hints_of, parameters_of, part_table
from lookup.engine.plugins import Registry, load_plugins
from lookup.errors import PluginError
from lookup.hooks import ENTRY_POINT_GROUP, Unit, reads_of
from lookup.hooks.raised import guarded
from lookup.model.quoting import printed_line, suggestion

__all__ = ["COMMAND"]

#: Kinds of classes that are no parts of policies and so declare no reads.
_WITHOUT_READS = frozenset({"listers", "log_readers", "metrics"})
#: How bounds of a parameter are worded; both of an interval that has its ends are `0 to 1`.
_BOUNDS = ((Ge, "ge", "at least {}"), (Gt, "gt", "above {}"), (Le, "le", "at most {}"), (Lt, "lt", "below {}"))
_PAGE = """\
# Gallery of plug-ins

Filters, scorers, selectors and other parts of policies, listers, log readers and metrics that are installed, by the
distribution that brings them. A name is what settings write behind `use`; *reads* is what a part looks at with its
defaults. `lookup plugins list --format markdown` writes this page, of what is installed where it runs.
"""


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("kind", nargs="?", metavar="KIND", help="kind to list, like filters, scorers or selectors")
    parser.add_argument("--distribution", metavar="NAME", help="installed distribution to list")
    add_plugin_files(parser)
    add_format(parser, "table", "json", "markdown")


def _run(arguments: argparse.Namespace) -> int:
    registry = load_plugins(arguments.plugin_file)
    if arguments.kind is not None and arguments.kind not in registry.classes:
        arguments.parser.error(f"there is no kind {arguments.kind!r}; known: {', '.join(registry.classes)}")
    sources = _sources(registry)
    distributions = sorted({name for _, name in sources.values() if name is not None})
    wanted = arguments.distribution
    if wanted is not None and wanted not in distributions:
        hint = suggestion(wanted, distributions)
        arguments.parser.error(f"--distribution: {wanted!r} brings no plug-in here; {hint}")
    entries = [
        _described(kind, name, registered, sources)
        for kind, classes in registry.classes.items()
        if arguments.kind in (None, kind)
        for name, registered in classes.items()
    ]
    if wanted is not None:
        entries = [entry for entry in entries if entry["distribution"] == wanted]
    if arguments.format == "json":
        print_json(entries)
    elif arguments.format == "markdown":
        stdout().write("\n".join([_PAGE, *_sections(entries)]))
    else:
        _print_tables(entries)
    return 0


def _print_tables(entries: Sequence[Mapping[str, Any]]) -> None:
    console = data_console()
    for kind in dict.fromkeys(entry["kind"] for entry in entries):
        rows = [
            (
                entry["name"],
                entry["origin"],
                *("\n".join(entry[key]) for key in ("parameters", "reads")),
                entry["summary"],
            )
            for entry in entries
            if entry["kind"] == kind
        ]
        console.print(Text(kind.replace("_", " "), style="bold"))
        plain_table(console, ("name", "origin", "parameters", "reads", "what it does"), rows)


def _sections(entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a section for each distribution or file, with a table for each kind."""
    homes = {entry["distribution"] or entry["origin"] for entry in entries}
    for home in sorted(homes):
        yield f"## {home}\n"
        own = [entry for entry in entries if home == (entry["distribution"] or entry["origin"])]
        for kind in dict.fromkeys(entry["kind"] for entry in own):
            has_reads = kind not in _WITHOUT_READS
            yield f"### {kind.replace('_', ' ').capitalize()} of {home}\n"
            yield "| name | what it does | parameters |" + (" reads |" if has_reads else "")
            yield "|---|---|---|" + ("---|" if has_reads else "")
            for entry in own:
                if entry["kind"] == kind:
                    reads = f" {', '.join(f'`{name}`' for name in entry['reads'])} |" if has_reads else ""
                    ranges = {name: f", {may_be}" for name, may_be in entry["ranges"].items()}
                    parameters = "<br>".join(
                        _cell(f"`{parameter}`{ranges.get(parameter.partition(' = ')[0], '')}")
                        for parameter in entry["parameters"]
                    )
                    yield f"| `{entry['name']}` | {_cell(entry['summary'])} | {parameters} |{reads}"
            yield ""


def _cell(text: str) -> str:
    """Return a text for a cell, in which nothing but pairs of backticks is markup."""
    spans = printed_line(text).split("`")
    spans[::2] = [html.escape(span, quote=False).replace("*", "\\*") for span in spans[::2]]
    return "`".join(spans).replace("|", "\\|")


def _described(
    kind: str, name: str, registered: type[Any], sources: Mapping[str, tuple[str, str | None]]
) -> dict[str, Any]:
    """Describe a registered class; a parameter that must be given is a bare key."""
    try:
        instance = registered()
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001  a third party's class may raise anything; it can be listed all the same
        # A parameter has no default, or the class refuses its own.
        parameters = tuple(entry.name for entry in parameters_of(registered))
        # Only reads of the class itself are known; a property may depend on the parameters.
        declared = getattr(registered, "reads", ())
        reads = tuple(sorted(declared)) if isinstance(declared, frozenset) else ()
    else:
        defaults = part_table(instance)
        values = {entry.name: defaults.get(entry.name) for entry in parameters_of(registered)}
        parameters = tuple(
            f"{key} = {'unset' if value is None else json.dumps(value, default=str)}" for key, value in values.items()
        )
        with guarded(f"{registered.__module__}.{registered.__qualname__} cannot say what it reads: "):
            reads = () if kind in _WITHOUT_READS else tuple(sorted(reads_of(instance)))
    # Of the plug-in whose module is nearest to that of the class, which may be a sister module of its package.
    module = registered.__module__
    near = [name for name in sources if module == name or module.startswith(f"{name}.")]
    near = near or [name for name in sources if name.partition(".")[0] == module.partition(".")[0]]
    origin, distribution = sources[max(near, key=len)] if near else (module, None)
    return {
        "kind": kind,
        "name": name,
        "origin": origin,
        "distribution": distribution,
        "summary": (inspect.getdoc(registered) or "").partition("\n")[0],
        "parameters": parameters,
        "ranges": _ranges(registered),
        "reads": () if kind in _WITHOUT_READS else reads,
    }


def _ranges(registered: type[Any]) -> dict[str, str]:
    """Return what parameters may be, by name; those of which a default says enough are left out."""
    try:
        hints, children = hints_of(registered), child_kinds(registered)
    except PluginError:
        # Settings that use the class are refused with the reason; a list may do without ranges.
        return {}
    ranges = {}
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


def _sources(registry: Registry) -> dict[str, tuple[str, str | None]]:
    """Return the origin of each plug-in, and its distribution unless it is a file, by the name of its module."""
    points = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
    sources: dict[str, tuple[str, str | None]] = {}
    for source in registry.sources:
        point = points.get(source.name)
        # A plug-in of a file is imported under this name, see `load_plugins`.
        module = f"lookup_plugin_{source.name}" if point is None else point.module
        sources[module] = (source.origin, point.dist.name if point is not None and point.dist is not None else None)
    return sources


COMMAND = Command(
    name="plugins list",
    examples=(
        ("lookup plugins list", "everything by kind, with parameters and defaults"),
        ("lookup plugins list selectors --format json", "selectors, for programs"),
        ("lookup plugins list --distribution rack-aware --format markdown", "a page with the parts of your package"),
        ("lookup plugins list --plugin-file my_rack.py", "everything, with the parts of a file"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
