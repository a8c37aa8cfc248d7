"""The layers of settings: a file, the environment and flags, each a tree of values that know where they came from.

pydantic-settings' own environment source neither reports misspelt variables nor says which source set a value
(`facts/dependencies.md`, pitfall 3), so the layers are built here and the models only validate what comes out.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from lookup.errors import SettingsError
from lookup.settings.problems import Loc, choices_at, descend, key_path, suggestion

__all__ = [
    "PREFIX",
    "Sourced",
    "Tree",
    "anchored",
    "from_environment",
    "from_file",
    "from_flags",
    "leaves",
    "merged",
    "origins_of",
    "read_toml",
    "sourced",
    "values_of",
]

#: Variables that begin so are settings; two underscores go one table down.
PREFIX = "LOOKUP_"


@dataclass(frozen=True, slots=True)
class Sourced:
    """A value and what set it; lists are one value, since a higher layer replaces them as a whole."""

    value: Any
    source: str


Tree = dict[str, "Tree | Sourced"]


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        SettingsError: one sentence, where it is absent, cannot be read or is no TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SettingsError(f"{path}: there is no such file") from None
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: is no text in UTF-8") from None
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


def from_flags(flags: Mapping[str, object], model: type[BaseModel]) -> tuple[Tree, list[str]]:
    """Read flags, `{"evaluation.tick_s": 30}`, as a layer; None is a flag that was not given.

    Values that are texts are read as `from_environment` reads them. Returns the layer and a sentence for every flag
    that names no setting.
    """
    given = {key: value for key, value in flags.items() if value is not None}
    return _layer([_Given(tuple(key.split(".")), value, "command line") for key, value in given.items()], model)


def from_environment(environ: Mapping[str, str], model: type[BaseModel]) -> tuple[Tree, list[str]]:
    """Read variables, `LOOKUP_EVALUATION__TICK_S=30`, as a layer.

    Texts are taken as they are where the setting is a text, else as TOML or JSON values. Returns the layer and a
    sentence for every variable that names no setting.
    """
    names = sorted(name for name in environ if name.upper().startswith(PREFIX))
    return _layer([_Given(_loc_of(name), environ[name], f"environment variable {name}") for name in names], model)


def merged(low: Tree, high: Tree) -> Tree:
    """Lay one layer over another: tables are joined key by key, everything else is replaced."""
    joined = dict(low)
    for key, value in high.items():
        below = joined.get(key)
        joined[key] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return joined


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
    if not isinstance(path, str) or "://" in path:
        return path
    return str((folder / Path(path).expanduser()).resolve())


def _all_absolute(paths: object, folder: Path) -> object:
    if isinstance(paths, Mapping):
        return {key: _absolute(path, folder) for key, path in paths.items()}
    return [_absolute(path, folder) for path in paths] if isinstance(paths, list) else paths


def _file_absolute(table: object, folder: Path) -> object:
    return _key_absolute(table, "file", folder)


def _profiles_absolute(brokers: object, folder: Path) -> object:
    return [_key_absolute(entry, "profile", folder) for entry in brokers] if isinstance(brokers, list) else brokers


def _key_absolute(table: object, key: str, folder: Path) -> object:
    if not isinstance(table, Mapping) or key not in table:
        return table
    return {**table, key: _absolute(table[key], folder)}


_PATHS = {
    "inputs": _all_absolute,
    "topology": _file_absolute,
    "brokers": _profiles_absolute,
    "policies": _all_absolute,
    "plugin_files": _all_absolute,
}


@dataclass(frozen=True, slots=True)
class _Given:
    """A value somebody gave for one setting, outside a file."""

    loc: tuple[str, ...]
    value: object
    source: str


def _loc_of(variable: str) -> tuple[str, ...]:
    return tuple(variable[len(PREFIX) :].lower().split("__"))


def _layer(named: Sequence[_Given], model: type[BaseModel]) -> tuple[Tree, list[str]]:
    tree: Tree = {}
    problems = []
    for given in named:
        hint = _unknown(given.loc, model)
        if hint is None:
            tree = merged(tree, _branch(given, model))
        else:
            problems.append(f"{given.source}: there is no setting {key_path(given.loc)}; {hint}")
    return tree, problems


def _unknown(loc: tuple[str, ...], model: type[BaseModel]) -> str | None:
    reached: object = model
    for place, step in enumerate(loc):
        inner = descend(reached, step)
        if inner is None:
            return suggestion(step, choices_at(model, loc[:place]))
        reached = inner
    return None


def _branch(given: _Given, model: type[BaseModel]) -> Tree:
    annotation: object = model
    for step in given.loc:
        annotation = descend(annotation, step)
    nested: Any = given.value
    if isinstance(nested, str) and not _takes_text(annotation):
        nested = _literal(nested)
    for step in reversed(given.loc):
        nested = {step: nested}
    return sourced(anchored(nested, Path.cwd()), given.source)


def _takes_text(annotation: object) -> bool:
    return annotation in (str, str | None)


def _literal(text: str) -> object:
    for parse in (_toml_value, json.loads):
        try:
            return parse(text)
        except ValueError:
            continue
    return text


def _toml_value(text: str) -> object:
    return tomllib.loads(f"value = {text}")["value"]
