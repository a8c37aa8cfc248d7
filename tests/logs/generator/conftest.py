"""A small log, made once."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from lookup.logs.generator.generate import generate
from tests.logs.generator.logs import SMALL, read


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small log of two clusters."""
    return Path(generate(SMALL, tmp_path_factory.mktemp("generate") / "log").output)


@pytest.fixture(scope="session")
def lookups(sample: Path) -> pd.DataFrame:
    """LOOKUPS of the small log."""
    return read(sample, "lookups")
