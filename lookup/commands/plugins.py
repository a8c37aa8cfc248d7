"""`lookup plugins list`: every registered class, where it comes from and what it takes."""

from __future__ import annotations

import argparse
import inspect
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import entry_points
from typing import Any

from rich.text import Text

from lookup.commands.options import Command, Parser, add_format, add_plugin_files
from lookup.commands.streams import data_console, plain_table, print_json
from lookup.engine.build import parameters_of, part_table
from lookup.engine.plugins import Registry, load_plugins
from lookup.hooks import ENTRY_POINT_GROUP, reads_of
from lookup.hooks.raised import guarded

__all__ = ["COMMAND", "Listed", "listed"]


@dataclass(frozen=True)
class Listed:
    """One registered class."""

    #: "filters", "scorers", ...
    kind: str
    name: str
    #: "distribution 1.0", or the path of a file
    origin: str
    #: first line of the docstring
    summary: str
    #: one text per parameter, `key = default`, or the bare key where it must be given
    parameters: tuple[str, ...]
    #: what the part declares to read; empty for what takes no part in decisions
    reads: tuple[str, ...]


def listed(registry: Registry) -> list[Listed]:
    """Describe every registered class, by kind and name."""
    return [
        Listed(
            kind=kind,
            name=name,
            origin=_origin(registry, found),
            summary=(inspect.getdoc(found) or "").partition("\n")[0],
            parameters=tuple(_parameters(found)),
            reads=_reads(kind, found),
        )
        for kind, classes in registry.classes.items()
        for name, found in classes.items()
    ]


def _origin(registry: Registry, found: type[Any]) -> str:
    """Return the origin of the plug-in whose module is nearest to that of the class."""
    origins = {source.name: source.origin for source in registry.sources}
    modules = {entry.name: entry.module for entry in entry_points(group=ENTRY_POINT_GROUP)}
    places = {modules.get(name, f"lookup_plugin_{name}"): origin for name, origin in origins.items()}
    near = [module for module in places if found.__module__ == module or found.__module__.startswith(f"{module}.")]
    near = near or [module for module in places if module.partition(".")[0] == found.__module__.partition(".")[0]]
    return places[max(near, key=len)] if near else found.__module__


def _parameters(found: type[Any]) -> Iterator[str]:
    made = _made(found)
    defaults = {} if made is None else part_table(made)
    for entry in parameters_of(found):
        yield entry.name if made is None else f"{entry.name} = {_written(defaults.get(entry.name))}"


def _made(found: type[Any]) -> Any:
    """Make a class by its defaults; None where a parameter has none, or a default is one it refuses itself."""
    try:
        return found()
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001  a third party's class may raise anything; it can be listed all the same
        return None


def _written(value: object) -> str:
    return "unset" if value is None else json.dumps(value, default=str)


def _reads(kind: str, found: type[Any]) -> tuple[str, ...]:
    if kind in ("listers", "log_readers", "metrics", "shedders", "splitters", "split_algorithms"):
        return ()
    made = _made(found)
    if made is None:  # the answer may depend on the parameter
        declared = getattr(found, "reads", ())
        return tuple(sorted(declared)) if isinstance(declared, frozenset) else ()
    with guarded(f"{found.__module__}.{found.__qualname__} cannot say what it reads: "):
        return tuple(sorted(reads_of(made)))


def _add_arguments(parser: Parser) -> None:
    parser.add_argument("kind", nargs="?", metavar="KIND", help="only this kind: filters, scorers, selectors, ...")
    add_plugin_files(parser)
    add_format(parser, "table", "json")


def _run(arguments: argparse.Namespace) -> int:
    registry = load_plugins(arguments.plugin_file)
    if arguments.kind is not None and arguments.kind not in registry.classes:
        arguments.parser.error(f"there is no kind {arguments.kind!r}; known: {', '.join(registry.classes)}")
    entries = [entry for entry in listed(registry) if arguments.kind in (None, entry.kind)]
    if arguments.format == "json":
        print_json([asdict(entry) for entry in entries])
        return 0
    console = data_console()
    for kind in registry.classes:
        rows = [_row(entry) for entry in entries if entry.kind == kind]
        if rows:
            columns = ("name", "origin", "parameters", "reads", "what it does")
            console.print(Text(kind.replace("_", " "), style="bold"))
            plain_table(console, columns, rows)
    return 0


def _row(entry: Listed) -> tuple[str, ...]:
    return entry.name, entry.origin, "\n".join(entry.parameters), "\n".join(entry.reads), entry.summary


COMMAND = Command(
    name="plugins list",
    summary="list every registered part, log reader and metric",
    examples=(
        ("lookup plugins list", "everything, by kind, with parameters and their defaults"),
        ("lookup plugins list selectors --format json", "selectors for a program"),
        ("lookup plugins list --plugin-file my_rack.py", "with the parts of a file of your own"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
