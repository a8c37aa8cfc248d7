"""Take the tables that a program gives to a function in place of those that its settings name.

A table is given as the path of one, or as a frame: of pandas, of Arrow, of Spark, or of whatever offers Arrow's stream,
as Polars and DuckDB do. A frame is written into a file of the call. No sentence names that file: mistakes are about the
argument.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from lookup.api.selection import Selection, select
from lookup.errors import Argument, PulsarLookupError, Sentence, SettingsError
from lookup.model.documents import TableName

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

__all__ = ["FRAME", "ArrowStream", "BrokerTable", "GivenTables", "Table", "given_tables"]

#: Stands in a manifest for the path of a table that was given as a frame.
FRAME = "given as a frame"


class ArrowStream(Protocol):
    """A table that hands out its columns by Arrow's interface, such as a frame of Polars or a relation of DuckDB."""

    def __arrow_c_stream__(self, _schema: object | None = None, /) -> object:
        """Return a capsule of Arrow's stream."""
        ...


#: A table: its path, or a frame with its columns.
Table: TypeAlias = "str | os.PathLike[str] | ArrowStream | pd.DataFrame | DataFrame"
#: BROKERS, or what the settings have as `brokers`.
BrokerTable: TypeAlias = "Table | Sequence[Mapping[str, object]]"


@dataclass(frozen=True)
class GivenTables:
    """The tables of one call."""

    #: settings by key path
    flags: Mapping[str, object] = field(default_factory=dict)
    #: the log, if it is a DataFrame of Spark
    lookups: DataFrame | None = None
    #: arguments by the path of the file that stands for their frames
    files: Mapping[str, TableName] = field(default_factory=dict)

    def select(
        self,
        settings: str | os.PathLike[str] | Mapping[str, object],
        overrides: Mapping[str, object],
        warn: Callable[[str], None] = lambda sentence: None,
    ) -> Selection:
        """Read an evaluation over these tables; arguments and errors as of `select` in `lookup.api.selection`."""
        selection = select(settings, {**overrides, **self.flags}, warn)
        # A table of the settings would count in place of brokers that are given one by one.
        if "brokers" not in self.flags or selection.settings.inputs.brokers is None:
            return selection
        inputs = selection.settings.inputs.model_copy(update={"brokers": None})
        return replace(selection, settings=selection.settings.model_copy(update={"inputs": inputs}))

    def require_reach(self) -> None:
        """Refuse frames that tasks of a cluster would have to read; this process reads BROKERS itself.

        Raises:
            SettingsError: naming the argument.
        """
        for name in self.files.values():
            if name != "brokers":
                right = "give the path of a table that they all reach"
                or_spark = ", or a DataFrame of Spark" if name == "lookups" else ""
                raise SettingsError(
                    Argument(name), f": workers of a cluster cannot read a frame of this program; {right}{or_spark}"
                )

    def about_arguments(self, sentence: str) -> str:
        """Return a sentence with the names of arguments in place of files and settings that stand for them."""
        for path, name in self.files.items():
            sentence = sentence.replace(f"inputs.{name}: {path}", name).replace(path, name)
        if "brokers" in self.flags and sentence.startswith("overrides: brokers"):
            return sentence.removeprefix("overrides: ")
        return sentence


@contextmanager
def given_tables(tables: Mapping[str, BrokerTable | None], *, keeps_log: bool = False) -> Iterator[GivenTables]:
    """Yield the tables of a call by the arguments that give them; let mistakes of the body name these arguments.

    Args:
        tables: by name of the table, which is that of the argument; None: not given.
        keeps_log: leave a log that is a DataFrame of Spark as it is.

    Raises:
        InputError: if a table is none, or lacks a column or has one of a wrong type.
    """
    with tempfile.TemporaryDirectory(prefix="lookup-given-") as folder:
        flags: dict[str, object] = {}
        files: dict[str, TableName] = {}
        frame: DataFrame | None = None
        for name, table in tables.items():
            if table is None:
                continue
            if isinstance(table, str | os.PathLike):
                flags[f"inputs.{name}"] = os.fspath(table)
            elif name == "brokers" and isinstance(table, Sequence) and all(isinstance(row, Mapping) for row in table):
                flags["brokers"] = table
            elif name == "lookups" and keeps_log and _is_of_spark(table):
                from lookup.replay.shares import check_frame  # of an extra that the caller has

                frame = cast("DataFrame", table)
                check_frame(frame)
            else:
                if find_spec("pyarrow") is None:
                    raise SettingsError(
                        f"{name}: a table needs pyarrow: install it with pip install 'pulsar-lookup[spark]'"
                    )
                from lookup.api.frames import write_frame  # likewise

                path = f"{folder}/{name}.parquet"
                write_frame(table, cast("TableName", name), path)
                flags[f"inputs.{name}"], files[path] = path, cast("TableName", name)
        given = GivenTables(flags, frame, files)
        try:
            yield given
        except PulsarLookupError as error:
            error.args = tuple(_renamed(argument, given) for argument in error.args)
            if isinstance(error, SettingsError):
                error.problems = tuple(_renamed(problem, given) for problem in error.problems)
            raise


def _renamed(sentence: Any, given: GivenTables) -> Any:
    if isinstance(sentence, Sentence):
        return Sentence(*(given.about_arguments(part) if isinstance(part, str) else part for part in sentence.parts))
    return given.about_arguments(sentence) if isinstance(sentence, str) else sentence


def _is_of_spark(given: object) -> bool:
    # By its name: a program that has no Spark need not load it.
    return type(given).__module__.startswith("pyspark.sql") and type(given).__name__ == "DataFrame"
