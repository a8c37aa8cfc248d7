"""A session on this machine whose workers have a Python of their own is asked as a cluster is, before any work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.replay.standalone import write_python

pytestmark = pytest.mark.spark

#: Programs that a session may find for its workers, each with what its name says.
_PROGRAMS = {
    # What this one has to import first must believe in its real version.
    "another-minor": """exec {python} -c '
import collections, runpy, sys
import pyspark.worker
names = "major minor micro releaselevel serial"
sys.version_info = collections.namedtuple("version_info", names)(3, 99, *sys.version_info[2:])
sys.argv[:] = sys.argv[2:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
' "$@"
""",
    "too-old": """exec {python} -c 'raise SyntaxError("what is match?")'\n""",
    "no-python": "exec true\n",
    "bare": """exec {python} -S "$@"\n""",
}
#: One JVM for all: each session after the first is started in it.
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
        steps = []
        try:
            answer = str(evaluate(settings, log, workers=workers, progress=steps.append).exit_code)
        except SettingsError as error:
            answer = f"{error} after {len(steps)} steps"
        said[f"{os.path.basename(program)} {way}"] = answer
    spark.stop()
print(json.dumps(said))
"""
_WAYS = ["session", "frame", "read"]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return what evaluations answer, by program and by how Spark comes in: as workers, a frame, a frame alone."""
    folder = tmp_path_factory.mktemp("pythons")
    base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    for name, text in _PROGRAMS.items():
        (folder / name).write_text("#!/bin/sh\n" + text.format(python=base))
        (folder / name).chmod(0o755)
    write_python(folder)
    programs = [str(folder / name) for name in (*_PROGRAMS, "python", "nowhere")]
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, *programs],
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers: dict[str, str] = json.loads(done.stdout)
    return answers


@pytest.mark.parametrize("way", _WAYS)
def test_another_minor_version_is_named(said: dict[str, str], way: str) -> None:
    """Both versions, and what to set where."""
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    sentence = said[f"another-minor {way}"]

    assert sentence.startswith(
        f"workers have Python 3.99, and here it is {here}; both must have the same: set PYSPARK_"
    )
    assert sentence.endswith("after 0 steps")


@pytest.mark.parametrize("way", _WAYS)
def test_wheels_that_a_sessions_python_lacks_are_named(said: dict[str, str], way: str) -> None:
    """With the program of the workers, for which they have to be installed."""
    sentence = said[f"bare {way}"]

    assert sentence.startswith("worker ")
    assert " lacks " in sentence
    assert "pyarrow " in sentence
    assert "/bare, what is installed here" in sentence
    assert sentence.endswith("after 0 steps")


@pytest.mark.parametrize("way", _WAYS)
@pytest.mark.parametrize(
    ("program", "why"), [("too-old", " (SyntaxError: what is match?)"), ("no-python", "")], ids=["too-old", "no-python"]
)
def test_program_that_is_no_python_of_spark_is_named(said: dict[str, str], way: str, program: str, why: str) -> None:
    """With the last line of what it printed, if it printed anything."""
    sentence = said[f"{program} {way}"]

    assert f"/{program} as a Python of Spark{why}; here it is 3." in sentence
    assert sentence.endswith("after 0 steps")


@pytest.mark.parametrize("way", _WAYS)
def test_path_without_a_program_is_named(said: dict[str, str], way: str) -> None:
    """As it is to a session of a cluster."""
    assert said[f"nowhere {way}"].startswith("workers have no Python at ")


@pytest.mark.parametrize("way", _WAYS)
def test_environment_without_this_package_does(said: dict[str, str], way: str) -> None:
    """Workers that have the wheels are sent the rest."""
    assert said[f"python {way}"] == "0"
