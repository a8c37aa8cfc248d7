"""Carry out `lookup config show` and `lookup config list`, which print resolved settings, and shipped ones.

The output is TOML that reads back to the same settings, with the source of each value after it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lookup.api.selection import fit_to_brokers, is_about
from lookup.commands.cluster_flags import load_cluster
from lookup.commands.options import Command, Parser, add_format, add_set, settings_flags
from lookup.commands.streams import data_console, plain_table, print_json, stdout, warn
from lookup.engine.build import build_policies, policy_table
from lookup.engine.plugins import load_plugins
from lookup.model.quoting import one_line, toml_key, toml_text
from lookup.settings import (
    EvaluationFile,
    describe,
    load_evaluation,
    load_manager_keys,
    load_manager_sources,
    load_serving,
    load_topics,
    policy_warnings,
)
from lookup.settings.base import WholeFile
from lookup.settings.loader import load_tuning
from lookup.settings.problems import key_path
from lookup.settings.shipped import shipped_files, shipped_path

__all__ = ["COMMANDS", "Comment", "to_toml"]

#: Returns the comment after a key, by its position, or an empty text.
Comment = Callable[[tuple[str | int, ...]], str]

_INTRODUCTION = "# Settings as resolved; the source of each value follows it. Paths are absolute.\n\n"
_OTHERS = "# Settings as resolved; the source of each value follows it.\n\n"
#: Readers of a file of settings, by its table, or else as an evaluation.
_READERS: Mapping[str, Callable[..., WholeFile]] = {
    "serving": load_serving, "topics": load_topics, "tune": load_tuning, "cluster": load_cluster
}  # fmt: skip


def _add_arguments(parser: Parser) -> None:
    text = "TOML file of an evaluation, search, server, cluster or topics, or shipped:NAME of any file"
    parser.need("config", nargs="?", metavar="FILE", help=text)
    add_set(parser, "evaluation.seeds=[1,2]")
    parser.add_argument("--resolved", action="store_true", help="print defaults too, and the source of each value")
    add_format(parser, "toml", "json")


def _run(arguments: argparse.Namespace) -> int:
    path = shipped_path(arguments.config)
    if path == arguments.config or arguments.resolved or arguments.set or arguments.format == "json":
        return _show(arguments, path)
    stdout().write(Path(path).read_text(encoding="utf-8"))
    return 0


def _show(arguments: argparse.Namespace, path: str) -> int:
    read = next((read for table, read in _READERS.items() if is_about(path, table)), load_evaluation)
    settings = read(path, settings_flags(arguments))
    if isinstance(settings, EvaluationFile):
        settings = fit_to_brokers(settings)
        for sentence in policy_warnings(settings.policies):
            warn(sentence)
    is_json = arguments.format == "json"
    values = settings.model_dump(mode="json" if is_json else "python", exclude_unset=not arguments.resolved)
    if isinstance(settings, EvaluationFile):
        values = _add_parts(values, settings)
    if not arguments.resolved:
        if is_json:
            print_json({"settings": values})
        else:
            stdout().write(to_toml(values))
        return 0
    sources = {path: source for path, _, source in describe(settings)}
    if is_json:
        print_json({"settings": values, "sources": sources})
    elif isinstance(settings, EvaluationFile):
        for entry in values["brokers"]:
            if entry["count"] is None:
                # Settings reject `first` without `count`, and the output must read back.
                del entry["first"]
        stdout().write(_INTRODUCTION + to_toml(values, _sources_of(settings, sources)))
    else:
        stdout().write(_OTHERS + to_toml(values, lambda loc: _find_source(sources, loc)))
    return 0


def _find_source(sources: Mapping[str, str], loc: tuple[str | int, ...]) -> str:
    path = key_path(loc)
    # A list in one line has one comment, though a file may have set one entry and a variable another.
    within = (source for key, source in sources.items() if key == path or key.startswith((f"{path}.", f"{path}[")))
    return ", ".join(dict.fromkeys(within))


def _sources_of(settings: EvaluationFile, sources: Mapping[str, str]) -> Comment:
    """Build a function that gives the source of the value at a position. Arguments are those of `_find_source`."""
    # Parts of a policy that was read from a broker.conf come from there, but its name and additional keys do not.
    from_conf: dict[tuple[str | int, ...], str] = {
        ("policies", index, key): policy.conf_file
        for index, policy in enumerate(settings.policies)
        for key in ("filters", "selector", "shedder", "splitter", "on_error")
        if policy.conf_file is not None and f"policies[{index}].{key}" not in settings.sources
    }
    return lambda loc: from_conf[loc] if loc in from_conf else _find_source(sources, loc)


def _add_parts(values: dict[str, Any], settings: EvaluationFile) -> dict[str, Any]:
    if any(policy.conf_file for policy in settings.policies):
        # Only then, since without such a policy settings can be shown though a plug-in cannot be loaded.
        registry = load_plugins(settings.plugin_files)
        conf, sources = load_manager_keys(settings), load_manager_sources(settings)
        values["policies"] = [
            policy_table(*build_policies(registry, [policy], conf, sources)) if policy.conf_file else entry
            for policy, entry in zip(settings.policies, values["policies"], strict=True)
        ]
    return values


def to_toml(values: Mapping[str, Any], comment: Comment = lambda loc: "") -> str:
    """Write tables of settings, with plain values first, then `[table]` and `[[tables]]`. None is left out.

    TOML assigns a plain key after a table's head to that table, so plain values have to come first.

    Example:
        >>> print(to_toml({"run": {"seeds": [1, 2], "note": None}, "brokers": [{"id": "b:1"}]}))
        [run]
        seeds = [1, 2]
        <BLANKLINE>
        [[brokers]]
        id = "b:1"
        <BLANKLINE>
    """
    plain = {key: value for key, value in values.items() if not isinstance(value, Mapping) and not _is_tables(value)}
    blocks = ["\n".join(_iter_lines(plain, (), comment))] if plain else []
    for key, value in values.items():
        if isinstance(value, Mapping):
            blocks.append("\n".join([f"[{toml_key(key)}]", *_iter_lines(value, (key,), comment)]))
        elif _is_tables(value):
            tables = (_iter_lines(entry, (key, index), comment) for index, entry in enumerate(value))
            blocks += ["\n".join([f"[[{toml_key(key)}]]", *lines]) for lines in tables]
    return "\n\n".join(blocks) + "\n"


def _iter_lines(table: Mapping[str, Any], above: tuple[str | int, ...], comment: Comment) -> Iterator[str]:
    for key, value in table.items():
        if value is not None:
            source = comment((*above, key))
            yield f"{toml_key(key)} = {toml_text(value)}" + (f"  # {one_line(source)}" if source else "")


def _is_tables(value: object) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(entry, Mapping) for entry in value)


def _run_list(arguments: argparse.Namespace) -> int:
    entries = sorted(shipped_files().values(), key=lambda entry: (entry.kind, entry.name))
    if arguments.format == "json":
        print_json([{**asdict(entry), "name": f"shipped:{entry.name}", "path": str(entry.path)} for entry in entries])
        return 0
    rows = [(f"shipped:{entry.name}", entry.kind, entry.summary) for entry in entries]
    plain_table(data_console(), ("name", "kind", "what it is"), rows)
    return 0


COMMANDS = (
    Command(
        name="config show",
        examples=(
            ("lookup config show shipped:haproxy", "a file that ships, as it is"),
            ("lookup config show evaluation.toml", "the settings of a file, with the files that it names"),
            ("lookup config show evaluation.toml --resolved", "every setting with its source"),
        ),
        add_arguments=_add_arguments,
        run=_run,
    ),
    Command(
        name="config list",
        examples=(("lookup config list", "all names and summaries. --format json adds the paths"),),
        add_arguments=lambda parser: add_format(parser, "table", "json"),
        run=_run_list,
    ),
)
