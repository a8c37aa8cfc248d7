"""Hold what a function for programs has written: its folder, and its tables as DataFrames, which need pandas."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs as arrow_fs

from lookup.api.arguments import require_path
from lookup.logs.sources import locate

if TYPE_CHECKING:
    # A command does not load it: 0.3 s.
    import pandas as pd

__all__ = ["as_html", "data_frame", "read_frame", "result_folder"]


@contextmanager
def result_folder(output: str | os.PathLike[str] | None) -> Iterator[tuple[str, Callable[[object], object]]]:
    """Yield a folder for results, and a function that ties it to the object which the caller returns.

    Args:
        output: path or URI; None: a temporary folder, which goes with that object, or at once if the body fails.

    Raises:
        SettingsError: if it is no path.
    """
    if output is not None:
        require_path("output", output)
        yield os.fspath(output), lambda result: None
        return
    temporary = tempfile.mkdtemp(prefix="lookup-")
    try:
        yield f"{temporary}/run", lambda result: weakref.finalize(result, shutil.rmtree, temporary, ignore_errors=True)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def data_frame(rows: Iterable[Mapping[str, object]], columns: list[str] | None = None) -> pd.DataFrame:
    """Return rows as a DataFrame; the columns need be named only if there may be no row."""
    import pandas as pd

    return pd.DataFrame(list(rows), columns=columns)


def read_frame(folder: str, table: str, schema: pa.Schema) -> pd.DataFrame:
    """Read a table below a folder of results; one that was not written, since it has no row, is empty."""
    system, inner = locate(f"{folder}/{table}")
    if system.get_file_info(inner).type is arrow_fs.FileType.NotFound:
        rows = schema.empty_table()
    else:
        # The path may say the cluster as well: the column does.
        rows = pq.read_table(inner, filesystem=system, partitioning=None)
    frame: pd.DataFrame = rows.to_pandas()
    return frame


def as_html(summary: str, frame: pd.DataFrame) -> str:
    """Return a sentence and a table for a notebook."""
    return f"<p>{escape(summary)}</p>{frame.to_html(index=False)}"
