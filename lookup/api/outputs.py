"""Name the files of an evaluation, and hold the folder and the DataFrames of a result. It loads without any extra."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from lookup.api.arguments import require_path

if TYPE_CHECKING:
    # A command does not load it: 0.3 s.
    import pandas as pd

__all__ = ["OUTPUTS", "PAGE", "PAGE_PACKAGE", "can_draw", "data_frame", "json_row", "result_folder"]

#: The page's file next to `summary.json`.
PAGE = "report.html"
#: The module that draws it, of the extra `report`.
PAGE_PACKAGE = "jinja2"
#: Everything an evaluation leaves in its output.
OUTPUTS = (
    "summary.json",
    "metrics.parquet",
    "decisions",
    "owners",
    "cycles",
    "cells",
    "flows",
    "quarantine",
    "manifest.json",
    "report.md",
    PAGE,
)


@contextmanager
def result_folder(output: str | os.PathLike[str] | None) -> Iterator[tuple[str, Callable[[object], object]]]:
    """Yield a folder for results, and a function that ties it to the object which the caller returns.

    Args:
        output: path or URI. None is a temporary folder, removed with that object, or at once if the body fails.
    """
    if output is not None:
        yield require_path("output", output), lambda result: None
        return
    temporary = tempfile.mkdtemp(prefix="lookup-")
    try:
        yield f"{temporary}/run", lambda result: weakref.finalize(result, shutil.rmtree, temporary, ignore_errors=True)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def data_frame(rows: Iterable[Mapping[str, object]], columns: list[str] | None = None) -> pd.DataFrame:
    """Build a DataFrame from rows. The columns need be named only if there may be no rows."""
    import pandas as pd

    return pd.DataFrame(list(rows), columns=columns)


def json_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a row of plain values to JSON's types, with None for numbers that are not finite."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in row.items()
    }


def can_draw() -> bool:
    """Check whether the drawing code of a page is installed."""
    return find_spec(PAGE_PACKAGE) is not None
