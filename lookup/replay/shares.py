"""Code the shares of a log in tasks, and merge the tasks' vocabularies into one per cluster.

A share is some row groups of canonical Parquet files, or a partition of a DataFrame. A DataFrame is the slower way, for
logs that are not canonical Parquet. The codes are the same.
"""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lookup.errors import InputError
from lookup.logs.columns import REQUIRED
from lookup.logs.jobs import Workers, attempt, run_tasks, successes
from lookup.logs.rows import LogBatch, Quarantined, texts_of
from lookup.logs.sources import FileSplit, check_types, open_parquet
from lookup.model.names import cluster_problem
from lookup.replay.atoms import AtomRule, Atoms
from lookup.replay.coding import EXTRA_FIELDS, Coder, CodingPlan, Repeats, Share, properties_text, used_columns
from lookup.replay.days import CodedPart, Codes, narrow
from lookup.replay.work import WorkDir, write_quarantine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "ClusterWords", "Coded", "check_frame", "code_files", "code_frame", "days_with_codes", "group_demand",
    "merge_words", "read_splits", "short_codes",
]  # fmt: skip

#: Rows that are coded together, few enough that their columns stay in a core's cache.
_BATCH_ROWS = 1 << 17
#: Columns whose dictionaries are kept as they are in the file.
_TEXTS = ("cluster", "topic", "client", "properties", "broker", "result", "listener")


@dataclass
class Coded:
    """A task's coded share of every cluster, and its rows that cannot be used."""

    task: int
    shares: list[Share] = field(default_factory=list)
    rows: int = 0
    #: quarantined rows by reason
    quarantined: dict[str, int] = field(default_factory=dict)


def code_files(
    workers: Workers, shares: Sequence[Sequence[FileSplit]], plan: CodingPlan, *, work: WorkDir, quarantine: str
) -> list[Coded]:
    """Code row groups of canonical Parquet files, a task for each share.

    Args:
        quarantine: folder for refused rows.
    """

    def code(item: tuple[int, Sequence[FileSplit]], plan: CodingPlan) -> Coded:
        return _code_batches(item[0], read_splits(item[1], plan), plan, work=work, quarantine=quarantine)

    rows = {split.file.path: split.file.rows for splits in shares for split in splits}
    return run_tasks(workers, list(enumerate(shares)), plan, code, rows=sum(rows.values()))


def read_splits(splits: Sequence[FileSplit], plan: CodingPlan) -> Iterator[LogBatch]:
    """Yield the rows of row groups with the columns a replay needs, dictionaries kept."""
    for split in splits:
        columns = used_columns(split.file.columns, plan)
        with open_parquet(split.file.path, dictionaries=[name for name in columns if name in _TEXTS]) as parquet:
            row = split.first_row
            for group in range(split.first_group, split.first_group + split.groups):
                # No threads: Spark runs a task on every core as it is.
                for rows in parquet.read_row_group(group, columns=columns, use_threads=False).to_batches(_BATCH_ROWS):
                    yield LogBatch(rows, split.file.name, row, split.file.cluster)
                    row += rows.num_rows


def check_frame(frame: DataFrame) -> None:
    """Refuse a DataFrame that lacks columns or has a column of a wrong type. Error messages call it `lookups`."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415  as in `code_frame`

    needed = (*REQUIRED["lookups"], "seq")
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        subject = f"column {missing[0]} is" if len(missing) == 1 else f"columns {' and '.join(missing)} are"
        order = "; seq tells the order of lookups of one instant" if "seq" in missing else ""
        raise InputError(f"lookups: {subject} missing; a DataFrame of Spark needs {', '.join(needed)}{order}")
    check_types("lookups", to_arrow_schema(frame.schema, timezone="UTC"), "lookups")


def code_frame(frame: DataFrame, plan: CodingPlan, *, work: WorkDir, quarantine: str) -> list[Coded]:
    """Code the rows of a DataFrame with the columns of LOOKUPS, one share per partition.

    Raises:
        InputError: if a required column or, for the order, `seq` is missing, or a column has the wrong type.
    """
    # A run without Spark comes by this module as well, and does not load it.
    from pyspark import TaskContext  # noqa: PLC0415  of an extra that the caller has, since it gives a DataFrame

    check_frame(frame)

    def code(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Code one partition, as a single row of bytes."""
        context = TaskContext.get()
        task = 0 if context is None else context.partitionId()
        coded = attempt(
            lambda: _code_batches(task, _number_batches(batches, task), plan, work=work, quarantine=quarantine)
        )
        yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(coded)], pa.binary())], names=["coded"])

    selected = frame.select(*used_columns(frame.columns, plan))
    return successes([pickle.loads(row["coded"]) for row in selected.mapInArrow(code, "coded binary").collect()])


def _number_batches(batches: Iterable[pa.RecordBatch], task: int) -> Iterator[LogBatch]:
    first = 0
    for rows in batches:
        yield LogBatch(rows, f"partition {task}", first, None)
        first += rows.num_rows


def _code_batches(task: int, batches: Iterator[LogBatch], plan: CodingPlan, *, work: WorkDir, quarantine: str) -> Coded:
    """Code batches from any source, with one coder per cluster."""
    coders: dict[str, Coder] = {}
    refused: list[Quarantined] = []
    coded = Coded(task)
    for read in batches:
        batch = read if plan.window is None else read.within(*plan.window)
        coded.rows += batch.rows.num_rows
        for cluster, rows in _split_by_cluster(batch):
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


def _split_by_cluster(batch: LogBatch) -> Iterator[tuple[str | None, LogBatch]]:
    """Yield the rows of each cluster, with None for rows without a cluster."""
    if batch.cluster is not None:
        yield batch.cluster, batch
        return
    column = batch.rows.column("cluster")
    names = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    codes = names.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    for code, rows in batch.split_by_code(codes):
        yield None if code < 0 else texts_of(names.dictionary)[code], rows


@dataclass(frozen=True)
class ClusterWords:
    """The meaning of the codes of one cluster's rows. Vocabularies are sorted, so they do not depend on the tasks."""

    cluster: str
    atoms: Atoms
    #: lookup properties by code
    properties: tuple[Mapping[str, str], ...]
    #: lookups that carry each of the properties, shape (n_properties,)
    by_properties: NDArray[np.int64]
    #: lookups to which each rule for clients applies, shape (n_rules,)
    by_rule: NDArray[np.int64]
    #: texts by code of the fields of EXTRA_FIELDS that are coded
    extras: Mapping[str, tuple[str | None, ...]]
    #: distinct topics of each atom, shape (n_atoms,)
    topics: NDArray[np.int64]
    first_us: int
    last_us: int
    #: lookups by the logged name of their broker
    by_broker: Mapping[str, int]
    counts: Mapping[str, int]
    #: share of the pairs of time and topic that occur an even number of times, of a sample
    even_ratio: float


def merge_words(cluster: str, rule: AtomRule, shares: Sequence[Share]) -> ClusterWords:
    """Merge the tasks' shares of one cluster."""
    namespaces: set[str] = set()
    for share in shares:
        # Only namespaces of demand count, since topics of rows that are left out have codes as well.
        sizes = [len(rule.boundaries(name)) - 1 for name in share.namespaces]
        demanded = np.unique(np.searchsorted(np.cumsum(sizes), share.topics[:, 1], side="right"))
        namespaces.update(share.namespaces[number] for number in demanded.tolist())
    atoms = Atoms.of(rule, namespaces)
    sent: Counter[str] = Counter()
    for share in shares:
        for text, lookups in zip(share.properties, share.by_properties, strict=True):
            if text is not None:
                sent[text] += lookups
    texts = sorted(sent)
    extras = {}
    for name in EXTRA_FIELDS:
        words = {word for share in shares for word in share.extras.get(name, [])}
        extras[name] = tuple(sorted(words, key=lambda word: (word is not None, word or "")))
    by_broker: Counter[str] = Counter()
    for share in shares:
        by_broker.update(dict(zip(share.brokers, share.by_broker, strict=True)))
    # A topic in shares of several tasks counts once, by its digest of 64 bits, so RowKeys has no room for the atom.
    digests = [np.stack([share.topics[:, 0], _map_atoms(atoms, share)[share.topics[:, 1]]], axis=1) for share in shares]
    distinct = np.unique(np.concatenate(digests), axis=0)
    repeats = Repeats()
    for share in shares:
        repeats.merge(share.repeats)
    return ClusterWords(
        cluster=cluster,
        atoms=atoms,
        properties=tuple(json.loads(text) for text in texts),
        by_properties=np.array([sent[text] for text in texts], dtype=np.int64),
        by_rule=np.sum([share.by_rule for share in shares], axis=0, dtype=np.int64),
        extras={name: words for name, words in extras.items() if words},
        topics=np.bincount(distinct[:, 1], minlength=atoms.count),
        first_us=min(share.first_us for share in shares),
        last_us=max(share.last_us for share in shares),
        by_broker=dict(by_broker),
        counts={name: sum(share.counts[name] for share in shares) for name in shares[0].counts},
        even_ratio=repeats.even_ratio,
    )


def group_demand(coded: Sequence[Coded]) -> dict[str, list[Share]]:
    """Group the shares with lookups that ask for a broker by cluster, in order of the tasks."""
    shares: dict[str, list[Share]] = {}
    for share in (share for task in coded for share in task.shares if share.counts["demand"]):
        shares.setdefault(share.cluster, []).append(share)
    return shares


def days_with_codes(
    words: ClusterWords, shares: Sequence[Share], brokers: Mapping[str, int]
) -> dict[int, list[CodedPart]]:
    """Collect the parts of each day of a cluster, with the maps from their codes to the cluster's.

    Args:
        shares: in order of the log's files, which breaks ties between rows of one instant.
        brokers: roster numbers by every name that a log may have for a broker.
    """
    days: dict[int, list[CodedPart]] = {}
    for share in shares:
        recoding = _map_codes(words, share, brokers)
        for part in share.parts:
            days.setdefault(part.day, []).append(CodedPart(part, recoding))
    return days


def _map_codes(words: ClusterWords, share: Share, brokers: Mapping[str, int]) -> Mapping[str, Codes]:
    by_text = {properties_text(properties): code for code, properties in enumerate(words.properties)}
    extras = {
        name: {word: code for code, word in enumerate(words.extras[name])}
        for name in share.extras
        if name in words.extras
    }
    return {
        "atom": narrow(_map_atoms(words.atoms, share)),
        "properties": short_codes(-1 if text is None else by_text[text] for text in share.properties),
        # -1 is no broker, -2 is a broker outside the roster. Code -1 is an index as well, and selects the last entry.
        "broker": short_codes([*(brokers.get(text, -2) for text in share.brokers), -1]),
        **{name: short_codes(codes[text] for text in share.extras[name]) for name, codes in extras.items()},
    }


def _map_atoms(atoms: Atoms, share: Share) -> NDArray[np.int32]:
    """Map the task's atoms to the cluster's, -1 for atoms of namespaces without demand."""
    codes = [np.empty(0, np.int32)]
    for namespace in share.namespaces:
        size, base = len(atoms.rule.boundaries(namespace)) - 1, atoms.base.get(namespace)
        codes.append(np.full(size, -1, np.int32) if base is None else np.arange(base, base + size, dtype=np.int32))
    return np.concatenate(codes)


def short_codes(values: Iterable[int]) -> Codes:
    """Store codes in the smallest integers that hold them, since they decode a column of a log."""
    return narrow(np.array(list(values), dtype=np.int32))
