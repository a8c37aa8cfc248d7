"""The sources of settings for pydantic-settings, which reads the variables and lays one layer over another.

Ours on top: every value knows what set it, a misspelt variable is a mistake, texts are read as TOML, and a file that is
missing or broken is told. The values are checked afterwards, by the models, all at once (`reading.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
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
from lookup.settings.files import load_topology
from lookup.settings.layers import Sourced, Tree, anchored, from_file, sourced, values_of
from lookup.settings.problems import choices_at, descend, key_path, known_keys
from lookup.settings.topics import TopicsFile

__all__ = ["FileSource", "FlagSource", "TopologyFileSource", "VariableSource", "joined"]

#: Variables that begin so are settings; two underscores go one table down.
_PREFIX = "LOOKUP_"


class _Layers(BaseSettings):
    """The settings as pydantic-settings joins them, before anybody has checked them; unknown keys stay."""

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


#: The kinds of file whose settings variables may set.
_FILES: tuple[type[BaseModel], ...] = (EvaluationFile, TopicsFile)


@lru_cache
def _layers_of(model: type[BaseModel]) -> type[_Layers]:
    """Return the layers of a file with its tables, so that the source of variables knows what may be nested in what."""
    unchecked: Any = SkipValidation
    tables: dict[str, Any] = {name: (unchecked[info.annotation], None) for name, info in model.model_fields.items()}
    return create_model(f"_{model.__name__}", __base__=_Layers, **tables)


def joined(*sources: PydanticBaseSettingsSource, model: type[BaseModel] = EvaluationFile) -> Tree:
    """Lay sources over one another, the highest first: tables are joined key by key, everything else is replaced.

    Args:
        model: the file that the settings are of.

    Raises:
        SettingsError: where the file of a source cannot be read.
    """
    layers = _layers_of(model)(sources)
    return {name: value for name, value in layers if name in layers.model_fields_set}


class _NamedSource(EnvSettingsSource):
    """Values under joined key paths, like `LOOKUP_EVALUATION__TICK_S`; pydantic-settings makes tables of them.

    Texts are taken as they are where the setting is a text, else as TOML or JSON values; paths start from the working
    folder. Of a table and a key inside it the key counts.
    """

    #: names, in lower case where case does not matter, and what stands there: a `Sourced`, or a table of them
    env_vars: Mapping[str, Any]
    #: a sentence for every name that is no setting
    problems: list[str]

    def __init__(
        self, given: Mapping[str, object], *, prefix: str, delimiter: str, source: str, model: type[BaseModel]
    ) -> None:
        """Read what was given; `{name}` in the words for its source stands for the name."""
        super().__init__(
            _layers_of(model), case_sensitive=not prefix, env_prefix=prefix, env_nested_delimiter=delimiter
        )
        self.problems = []
        self._model = model
        names = {self._loc(name): name for name in sorted(given) if self._is_ours(name)}
        tellers = {loc: source.format(name=name) for loc, name in names.items()}
        known = {loc: told for loc, told in tellers.items() if self._knows(loc, told)}
        layers = {loc: self._layer(loc, given[names[loc]], told) for loc, told in known.items()}
        found = {loc: layer for loc, layer in layers.items() if layer is not None}
        self.env_vars = {
            self._cased(names[loc]): value
            for loc, value in found.items()
            if isinstance(value, dict) or not any(_is_inside(other, loc) for other in found)
        }

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        """Leave a value alone: it was decoded before it got its source."""
        return value

    def _cased(self, name: str) -> str:
        return name if self.case_sensitive else name.lower()

    def _is_ours(self, name: str) -> bool:
        return self._cased(name).startswith(self._cased(self.env_prefix))

    def _loc(self, name: str) -> tuple[str, ...]:
        return tuple(self._cased(name)[self.env_prefix_len :].split(self.env_nested_delimiter))

    def _layer(self, loc: tuple[str, ...], value: object, source: str) -> Tree | Sourced | None:
        try:
            return _layer(loc, value, source, self._model)
        except NestingError as error:
            self.problems.append(f"{source}: {key_path(loc)}: {error}")
            return None

    def _knows(self, loc: tuple[str, ...], source: str) -> bool:
        hint = _unknown(loc, self._model)
        if hint is not None:
            self.problems.append(f"{source}: there is no setting {key_path(loc)}; {hint}")
        return hint is None


class VariableSource(_NamedSource):
    """The environment: `LOOKUP_EVALUATION__TICK_S=30`."""

    def __init__(self, environ: Mapping[str, str], model: type[BaseModel] = EvaluationFile) -> None:
        """Read the variables that begin with the prefix; those of another kind of file are that file's business."""
        foreign = {key for other in _FILES for key in known_keys(other)} - set(known_keys(model))
        own = {name: text for name, text in environ.items() if _table_of(name) not in foreign}
        super().__init__(own, prefix=_PREFIX, delimiter="__", source="environment variable {name}", model=model)


class FlagSource(_NamedSource):
    """Flags by key path, `{"evaluation.tick_s": 30}`; None is a flag that was not given."""

    def __init__(self, flags: Mapping[str, object], model: type[BaseModel] = EvaluationFile) -> None:
        """Read the flags that were given."""
        given = {name: value for name, value in flags.items() if value is not None}
        super().__init__(given, prefix="", delimiter=".", source="command line", model=model)


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
        """Read the file as a layer.

        Raises:
            SettingsError: one sentence, where it cannot be read.
        """
        return from_file(self._path)


class TopologyFileSource(_WholeSource):
    """The topology file that the sources above this one name, as the layer below them."""

    #: what is wrong with the file
    problems: tuple[str, ...] = ()

    def __init__(self) -> None:
        """Wait for the sources above to name a file."""
        super().__init__(_layers_of(EvaluationFile))

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


def _is_inside(loc: tuple[str, ...], table: tuple[str, ...]) -> bool:
    return len(loc) > len(table) and loc[: len(table)] == table


def _table_of(variable: str) -> str:
    return variable.lower().removeprefix(_PREFIX.lower()).partition("__")[0]


def _unknown(loc: tuple[str, ...], model: type[BaseModel]) -> str | None:
    reached: object = model
    for place, step in enumerate(loc):
        inner = descend(reached, step)
        if inner is None:
            return suggestion(step, choices_at(model, loc[:place]))
        reached = inner
    return None


def _layer(loc: tuple[str, ...], value: object, source: str, model: type[BaseModel]) -> Tree | Sourced:
    """Return what stands at a place: the value read, its paths made absolute, with its source."""
    nested: Any = _literal(value) if isinstance(value, str) and not _takes_text(loc, model) else value
    for step in reversed(loc):
        nested = {step: nested}
    nested = anchored(nested, Path.cwd())
    for step in loc[:-1]:
        nested = nested[step]
    return sourced(nested, source)[loc[-1]]


def _takes_text(loc: tuple[str, ...], model: type[BaseModel]) -> bool:
    annotation: object = model
    for step in loc:
        annotation = descend(annotation, step)
    return annotation in (str, str | None)


def _literal(text: str) -> object:
    for parse in (_toml_value, json_value):
        try:
            return parse(text)
        except NestingError:
            raise
        except ValueError:
            continue
    return text


def _toml_value(text: str) -> object:
    return toml_table(f"value = {text}")["value"]
