"""Register the built-in log readers by the same hook as those of plug-ins."""

from __future__ import annotations

from lookup.hooks import LogReader, hookimpl
from lookup.logs.readers.broker_log import PulsarBrokerReader
from lookup.logs.readers.canonical import CsvReader, JsonLinesReader
from lookup.logs.readers.cpp_client import CppClientReader
from lookup.logs.readers.delimited import DelimitedReader
from lookup.logs.readers.jetty_access import JettyAccessReader
from lookup.logs.readers.system_topics import SystemTopicsReader

__all__ = [
    "CppClientReader", "CsvReader", "DelimitedReader", "JettyAccessReader", "JsonLinesReader", "PulsarBrokerReader",
    "SystemTopicsReader", "lookup_register_log_readers",
]  # fmt: skip


@hookimpl
def lookup_register_log_readers() -> tuple[type[LogReader], ...]:
    """Register the readers of this package."""
    return (
        JsonLinesReader, CsvReader, DelimitedReader, JettyAccessReader, PulsarBrokerReader, CppClientReader,
        SystemTopicsReader,
    )  # fmt: skip
