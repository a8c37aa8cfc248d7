"""Builders of settings files for the tests of this room."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from lookup.errors import SettingsError
from lookup.settings import EvaluationFile, load_evaluation

__all__ = ["MINIMAL", "evaluation", "mistakes", "places", "write"]

#: The least an evaluation can say; texts that begin a table may be added behind it.
MINIMAL = """
[evaluation]
incumbent = "stock"

[[policies]]
name = "stock"
selector = "best"
"""


def write(folder: Path, name: str, text: str) -> Path:
    """Write a file, folders included, and return its path."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text), encoding="utf-8")
    return path


def evaluation(
    folder: Path, text: str = "", flags: Mapping[str, object] | None = None, **environ: str
) -> EvaluationFile:
    """Load the least evaluation with some text behind it."""
    return load_evaluation(write(folder, "evaluation.toml", MINIMAL + dedent(text)), flags, environ)


def mistakes(path: Path, flags: Mapping[str, object] | None = None, **environ: str) -> list[str]:
    """Load an evaluation that is wrong and return the mistakes, the folder's name left out."""
    with pytest.raises(SettingsError) as caught:
        load_evaluation(path, flags, environ)
    return [problem.replace(f"{path.parent}/", "") for problem in caught.value.problems]


def places(path: Path, flags: Mapping[str, object] | None = None, **environ: str) -> list[str]:
    """Return where the mistakes of an evaluation are: what set the value, and the key."""
    return [" ".join(problem.split(": ")[:2]) for problem in mistakes(path, flags, **environ)]
