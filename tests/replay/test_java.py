"""The Java that Spark runs in, started before Spark's own modules."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lookup.errors import SettingsError
from lookup.replay.java import EarlyJava, local_cores
from tests.processes import awaited, is_gone


@pytest.mark.parametrize(("master", "cores"), [("local", 1), ("local[3]", 3), ("local[2,4]", 2)])
def test_a_local_master_says_its_cores(master: str, cores: int) -> None:
    """The number in brackets counts, without one it is one task at a time."""
    assert local_cores(master) == cores


def test_a_star_is_every_core() -> None:
    """`local[*]` uses the machine."""
    assert local_cores("local[*]") == os.cpu_count()


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which files for the moment are made; there is no archive of classes."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("PULSAR_LOOKUP_CLASS_ARCHIVE", "off")
    return tmp_path


@pytest.mark.spark
def test_it_answers_calls_and_leaves_no_file(temporary: Path) -> None:
    """What it was started with arrives: the memory, and code that is compiled quickly."""
    java = EarlyJava()
    java.forward()
    gateway = java.gateway()

    assert list(temporary.iterdir()) == []
    management = gateway.jvm.java.lang.management.ManagementFactory
    assert {"-Xmx2g", "-XX:TieredStopAtLevel=1"} <= set(management.getRuntimeMXBean().getInputArguments())
    process = gateway.proc
    gateway.shutdown()
    java.stop()
    process.wait(60)


@pytest.mark.spark
def test_one_that_is_stopped_ends_and_leaves_no_file(temporary: Path) -> None:
    """Spark's script, Java and the folder between them are gone though it never answered."""
    java = EarlyJava()
    java.stop()

    # Whatever of it is started last ends at once.
    java._process.wait(60)
    assert list(temporary.iterdir()) == []


def test_one_that_cannot_start_is_a_sentence(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not waited for any longer."""
    monkeypatch.setenv("SPARK_HOME", str(temporary))
    script = temporary / "bin" / "spark-submit"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    script.chmod(0o700)

    with pytest.raises(SettingsError, match="Spark did not start: Java has ended; it needs Java 17 or newer"):
        EarlyJava().gateway()


@pytest.mark.spark
def test_it_ends_with_the_process_that_started_it(temporary: Path) -> None:
    """Also if that is killed."""
    started = "from lookup.replay.java import EarlyJava\njava = EarlyJava()\njava.gateway()\n"
    body = f"{started}print(java._process.pid, flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", body], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as process:
        assert process.stdout is not None
        java = int(process.stdout.readline())
        process.kill()

    awaited(lambda: is_gone(java))
