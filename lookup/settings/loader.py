"""Load the settings of evaluations, of the decision server and of topics with all files they name.

Flags take precedence over the environment, and that over files. All mistakes of all sources are found
before any is reported. The valid part of wrong settings is kept and checked further, so that one mistake
does not hide others. All are raised together, as one `SettingsError`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from lookup.errors import SettingsError
from lookup.settings import files
from lookup.settings.base import WholeFile
from lookup.settings.evaluation import EvaluationFile
from lookup.settings.layers import (
    Tree,
    flag_layers,
    join_layers,
    leaves,
    make_layer,
    origin_at,
    origins_of,
    values_of,
    variable_layers,
)
from lookup.settings.policy import PolicySpec
from lookup.settings.problems import Loc, key_of, key_path, place, problems_of, table_at, unknown_keys, without
from lookup.settings.serving import ServingFile
from lookup.settings.shipped import shipped_path
from lookup.settings.topics import TopicsFile
from lookup.settings.tuning import TuneFile

__all__ = [
    "SettingsFindings",
    "describe",
    "examine_settings",
    "load_evaluation",
    "load_serving",
    "load_topics",
    "load_tuning",
]

Content = TypeVar("Content")
File = TypeVar("File", bound=WholeFile)
#: Path of a file, or its content.
Written = str | os.PathLike[str] | Mapping[str, object]


@dataclass(frozen=True)
class SettingsFindings(Generic[File]):
    """The result of reading settings, which is the settings or problems, and in either case the valid part."""

    settings: File | None
    #: by key in the file, with defaults, each valid table, an object of valid keys of each other, valid policies
    sound: Mapping[str, Any]
    #: one sentence each, with source and key path
    problems: tuple[str, ...]

    def require(self) -> File:
        """Return the settings, or raise the problems."""
        if self.settings is None:
            raise SettingsError(self.problems)
        return self.settings


def load_evaluation(
    path: Written, overrides: Mapping[str, object] | None = None, environ: Mapping[str, str] | None = None
) -> EvaluationFile:
    """Read an evaluation file, every file it names, the environment and flags.

    Args:
        path: TOML file with paths from its folder, `shipped:NAME`, or such content with paths from the working folder.
        overrides: flags by key path, `{"evaluation.tick_s": 30}`, paths from the working folder. None means not given.
        environ: variables, by default those of the process. `{}` means none.
    """
    return examine_settings(EvaluationFile, path, overrides, environ).require()


def load_topics(
    path: str | os.PathLike[str] | None = None,
    overrides: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
) -> TopicsFile:
    """Read the settings of topics, or the defaults without a file. Arguments are those of `load_evaluation`."""
    return examine_settings(TopicsFile, {} if path is None else path, overrides, environ).require()


def load_serving(
    path: str | os.PathLike[str],
    overrides: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
) -> ServingFile:
    """Read the settings of the decision server and their files. Arguments are those of `load_evaluation`."""
    return examine_settings(ServingFile, path, overrides, environ).require()


def load_tuning(
    path: Written, overrides: Mapping[str, object] | None = None, environ: Mapping[str, str] | None = None
) -> TuneFile:
    """Read the settings of a search and its spaces, not its evaluation. Arguments are those of `load_evaluation`."""
    return examine_settings(TuneFile, path, overrides, environ).require()


def describe(resolved: WholeFile) -> list[tuple[str, object, str]]:
    """List key path, value and source of every setting, defaults included, in the order of the file."""
    rows = []
    for loc, value in leaves(resolved.model_dump()):
        candidates = (resolved.sources.get(key_path(loc[:length])) for length in range(len(loc), 0, -1))
        rows.append((key_path(loc), value, next(filter(None, candidates), "default")))
    return rows


def examine_settings(
    model: type[File],
    path: Written,
    overrides: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    source: str = "command line",
) -> SettingsFindings[File]:
    """Read settings as the functions above do, but return the mistakes, for a caller with further checks.

    Args:
        model: the kind of file.
        path: as for `load_evaluation`, like the next two.
        overrides: flags by key path.
        environ: variables.
        source: name of overrides in mistakes.
    """
    flags, problems = flag_layers(overrides or {}, model, source)
    variables, misspelt = variable_layers(os.environ if environ is None else environ, model)
    problems += misspelt
    try:
        if isinstance(path, Mapping):
            file, written = "settings", make_layer(files.anchor_paths(path, Path.cwd()), "settings")
        else:
            toml = Path(shipped_path(os.fspath(path)))
            file, written = str(path), make_layer(files.anchor_paths(files.read_toml(toml), toml.parent), str(toml))
        tree = join_layers(*flags, *variables, written)
    except SettingsError as error:
        return SettingsFindings(None, {}, (*problems, *error.problems))
    return _Reading(model, file, problems).finish(tree)


@dataclass
class _Reading(Generic[File]):
    """Values with their origins on the way to the settings of a file, and the problems so far."""

    model: type[File]
    #: the file of settings, named if a mistake has no other origin
    file: str
    problems: list[str]
    #: tables that name a file with mistakes
    incomplete: set[str] = field(default_factory=set)
    origins: dict[Loc, str] = field(default_factory=dict)
    #: position in the list as written, by position among all policies, since a file may contain several
    written: dict[int, int] = field(default_factory=dict)

    def finish(self, tree: Tree) -> SettingsFindings[File]:
        tree = self._add_topology_file(tree)
        self.origins = origins_of(tree)
        values = values_of(tree)
        # The contents of files replace their paths.
        for table, read in (
            ("policies", self._read_policies),
            ("spaces", self._read_spaces),
            ("brokers", self._read_profiles),
        ):
            if table in self.model.model_fields and isinstance(values.get(table), list):
                values[table] = read(values[table])
        missing = files.absent_files(values.get("plugin_files"))
        self._add_mistakes((("plugin_files",), f"there is no file {file}") for file in missing)
        self.incomplete |= {"plugin_files"} if missing else set()
        settings, recognised, wrong = self._validate(values)
        wrong |= {(name,) for name in self.incomplete}
        sound = _collect_valid(self.model, recognised, wrong)
        comparable = dict(sound)
        if any(loc[0] == "policies" for loc in wrong):
            # Of wrong policies only names are compared between tables, and only if those of all are known.
            names = None if "policies" in self.incomplete else _reduce_to_names(recognised.get("policies"))
            comparable["policies"] = names
        self._add_mistakes(self.model.problems_between(comparable))
        if self.problems or settings is None:
            return SettingsFindings(None, sound, tuple(dict.fromkeys(self.problems)))
        sources = {key_path(loc): origin for loc, _ in leaves(values) if (origin := origin_at(loc, self.origins))}
        return SettingsFindings(settings.note_sources(sources), sound, ())

    def _add_topology_file(self, tree: Tree) -> Tree:
        section = tree.get("topology", {}) if "topology" in self.model.model_fields else {}
        file = values_of(section).get("file") if isinstance(section, dict) else None
        if not isinstance(file, str):
            return tree
        topology = self._read(files.load_topology, file, "topology")
        below = {} if topology is None else topology.model_dump(exclude_unset=True)
        return join_layers(tree, {"topology": make_layer(below, file)})

    def _validate(self, values: Mapping[str, Any]) -> tuple[File | None, Mapping[str, Any], set[Loc]]:
        """Validate values, and return settings or None, the values without unknown keys, and the wrong places."""
        try:
            return self.model.model_validate(values), values, set()
        except ValidationError as error:
            mistakes, unknown = list(problems_of(error, self.model)), unknown_keys(error)
        # A mistake without a place is between tables, and is found again when the valid tables are compared. Policies
        # that lack the content of a bad file are not reported as too few.
        self._add_mistakes(
            (loc, text)
            for loc, text in mistakes
            if loc and not (loc in (("policies",), ("spaces",)) and loc[0] in self.incomplete)
        )
        if unknown:  # pydantic checks a table as a whole only if each of its keys is right
            return (None, *self._validate(without(values, unknown))[1:])
        return None, values, {loc for loc, _ in mistakes if loc}

    def _add_mistakes(self, mistakes: Iterable[tuple[Loc, str]]) -> None:
        for loc, sentence in mistakes:
            written = loc
            if len(loc) > 1 and loc[0] == "policies" and isinstance(loc[1], int):
                written = (loc[0], self.written.get(loc[1], loc[1]), *loc[2:])
            origin = origin_at(key_of(loc, sentence), self.origins) or self.file
            self.problems.append(f"{origin}: {place(written, sentence)}")

    def _read_policies(self, written: Sequence[Any]) -> list[object]:
        source = origin_at(("policies",), self.origins) or self.file
        policies: list[object] = []
        for number, entry in enumerate(written):
            is_file = isinstance(entry, str)
            for policy in (self._read(files.load_policies, entry, "policies") if is_file else (entry,)) or ():
                self.origins["policies", len(policies)] = entry if is_file else source
                self.written[len(policies)] = number
                policies.append(policy)
        return policies

    def _read_spaces(self, written: Sequence[Any]) -> list[object]:
        spaces = [
            self._read(files.load_space, entry, "spaces") if isinstance(entry, str) else entry for entry in written
        ]
        # None for a file that is wrong.
        return [space for space in spaces if space is not None] if "spaces" in self.incomplete else spaces

    def _read_profiles(self, written: Sequence[Any]) -> list[object]:
        brokers = list(written)
        for number, entry in enumerate(written):
            file = entry.get("profile") if isinstance(entry, Mapping) else None
            if isinstance(file, str):
                brokers[number] = {**entry, "profile": self._read(files.load_broker_profile, file, "brokers")}
                self.origins["brokers", number, "profile"] = file
        return brokers

    def _read(self, load: Callable[[str], Content], path: str, table: str) -> Content | None:
        try:
            return load(path)
        except SettingsError as error:
            self.problems += error.problems
            self.incomplete.add(table)
            return None


def _collect_valid(model: type[BaseModel], values: Mapping[str, Any], wrong: Collection[Loc]) -> dict[str, Any]:
    """Collect the valid values of a table by key, defaults included.

    A wrong value is left out. A table with fixed keys becomes an object with the valid ones. Policies are kept
    if they are valid apart from their `broker.conf`.
    """
    sound: dict[str, Any] = {}
    for name, info in model.model_fields.items():
        inside = [loc[1:] for loc in wrong if loc[0] == name]
        written, table = values.get(name), table_at(model, (name,))
        if not inside and name not in values:
            sound[name] = info.get_default(call_default_factory=True)
        elif not inside:
            sound[name] = TypeAdapter(info.rebuild_annotation()).validate_python(written)
        elif name == "policies" and isinstance(written, list):
            places = {loc[0] for loc in inside if loc}
            sound[name] = tuple(
                policy
                for index, entry in enumerate(written)
                for policy in (
                    PolicySpec.right_in_part(entry) if index in places else [PolicySpec.model_validate(entry)]
                )
            )
        elif table is not None and isinstance(written, Mapping):
            sound[name] = SimpleNamespace(**_collect_valid(table, written, [loc for loc in inside if loc]))
    return sound


def _reduce_to_names(written: object) -> tuple[SimpleNamespace, ...] | None:
    """Reduce the policies to their names. Return None if there are none or a name cannot be read.

    Their numbers of bundles are compared as well, and are left out, since one of these may be wrong.
    """
    policies = []
    for entry in written if isinstance(written, list) else ():
        # Policies of files are models already, those of the settings themselves are tables.
        table = entry if isinstance(entry, Mapping) else {}
        name = entry.name if isinstance(entry, PolicySpec) else table.get("name")
        if not isinstance(name, str):
            return None
        policies.append(SimpleNamespace(name=name, bundles=None))
    return tuple(policies) or None
