"""A session on this machine whose workers have a Python of their own is sent the code, and compares versions."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.replay.standalone import write_older_python, write_python

pytestmark = pytest.mark.spark

#: One JVM for both: the second session is started in it.
_SCRIPT = """
import json, os, sys
import pyarrow as pa
from pyspark.sql import SparkSession
from lookup import evaluate
from lookup.errors import SettingsError
from lookup.logs.jobs import InProcess

brokers = [{"id": f"broker-{rack}:8080", "properties": {"lookup.rack": rack}} for rack in "ab"]
settings = {
    "evaluation": {"incumbent": "random", "default_bundles": 1, "seeds": 2},
    "brokers": brokers,
    "policies": [{"name": "random", "selector": "random"}, {"name": "again", "selector": "random"}],
}
rows = [
    {"ts": 1769860800_000_000 + n, "seq": n, "cluster": "east", "topic": f"persistent://shop/team/{n}"}
    for n in range(40)
]
said = {}
for program in sys.argv[1:]:
    os.environ["PYSPARK_PYTHON"] = program
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", False).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    frame = spark.createDataFrame(rows)
    ways = {"session": (pa.Table.from_pylist(rows), spark), "frame": (frame, None), "read": (frame, InProcess())}
    for way, (log, workers) in ways.items():
        try:
            answer = str(evaluate(log, settings=settings, workers=workers).exit_code)
        except SettingsError as error:
            answer = str(error)
        said[f"{os.path.basename(program)} {way}"] = answer
    spark.stop()
print(json.dumps(said))
"""
_WAYS = ["session", "frame", "read"]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return what evaluations answer, by program and by how Spark comes in: as workers, a frame, a frame alone."""
    folder = tmp_path_factory.mktemp("pythons")
    write_python(folder)
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(folder / "python"), str(write_older_python(folder))],
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers: dict[str, str] = json.loads(done.stdout)
    return answers


@pytest.mark.parametrize("way", _WAYS)
def test_environment_without_this_package_does(said: dict[str, str], way: str) -> None:
    """Workers that have the wheels are sent the rest."""
    assert said[f"python {way}"] == "0"


@pytest.mark.parametrize("way", _WAYS)
def test_another_version_is_named(said: dict[str, str], way: str) -> None:
    """Both versions, and the worker."""
    sentence = said[f"other {way}"]

    assert sentence.startswith("worker ")
    assert " numpy 1.0 instead of " in sentence
