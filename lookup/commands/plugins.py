"""Carry out `lookup plugins list`, which prints every registered class, its origin and its parameters."""

from __future__ import annotations

import argparse
import inspect
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any

from rich.text import Text

from lookup.commands.options import Command, Parser, add_format, add_plugin_files
from lookup.commands.streams import data_console, plain_table, print_json
from lookup.engine.build import parameters_of, part_table
from lookup.engine.plugins import Registry, load_plugins
from lookup.hooks import ENTRY_POINT_GROUP, reads_of
from lookup.hooks.raised import guard_call

__all__ = ["COMMAND", "WITHOUT_READS", "describe_class"]

#: Kinds of classes that are no parts of policies and so declare no reads.
WITHOUT_READS = frozenset({"listers", "log_readers", "metrics"})


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("kind", nargs="?", metavar="KIND", help="kind to list, like filters, scorers or selectors")
    add_plugin_files(parser)
    add_format(parser, "table", "json")


def _run(arguments: argparse.Namespace) -> int:
    registry = load_plugins(arguments.plugin_file)
    if arguments.kind is not None and arguments.kind not in registry.classes:
        arguments.parser.error(f"there is no kind {arguments.kind!r}; known: {', '.join(registry.classes)}")
    sources = _find_sources(registry)
    entries = [
        describe_class(kind, name, registered, sources)
        for kind, classes in registry.classes.items()
        if arguments.kind in (None, kind)
        for name, registered in classes.items()
    ]
    if arguments.format == "json":
        print_json(entries)
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


def describe_class(
    kind: str, name: str, registered: type[Any], sources: Mapping[str, tuple[str, str | None]]
) -> dict[str, Any]:
    """Describe a registered class. A required parameter is a bare key.

    Args:
        sources: origin of each plug-in, and its distribution unless it is a file, by the name of its module.
    """
    try:
        instance = registered()
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001  a third party's class may raise anything; it can be listed all the same
        # A parameter has no default, or the class refuses its own.
        parameters = tuple(entry.name.rstrip("_") for entry in parameters_of(registered))
        # Only reads of the class itself are known, since a property may depend on the parameters.
        declared = getattr(registered, "reads", ())
        reads = tuple(sorted(declared)) if isinstance(declared, frozenset) else ()
    else:
        defaults = part_table(instance)
        values = {name: defaults.get(name) for name in (each.name.rstrip("_") for each in parameters_of(registered))}
        parameters = tuple(
            f"{key} = {'unset' if value is None else json.dumps(value, default=str)}" for key, value in values.items()
        )
        with guard_call(f"{registered.__module__}.{registered.__qualname__} cannot say what it reads: "):
            reads = () if kind in WITHOUT_READS else tuple(sorted(reads_of(instance)))
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
        "reads": () if kind in WITHOUT_READS else reads,
    }


def _find_sources(registry: Registry) -> dict[str, tuple[str, str | None]]:
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
        ("lookup plugins list --plugin-file my_rack.py", "everything, with the parts of a file"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
