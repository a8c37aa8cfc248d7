"""One reading of an evaluation: takes the joined layers, reads the files they name, and gathers every mistake."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import ValidationError

from lookup.errors import SettingsError
from lookup.settings.checks import cross_problems
from lookup.settings.evaluation import EvaluationFile
from lookup.settings.files import absent_files, load_broker_profile, load_policies
from lookup.settings.layers import Tree, leaves, origin_at, origins_of, values_of
from lookup.settings.problems import Loc, key_path, place, place_meant, problems_of, unknown_keys, without
from lookup.settings.salvage import named_policies, right_values, sound_tables

__all__ = ["Findings", "Reading"]

Content = TypeVar("Content")


@dataclass(frozen=True)
class Findings:
    """What came of reading an evaluation: settings or problems, and in either case the tables that are right."""

    settings: EvaluationFile | None
    #: by its key in the file, every table that is right in itself, defaults included
    tables: Mapping[str, Any]
    #: one sentence each, with source and key path
    problems: tuple[str, ...]
    #: the same tables, and of those that are wrong what is right: an object with the right keys, the right policies
    sound: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Reading:
    """Values with their origins on the way to an `EvaluationFile`, and the problems so far."""

    #: the evaluation file, named where a mistake has no other origin
    file: str
    problems: list[str]
    #: tables that name a file with mistakes
    incomplete: set[str] = field(default_factory=set)
    origins: dict[Loc, str] = field(default_factory=dict)
    #: by place among all policies, the place in the list as written, where a file may stand for several
    written: dict[int, int] = field(default_factory=dict)

    def finish(self, tree: Tree) -> Findings:
        """Read the files that are named, validate everything and gather the mistakes."""
        self.origins = origins_of(tree)
        values = self._with_profiles(self._with_policies(values_of(tree)))
        self._check_plugin_files(values.get("plugin_files"))
        settings, known, wrong = self._validated(values)
        tables = right_values(EvaluationFile, known, {*(loc[0] for loc in wrong), *self.incomplete})
        sound = {**sound_tables(known, wrong), **tables}
        self._add(cross_problems(self._comparable(sound, known)))
        if self.problems or settings is None:
            return Findings(None, tables, tuple(dict.fromkeys(self.problems)), sound)
        sources = {key_path(loc): self._origin(loc) for loc, _ in leaves(values)}
        return Findings(settings.note_sources(sources), tables, (), sound)

    def _validated(self, values: Mapping[str, Any]) -> tuple[EvaluationFile | None, Mapping[str, Any], set[Loc]]:
        """Return settings or None, the values without unknown keys, and the places that are wrong even so."""
        try:
            return EvaluationFile.model_validate(values), values, set()
        except ValidationError as error:
            found, unknown = list(problems_of(error, EvaluationFile)), unknown_keys(error)
        # What has no place is a check between tables, made again on the tables that are right. A table that lacks what
        # a bad file should have held is not blamed for being too short.
        self._add((loc, text) for loc, text in found if loc and not (len(loc) == 1 and loc[0] in self.incomplete))
        if unknown:  # pydantic checks a table as a whole only where each of its keys is right
            return (None, *self._validated(without(values, unknown))[1:])
        return None, values, {loc for loc, _ in found if loc}

    def _comparable(self, sound: Mapping[str, Any], values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what can be compared between tables: of policies the names, where those of all are known."""
        names = None if "policies" in self.incomplete else named_policies(values.get("policies"))
        others = {name: table for name, table in sound.items() if name != "policies"}
        return others if names is None else {**others, "policies": names}

    def _add(self, found: Iterable[tuple[Loc, str]]) -> None:
        self.problems += [
            f"{self._origin(place_meant(loc, sentence))}: {place(self._as_written(loc), sentence)}"
            for loc, sentence in found
        ]

    def _origin(self, loc: Loc) -> str:
        return origin_at(loc, self.origins) or self.file

    def _as_written(self, loc: Loc) -> Loc:
        if len(loc) > 1 and loc[0] == "policies" and isinstance(loc[1], int):
            return (loc[0], self.written.get(loc[1], loc[1]), *loc[2:])
        return loc

    def _with_policies(self, values: dict[str, Any]) -> dict[str, Any]:
        written = values.get("policies")
        if isinstance(written, list):
            values["policies"] = list(self._policies(written))
        return values

    def _policies(self, written: list[object]) -> Iterator[object]:
        source = self._origin(("policies",))
        for number, entry in enumerate(written):
            found = self._read(load_policies, entry, "policies") if isinstance(entry, str) else (entry,)
            for policy in found or ():
                self.origins[("policies", len(self.written))] = entry if isinstance(entry, str) else source
                self.written[len(self.written)] = number
                yield policy

    def _with_profiles(self, values: dict[str, Any]) -> dict[str, Any]:
        written = values.get("brokers")
        if isinstance(written, list):
            values["brokers"] = [self._with_profile(place, entry) for place, entry in enumerate(written)]
        return values

    def _with_profile(self, place: int, entry: object) -> object:
        file = entry.get("profile") if isinstance(entry, Mapping) else None
        if not isinstance(entry, Mapping) or not isinstance(file, str):
            return entry
        profile = self._read(load_broker_profile, file, "brokers")
        self.origins[("brokers", place, "profile")] = file
        return {**entry, "profile": profile}

    def _check_plugin_files(self, files: object) -> None:
        missing = absent_files(files)
        self._add((("plugin_files",), f"there is no file {file}") for file in missing)
        self.incomplete |= {"plugin_files"} if missing else set()

    def _read(self, load: Callable[[str], Content], path: str, table: str) -> Content | None:
        try:
            return load(path)
        except SettingsError as error:
            self.problems += error.problems
            self.incomplete.add(table)
            return None
