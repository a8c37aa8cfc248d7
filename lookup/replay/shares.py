"""Code the shares of a log in Spark tasks: row groups of canonical Parquet files, or partitions of a DataFrame.

A DataFrame is the slower way, for logs that are not canonical Parquet; the codes are the same.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lookup.errors import InputError
from lookup.logs.columns import REQUIRED
from lookup.logs.jobs import attempt, successes
from lookup.logs.rows import LogBatch, Quarantined, texts_of
from lookup.logs.sources import Split, check_types, open_parquet
from lookup.model.names import cluster_problem
from lookup.replay.coding import Coder, CodingPlan, Share, used_columns
from lookup.replay.work import WorkDir, write_quarantine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Coded", "code_frame", "code_share", "read_splits"]

#: Columns whose dictionaries are kept as they stand in the file.
_TEXTS = ("cluster", "topic", "client", "properties", "broker", "result", "listener")


@dataclass
class Coded:
    """A task's coded share of every cluster, and its rows that cannot be used."""

    task: int
    shares: list[Share] = field(default_factory=list)
    rows: int = 0
    #: quarantined rows by reason
    quarantined: dict[str, int] = field(default_factory=dict)


def code_share(task: int, splits: Sequence[Split], plan: CodingPlan, *, work: WorkDir, quarantine: str) -> Coded:
    """Code some row groups of canonical Parquet files."""
    return _code_batches(task, read_splits(splits, plan), plan, work=work, quarantine=quarantine)


def read_splits(splits: Sequence[Split], plan: CodingPlan) -> Iterator[LogBatch]:
    """Yield the rows of row groups with the columns a replay needs, dictionaries kept."""
    for split in splits:
        columns = used_columns(split.file.columns, plan)
        with open_parquet(split.file.path, read_dictionary=[name for name in columns if name in _TEXTS]) as parquet:
            row = split.first_row
            for group in range(split.first_group, split.first_group + split.groups):
                # No threads: Spark runs a task on every core as it is.
                for rows in parquet.read_row_group(group, columns=columns, use_threads=False).to_batches():
                    yield LogBatch(rows, split.file.path, row, split.file.cluster)
                    row += rows.num_rows


def code_frame(frame: DataFrame, plan: CodingPlan, *, work: WorkDir, quarantine: str) -> list[Coded]:
    """Code the rows of a DataFrame with the columns of LOOKUPS, one share per partition.

    Raises:
        InputError: if a required column is missing, or `seq`: a DataFrame has no order of its own; or if a column has
            the wrong type.
    """
    # A run without Spark comes by this module as well, and does not load it.
    from pyspark import TaskContext  # noqa: PLC0415  of an extra that the caller has, since it gives a DataFrame
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415  likewise

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
        coded = attempt(lambda: _code_batches(task, _numbered(batches, task), plan, work=work, quarantine=quarantine))
        yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(coded)], pa.binary())], names=["coded"])

    selected = frame.select(*used_columns(frame.columns, plan))
    return successes([pickle.loads(row["coded"]) for row in selected.mapInArrow(code, "coded binary").collect()])


def _numbered(batches: Iterable[pa.RecordBatch], task: int) -> Iterator[LogBatch]:
    """Number the rows of a partition, which is what quarantine calls them by."""
    first = 0
    for rows in batches:
        yield LogBatch(rows, f"partition {task}", first, None)
        first += rows.num_rows


def _code_batches(task: int, batches: Iterator[LogBatch], plan: CodingPlan, *, work: WorkDir, quarantine: str) -> Coded:
    """Code batches from anywhere; one coder per cluster."""
    coders: dict[str, Coder] = {}
    refused: list[Quarantined] = []
    coded = Coded(task)
    for batch in batches:
        coded.rows += batch.rows.num_rows
        for cluster, rows in _by_cluster(batch):
            problem = "the cluster is missing" if cluster is None else cluster_problem(cluster)
            if cluster is None or problem is not None:
                refused.extend(Quarantined(rows.source, line, str(problem), "") for line in rows.line_numbers.tolist())
                continue
            if cluster not in coders:
                coders[cluster] = Coder(plan, cluster, work, task)
            coders[cluster].add(rows)
    coded.shares = [coder.finish() for _, coder in sorted(coders.items())]
    refused.extend(row for _, coder in sorted(coders.items()) for row in coder.quarantined)
    write_quarantine(refused, "lookups", quarantine, f"lookups-{task:05d}.parquet")
    for row in refused:
        coded.quarantined[row.reason] = coded.quarantined.get(row.reason, 0) + 1
    return coded


def _by_cluster(batch: LogBatch) -> Iterator[tuple[str | None, LogBatch]]:
    """Yield the rows of each cluster; None for rows without one."""
    if batch.cluster is not None:
        yield batch.cluster, batch
        return
    column = batch.rows.column("cluster")
    names = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    codes = names.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    for code in sorted(set(codes.tolist())):
        cluster = None if code < 0 else texts_of(names.dictionary)[code]
        # Most batches are of one cluster: their rows need not be copied.
        if (codes == code).all():
            yield cluster, batch
        else:
            rows = np.flatnonzero(codes == code)
            yield cluster, replace(batch, rows=batch.rows.take(pa.array(rows)), lines=batch.line_numbers[rows])
