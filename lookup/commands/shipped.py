"""Carry out `lookup config list`: print the settings that ship, by the names that stand for their paths."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from lookup.commands.options import Command, Parser, add_format
from lookup.commands.streams import data_console, plain_table, print_json
from lookup.settings.shipped import shipped

__all__ = ["COMMAND", "add_arguments", "run"]


def add_arguments(parser: Parser) -> None:
    """Add the flags of `lookup config list`."""
    add_format(parser, "table", "json")


def run(arguments: argparse.Namespace) -> int:
    """Print name, kind and purpose of every file that ships, and return 0."""
    entries = sorted(shipped().values(), key=lambda entry: (entry.kind, entry.name))
    if arguments.format == "json":
        print_json([{**asdict(entry), "name": f"shipped:{entry.name}", "path": str(entry.path)} for entry in entries])
        return 0
    rows = [(f"shipped:{entry.name}", entry.kind, entry.summary) for entry in entries]
    plain_table(data_console(), ("name", "kind", "what it is"), rows)
    return 0


COMMAND = Command(
    name="config list",
    summary="list the settings that ship, which can be named in place of a file",
    examples=(
        ("lookup config list", "policies, mappings, scenarios and the rest, with their names"),
        ("lookup config list --format json", "with their paths, to copy one"),
    ),
    add_arguments=add_arguments,
    run=run,
)
