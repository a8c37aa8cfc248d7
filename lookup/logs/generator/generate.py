"""Write synthetic but realistic logs: the same content from the same seed, without Spark.

The canonical tables LOOKUPS, BROKERS, LOADS and OWNERSHIP are written, LOOKUPS in hive partitions of files of a million
rows, the others in one file each; what goes into them is drawn by the other modules of this folder.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from lookup.logs.generator.cluster import ClusterLog, LookupColumns
from lookup.logs.generator.settings import GenerateSettings
from lookup.logs.generator.world import cluster_names
from lookup.logs.outputs import Draft, draft
from lookup.logs.schema import CANONICAL, ROWS_PER_FILE, partition_of, write_parquet
from lookup.model.time import moment_at

__all__ = ["GenerateReport", "GenerateSettings", "generate"]

_TABLES = ("lookups", "brokers", "loads", "ownership")
#: Files of one cluster that are written at the same time.
_WRITING = 2


@dataclass(frozen=True)
class GenerateReport:
    """Summary of a written log."""

    #: path or URI
    output: str
    #: rows by table
    rows: Mapping[str, int]
    #: lookups of clients that came back after a loss or an unload
    reconnects: int
    clusters: tuple[str, ...]


def generate(
    settings: GenerateSettings,
    output: Path | str,
    *,
    force: bool = False,
    manifest: Callable[[], bytes] | None = None,
) -> GenerateReport:
    """Write a synthetic log: the canonical tables, each a directory of Parquet files under `output`.

    The same settings give the same rows. Tables appear in `output` when all of them are complete, or not at all.

    Args:
        manifest: returns the content of `manifest.json`, which appears with the tables.
        force: replace these tables if `output` already has them; anything else there stays.

    Raises:
        InputError: if `output` is a file, or not empty without `force`.
    """
    names = cluster_names(settings.clusters)
    # Clusters divide the lookups like 1, 1/1.25, 1/1.5, ...; none is empty, and the first takes the rounding.
    weights = 1.0 / (1.0 + 0.25 * np.arange(settings.clusters))
    shares = np.maximum(1, np.floor(weights / weights.sum() * settings.lookups)).astype(int)
    shares[0] += settings.lookups - shares.sum()
    with draft(str(output), (*_TABLES, "manifest.json"), force=force) as target:
        logs = [
            ClusterLog(settings, name, number, share)
            for number, (name, share) in enumerate(zip(names, shares.tolist(), strict=True))
        ]
        for name, log in zip(names, logs, strict=True):
            # One cluster after the other: load and ownership rows are complete once its pieces are drawn.
            _write_lookups(log, name, f"{target.path}/lookups")
        rows = {"lookups": settings.lookups}
        for table in _TABLES[1:]:
            rows[table] = _write_table(target, table, chain.from_iterable(log.rows(table) for log in logs))
        if manifest is not None:
            target.write("manifest.json", manifest())
    return GenerateReport(str(output), rows, sum(log.reconnects for log in logs), names)


def _write_table(target: Draft, name: str, rows: Iterable[Mapping[str, object]]) -> int:
    """Write a small canonical table, one file of rows in order of time, and return how many rows it has."""
    ordered = sorted(rows, key=lambda row: (row["ts"], row["cluster"]))
    table = pa.Table.from_pylist(ordered, schema=CANONICAL[name])
    write_parquet(table, f"{target.path}/{name}/part-00000.parquet")
    return len(ordered)


def _write_lookups(log: ClusterLog, name: str, directory: str) -> None:
    """Write the rows of one cluster, files of at most a million rows of one day.

    Encoding runs beside the generator, at most two files at a time: memory does not grow with the log.
    """
    dictionaries = {
        column: pa.array(list(entries), pa.string())
        for column, entries in {"cluster": (name,), **log.dictionaries}.items()
    }
    writing: deque[Future[None]] = deque()
    with ThreadPoolExecutor(_WRITING, thread_name_prefix="generate-parquet") as pool:
        for number, (date, pieces) in enumerate(_files(log.pieces())):
            # The generator waits here if it is faster than the disk.
            if len(writing) == _WRITING:
                writing.popleft().result()
            path = f"{directory}/{partition_of(name, date)}/part-{number:05}.parquet"
            writing.append(pool.submit(_write_pieces, path, pieces, dictionaries))
        for written in writing:
            written.result()


def _files(pieces: Iterable[LookupColumns]) -> Iterator[tuple[str, list[LookupColumns]]]:
    """Group pieces, each of one day, into those of a file, with its day."""
    date, rows, waiting = "", 0, list[LookupColumns]()
    for columns in pieces:
        count = len(columns["ts"])
        if not count:
            continue
        day = moment_at(int(columns["ts"][0])).date().isoformat()
        if waiting and (day != date or rows + count > ROWS_PER_FILE):
            yield date, waiting
            rows, waiting = 0, []
        date, rows = day, rows + count
        waiting.append(columns)
    if waiting:
        yield date, waiting


def _write_pieces(path: str, pieces: Sequence[LookupColumns], dictionaries: Mapping[str, pa.Array]) -> None:
    """Write a file of LOOKUPS; `dictionaries` has the values behind the codes, by column."""
    arrays = []
    for field in CANONICAL["lookups"]:
        # Codes of the one cluster: the column is not among those that are drawn.
        if field.name == "cluster":
            values = np.zeros(sum(len(piece["ts"]) for piece in pieces), dtype=np.int8)
        else:
            values = np.concatenate([piece[field.name] for piece in pieces])
        if field.name in dictionaries:
            codes = pa.array(values, mask=values < 0)
            arrays.append(pa.DictionaryArray.from_arrays(codes, dictionaries[field.name]))
        elif values.dtype.kind == "f":
            arrays.append(pa.array(values, mask=np.isnan(values)))
        else:
            arrays.append(pa.array(values).cast(field.type))
    write_parquet(pa.Table.from_arrays(arrays, names=CANONICAL["lookups"].names), path)
