"""Pulsar's own examples as data; they are no part of the repository, so their tests skip where they are absent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

_FILE = Path(__file__).parents[3] / "shared" / "vectors" / "loadmanager.json"


def vectors(area: str) -> list[Any]:
    """Return the vectors of an area as parameters; where the file is absent, one that is skipped stands for all."""
    if not _FILE.is_file():
        reason = f"{_FILE} is absent: the repository holds no third-party data"
        return [pytest.param({}, marks=pytest.mark.skip(reason))]
    items = json.loads(_FILE.read_text(encoding="utf-8"))
    return [pytest.param(item, id=item["id"]) for item in items if item["area"] == area]
