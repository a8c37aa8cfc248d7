"""From a mapping file to a reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from lookup.engine.plugins import Registry, load_plugins
from lookup.errors import SettingsError
from lookup.logs.ingest import load_reader
from lookup.logs.readers import DelimitedReader, JsonLinesReader

_MAPPING = 'topic = "persistent://t/ns/{page}"\ntimestamp = { column = "time" }\nweight = { column = "bytes" }\n'


@pytest.fixture(scope="module")
def registry() -> Registry:
    """Load the plug-ins once."""
    return load_plugins()


def test_a_name_alone_builds_a_reader_with_its_defaults(registry: Registry) -> None:
    """A reader whose parameters all have defaults needs no file."""
    assert load_reader(registry, reader="jsonl") == JsonLinesReader()


def test_a_mapping_brings_parameters_and_may_bring_the_name(registry: Registry, tmp_path: Path) -> None:
    """The name stands in the file, on the command line, or in both; `weight` is the reader's own parameter."""
    bare, named = tmp_path / "bare.toml", tmp_path / "named.toml"
    bare.write_text(_MAPPING)
    named.write_text(f'use = "delimited"\n{_MAPPING}')
    expected = DelimitedReader(
        topic="persistent://t/ns/{page}", timestamp={"column": "time"}, weight={"column": "bytes"}
    )

    assert load_reader(registry, reader="delimited", mapping=bare) == expected
    assert load_reader(registry, mapping=named) == expected
    assert load_reader(registry, reader="delimited", mapping=named) == expected


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        (None, _MAPPING, "give reader='NAME'"),
        ("jsonl", f'use = "delimited"\n{_MAPPING}', "'delimited', but reader says 'jsonl'"),
        ("delimitd", _MAPPING, "no log reader named 'delimitd'"),
        ("delimited", f"{_MAPPING}hedaer = true", "no parameter 'hedaer'"),
        ("delimited", _MAPPING.replace("{page}", ""), "topic template .* is not"),
        ("delimited", 'topic = "persistent://t/ns/x"', "the parameter 'timestamp'"),
        ("delimited", f"{_MAPPING}header = 3", "header = 3: "),
        (None, "use = 3", "use = 3 is not"),
    ],
)
def test_a_mistake_is_a_sentence_with_the_file(
    registry: Registry, tmp_path: Path, name: str | None, text: str, sentence: str
) -> None:
    """Missing and contradicting names, unknown keys and wrong values are settings errors."""
    path = tmp_path / "mapping.toml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=sentence):
        load_reader(registry, reader=name, mapping=path)


def test_a_missing_mapping_is_named(registry: Registry, tmp_path: Path) -> None:
    """A file that is not there is a settings error with its path."""
    with pytest.raises(SettingsError, match=r"nowhere\.toml"):
        load_reader(registry, reader="delimited", mapping=tmp_path / "nowhere.toml")
