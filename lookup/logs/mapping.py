"""From a mapping file to a log reader: `use = "delimited"` and its parameters, checked like those of any part."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from lookup.engine.build import PartBuilder
from lookup.engine.plugins import Registry
from lookup.errors import SettingsError
from lookup.hooks import LogReader
from lookup.model.quoting import shown
from lookup.settings.files import read_toml
from lookup.settings.policy import PartSpec

__all__ = ["load_reader"]


def load_reader(
    registry: Registry, *, name: str | None = None, mapping: str | os.PathLike[str] | None = None
) -> LogReader:
    """Build a reader by its name, by a mapping file, or by both.

    Args:
        registry: of all plug-ins, files of the user included.
        name: `--reader`; may be left out where the mapping says `use`, and must agree with it.
        mapping: `--mapping`, a TOML file with the reader's parameters; without it they have their defaults.

    Raises:
        SettingsError: all mistakes together, each with the file and the key.
    """
    parameters = {} if mapping is None else dict(read_toml(Path(mapping)))
    where = "--reader" if mapping is None else str(mapping)
    use = _agreed(name, parameters, where)
    builder = PartBuilder(registry)
    # `weight` is a parameter of a reader, not the factor that it is beside a scorer.
    reader = builder.part("log_readers", PartSpec(use=use, parameters=parameters), where)
    if builder.problems:
        raise SettingsError(builder.problems)
    found: LogReader = reader
    return found


def _agreed(name: str | None, parameters: dict[str, Any], where: str) -> str:
    """Take `use` out of the parameters and compare it with the flag."""
    use = parameters.pop("use", None)
    if use is not None and not isinstance(use, str):
        raise SettingsError(f"{where}: use = {shown(use)} is not the name of a log reader")
    if name and use and name != use:
        raise SettingsError(f"{where} says use = {shown(use)}, but --reader says {shown(name)}; leave one out")
    chosen = name or use
    if not chosen:
        raise SettingsError('which log reader? give --reader NAME, or a --mapping file that says use = "NAME"')
    return chosen
