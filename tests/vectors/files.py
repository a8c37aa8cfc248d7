"""Pulsar's own examples; they are no part of the repository, so their tests skip where they are absent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.vectors import Outcome, Vector, read_vectors, run_vector

__all__ = ["outcome", "vectors_in"]

_FOLDER = Path(__file__).parents[3] / "shared" / "vectors"


def vectors_in(file: str) -> list[Any]:
    """Return the vectors of a file as parameters; where it is absent, one that is skipped stands for all."""
    path = _FOLDER / file
    if not path.is_file():
        reason = f"{path} is absent: the repository holds no third-party data"
        return [pytest.param(None, marks=pytest.mark.skip(reason))]
    return [pytest.param(vector, id=vector.id) for vector in read_vectors(path)]


def outcome(area: str, given: dict[str, Any], expected: dict[str, Any]) -> Outcome:
    """Run a vector that is no part of the file."""
    return run_vector(Vector(f"{area}/0", area, given, expected))
