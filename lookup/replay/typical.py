"""What a broker of a log carries on average, from footers and one column of the log: a yardstick for suggestions.

Not exact: redirects count, quarantined rows too, and a broker counts for the whole time of the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lookup.engine.ledger import MICRO
from lookup.logs.parquet import list_log, open_parquet
from lookup.replay.tables import registrations
from lookup.settings.evaluation import EvaluationFile
from lookup.settings.resolve import broker_intervals

__all__ = ["mean_load"]


def mean_load(settings: EvaluationFile) -> float | None:
    """Return the weight per second that a broker serves on average over a log; None if it cannot be made out.

    Raises:
        InputError: if a table cannot be read.
    """
    if settings.inputs.lookups is None:
        return None
    weight, instants, clusters = 0.0, list[int](), set[str]()
    for file in list_log(settings.inputs.lookups):
        with open_parquet(file.path) as parquet:
            weight += _weight(parquet)
            for name, text in _extremes(parquet, ("ts", "cluster")):
                if name == "ts":
                    instants.append(_micros(text))
                else:
                    clusters.add(str(text))
        clusters |= {file.cluster} if file.cluster is not None else set()
    seconds = (max(instants) - min(instants)) / MICRO if instants else 0.0
    brokers = _brokers(settings, clusters)
    return weight / seconds / brokers if seconds and brokers and weight else None


def _weight(parquet: pq.ParquetFile) -> float:
    """Return the weight of all rows of a file; a row without one weighs 1.0."""
    if "weight" not in parquet.schema_arrow.names:
        return float(parquet.metadata.num_rows)
    batches = parquet.iter_batches(columns=["weight"], use_threads=False)
    return sum(float(pc.sum(pc.fill_null(batch.column(0).cast(pa.float64()), 1.0)).as_py() or 0.0) for batch in batches)


def _extremes(parquet: pq.ParquetFile, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Yield the least and the greatest value of some columns in each row group, as far as its statistics say."""
    for group in range(parquet.metadata.num_row_groups):
        rows = parquet.metadata.row_group(group)
        for number in range(rows.num_columns):
            column = rows.column(number)
            if column.path_in_schema in names and column.statistics is not None and column.statistics.has_min_max:
                yield column.path_in_schema, column.statistics.min
                yield column.path_in_schema, column.statistics.max


def _micros(instant: Any) -> int:
    return (
        instant if isinstance(instant, int) else int(np.datetime64(instant.replace(tzinfo=None), "us").astype(np.int64))
    )


def _brokers(settings: EvaluationFile, clusters: Iterable[str]) -> int:
    """Return how many brokers the clusters of a log have; those of a BROKERS table are all of them."""
    if settings.inputs.brokers is not None:
        rows = registrations(settings.inputs.brokers).rows
        return len({(cluster, row["value"].broker) for cluster, held in rows.items() for row in held})
    return sum(len({interval.broker.id for interval in broker_intervals(settings, name)}) for name in clusters)
