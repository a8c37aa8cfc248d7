"""Join the layers of settings: flags over variables over files, every value with the source that set it.

pydantic-settings reads the variables and joins the layers. Added here: every value knows its source, a misspelt
variable is a mistake, texts are read as TOML, and a missing or broken file is reported. The models check the values
afterwards, all at once (`loader.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SkipValidation, create_model
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from lookup.errors import SettingsError
from lookup.model.documents import NestingError, json_value, toml_table
from lookup.model.quoting import suggestion
from lookup.settings.evaluation import EvaluationFile
from lookup.settings.files import anchored, load_topology, read_toml
from lookup.settings.problems import Loc, choices_at, descend, key_path, known_keys
from lookup.settings.serving import ServingFile
from lookup.settings.topics import TopicsFile

__all__ = [
    "FileSource", "FlagSource", "MappingSource", "Sourced", "TopologyFileSource", "Tree", "VariableSource", "joined",
    "leaves", "origin_at", "origins_of", "sourced", "values_of",
]  # fmt: skip

#: Variables that begin so are settings; two underscores go one table down.
_PREFIX = "LOOKUP_"
#: The kinds of file whose settings variables may set.
_FILES: tuple[type[BaseModel], ...] = (EvaluationFile, ServingFile, TopicsFile)


@dataclass(frozen=True, slots=True)
class Sourced:
    """A value and its source; a list is one value, since a higher layer replaces it as a whole."""

    value: Any
    source: str


Tree = dict[str, "Tree | Sourced"]


def sourced(values: Mapping[str, Any], source: str) -> Tree:
    """Make a layer of plain values that all have one source."""
    return {
        key: sourced(value, source) if isinstance(value, Mapping) and value else Sourced(value, source)
        for key, value in values.items()
    }


def values_of(tree: Tree) -> dict[str, Any]:
    """Return the plain values of a layer."""
    return {key: values_of(value) if isinstance(value, dict) else value.value for key, value in tree.items()}


def origins_of(tree: Tree, above: Loc = ()) -> dict[Loc, str]:
    """Return the source of every value of a layer, by its place."""
    origins: dict[Loc, str] = {}
    for key, value in tree.items():
        loc = (*above, key)
        origins |= origins_of(value, loc) if isinstance(value, dict) else {loc: value.source}
    return origins


def origin_at(loc: Loc, origins: Mapping[Loc, str]) -> str | None:
    """Return the source of the value at a place, or of the nearest one that it is part of; None if none is known."""
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
        for index, inner in enumerate(value):
            yield from leaves(inner, (*above, index))
    else:
        yield above, value


class _Layers(BaseSettings):
    """The settings as pydantic-settings joins them, before the models check them; unknown keys stay."""

    model_config = SettingsConfigDict(extra="allow")

    def __init__(self, sources: tuple[PydanticBaseSettingsSource, ...]) -> None:
        """Join sources, the highest first."""
        super().__init__(sources=sources)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take the sources that `joined` was given, highest first, in the place of the usual ones."""
        sources: tuple[PydanticBaseSettingsSource, ...] = init_settings()["sources"]
        return sources


@lru_cache
def _layers_of(model: type[BaseModel]) -> type[_Layers]:
    """Return the layers of a file with its tables, so that the source of variables knows what may be nested in what."""
    unchecked: Any = SkipValidation
    tables: dict[str, Any] = {name: (unchecked[info.annotation], None) for name, info in model.model_fields.items()}
    return create_model(f"_{model.__name__}", __base__=_Layers, **tables)


def joined(*sources: PydanticBaseSettingsSource, model: type[BaseModel] = EvaluationFile) -> Tree:
    """Join sources, the highest first: tables are joined key by key, everything else is replaced.

    Args:
        model: the file that the settings are of.

    Raises:
        SettingsError: if the file of a source cannot be read.
    """
    layers = _layers_of(model)(sources)
    return {name: value for name, value in layers if name in layers.model_fields_set}


class _NamedSource(EnvSettingsSource):
    """Values under joined key paths, like `LOOKUP_EVALUATION__TICK_S`; pydantic-settings makes tables of them.

    Texts are taken as they are if the setting is a text, else as TOML or JSON values; paths start from the working
    folder. Of a table and a key inside it the key counts.
    """

    #: by name, in lower case if case does not matter, a `Sourced` or a table of them
    env_vars: Mapping[str, Any]
    #: a sentence for every name that is no setting
    problems: list[str]

    def __init__(
        self, given: Mapping[str, object], *, prefix: str, delimiter: str, source: str, model: type[BaseModel]
    ) -> None:
        """Read the values given; `{name}` in `source` is replaced by the name of each."""
        super().__init__(
            _layers_of(model), case_sensitive=not prefix, env_prefix=prefix, env_nested_delimiter=delimiter
        )
        self.problems = []
        # Names that differ in case only are one setting, of which the last in order counts.
        names: dict[tuple[str, ...], str] = {}
        for name in sorted(given):
            cased = name.lower() if prefix else name
            if cased.startswith(prefix.lower()):
                names[tuple(cased.removeprefix(prefix.lower()).split(delimiter))] = name
        layers: dict[tuple[str, ...], Tree | Sourced] = {}
        too_deep = []
        for loc, name in names.items():
            origin = source.format(name=name)
            annotation: object = model
            for index, step in enumerate(loc):
                inner = descend(annotation, step)
                if inner is None:
                    self.problems.append(f"{origin}: there is no setting {key_path(loc)}; {_hint(loc, index, model)}")
                    break
                annotation = inner
            else:
                try:
                    layers[loc] = _layer(loc, given[name], origin, is_text=annotation in (str, str | None))
                except NestingError as error:
                    too_deep.append(f"{origin}: {key_path(loc)}: {error}")
        self.problems += too_deep
        # A value for a whole table that is no table would hide the keys given beside it.
        self.env_vars = {
            names[loc].lower() if prefix else names[loc]: value
            for loc, value in layers.items()
            if isinstance(value, dict)
            or not any(len(other) > len(loc) and other[: len(loc)] == loc for other in layers)
        }

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        """Leave a value alone: it was decoded before it got its source."""
        return value


class VariableSource(_NamedSource):
    """The environment: `LOOKUP_EVALUATION__TICK_S=30`."""

    def __init__(self, environ: Mapping[str, str], model: type[BaseModel] = EvaluationFile) -> None:
        """Read the variables that begin with the prefix, except those of another kind of file."""
        foreign = {key for other in _FILES for key in known_keys(other)} - set(known_keys(model))
        own = {
            name: text
            for name, text in environ.items()
            if name.lower().removeprefix(_PREFIX.lower()).partition("__")[0] not in foreign
        }
        super().__init__(own, prefix=_PREFIX, delimiter="__", source="environment variable {name}", model=model)


class FlagSource(_NamedSource):
    """Flags by key path, `{"evaluation.tick_s": 30}`; None is a flag that was not given."""

    def __init__(
        self, flags: Mapping[str, object], model: type[BaseModel] = EvaluationFile, *, source: str = "command line"
    ) -> None:
        """Read the flags that were given."""
        given = {name: value for name, value in flags.items() if value is not None}
        super().__init__(given, prefix="", delimiter=".", source=source, model=model)


class _WholeSource(PydanticBaseSettingsSource):
    """A source that is called for all its values and never asked for a single one."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Return nothing: pydantic-settings only asks sources that go field by field."""
        return None, field_name, False


class FileSource(_WholeSource):
    """A settings file; pydantic-settings' own source of TOML passes over a file that is not there."""

    def __init__(self, path: Path, model: type[BaseModel] = EvaluationFile) -> None:
        """Name the file, which is read when the layers are joined."""
        super().__init__(_layers_of(model))
        self._path = path

    def __call__(self) -> Tree:
        """Read the file as a layer, its paths made absolute from its folder.

        Raises:
            SettingsError: one sentence, if it cannot be read.
        """
        return sourced(anchored(read_toml(self._path), self._path.parent), str(self._path))


class MappingSource(_WholeSource):
    """Settings that a program gives, as they would stand in a file; paths start from the working folder."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        """Keep the values, which are not changed."""
        super().__init__(_layers_of(EvaluationFile))
        self._values = values

    def __call__(self) -> Tree:
        """Return the values as a layer."""
        return sourced(anchored(dict(self._values), Path.cwd()), "settings")


class TopologyFileSource(_WholeSource):
    """The topology file that the sources above this one name, as the layer below them."""

    #: mistakes in the file
    problems: tuple[str, ...] = ()

    def __init__(self, model: type[BaseModel] = EvaluationFile) -> None:
        """Wait for the sources above to name a file."""
        super().__init__(_layers_of(model))

    def __call__(self) -> Tree:
        """Read the file as a layer; one with mistakes gives none, and they are kept."""
        section = self.current_state.get("topology")
        file = values_of(section).get("file") if isinstance(section, dict) else None
        if not isinstance(file, str):
            return {}
        try:
            return {"topology": sourced(load_topology(file).model_dump(exclude_unset=True), file)}
        except SettingsError as error:
            self.problems = error.problems
            return {}


def _hint(loc: tuple[str, ...], index: int, model: type[BaseModel]) -> str:
    """Return the clause about a key path whose step at `index` leads nowhere: what was meant, or where to write it."""
    # An entry may be named by its position, `brokers[0]`, or not at all.
    entries = (*loc[:index], loc[index].partition("[")[0]) if "[" in loc[index] else loc[:index]
    keys = choices_at(model, (*entries, 0))
    if not keys:
        return suggestion(loc[index], choices_at(model, loc[:index]))
    heading, key = key_path(entries), loc[-1]
    meant = "" if key in keys else f"; {suggestion(key, keys)}"
    return (
        f"{heading} is a list, whose entries cannot be set one by one: write {key} into [[{heading}]] of a file{meant}"
    )


def _layer(loc: tuple[str, ...], value: object, source: str, *, is_text: bool) -> Tree | Sourced:
    """Return the layer at a place: the value read, its paths made absolute, with its source."""
    nested: Any = _literal(value) if isinstance(value, str) and not is_text else value
    # Which values are paths is known from the top of the settings only.
    for step in reversed(loc):
        nested = {step: nested}
    nested = anchored(nested, Path.cwd())
    for step in loc[:-1]:
        nested = nested[step]
    return sourced(nested, source)[loc[-1]]


def _literal(text: str) -> object:
    """Read a text as a TOML value, else as a JSON value, else as it is; nesting too deep is an error in either."""
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
