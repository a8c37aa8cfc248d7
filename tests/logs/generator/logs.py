"""The log that most tests of the generator look at, and how they read a table."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from lookup.logs.generator.generate import GenerateSettings

TABLES = ("lookups", "brokers", "loads", "bundles", "ownership")
SMALL = GenerateSettings(lookups=30_000, topics=300, clients=120, hours=2, brokers=9)


def read(directory: Path | str, name: str) -> pd.DataFrame:
    """Read a table in the order of its files."""
    return pd.read_parquet(Path(directory) / name)
