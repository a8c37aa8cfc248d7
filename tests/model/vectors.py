"""Pulsar's own examples as data; they are no part of the repository, so their tests skip where they are absent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

_FILE = Path(__file__).parents[3] / "shared" / "vectors" / "loadmanager.json"


def vectors(area: str, **skipped: str) -> list[Any]:
    """Return the vectors of an area as parameters; those named in `skipped`, by number, are skipped with the reason.

    Where the file is absent, one parameter that is skipped stands for all.
    """
    if not _FILE.is_file():
        return [
            pytest.param({}, marks=pytest.mark.skip(f"{_FILE} is absent: the repository holds no third-party data"))
        ]
    items = [item for item in json.loads(_FILE.read_text(encoding="utf-8")) if item["area"] == area]
    reasons = {f"{area}/{number.removeprefix('n')}": reason for number, reason in skipped.items()}
    return [
        pytest.param(
            item, id=item["id"], marks=[pytest.mark.skip(reasons[item["id"]])] if item["id"] in reasons else []
        )
        for item in items
    ]
