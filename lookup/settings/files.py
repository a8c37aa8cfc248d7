"""Read the files that hold settings or that settings name: TOML, policies, a topology, a broker's profile.

All mistakes of a file are raised together, as one `SettingsError`.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field, ValidationError

from lookup.errors import SettingsError
from lookup.model.documents import NestingError, is_device, toml_table
from lookup.model.quoting import shown
from lookup.settings.base import Share, Strict
from lookup.settings.broker import BrokerProfile
from lookup.settings.broker_conf import read_broker_conf
from lookup.settings.cluster import NamespaceEntry, TopologyFile
from lookup.settings.policy import PolicyFile, PolicySpec
from lookup.settings.problems import place, problems_of
from lookup.settings.shipped import shipped_files, shipped_path
from lookup.settings.tuning import SpaceEntry

__all__ = [
    "BudgetFile", "NamespacesFile", "absent_files", "anchor_paths", "load_broker_profile", "load_budget",
    "load_policies", "load_space", "load_topology", "namespaces_in", "parsed_toml", "policies_in", "read_text",
    "read_toml",
]  # fmt: skip

Model = TypeVar("Model", bound=Strict)

#: Key paths of the settings that are paths of files. `*` is any key of a table, `[]` any item of a list.
_PATHS = (
    "inputs.*",
    "topology.file",
    "brokers.[].profile",
    "policies.[]",
    "policies.[].from_broker_conf",
    # A file may be one policy, its keys at the top.
    "from_broker_conf",
    "plugin_files.[]",
    "tune.evaluation",
    "spaces.[]",
    *(f"{table}.{key}" for table in ("cluster", "collect") for key in ("tls_ca", "tls_cert", "tls_key", "token_file")),
    "serving.record",
    "serving.token_file",
    "topics.catalog",
)


class BudgetFile(Strict):
    """Largest tolerated regressions."""

    budget: Annotated[Mapping[str, Share], Field(min_length=1)]
    """By metric, `name` or `name:key`, in the metric's own unit. A name alone selects the whole, or else every key."""


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        SettingsError: one sentence, if it is absent, cannot be read, is not TOML or is nested too deep.
    """
    return parsed_toml(read_text(path), path)


def read_text(path: Path) -> str:
    """Read a text file."""
    if is_device(path):
        raise SettingsError(f"{path}: is a device; expected a text file")
    try:
        # Editors on Windows begin a file with a mark that TOML does not know.
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        # A path with a suffix names a missing file. Only a bare name can lack its prefix.
        hint = f"; did you mean {shown(f'shipped:{path.name}')}?" if path.name in shipped_files() else ""
        raise SettingsError(f"{path}: there is no such file{hint}") from None
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: is not UTF-8 text") from None


def parsed_toml(text: str, path: Path) -> dict[str, Any]:
    """Read the text of a TOML file."""
    try:
        return toml_table(text)
    except NestingError as error:
        raise SettingsError(f"{path}: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path}: is not valid TOML: {error}") from None


def anchor_paths(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Make an evaluation's paths of right shape absolute from a folder, and `shipped:NAME` a shipped file's path."""
    for path in _PATHS:
        values = _anchor(values, path.split("."), folder)
    return dict(values)


def _anchor(value: Any, steps: Sequence[str], folder: Path) -> Any:
    if steps and steps[0] == "[]":
        return [_anchor(item, steps[1:], folder) for item in value] if isinstance(value, list) else value
    if steps:
        if not isinstance(value, Mapping):
            return value
        keys = value if steps[0] == "*" else steps[:1]
        return {key: _anchor(item, steps[1:], folder) if key in keys else item for key, item in value.items()}
    # A URI is not a path, and an empty text is rejected by the models, since it would be the folder itself.
    if not isinstance(value, str) or not value or "://" in value:
        return value
    value = shipped_path(value)
    if "\0" in value:
        raise SettingsError(f"path {shown(value)} has the character '\\x00', which no name of a file has")
    try:
        return str((folder / Path(value).expanduser()).resolve())
    except RuntimeError as error:  # of `~name` without such a user, or of links that go round
        raise SettingsError(f"path {shown(value)} leads nowhere: {error}") from None


class NamespacesFile(Strict):
    """Operators' settings of namespaces."""

    namespaces: tuple[NamespaceEntry, ...] = ()
    """Bundles, isolation and anti-affinity by namespace."""
    failure_domains: Mapping[str, tuple[str, ...]] = {}
    """Brokers by failure domain."""


def namespaces_in(text: str, path: str | os.PathLike[str]) -> NamespacesFile:
    """Read a text with `[[namespaces]]`, such as the `namespaces.toml` of a record."""
    return _validate(NamespacesFile, parsed_toml(text, Path(path)), path)


def load_policies(path: str | os.PathLike[str]) -> tuple[PolicySpec, ...]:
    """Read a file of policies, with `[[policies]]` or with one policy whose keys are at the top."""
    return policies_in(anchor_paths(read_toml(Path(path)), Path(path).parent), path)


def policies_in(values: Mapping[str, Any], path: str | os.PathLike[str]) -> tuple[PolicySpec, ...]:
    """Read the policies in the values of such a file."""
    if "policies" in values:
        return _validate(PolicyFile, values, path).policies
    return (_validate(PolicySpec, values, path),)


def load_space(path: str | os.PathLike[str]) -> SpaceEntry:
    """Read a file with one space of settings that a search varies."""
    return _validate(SpaceEntry, read_toml(Path(path)), path)


def load_topology(path: str | os.PathLike[str]) -> TopologyFile:
    """Read a topology file."""
    return _validate(TopologyFile, read_toml(Path(path)), path)


def load_budget(path: str | os.PathLike[str]) -> Mapping[str, float]:
    """Read a budget, the largest tolerated regression by the name of a figure, `metric` or `metric:key`."""
    return _validate(BudgetFile, read_toml(Path(path)), path).budget


def load_broker_profile(path: str | os.PathLike[str]) -> BrokerProfile:
    """Read a profile: TOML if the name ends in .toml, else a `broker.conf`."""
    if Path(path).suffix != ".toml":
        return read_broker_conf(path)
    return _validate(BrokerProfile, {"file": str(path), **read_toml(Path(path))}, path)


def absent_files(paths: object) -> list[str]:
    """List the paths that are not files. The list is empty for a value that the models reject as a list of paths."""
    named = [path for path in paths if isinstance(path, str)] if isinstance(paths, list) else []
    return [path for path in named if not Path(path).is_file()]


def _validate(model: type[Model], values: Mapping[str, Any], path: str | os.PathLike[str]) -> Model:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        problems = [f"{path}: {place(loc, sentence)}" for loc, sentence in problems_of(error, model)]
        raise SettingsError(problems) from None
