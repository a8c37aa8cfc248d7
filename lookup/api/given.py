"""Use a program's tables in a function in place of the tables that its settings name.

A frame is written into a file of the call. Messages do not name that file, since mistakes are about the argument.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from lookup.api.arguments import Say, require_mapping, require_path
from lookup.api.selection import Selection, select
from lookup.errors import PulsarLookupError, Sentence, SettingsError
from lookup.model.documents import TableName

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

__all__ = ["FRAME", "ArrowStream", "GivenTables", "Table", "given_tables"]

#: Placeholder in a manifest for the path of a table that was given as a frame.
FRAME = "given as a frame"


class ArrowStream(Protocol):
    """A table that hands out its columns by Arrow's interface, such as a frame of Polars or a relation of DuckDB."""

    def __arrow_c_stream__(self, _schema: object | None = None, /) -> object:
        """Create a capsule of Arrow's stream."""


#: A table, which is its path, a frame with its columns, or a list of its rows.
Table: TypeAlias = "str | os.PathLike[str] | ArrowStream | pd.DataFrame | DataFrame | Sequence[Mapping[str, object]]"


@dataclass(frozen=True)
class GivenTables:
    """The tables of one call."""

    #: settings by key path
    flags: Mapping[str, object]
    #: the log, if it is a DataFrame of Spark
    lookups: DataFrame | None
    #: arguments by the path of the file that holds their frames
    files: Mapping[str, TableName]

    def select(
        self, settings: Any, overrides: Mapping[str, object] | None, warn: Say = lambda sentence: None
    ) -> Selection:
        """Read an evaluation over these tables. Arguments and errors are as in `select` of `lookup.api.selection`."""
        require_path("settings", settings, or_mapping=True)
        require_mapping("overrides", overrides)
        selection = select(settings, {**(overrides or {}), **self.flags}, warn)
        # A table of the settings would count in place of brokers that are given one by one.
        if "brokers" not in self.flags or selection.settings.inputs.brokers is None:
            return selection
        inputs = selection.settings.inputs.model_copy(update={"brokers": None})
        return replace(selection, settings=selection.settings.model_copy(update={"inputs": inputs}))

    def rename(self, sentence: Any) -> Any:
        """Replace files and settings in a sentence by the names of the arguments for which they are placeholders."""
        if isinstance(sentence, Sentence):
            return Sentence(*map(self.rename, sentence.parts))
        if not isinstance(sentence, str):
            return sentence
        for path, name in self.files.items():
            sentence = sentence.replace(f"inputs.{name}: ", "").replace(path, name)
        for key in self.flags:
            sentence = sentence.replace(f"overrides: {key}", key.rpartition(".")[2])
        return sentence


@contextmanager
def given_tables(
    tables: Mapping[str, Any], settings: Mapping[str, object] | None = None, *, keeps_log: bool = False
) -> Iterator[GivenTables]:
    """Yield the tables of a call by argument, and let errors of the body name these arguments.

    Args:
        tables: by name of the table, which is that of the argument, None if not given.
        settings: the same for settings from other arguments, by key path.
        keeps_log: leave a log that is a DataFrame of Spark unchanged.
    """
    with tempfile.TemporaryDirectory(prefix="lookup-given-") as folder:
        flags = {key: value for key, value in (settings or {}).items() if value is not None}
        files: dict[str, TableName] = {}
        frame: DataFrame | None = None
        for name, table in ((name, table) for name, table in tables.items() if table is not None):
            if isinstance(table, str | os.PathLike):
                flags[f"inputs.{name}"] = os.fspath(table)
            elif name == "brokers" and _are_entries(table):
                flags[name] = [*map(_build_entry, table)]
            # By an attribute, since a program without Spark need not load it.
            elif name == "lookups" and keeps_log and hasattr(table, "sparkSession"):
                from lookup.api.fitting import fit_spark  # of an extra that the caller has
                from lookup.replay.shares import check_frame

                frame = fit_spark(cast("DataFrame", table))
                check_frame(frame)
            else:
                if find_spec("pyarrow") is None:
                    raise SettingsError(f"{name}: a table needs pyarrow: pip install 'pulsar-lookup[spark]'")
                from lookup.api.fitting import fit_frame  # likewise
                from lookup.api.frames import write_frame

                path, of = f"{folder}/{name}.parquet", cast("TableName", name)
                fitted = fit_frame(table, of)
                if isinstance(fitted, list):
                    flags[name] = [*map(_build_entry, fitted)]
                else:
                    write_frame(fitted, of, path)
                    flags[f"inputs.{name}"], files[path] = path, of
        inputs = GivenTables(flags, frame, files)
        try:
            yield inputs
        except PulsarLookupError as error:
            error.args = tuple(map(inputs.rename, error.args))
            if isinstance(error, SettingsError):
                error.problems = tuple(map(inputs.rename, error.problems))
            raise


def _are_entries(table: Any) -> bool:
    is_list = isinstance(table, Sequence) and all(isinstance(row, Mapping) for row in table)
    return is_list and all({"ts", "event", "lookup_data"}.isdisjoint(row) for row in table)


def _build_entry(row: Mapping[str, object]) -> dict[str, object]:
    """Convert a row to an entry of `[[brokers]]`. Columns may have their names in BROKERS."""
    named = {"id" if name == "broker" else name: value for name, value in row.items() if name != "cluster"}
    return named | ({"clusters": [row["cluster"]]} if "cluster" in row else {})
