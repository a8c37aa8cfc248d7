"""Reads the settings of topics: flags over environment over file over `broker.conf` over defaults."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from lookup.errors import SettingsError
from lookup.settings.files import absent_files
from lookup.settings.layers import Tree, origin_at, origins_of, sourced, values_of
from lookup.settings.problems import Loc, key_path, place, place_meant, problems_of
from lookup.settings.sources import FileSource, FlagSource, VariableSource, joined
from lookup.settings.topics import TopicsFile
from lookup.settings.topics_conf import read_topics_conf

__all__ = ["load_topics"]


def load_topics(
    path: str | os.PathLike[str] | None = None,
    overrides: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
) -> TopicsFile:
    """Read the settings of topics, what `from_broker_conf` names included.

    Args:
        path: a TOML file with `[topics]`; a name that does not end in .toml is a `broker.conf`; None: no file.
        overrides: flags by key path, `{"topics.catalog": "t.db"}`, paths from the working folder; None: not given.
        environ: variables; default: those of the process. `{}`: none.

    Raises:
        SettingsError: all mistakes together.
    """
    flags = FlagSource(overrides or {}, model=TopicsFile)
    variables = VariableSource(os.environ if environ is None else environ, model=TopicsFile)
    problems = [*flags.problems, *variables.problems]
    is_toml = path is not None and Path(path).suffix == ".toml"
    files = [FileSource(Path(path), model=TopicsFile)] if is_toml and path is not None else []
    try:
        tree = joined(flags, variables, *files, model=TopicsFile)
    except SettingsError as error:
        raise SettingsError([*problems, *error.problems]) from None
    for conf in _confs(tree, None if is_toml or path is None else str(path)):
        tree = _over_conf(tree, conf, problems)
    return _validated(tree, "settings" if path is None else str(path), problems)


def _confs(tree: Tree, path: str | None) -> list[str]:
    """Return the `broker.conf` that is given, and the one that a tree names, which counts after it."""
    section = tree.get("topics", {})
    named = values_of(section).get("from_broker_conf") if isinstance(section, dict) else None
    return [conf for conf in (path, named) if isinstance(conf, str)]


def _over_conf(tree: Tree, conf: str, problems: list[str]) -> Tree:
    """Lay a tree over a `broker.conf`."""
    section = tree.get("topics", {})
    if not isinstance(section, dict):
        return tree
    try:
        below = sourced(read_topics_conf(conf, written=frozenset(section)), conf)
    except SettingsError as error:
        problems += error.problems
        return tree
    return {**tree, "topics": {**below, **section}}


def _validated(tree: Tree, file: str, problems: list[str]) -> TopicsFile:
    origins, values = origins_of(tree), values_of(tree)
    settings: TopicsFile | None = None
    found: list[tuple[Loc, str]] = [
        (("plugin_files",), f"there is no file {file}") for file in absent_files(values.get("plugin_files"))
    ]
    try:
        settings = TopicsFile.model_validate(values)
    except ValidationError as error:
        found = [*problems_of(error, TopicsFile), *found]
    problems += [
        f"{origin_at(place_meant(loc, sentence), origins) or file}: {place(loc, sentence)}" for loc, sentence in found
    ]
    if settings is None or problems:
        raise SettingsError(tuple(dict.fromkeys(problems)))
    return settings.note_sources({key_path(loc): source for loc, source in origins.items()})
