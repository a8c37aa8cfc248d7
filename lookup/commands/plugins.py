"""Carry out `lookup plugins list`: print every registered class, its origin and its parameters."""

from __future__ import annotations

import argparse
import inspect
import json
from importlib.metadata import entry_points
from typing import Any

from rich.text import Text

from lookup.commands.options import Command, Parser, add_format, add_plugin_files
from lookup.commands.streams import data_console, plain_table, print_json
from lookup.engine.build import parameters_of, part_table
from lookup.engine.plugins import Registry, load_plugins
from lookup.hooks import ENTRY_POINT_GROUP, reads_of
from lookup.hooks.raised import guarded

__all__ = ["COMMAND", "add_arguments", "run"]

#: Kinds of classes that take no part in decisions and so declare no reads.
_WITHOUT_READS = frozenset({"listers", "log_readers", "metrics", "shedders", "splitters", "split_algorithms"})


def add_arguments(parser: Parser) -> None:
    """Add the flags of `lookup plugins list`."""
    parser.add_argument("kind", nargs="?", metavar="KIND", help="only this kind: filters, scorers, selectors, ...")
    add_plugin_files(parser)
    add_format(parser, "table", "json")


def run(arguments: argparse.Namespace) -> int:
    """Print every class, or those of one kind, and return 0."""
    registry = load_plugins(arguments.plugin_file)
    if arguments.kind is not None and arguments.kind not in registry.classes:
        arguments.parser.error(f"there is no kind {arguments.kind!r}; known: {', '.join(registry.classes)}")
    entries = [
        _described(kind, name, registered, registry)
        for kind, classes in registry.classes.items()
        if arguments.kind in (None, kind)
        for name, registered in classes.items()
    ]
    if arguments.format == "json":
        print_json(entries)
        return 0
    console = data_console()
    for kind in registry.classes:
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
        if rows:
            console.print(Text(kind.replace("_", " "), style="bold"))
            plain_table(console, ("name", "origin", "parameters", "reads", "what it does"), rows)
    return 0


def _described(kind: str, name: str, registered: type[Any], registry: Registry) -> dict[str, Any]:
    """Describe a registered class: where it comes from, what it does, its parameters as `key = default`, what it reads.

    A parameter that must be given is a bare key. What takes no part in decisions reads nothing.
    """
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
    return {
        "kind": kind,
        "name": name,
        "origin": _origin(registry, registered),
        "summary": (inspect.getdoc(registered) or "").partition("\n")[0],
        "parameters": parameters,
        "reads": () if kind in _WITHOUT_READS else reads,
    }


def _origin(registry: Registry, registered: type[Any]) -> str:
    """Return the origin of the plug-in whose module is nearest to that of the class."""
    entry_modules = {entry.name: entry.module for entry in entry_points(group=ENTRY_POINT_GROUP)}
    # A plug-in of a file is imported under this name, see `load_plugins`.
    origins = {entry_modules.get(it.name, f"lookup_plugin_{it.name}"): it.origin for it in registry.sources}
    module = registered.__module__
    near = [name for name in origins if module == name or module.startswith(f"{name}.")]
    # A plug-in may register classes of a sister module of its package.
    near = near or [name for name in origins if name.partition(".")[0] == module.partition(".")[0]]
    return origins[max(near, key=len)] if near else module


COMMAND = Command(
    name="plugins list",
    summary="list every registered part, log reader and metric",
    examples=(
        ("lookup plugins list", "everything, by kind, with parameters and their defaults"),
        ("lookup plugins list selectors --format json", "selectors for a program"),
        ("lookup plugins list --plugin-file my_rack.py", "with the parts of a file of your own"),
    ),
    add_arguments=add_arguments,
    run=run,
)
