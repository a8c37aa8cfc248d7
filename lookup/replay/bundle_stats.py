"""Read rows of BUNDLES a batch at a time: a day of a large cluster has ten million of them.

Arrow parses the JSON of a batch at once. What it cannot take, and every row that looks unusual, is left to the reading
of single rows, whose verdict alone refuses a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
from numpy.typing import NDArray

from lookup.engine.ledger import MICRO
from lookup.errors import InvalidNameError
from lookup.logs.columns import MAX_WEIGHT, TABLES
from lookup.model.time import FIRST_US, LAST_US
from lookup.replay.days import Codes

__all__ = ["PlainBundles", "plain_bundles"]

Ints = NDArray[np.int64]

#: The figures that a replay reads, by the parts of their sums.
_SUMS = {"micro": ("msgThroughputIn", "msgThroughputOut"), "rate": ("msgRateIn", "msgRateOut")}
#: Keys of `NamespaceBundleStats` with whole numbers, which are read to be checked.
_COUNTS = ("consumerCount", "producerCount", "topics", "cacheSize")
_PARSING = pj.ParseOptions(
    explicit_schema=pa.schema(
        [(key, pa.float64()) for keys in _SUMS.values() for key in keys] + [(key, pa.int64()) for key in _COUNTS]
    ),
    unexpected_field_behavior="ignore",
)


@dataclass(frozen=True)
class PlainBundles:
    """A batch of BUNDLES in columns, of shape (n_rows,); only where `is_plain` do they hold what the row says."""

    is_plain: NDArray[np.bool_]
    ts: Ints
    #: texts, and the code of each row
    clusters: tuple[list[str | None], Codes]
    bundles: tuple[list[str | None], Codes]
    #: `micro` and `rate`, micro-units per second
    figures: dict[str, Ints]
    #: by key of throughput and rates, which rows give it
    gives: dict[str, NDArray[np.bool_]]


def plain_bundles(rows: pa.RecordBatch, cluster: str | None) -> PlainBundles | None:
    """Return a batch in columns, None if its JSON cannot be parsed as a whole.

    Args:
        cluster: of all rows, if the file's path names it.
    """
    parsed = _parsed(rows.column("stats"))
    if parsed is None:
        return None
    column = rows.column("ts")
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    ts: Ints = pc.fill_null(column.cast(pa.int64()), FIRST_US - 1).to_numpy(zero_copy_only=False)
    clusters = _coded(rows, "cluster") if cluster is None else _checked("cluster", [cluster], np.zeros(len(ts), int))
    bundles = _coded(rows, "bundle")
    is_plain = (ts >= FIRST_US) & (ts <= LAST_US) & (clusters[1] >= 0) & (bundles[1] >= 0)
    is_plain &= rows.column("stats").is_valid().to_numpy(zero_copy_only=False)
    figures, gives = {}, {}
    for name, keys in _SUMS.items():
        total = np.zeros(len(ts))
        for key in keys:
            values = parsed.column(key)
            gives[key] = values.is_valid().to_numpy()
            if values.null_count < len(ts):
                total += pc.fill_null(values, 0.0).to_numpy()
        is_sound = np.isfinite(total) & (total <= MAX_WEIGHT)
        is_plain &= is_sound
        figures[name] = np.rint(np.where(is_sound, total, 0.0) * MICRO).astype(np.int64)
    return PlainBundles(is_plain, ts, clusters, bundles, figures, gives)


def _parsed(texts: pa.Array) -> pa.Table | None:
    """Return the keys of JSON objects as columns, None if a text is no plain object."""
    texts = pc.fill_null(texts, "{}")
    if not (pc.all(pc.starts_with(texts, "{")).as_py() and pc.all(pc.ends_with(texts, "}")).as_py()):
        return None
    try:
        joined = "\n".join(texts.to_pylist()).encode()
        reading = pj.ReadOptions(use_threads=False, block_size=len(joined) + 1)
        table = pj.read_json(pa.BufferReader(joined), reading, _PARSING)
    except (UnicodeError, pa.ArrowInvalid):
        return None
    # A text that holds two objects makes a row more.
    return table if table.num_rows == len(texts) else None


def _coded(rows: pa.RecordBatch, name: str) -> tuple[list[str | None], Codes]:
    """Return the distinct texts of a column as the table has them, and the code of each row, -1 if it is not usable."""
    column = rows.column(name)
    column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    codes: Ints = pc.fill_null(column.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    try:
        texts = column.dictionary.to_pylist()
    except UnicodeDecodeError:
        # Reading single rows says which file it is.
        return [None], np.full(len(codes), -1)
    return _checked(name, texts, codes)


def _checked(name: str, texts: list[str | None], codes: Ints) -> tuple[list[str | None], Codes]:
    check = _CHECKS[name]
    sound: list[str | None] = []
    for text in texts:
        try:
            sound.append(check(text))
        except (ValueError, InvalidNameError):
            sound.append(None)
    usable = np.array([text is not None for text in sound] + [False])
    return sound, np.where(usable[codes], codes, -1)


_CHECKS: dict[str, Callable[[Any], Any]] = {column.name: column.check for column in TABLES["bundles"]}
