"""How policies and plug-ins come to workers."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lookup.engine.plugins import contents_of, load_contents, load_plugins
from lookup.errors import PluginError
from lookup.logs.ingest import ingest
from lookup.replay.tasks import built, built_here, metrics_of, ship
from tests.replay.plans import settings

_READER = """
from dataclasses import dataclass
from typing import ClassVar
from lookup.hooks import hookimpl
from lookup.model import Row

@dataclass(frozen=True)
class Reader:
    name: ClassVar[str] = "reader"

    def parse(self, lines, source):
        for number, line in lines:
            yield Row("lookups", number, {"ts": number, "topic": f"persistent://t/n/WORD-{line}"})

@hookimpl
def lookup_register_log_readers():
    return [Reader]
"""


def test_workers_build_what_the_driver_built() -> None:
    """A recipe gives equal policies, and every metric there is."""
    file = settings(policies=[{"name": "p", "selector": {"use": "explore", "epsilon": 0.2}, "on_error": "skip"}])
    policies, metrics = built(ship(file))

    assert policies == built_here(file)
    assert [metric.name for metric in metrics] == [metric.name for metric in metrics_of(load_plugins())]


def test_plug_in_files_travel_by_content(tmp_path: Path) -> None:
    """What was read on one machine is loaded on another, where the file is not."""
    file = tmp_path / "travels.py"
    file.write_text(_READER)
    contents = contents_of([str(file)])
    file.unlink()

    assert load_contents(contents).find("log_readers", "reader").name == "reader"


def test_a_plug_in_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    """A mistake in a plug-in file is told on the driver, with the file's own path."""
    file = tmp_path / "wrong.py"
    file.write_text("import nothing_of_that_name")

    with pytest.raises(PluginError, match=rf"plug-in file {file} cannot be loaded: .*nothing_of_that_name"):
        built_here(settings(plugin_files=[str(file)]))


@pytest.mark.spark
def test_an_edited_reader_is_loaded_again(spark: SparkSession, tmp_path: Path) -> None:
    """A session reads with the plug-in file as it is at each ingest, also when an old state comes back."""
    plugin, log = tmp_path / "edited_reader.py", tmp_path / "log.txt"
    log.write_text("line\n")
    found = []
    for run, word in enumerate(("one", "two", "one")):
        plugin.write_text(_READER.replace("WORD", word))
        reader = load_plugins([plugin]).find("log_readers", "reader")()
        output = tmp_path / str(run)
        ingest(spark, [str(log)], reader, str(output), cluster="c", plugin_files=[str(plugin)])
        found += [row["topic"] for row in spark.read.parquet(str(output / "lookups")).collect()]

    assert found == [f"persistent://t/n/{word}-line" for word in ("one", "two", "one")]
