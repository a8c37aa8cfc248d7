"""Reads an evaluation with everything it names: flags over environment over files over defaults.

All mistakes of all sources are found before any is reported.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from lookup.errors import SettingsError
from lookup.settings.evaluation import EvaluationFile
from lookup.settings.layers import leaves
from lookup.settings.problems import key_path
from lookup.settings.reading import Findings, Reading
from lookup.settings.sources import FileSource, FlagSource, TopologyFileSource, VariableSource, joined
from lookup.settings.topics import TopicsFile

__all__ = ["describe", "examine_evaluation", "load_evaluation"]


def load_evaluation(
    path: str | os.PathLike[str],
    overrides: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
) -> EvaluationFile:
    """Read an evaluation file, every file it names, the environment and flags.

    Args:
        path: the TOML file; paths in it are relative to its folder.
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
    path: str | os.PathLike[str],
    overrides: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Findings:
    """Read an evaluation as `load_evaluation` does, but return the mistakes, for a caller who has more to check."""
    flags, topology = FlagSource(overrides or {}), TopologyFileSource()
    variables = VariableSource(os.environ if environ is None else environ)
    try:
        tree = joined(flags, variables, FileSource(Path(path)), topology)
    except SettingsError as error:
        return Findings(None, {}, (*flags.problems, *variables.problems, *error.problems))
    reading = Reading(str(path), [*flags.problems, *variables.problems, *topology.problems])
    reading.incomplete |= {"topology"} if topology.problems else set()
    return reading.finish(tree)


def describe(resolved: EvaluationFile | TopicsFile) -> list[tuple[str, object, str]]:
    """Return key path, value and source of every setting, defaults included, in the order of the file."""
    rows = []
    for loc, value in leaves(resolved.model_dump()):
        known = (resolved.sources.get(key_path(loc[:length])) for length in range(len(loc), 0, -1))
        rows.append((key_path(loc), value, next(filter(None, known), "default")))
    return rows
