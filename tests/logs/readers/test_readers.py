"""What holds for every built-in reader: the door, the settings, and never an exception."""

from __future__ import annotations

import pickle
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.engine.build import PartBuilder, part_table
from lookup.engine.plugins import load_plugins
from lookup.hooks import LogReader
from lookup.logs.ingest import load_reader
from lookup.logs.readers import (
    CppClientReader,
    CsvReader,
    DelimitedReader,
    JettyAccessReader,
    JsonLinesReader,
    PulsarBrokerReader,
    SystemTopicsReader,
    lookup_register_log_readers,
)
from lookup.model.documents import Refuted, Row, Unreadable
from lookup.settings import PartSpec
from tests.logs.readers.lines import hostile_lines

_CONFIGS = Path(__file__).parent.parent.parent.parent / "configs"
_MAPPINGS = (_CONFIGS / "nasa.toml", *sorted((_CONFIGS / "mappings").glob("*.toml")))
_TIME = {"column": "a", "format": "unix"}
_READERS: tuple[LogReader, ...] = (
    JsonLinesReader(),
    CsvReader(),
    CsvReader(table="ownership"),
    DelimitedReader(topic="persistent://t/ns/{a}", timestamp=_TIME, header=False, columns=("a", "b"), quote='"'),
    DelimitedReader(topic="persistent://t/ns/{a}", timestamp={"column": "a"}, pattern="(?P<a>.*)"),
    DelimitedReader(topic="persistent://t/ns/{message}", timestamp={"column": "instant.epochSecond"}, format="json"),
    JettyAccessReader(date="2026-01-31"),
    PulsarBrokerReader(date="2026-01-31"),
    CppClientReader(),
    SystemTopicsReader(),
)


def _build(table: dict[str, Any]) -> LogReader:
    use = table.pop("use")
    builder = PartBuilder(load_plugins())
    reader = builder.part("log_readers", PartSpec(use=use, parameters=table), "mapping")
    assert not builder.problems
    assert isinstance(reader, LogReader)
    return reader


@given(st.sampled_from(_READERS), hostile_lines())
def test_no_reader_raises_on_any_text(reader: LogReader, lines: list[str]) -> None:
    """Whatever the lines hold, a reader answers rows and unreadable records that name lines of the source."""
    for entry in reader.parse(iter(enumerate(lines, start=1)), "some/file.log"):
        assert isinstance(entry, Row | Unreadable | Refuted)
        assert 1 <= entry.line <= len(lines)


@pytest.mark.parametrize("path", _MAPPINGS, ids=lambda path: path.stem)
def test_every_shipped_mapping_builds_its_reader(path: Path) -> None:
    """A mapping file is a reader's name and parameters, and goes through the door of the parts."""
    assert _build(tomllib.loads(path.read_text())) == load_reader(load_plugins(), mapping=path)


@pytest.mark.parametrize("reader", _READERS, ids=lambda reader: reader.name)
def test_a_reader_survives_pickle_and_settings(reader: LogReader) -> None:
    """A reader is equal to itself after pickling and after being written as settings and built again."""
    assert pickle.loads(pickle.dumps(reader)) == reader
    assert _build(part_table(reader)) == reader


def test_all_readers_are_registered_under_their_own_names() -> None:
    """The hook answers each reader once."""
    names = [reader.name for reader in lookup_register_log_readers()]
    assert sorted(names) == [
        "cpp-client", "csv", "delimited", "jetty-access", "jsonl", "pulsar-broker", "pulsar-system-topics",
    ]  # fmt: skip
