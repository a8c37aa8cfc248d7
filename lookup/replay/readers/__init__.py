"""The built-in log readers, one file each; they enter by the hook that anybody's reader enters by."""

from __future__ import annotations

from lookup.hooks import LogReader, hookimpl
from lookup.replay.readers.broker_log import PulsarBrokerReader
from lookup.replay.readers.cpp_client import CppClientReader
from lookup.replay.readers.csv_rows import CsvReader
from lookup.replay.readers.delimited import DelimitedReader
from lookup.replay.readers.jetty_access import JettyAccessReader
from lookup.replay.readers.json_lines import JsonLinesReader

__all__ = [
    "CppClientReader",
    "CsvReader",
    "DelimitedReader",
    "JettyAccessReader",
    "JsonLinesReader",
    "PulsarBrokerReader",
    "lookup_register_log_readers",
]


@hookimpl
def lookup_register_log_readers() -> tuple[type[LogReader], ...]:
    """Register the readers of this package."""
    return (
        JsonLinesReader,
        CsvReader,
        DelimitedReader,
        JettyAccessReader,
        PulsarBrokerReader,
        CppClientReader,
    )
