"""DataFrames as logs: rows reach the tasks through Spark instead of from files, and are coded by the same coder.

The slower way, for logs that are not canonical Parquet; the codes are the same.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from lookup.errors import InputError
from lookup.logs.columns import REQUIRED
from lookup.logs.jobs import attempt, successes
from lookup.logs.parquet import check_types
from lookup.logs.rows import LogBatch
from lookup.replay.coding import CodingPlan, used_columns
from lookup.replay.tasks import Coded, code_batches
from lookup.replay.work import WorkDir

__all__ = ["code_frame"]


def code_frame(frame: DataFrame, plan: CodingPlan, *, work: WorkDir, quarantine: str) -> list[Coded]:
    """Code the rows of a DataFrame with the columns of LOOKUPS, one share per partition.

    Raises:
        InputError: where a required column is missing, or `seq`: a DataFrame has no order of its own; or where a column
            has the wrong type.
    """
    missing = [name for name in (*REQUIRED["lookups"], "seq") if name not in frame.columns]
    if missing:
        raise InputError(
            f"the DataFrame of lookups has no column {', '.join(map(repr, missing))}; it needs "
            f"{', '.join(REQUIRED['lookups'])}, and seq, which tells the order of lookups of one instant"
        )

    check_types("the DataFrame of lookups", to_arrow_schema(frame.schema, timezone="UTC"), "lookups")

    def code(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Code one partition, as a single row of bytes."""
        context = TaskContext.get()
        task = 0 if context is None else context.partitionId()
        coded = attempt(lambda: code_batches(task, _numbered(batches, task), plan, work=work, quarantine=quarantine))
        yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(coded)], pa.binary())], names=["coded"])

    selected = frame.select(*used_columns(frame.columns, plan))
    return successes([pickle.loads(row["coded"]) for row in selected.mapInArrow(code, "coded binary").collect()])


def _numbered(batches: Iterable[pa.RecordBatch], task: int) -> Iterator[LogBatch]:
    first = 0
    for rows in batches:
        yield LogBatch(rows, f"partition {task}", first, None)
        first += rows.num_rows
