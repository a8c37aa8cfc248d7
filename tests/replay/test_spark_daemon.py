"""Workers of this machine's Spark are forked from a process that has loaded what they need, from bytecode."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark
import pytest

from lookup.replay.spark_daemon import without_archives
from tests.processes import awaited, is_gone

#: Starts a context as commands do, with a module that only this process has loaded, and prints what a task finds.
_WORKERS = """
import json, os, sys, wave
from lookup.replay.java import EarlyJava
from lookup.replay.quick_start import quick_context, waiting_daemon
from lookup.replay.spark_daemon import load

def look(item):
    import os, sys
    import pyarrow, pyspark
    return {
        "pyspark": pyspark.__file__, "is_forked": "wave" in sys.modules,
        "has_tasks": "lookup.replay.tasks" in sys.modules,
        "pool": pyarrow.default_memory_pool().backend_name, "variable": os.environ["PYTHONSAFEPATH"], "item": item,
        "daemon": os.getppid(), "path": sys.path,
    }

java = EarlyJava()
load()
BEFORE
daemon = waiting_daemon()
java.forward()
BETWEEN
context = quick_context("local[2]", java, daemon)
look.__module__ = "__main__"
print(json.dumps(context.parallelize([1, 2], 2).map(look).collect()), flush=True)
AFTER
"""


def _workers(folder: Path, *, before: str = "", between: str = "", after: str = "") -> list[dict[str, Any]]:
    """Return what tasks find on two workers; files for the moment are in a folder."""
    body = _WORKERS.replace("BEFORE", before).replace("BETWEEN", between).replace("AFTER", after)
    variables = {**os.environ, "TMPDIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", body], env=variables, capture_output=True, text=True, timeout=300, check=False
    )
    # Some are killed at their end.
    assert done.returncode in (0, -9), done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_only_archives_beside_an_installed_package_are_left_out(tmp_path: Path) -> None:
    """A Spark that was unpacked by itself has no package but the one in its archive."""
    archive, other = str(tmp_path / "python" / "lib" / "pyspark.zip"), "/site-packages"

    assert without_archives([archive, other], str(tmp_path)) == [archive, other]
    assert without_archives([archive, other], None) == [archive, other]
    (tmp_path / "__init__.py").touch()
    assert without_archives([archive, other], str(tmp_path)) == [other]


@pytest.mark.spark
@pytest.mark.skipif(sys.platform != "linux", reason="a fork is safe on Linux alone")
def test_workers_come_from_the_fork_that_waits(tmp_path: Path) -> None:
    """They have what the process that forked had loaded, Spark's variables, and memory that is kept."""
    found = _workers(tmp_path, before="sys.path.append('/only/here')")

    assert [worker["item"] for worker in found] == [1, 2]
    for worker in found:
        assert (worker["is_forked"], worker["has_tasks"], worker["pool"]) == (True, True, "system")
        assert (worker["pyspark"], worker["variable"]) == (pyspark.__file__, "1")
        assert "/only/here" not in worker["path"]


@pytest.mark.spark
@pytest.mark.skipif(sys.platform != "linux", reason="a fork is safe on Linux alone")
def test_without_a_fork_workers_load_their_modules_themselves(tmp_path: Path) -> None:
    """The fork has ended, as if the system had killed it: nothing else is different."""
    # The last process that was started here; Java has been started before it.
    last = "open(f'/proc/self/task/{os.getpid()}/children').read().split()[-1]"
    found = _workers(tmp_path, between=f"os.kill(int({last}), 9)")

    for worker in found:
        assert (worker["is_forked"], worker["has_tasks"], worker["pool"]) == (False, True, "system")
        assert worker["pyspark"] == pyspark.__file__


@pytest.mark.spark
def test_nothing_is_forked_once_a_store_is_connected(tmp_path: Path) -> None:
    """The connection's threads would not be in the fork; its workers would crash when they read from the store."""
    connect = "import lookup.logs.sources\nos.environ['AWS_REGION'] = 'r'\nlookup.logs.sources.locate('s3://bucket')"
    found = _workers(tmp_path, before=connect)

    assert [worker["is_forked"] for worker in found] == [False, False]


@pytest.mark.spark
def test_where_a_fork_cannot_wait_there_is_none(tmp_path: Path) -> None:
    """The name of a socket in this folder would be too long for the system; nothing of the attempt is left."""
    folder = tmp_path / ("f" * 100)
    folder.mkdir()
    found = _workers(folder, between="assert daemon is None")

    assert [worker["is_forked"] for worker in found] == [False, False]
    assert list(folder.iterdir()) == []


@pytest.mark.spark
@pytest.mark.skipif(sys.platform != "linux", reason="a fork is safe on Linux alone")
def test_a_fork_in_use_ends_with_spark(tmp_path: Path) -> None:
    """The process that forked goes on, and has no child but Java, nor a file of the fork."""
    children = "[child for child in __import__('psutil').Process().children() if child.name() != 'java']"
    found = _workers(tmp_path, after=f"context.stop()\ndaemon.end()\nassert not {children}")

    assert all(is_gone(worker["daemon"]) for worker in found)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
def test_a_fork_in_use_ends_with_its_process(tmp_path: Path) -> None:
    """It is not left behind by a command that is killed."""
    found = _workers(tmp_path, after="os.kill(os.getpid(), 9)")

    awaited(lambda: all(is_gone(worker["daemon"]) for worker in found))


@pytest.mark.skipif(sys.platform != "linux", reason="a fork is safe on Linux alone")
@pytest.mark.parametrize(
    "end", ["os.kill(os.getpid(), 9)", "daemon.end()\n" * 2 + "os.waitpid(-1, 0)"], ids=["killed", "ended"]
)
def test_a_fork_that_waits_ends_with_its_process_or_when_asked(end: str, tmp_path: Path) -> None:
    """Its socket and the folder of that go with it, and it is waited for."""
    body = f"import os\nfrom lookup.replay.spark_daemon import WaitingDaemon\ndaemon = WaitingDaemon()\n{end}"
    variables = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.run(
        [sys.executable, "-c", body], env=variables, stderr=subprocess.PIPE, text=True, check=False
    )

    assert process.returncode == -9 or "No child processes" in process.stderr
    awaited(lambda: not list(tmp_path.iterdir()))
