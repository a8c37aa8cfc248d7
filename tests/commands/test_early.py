"""Spark starts beside a command, and is left where it is not wanted."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from lookup.commands.early import EarlySpark
from tests.commands.projects import evaluation_of
from tests.processes import awaited, output_of

#: A mistake that is found while Spark starts, and the processes that are left besides Java, which ends with this one.
MISTAKEN = """
import psutil
from lookup.commands.early import early_spark
from lookup.errors import SettingsError

try:
    with early_spark("local[1]") as early:
        {wait}
        raise SettingsError("a mistake")
except SettingsError as error:
    print(error, [child.name() for child in psutil.Process().children() if child.name() != "java"], flush=True)
"""


@pytest.mark.spark
@pytest.mark.parametrize(
    "wait",
    ["pass", "early.load(); early.begin()", "early.load(); early.begin(); early.workers.sparkContext"],
    ids=["java", "starting", "started"],
)
def test_a_mistake_leaves_a_spark_that_starts(wait: str, tmp_path: Path) -> None:
    """The sentence is printed, Java ends, and no file is left of its start."""
    assert output_of(MISTAKEN.format(wait=wait), TMPDIR=str(tmp_path)) == "a mistake []\n"
    assert awaited(lambda: not _processes_with("TMPDIR", str(tmp_path)))
    assert awaited(lambda: not list(tmp_path.iterdir()))


def _processes_with(variable: str, value: str) -> list[int]:
    """Return the processes that have an environment variable."""
    found = []
    for process in psutil.process_iter():
        # One that ends meanwhile, or has ended, is none of them.
        with suppress(psutil.Error):
            if process.environ().get(variable) == value:
                found.append(process.pid)
    return found


@pytest.mark.spark
def test_java_starts_before_modules_of_spark_and_arrow_are_loaded() -> None:
    """Both start at the same time only if nobody waits for the other."""
    heavy = "sorted({'pyspark', 'py4j', 'pyarrow', 'lookup.settings'} & set(sys.modules))"
    body = f"""
import subprocess, sys
start = subprocess.Popen.__init__
def noted(*arguments, **keywords):
    print({heavy})
    start(*arguments, **keywords)
subprocess.Popen.__init__ = noted
from lookup import cli
sys.exit(cli.main(["evaluate", "--config", "none.toml", "--output", "o", "--master", "local[1]"]) - 2)
"""
    done = subprocess.run([sys.executable, "-c", body], capture_output=True, text=True, timeout=300, check=False)

    # What a command prints besides its data goes to stderr.
    assert (done.returncode, done.stderr.splitlines()[0]) == (0, "[]"), done.stderr


@pytest.mark.spark
def test_a_mistake_in_the_inputs_does_not_wait_for_spark(tmp_path: Path) -> None:
    """It is found while Java starts, which takes for ever here, and ends that."""
    script = tmp_path / "bin" / "spark-submit"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\nexec sleep 3600\n", encoding="utf-8")
    script.chmod(0o700)
    config = evaluation_of(tmp_path, tmp_path / "no-log")
    command = [sys.executable, "-m", "lookup", "evaluate", "--config", config, "--output", tmp_path / "o"]

    done = subprocess.run(
        command,
        env={**os.environ, "SPARK_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 2
    assert "no-log" in done.stderr
    assert _processes_with("SPARK_HOME", str(tmp_path)) == []


@pytest.mark.parametrize(
    "variables",
    [{"PYSPARK_GATEWAY_PORT": "1"}, {"PYSPARK_SUBMIT_ARGS": "pyspark-shell"}, {"JAVA_HOME": "/no/java"}],
    ids=["submitted", "arguments", "java"],
)
def test_nothing_is_started_where_there_cannot_be_one(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under `spark-submit` and without Java it is found out later who runs the tasks, with its own sentences."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert not _starts("local[2]")


@pytest.mark.parametrize("master", ["spark://10.0.0.1:7077", "none", "local[0]"])
def test_nothing_is_started_for_another_master(master: str) -> None:
    """A cluster has its own session, and without Spark nothing is needed."""
    assert not _starts(master)


def _starts(master: str) -> bool:
    early = EarlySpark(master)
    early.load()
    early.begin()
    return early.workers is not None
