"""`metrics.parquet`: the metrics of a summary as an Arrow table, for those who go on calculating."""

from __future__ import annotations

import pyarrow as pa

from lookup.score.scoring import Scored
from lookup.score.summary import metric_rows

__all__ = ["METRICS", "metrics_table"]

#: One row per policy, metric, key, part of the demand and cluster.
METRICS = pa.schema(
    [
        ("policy", pa.string()),
        ("cluster", pa.string()),
        ("metric", pa.string()),
        ("key", pa.string()),
        ("by", pa.map_(pa.string(), pa.string())),
        ("value", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("unit", pa.string()),
        ("direction", pa.string()),
    ]
)


def metrics_table(scored: Scored) -> pa.Table:
    """Return the `metrics` of a summary in METRICS' columns and in its order."""
    rows = [row | {"by": None if row["by"] is None else list(row["by"].items())} for row in metric_rows(scored)]
    return pa.Table.from_pylist(rows, schema=METRICS)
