"""Reads the single files that settings may name: policies, a topology, a broker's profile; and finds absent ones."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from lookup.errors import SettingsError
from lookup.settings.base import Strict
from lookup.settings.broker import BrokerProfile
from lookup.settings.broker_conf import read_broker_conf
from lookup.settings.layers import anchored, read_toml
from lookup.settings.policy import PolicyFile, PolicySpec
from lookup.settings.problems import place, problems_of
from lookup.settings.topology import TopologyFile

__all__ = ["absent_files", "load_broker_profile", "load_policies", "load_topology"]

Model = TypeVar("Model", bound=Strict)


def load_policies(path: str | os.PathLike[str]) -> tuple[PolicySpec, ...]:
    """Read a file of policies: `[[policies]]`, or one policy with its keys at the top.

    Raises:
        SettingsError: all mistakes together.
    """
    values = anchored(read_toml(Path(path)), Path(path).parent)
    if "policies" in values:
        return _validated(PolicyFile, values, path).policies
    return (_validated(PolicySpec, values, path),)


def load_topology(path: str | os.PathLike[str]) -> TopologyFile:
    """Read a topology file.

    Raises:
        SettingsError: all mistakes together.
    """
    return _validated(TopologyFile, read_toml(Path(path)), path)


def load_broker_profile(path: str | os.PathLike[str]) -> BrokerProfile:
    """Read a profile: TOML where the name ends in .toml, else a `broker.conf`.

    Raises:
        SettingsError: all mistakes together.
    """
    if Path(path).suffix != ".toml":
        return read_broker_conf(path)
    return _validated(BrokerProfile, {"file": str(path), **read_toml(Path(path))}, path)


def absent_files(paths: object) -> list[str]:
    """Return those of a list of paths that are no files; none of what is no list of paths, which the models refuse."""
    named = [path for path in paths if isinstance(path, str)] if isinstance(paths, list) else []
    return [path for path in named if not Path(path).is_file()]


def _validated(model: type[Model], values: Mapping[str, Any], path: str | os.PathLike[str]) -> Model:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        problems = [f"{path}: {place(loc, sentence)}" for loc, sentence in problems_of(error, model)]
        raise SettingsError(problems) from None
