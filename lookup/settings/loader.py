"""Load the settings of evaluations, of the decision server and of topics with everything they name.

Flags count before the environment, and that before files. All mistakes of all sources are found before any is reported;
the valid part of wrong settings is kept and checked further, so that one mistake hides no other.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from lookup.errors import SettingsError
from lookup.settings.base import WholeFile
from lookup.settings.evaluation import EvaluationFile, cross_problems
from lookup.settings.files import absent_files, load_broker_profile, load_policies
from lookup.settings.layers import (
    FileSource,
    FlagSource,
    MappingSource,
    TopologyFileSource,
    Tree,
    VariableSource,
    joined,
    leaves,
    origin_at,
    origins_of,
    sourced,
    values_of,
)
from lookup.settings.policy import PolicySpec
from lookup.settings.problems import (
    Loc,
    key_path,
    place,
    place_meant,
    problems_of,
    table_at,
    unknown_keys,
    without,
)
from lookup.settings.serving import ServingFile, serving_problems
from lookup.settings.shipped import shipped_path
from lookup.settings.topics import TopicsFile, read_topics_conf

__all__ = [
    "Findings", "describe", "examine_evaluation", "examine_serving", "load_evaluation", "load_serving", "load_topics",
    "named_policies", "right_values", "sound_tables",
]  # fmt: skip

Content = TypeVar("Content")
File = TypeVar("File", bound=WholeFile)


@dataclass(frozen=True)
class Findings(Generic[File]):
    """The result of reading an evaluation or the server's settings: they or problems, and always the valid tables."""

    settings: File | None
    #: by its key in the file, every table that is valid by itself, defaults included
    tables: Mapping[str, Any]
    #: one sentence each, with source and key path
    problems: tuple[str, ...]
    #: the same tables, and the valid part of the others: an object with the valid keys, the valid policies
    sound: Mapping[str, Any] = field(default_factory=dict)


def load_evaluation(
    path: str | os.PathLike[str] | Mapping[str, object],
    overrides: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
) -> EvaluationFile:
    """Read an evaluation file, every file it names, the environment and flags.

    Args:
        path: the TOML file, whose paths are relative to its folder, or `shipped:NAME`; or what would stand in it, with
            paths from the working folder.
        overrides: flags by key path, `{"evaluation.tick_s": 30}`, paths from the working folder; None: not given.
        environ: variables; default: those of the process. `{}`: none.

    Raises:
        SettingsError: all mistakes together.
    """
    findings = examine_evaluation(path, overrides, environ)
    if findings.settings is None:
        raise SettingsError(findings.problems)
    return findings.settings


def examine_evaluation(
    path: str | os.PathLike[str] | Mapping[str, object],
    overrides: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    source: str = "command line",
) -> Findings[EvaluationFile]:
    """Read an evaluation as `load_evaluation` does, but return the mistakes, for a caller that checks more.

    Args:
        path: as for `load_evaluation`, like the next two.
        overrides: flags by key path.
        environ: variables.
        source: what overrides are called in mistakes.
    """
    flags, topology = FlagSource(overrides or {}, source=source), TopologyFileSource()
    variables = VariableSource(os.environ if environ is None else environ)
    try:
        written = MappingSource(path) if isinstance(path, Mapping) else FileSource(Path(shipped_path(os.fspath(path))))
        tree = joined(flags, variables, written, topology)
    except SettingsError as error:
        return Findings(None, {}, (*flags.problems, *variables.problems, *error.problems))
    reading = _Reading(
        EvaluationFile,
        cross_problems,
        "settings" if isinstance(path, Mapping) else str(path),
        [*flags.problems, *variables.problems, *topology.problems],
    )
    if topology.problems:
        reading.incomplete.add("topology")
    return reading.finish(tree)


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
    # A `broker.conf` that is given counts before one that the settings name.
    section = tree.get("topics", {})
    named = values_of(section).get("from_broker_conf") if isinstance(section, dict) else None
    for conf in (None if is_toml or path is None else str(path), named):
        section = tree.get("topics", {})
        if not isinstance(conf, str) or not isinstance(section, dict):
            continue
        try:
            below = sourced(read_topics_conf(conf, written=frozenset(section)), conf)
        except SettingsError as error:
            problems += error.problems
        else:
            tree = {**tree, "topics": {**below, **section}}
    origins, values = origins_of(tree), values_of(tree)
    settings: TopicsFile | None = None
    mistakes: list[tuple[Loc, str]] = [
        (("plugin_files",), f"there is no file {file}") for file in absent_files(values.get("plugin_files"))
    ]
    try:
        settings = TopicsFile.model_validate(values)
    except ValidationError as error:
        mistakes = [*problems_of(error, TopicsFile), *mistakes]
    for loc, sentence in mistakes:
        origin = origin_at(place_meant(loc, sentence), origins) or ("settings" if path is None else str(path))
        problems.append(f"{origin}: {place(loc, sentence)}")
    if settings is None or problems:
        raise SettingsError(tuple(dict.fromkeys(problems)))
    return settings.note_sources({key_path(loc): source for loc, source in origins.items()})


def load_serving(
    path: str | os.PathLike[str],
    overrides: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
) -> ServingFile:
    """Read the settings of the decision server and every file they name.

    Args:
        path: the TOML file; paths in it are relative to its folder.
        overrides: flags by key path, `{"serving.port": 8900}`, paths from the working folder; None: not given.
        environ: variables; default: those of the process. `{}`: none.

    Raises:
        SettingsError: all mistakes together.
    """
    findings = examine_serving(path, overrides, environ)
    if findings.settings is None:
        raise SettingsError(findings.problems)
    return findings.settings


def examine_serving(
    path: str | os.PathLike[str],
    overrides: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Findings[ServingFile]:
    """Read settings as `load_serving` does, but return the mistakes, for a caller that checks more."""
    flags, topology = FlagSource(overrides or {}, model=ServingFile), TopologyFileSource(ServingFile)
    variables = VariableSource(os.environ if environ is None else environ, model=ServingFile)
    try:
        tree = joined(flags, variables, FileSource(Path(path), model=ServingFile), topology, model=ServingFile)
    except SettingsError as error:
        return Findings(None, {}, (*flags.problems, *variables.problems, *error.problems))
    problems = [*flags.problems, *variables.problems, *topology.problems]
    reading = _Reading(ServingFile, serving_problems, str(path), problems)
    if topology.problems:
        reading.incomplete.add("topology")
    return reading.finish(tree)


def describe(resolved: EvaluationFile | TopicsFile) -> list[tuple[str, object, str]]:
    """Return key path, value and source of every setting, defaults included, in the order of the file."""
    rows = []
    for loc, value in leaves(resolved.model_dump()):
        known = (resolved.sources.get(key_path(loc[:length])) for length in range(len(loc), 0, -1))
        rows.append((key_path(loc), value, next(filter(None, known), "default")))
    return rows


@dataclass
class _Reading(Generic[File]):
    """Values with their origins on the way to the model of a file, and the problems so far."""

    model: type[File]
    #: finds the mistakes between tables
    compared: Callable[[Mapping[str, Any]], Iterable[tuple[Loc, str]]]
    #: the file, named if a mistake has no other origin
    file: str
    problems: list[str]
    #: tables that name a file with mistakes
    incomplete: set[str] = field(default_factory=set)
    origins: dict[Loc, str] = field(default_factory=dict)
    #: position in the list as written, by position among all policies: a file may stand for several
    written: dict[int, int] = field(default_factory=dict)

    def finish(self, tree: Tree) -> Findings[File]:
        """Read the files that are named, validate everything and gather the mistakes."""
        self.origins = origins_of(tree)
        values = values_of(tree)
        self._read_policies(values)
        if "brokers" in self.model.model_fields:
            self._read_profiles(values)
        missing = absent_files(values.get("plugin_files"))
        self._add((("plugin_files",), f"there is no file {file}") for file in missing)
        self.incomplete |= {"plugin_files"} if missing else set()
        settings, recognised, wrong = self._validated(values)
        tables = right_values(self.model, recognised, {*(loc[0] for loc in wrong), *self.incomplete})
        sound = {**sound_tables(recognised, wrong, self.model), **tables}
        # Of policies only names are compared between tables, and only if those of all are known.
        names = None if "policies" in self.incomplete else named_policies(recognised.get("policies"))
        comparable = {name: table for name, table in sound.items() if name != "policies"}
        self._add(self.compared(comparable if names is None else {**comparable, "policies": names}))
        if self.problems or settings is None:
            return Findings(None, tables, tuple(dict.fromkeys(self.problems)), sound)
        sources = {key_path(loc): origin_at(loc, self.origins) or self.file for loc, _ in leaves(values)}
        return Findings(settings.note_sources(sources), tables, (), sound)

    def _validated(self, values: Mapping[str, Any]) -> tuple[File | None, Mapping[str, Any], set[Loc]]:
        """Return settings or None, the values without unknown keys, and the places that are wrong even so."""
        try:
            return self.model.model_validate(values), values, set()
        except ValidationError as error:
            mistakes, unknown = list(problems_of(error, self.model)), unknown_keys(error)
        # A mistake without a place is one between tables, found again when the valid tables are compared. A table that
        # lacks what a bad file should have held is not reported as too short.
        self._add((loc, text) for loc, text in mistakes if loc and not (len(loc) == 1 and loc[0] in self.incomplete))
        if unknown:  # pydantic checks a table as a whole only if each of its keys is right
            return (None, *self._validated(without(values, unknown))[1:])
        return None, values, {loc for loc, _ in mistakes if loc}

    def _add(self, mistakes: Iterable[tuple[Loc, str]]) -> None:
        for loc, sentence in mistakes:
            written = loc
            if len(loc) > 1 and loc[0] == "policies" and isinstance(loc[1], int):
                written = (loc[0], self.written.get(loc[1], loc[1]), *loc[2:])
            origin = origin_at(place_meant(loc, sentence), self.origins) or self.file
            self.problems.append(f"{origin}: {place(written, sentence)}")

    def _read_policies(self, values: dict[str, Any]) -> None:
        """Put the policies of files in the places of their paths."""
        written = values.get("policies")
        if not isinstance(written, list):
            return
        source = origin_at(("policies",), self.origins) or self.file
        policies: list[object] = []
        values["policies"] = policies
        for number, entry in enumerate(written):
            is_file = isinstance(entry, str)
            for policy in (self._read(load_policies, entry, "policies") if is_file else (entry,)) or ():
                self.origins["policies", len(policies)] = entry if is_file else source
                self.written[len(policies)] = number
                policies.append(policy)

    def _read_profiles(self, values: dict[str, Any]) -> None:
        """Put the profiles of files in the places of their paths."""
        written = values.get("brokers")
        if not isinstance(written, list):
            return
        values["brokers"] = brokers = list(written)
        for number, entry in enumerate(written):
            file = entry.get("profile") if isinstance(entry, Mapping) else None
            if isinstance(file, str):
                brokers[number] = {**entry, "profile": self._read(load_broker_profile, file, "brokers")}
                self.origins["brokers", number, "profile"] = file

    def _read(self, load: Callable[[str], Content], path: str, table: str) -> Content | None:
        try:
            return load(path)
        except SettingsError as error:
            self.problems += error.problems
            self.incomplete.add(table)
            return None


def right_values(model: type[BaseModel], values: Mapping[str, Any], wrong: Collection[str | int]) -> dict[str, Any]:
    """Return the values of a table, defaults included, by key, without those that are wrong."""
    right: dict[str, Any] = {}
    for name, info in model.model_fields.items():
        if name in wrong:
            continue
        if name in values:
            right[name] = TypeAdapter(info.rebuild_annotation()).validate_python(values[name])
        else:
            right[name] = info.get_default(call_default_factory=True)
    return right


def sound_tables(
    values: Mapping[str, Any], wrong: Collection[Loc], model: type[BaseModel] = EvaluationFile
) -> dict[str, Any]:
    """Return the valid part of the wrong tables of a file: objects with the valid keys, the valid policies.

    Args:
        values: what the file holds, without unknown keys.
        wrong: the place of every mistake.
    """
    inside = {str(loc[0]): {step for other in wrong if other[0] == loc[0] for step in other[1:2]} for loc in wrong}
    tables: dict[str, Any] = {}
    for name in model.model_fields:
        table = table_at(model, (name,))
        # Only a table with fixed keys can be right in part.
        if table is not None and name in inside and isinstance(values.get(name), Mapping):
            tables[name] = SimpleNamespace(**right_values(table, values[name], inside[name]))
    if isinstance(values.get("policies"), list):
        wrong_policies = inside.get("policies", ())
        tables["policies"] = tuple(
            policy
            for index, entry in enumerate(values["policies"])
            for policy in (
                PolicySpec.right_in_part(entry) if index in wrong_policies else [PolicySpec.model_validate(entry)]
            )
        )
    return tables


def named_policies(written: object) -> tuple[SimpleNamespace, ...] | None:
    """Return the policies with nothing but their names; None if there are none or a name cannot be read."""
    policies = []
    for entry in written if isinstance(written, list) else ():
        # Policies of files are models already, those of the evaluation itself are tables.
        table = entry if isinstance(entry, Mapping) else {}
        name = entry.name if isinstance(entry, PolicySpec) else table.get("name")
        if not isinstance(name, str):
            return None
        policies.append(SimpleNamespace(name=name))
    return tuple(policies) or None
