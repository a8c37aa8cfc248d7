"""`lookup generate`: synthetic but realistic logs, the same content from the same seed, without Spark.

The canonical tables LOOKUPS, BROKERS, LOADS and OWNERSHIP are written; what goes into them is in `generator/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from lookup.logs.generator.cluster import ClusterLog
from lookup.logs.generator.settings import LOGGING_POLICIES, GenerateSettings
from lookup.logs.generator.tables import LookupWriter, replaced_tables, write_table
from lookup.logs.generator.world import cluster_names

__all__ = ["LOGGING_POLICIES", "GenerateReport", "GenerateSettings", "generate"]

_TABLES = ("lookups", "brokers", "loads", "ownership")


@dataclass(frozen=True)
class GenerateReport:
    """What was written and where."""

    output: Path
    #: rows by table
    rows: Mapping[str, int]
    #: lookups of clients that came back after a loss or an unload
    reconnects: int
    clusters: tuple[str, ...]


def generate(settings: GenerateSettings, output: Path | str, *, force: bool = False) -> GenerateReport:
    """Write a synthetic log: the canonical tables, each a directory of Parquet files under `output`.

    The same settings give the same rows. Tables appear in `output` when all of them are complete, or not at all.

    Args:
        force: replace these tables where `output` already has them; anything else there stays.

    Raises:
        InputError: where `output` is a file, or not empty without `force`.
    """
    names = cluster_names(settings.clusters)
    shares = _shares(settings.lookups, settings.clusters)
    target = Path(output)
    with replaced_tables(target, _TABLES, force=force) as draft:
        logs = [
            ClusterLog(settings, name, place, share)
            for place, (name, share) in enumerate(zip(names, shares, strict=True))
        ]
        for name, log in zip(names, logs, strict=True):
            _write_lookups(draft / "lookups", name, log)
        rows = {
            "lookups": settings.lookups,
            "brokers": write_table(draft, "brokers", chain.from_iterable(log.broker_rows() for log in logs)),
            "loads": write_table(draft, "loads", chain.from_iterable(log.load_rows() for log in logs)),
            "ownership": write_table(draft, "ownership", chain.from_iterable(log.ownership_rows() for log in logs)),
        }
    return GenerateReport(target, rows, sum(log.reconnects for log in logs), names)


def _write_lookups(directory: Path, name: str, log: ClusterLog) -> None:
    with ThreadPoolExecutor(2, thread_name_prefix="generate-parquet") as pool:
        writer = LookupWriter(directory, name, log.dictionaries, pool)
        for columns in log.pieces():
            writer.add(columns)
        writer.close()


def _shares(lookups: int, clusters: int) -> list[int]:
    """Divide the lookups among the clusters like 1, 1/1.25, 1/1.5, ...; none is empty."""
    weights = 1.0 / (1.0 + 0.25 * np.arange(clusters))
    counts = np.maximum(1, np.floor(weights / weights.sum() * lookups)).astype(int)
    counts[0] += lookups - counts.sum()
    return [int(count) for count in counts]
