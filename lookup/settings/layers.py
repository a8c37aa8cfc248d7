"""Join the layers of settings, with flags before variables before files, and the source of every value.

pydantic-settings joins the layers. This module adds the source of each value, reports misspelt variables as
mistakes, and reads texts as TOML. The models check the values afterwards, all at once (`loader.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic_settings import BaseSettings, InitSettingsSource, SettingsConfigDict

from lookup.model.documents import NestingError, json_value, toml_table
from lookup.model.quoting import suggestion
from lookup.settings.evaluation import EvaluationFile
from lookup.settings.files import anchor_paths
from lookup.settings.problems import Loc, choices_at, descend, key_path, known_keys
from lookup.settings.serving import ClusterFile, ServingFile
from lookup.settings.topics import TopicsFile
from lookup.settings.tuning import TuneFile

__all__ = [
    "Sourced", "Tree", "flag_layers", "join_layers", "leaves", "make_layer", "origin_at", "origins_of", "values_of",
    "variable_layers",
]  # fmt: skip

#: Variables with this beginning, in any case, are settings. Two underscores lead one table down.
_PREFIX = "lookup_"
#: The kinds of file whose settings variables may set.
_FILES: tuple[type[BaseModel], ...] = (ClusterFile, EvaluationFile, ServingFile, TopicsFile, TuneFile)


@dataclass(frozen=True, slots=True)
class Sourced:
    """A value and its source. A list is one value, since a higher layer replaces it as a whole."""

    value: Any
    source: str


Tree = dict[str, "Tree | Sourced"]


def make_layer(values: Mapping[str, Any], source: str) -> Tree:
    """Make a layer of plain values that all have one source."""
    return {
        key: make_layer(value, source) if isinstance(value, Mapping) and value else Sourced(value, source)
        for key, value in values.items()
    }


def values_of(tree: Tree) -> dict[str, Any]:
    """Extract the plain values of a layer."""
    return {key: values_of(value) if isinstance(value, dict) else value.value for key, value in tree.items()}


def origins_of(tree: Tree, above: Loc = ()) -> dict[Loc, str]:
    """Find the source of every value of a layer, by its place."""
    origins: dict[Loc, str] = {}
    for key, value in tree.items():
        loc = (*above, key)
        origins |= origins_of(value, loc) if isinstance(value, dict) else {loc: value.source}
    return origins


def origin_at(loc: Loc, origins: Mapping[Loc, str]) -> str | None:
    """Find the source of the value at a place, or of the nearest value that contains it, None if unknown."""
    candidates = (origins.get(loc[:length]) for length in range(len(loc), 0, -1))
    return next(filter(None, candidates), None)


def leaves(value: object, above: Loc = ()) -> Iterator[tuple[Loc, object]]:
    """Yield place and value of everything except tables and lists of tables. Empty ones count as values."""
    if isinstance(value, BaseModel):
        value = value.model_dump(exclude_unset=True)
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*above, key))
    elif isinstance(value, (list, tuple)) and any(isinstance(inner, (Mapping, BaseModel)) for inner in value):
        for index, inner in enumerate(value):
            yield from leaves(inner, (*above, index))
    else:
        yield above, value


class _Layers(BaseSettings):
    """Layers as joined by pydantic-settings. The models check them afterwards."""

    model_config = SettingsConfigDict(extra="allow")


def join_layers(*layers: Tree) -> Tree:
    """Join layers, the highest first. Tables are joined key by key, and everything else is replaced."""
    sources = tuple(InitSettingsSource(_Layers, layer) for layer in layers)
    # mypy knows only the fields of a model as arguments.
    return _Layers(_build_sources=(sources, {})).model_extra or {}  # type: ignore[call-arg]


def variable_layers(environ: Mapping[str, str], model: type[BaseModel]) -> tuple[list[Tree], list[str]]:
    """Read layers of the model's variables (`LOOKUP_EVALUATION__TICK_S=30`), with a sentence for each unknown one."""
    foreign = {key for other in _FILES for key in known_keys(other)} - set(known_keys(model))
    values: dict[tuple[str, ...], tuple[object, str]] = {}
    # Names that differ in case only are one setting, of which the last in order counts.
    for name in sorted(environ):
        loc = tuple(name.lower().removeprefix(_PREFIX).split("__"))
        if name.lower().startswith(_PREFIX) and loc[0] not in foreign:
            values[loc] = environ[name], f"environment variable {name}"
    return _build_named_layers(values, model)


def flag_layers(flags: Mapping[str, object], model: type[BaseModel], source: str) -> tuple[list[Tree], list[str]]:
    """Read the layers of flags by key path, `{"evaluation.tick_s": 30}`, with a sentence for each unknown setting.

    Args:
        flags: None is a flag that was not given.
        source: their name in mistakes.
    """
    values = {tuple(name.split(".")): (flags[name], source) for name in sorted(flags) if flags[name] is not None}
    return _build_named_layers(values, model)


def _build_named_layers(
    values: Mapping[tuple[str, ...], tuple[object, str]], model: type[BaseModel]
) -> tuple[list[Tree], list[str]]:
    """Make a layer of each value that is given by its place, with its source, the highest first.

    Texts are used unchanged if the setting is a text, else as TOML or JSON values. Paths start from the working folder.
    """
    layers: list[tuple[int, Tree]] = []
    unknown: list[str] = []
    too_deep: list[str] = []
    for loc, (value, source) in values.items():
        types: list[object] = [model]
        for step in loc:
            types.append(descend(types[-1], step))
        if types[-1] is None:
            hint = _write_hint(loc, types.index(None) - 1, model)
            unknown.append(f"{source}: there is no setting {key_path(loc)}; {hint}")
            continue
        try:
            nested: Any = (
                _read_literal(value) if isinstance(value, str) and types[-1] not in (str, str | None) else value
            )
        except NestingError as error:
            too_deep.append(f"{source}: {key_path(loc)}: {error}")
            continue
        for step in reversed(loc):
            nested = {step: nested}
        layers.append((len(loc), make_layer(anchor_paths(nested, Path.cwd()), source)))
    # Of a table and a key inside it the key counts.
    layers.sort(key=lambda layer: layer[0])
    return [layer for _, layer in reversed(layers)], [*unknown, *too_deep]


def _write_hint(loc: tuple[str, ...], index: int, model: type[BaseModel]) -> str:
    """Write the clause about an unknown step of a key path at `index`, with the likely key or the right table."""
    # An entry may be named by its position, `brokers[0]`, or not at all.
    entries = (*loc[:index], loc[index].partition("[")[0]) if "[" in loc[index] else loc[:index]
    keys = choices_at(model, (*entries, 0))
    if not keys:
        return suggestion(loc[index], choices_at(model, loc[:index]))
    heading, key = key_path(entries), loc[-1]
    hint = "" if key in keys else f"; {suggestion(key, keys)}"
    return (
        f"{heading} is a list, whose entries cannot be set one by one: write {key} into [[{heading}]] of a file{hint}"
    )


def _read_literal(text: str) -> object:
    try:
        return toml_table(f"value = {text}")["value"]
    except NestingError:
        raise
    except ValueError:
        pass
    try:
        return json_value(text)
    except NestingError:
        raise
    except ValueError:
        return text
