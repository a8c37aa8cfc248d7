"""What the tests of the replay share."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from lookup.replay.readers import DelimitedReader

_CONFIGS = Path(__file__).parent.parent.parent / "configs"


@pytest.fixture
def nasa_reader() -> DelimitedReader:
    """Build the reader of the NASA trace from the shipped mapping."""
    mapping = tomllib.loads((_CONFIGS / "nasa.toml").read_text())
    assert mapping.pop("use") == DelimitedReader.name
    return DelimitedReader(**mapping)
