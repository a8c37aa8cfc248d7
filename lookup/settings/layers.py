"""Layers of settings: trees of values that know where they came from, and paths that start where they are named.

`sources.py` makes them of flags, variables and files, and has pydantic-settings lay them over one another.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from lookup.errors import SettingsError
from lookup.model.documents import NestingError, is_device, toml_table
from lookup.model.quoting import shown
from lookup.settings.problems import Loc

__all__ = [
    "Sourced",
    "Tree",
    "anchored",
    "from_file",
    "leaves",
    "origin_at",
    "origins_of",
    "parsed_toml",
    "read_text",
    "read_toml",
    "sourced",
    "values_of",
]


@dataclass(frozen=True, slots=True)
class Sourced:
    """A value and what set it; lists are one value, since a higher layer replaces them as a whole."""

    value: Any
    source: str


Tree = dict[str, "Tree | Sourced"]


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        SettingsError: one sentence, where it is absent, cannot be read, is no TOML or is nested too deep.
    """
    return parsed_toml(read_text(path), path)


def read_text(path: Path) -> str:
    """Read a text file.

    Raises:
        SettingsError: one sentence, where it is absent or cannot be read.
    """
    if is_device(path):
        raise SettingsError(f"{path}: is a device; expected a text file")
    try:
        # Editors on Windows begin a file with a mark that TOML does not know.
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SettingsError(f"{path}: there is no such file") from None
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: is no text in UTF-8") from None


def parsed_toml(text: str, path: Path) -> dict[str, Any]:
    """Read the text of a TOML file.

    Raises:
        SettingsError: one sentence, where it is no TOML or nested too deep.
    """
    try:
        return toml_table(text)
    except NestingError as error:
        raise SettingsError(f"{path}: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path}: is no valid TOML: {error}") from None


def sourced(values: Mapping[str, Any], source: str) -> Tree:
    """Make a layer of plain values that all have one source."""
    return {
        key: sourced(value, source) if isinstance(value, Mapping) and value else Sourced(value, source)
        for key, value in values.items()
    }


def from_file(path: Path) -> Tree:
    """Read a TOML file as a layer, its paths made absolute from its folder."""
    return sourced(anchored(read_toml(path), path.parent), str(path))


def values_of(tree: Tree) -> dict[str, Any]:
    """Return the plain values of a layer."""
    return {key: values_of(value) if isinstance(value, dict) else value.value for key, value in tree.items()}


def origins_of(tree: Tree, above: Loc = ()) -> dict[Loc, str]:
    """Return the source of every value of a layer, by its place."""
    origins: dict[Loc, str] = {}
    for key, value in tree.items():
        here = (*above, key)
        origins |= origins_of(value, here) if isinstance(value, dict) else {here: value.source}
    return origins


def origin_at(loc: Loc, origins: Mapping[Loc, str]) -> str | None:
    """Return the source of the value at a place, or of the nearest one that it is part of; None where none is known."""
    known = (origins.get(loc[:length]) for length in range(len(loc), 0, -1))
    return next(filter(None, known), None)


def leaves(value: object, above: Loc = ()) -> Iterator[tuple[Loc, object]]:
    """Yield place and value of everything that is neither a table nor a list of tables; empty ones are values."""
    if isinstance(value, BaseModel):
        value = value.model_dump(exclude_unset=True)
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*above, key))
    elif isinstance(value, (list, tuple)) and any(isinstance(inner, (Mapping, BaseModel)) for inner in value):
        for place, inner in enumerate(value):
            yield from leaves(inner, (*above, place))
    else:
        yield above, value


def anchored(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Make the paths of an evaluation absolute from a folder; the models will refuse what has the wrong shape."""
    found = dict(values)
    for key, anchor in _PATHS.items():
        if key in found:
            found[key] = anchor(found[key], folder)
    return found


def _absolute(path: object, folder: Path) -> object:
    if not isinstance(path, str) or not path or "://" in path:
        return path
    if "\0" in path:
        raise SettingsError(f"path {shown(path)} has the character '\\x00', which no name of a file has")
    try:
        return str((folder / Path(path).expanduser()).resolve())
    except RuntimeError as error:  # of `~name` without such a user, or of links that go round
        raise SettingsError(f"path {shown(path)} leads nowhere: {error}") from None


def _values_absolute(paths: object, folder: Path) -> object:
    return {key: _absolute(path, folder) for key, path in paths.items()} if isinstance(paths, Mapping) else paths


def _items_absolute(paths: object, folder: Path) -> object:
    return [_absolute(path, folder) for path in paths] if isinstance(paths, list) else paths


def _policies_absolute(policies: object, folder: Path) -> object:
    if not isinstance(policies, list):
        return policies
    return [_key_absolute(_absolute(entry, folder), "from_broker_conf", folder) for entry in policies]


def _file_absolute(table: object, folder: Path) -> object:
    return _key_absolute(table, "file", folder)


def _profiles_absolute(brokers: object, folder: Path) -> object:
    return [_key_absolute(entry, "profile", folder) for entry in brokers] if isinstance(brokers, list) else brokers


def _topics_absolute(table: object, folder: Path) -> object:
    return _key_absolute(_key_absolute(table, "catalog", folder), "from_broker_conf", folder)


def _key_absolute(table: object, key: str, folder: Path) -> object:
    if not isinstance(table, Mapping) or key not in table:
        return table
    return {**table, key: _absolute(table[key], folder)}


_PATHS = {
    "inputs": _values_absolute,
    "topology": _file_absolute,
    "brokers": _profiles_absolute,
    "policies": _policies_absolute,
    # A file may be one policy, its keys at the top.
    "from_broker_conf": _absolute,
    "plugin_files": _items_absolute,
    "topics": _topics_absolute,
}
