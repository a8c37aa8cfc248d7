"""`lookup evaluate` as a process of its own: without Java, with workers and JVMs that end, interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.commands.projects import FAILING, Ran, evaluation_of, names_in


def _heed_ctrl_c() -> None:
    """Undo what a shell does to its background jobs, which would be inherited: they do not notice Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _process(*argv: object, **environment: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "lookup.cli", *map(str, argv)]
    return subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=_heed_ctrl_c,  # noqa: PLW1509  nothing else runs in the child before its program
        env={"PATH": "/usr/bin:/bin", "NO_COLOR": "1", **environment},
    )


def test_without_java_it_is_one_sentence(tmp_path: Path, log: Path) -> None:
    """Where there is no Java the command says so and leaves nothing behind; as a process of its own."""
    config = evaluation_of(tmp_path, log)

    process = _process("evaluate", "--config", config, "--output", tmp_path / "o", JAVA_HOME="/no/java")
    out, err = process.communicate(timeout=120)

    ran = Ran(process.returncode, out, err)
    assert ran.mistakes == ["JAVA_HOME is '/no/java', but there is no bin/java; Spark needs Java 17 or newer"]
    assert names_in(tmp_path) == ["evaluation.toml"]


def test_an_unknown_master_is_one_sentence(tmp_path: Path, log: Path) -> None:
    """A master that Spark does not know is refused before a JVM is started."""
    process = _process(
        "evaluate", "--config", evaluation_of(tmp_path, log), "--output", tmp_path / "o", "--master", "lokal"
    )
    out, err = process.communicate(timeout=120)

    (mistake,) = Ran(process.returncode, out, err).mistakes
    assert mistake.startswith("--master: 'lokal' is no master that Spark knows; write local[*]")
    assert names_in(tmp_path) == ["evaluation.toml"]


@pytest.mark.spark
def test_a_worker_that_dies_is_one_sentence(tmp_path: Path, log: Path) -> None:
    """A worker that ends without a word, as for want of memory, is one sentence, and nothing is left."""
    dying = FAILING.replace('raise LookupError("no such rack")', "__import__('os')._exit(9)")
    (tmp_path / "failing.py").write_text(dying, encoding="utf-8")
    policy = '[[policies]]\nname = "fails"\nscorers = ["failing"]\nselector = "best"\n'
    config = evaluation_of(tmp_path, log, policy, 'plugin_files = ["failing.py"]\n')

    process = _process("evaluate", "--config", config, "--output", tmp_path / "o", **_java())
    out, err = process.communicate(timeout=120)

    assert Ran(process.returncode, out, err).mistakes == [
        "a Spark task failed: Python worker exited unexpectedly (crashed); out of memory?"
    ]
    assert [line for line in err.splitlines() if not line.startswith(("[", "error: "))] == []
    assert set(names_in(tmp_path)) - {"__pycache__"} == {"evaluation.toml", "failing.py"}


@pytest.mark.spark
def test_a_jvm_that_is_ended_is_one_sentence(tmp_path: Path, log: Path) -> None:
    """A JVM that the system ends, as it does where memory is short, is one sentence, and nothing is left."""
    process = _process("evaluate", "--config", evaluation_of(tmp_path, log), "--output", tmp_path / "o", **_java())
    assert process.stderr is not None
    for line in process.stderr:
        if "replaying" in line:
            break
    children = subprocess.run(["ps", "-A", "-o", "ppid=,pid=,comm="], capture_output=True, text=True, check=True).stdout
    (jvm,) = (words[1] for line in children.splitlines() if (words := line.split())[::2] == [str(process.pid), "java"])

    os.kill(int(jvm), signal.SIGKILL)
    out, err = process.communicate(timeout=120)

    (mistake,) = Ran(process.returncode, out, err).mistakes
    assert mistake == "Spark's Java process ended too early, with signal 9; out of memory?"
    assert names_in(tmp_path) == ["evaluation.toml"]


@pytest.mark.spark
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "terminated"])
def test_an_interruption_leaves_nothing(tmp_path: Path, log: Path, number: signal.Signals) -> None:
    """An interrupted run exits with 130 in one line, and neither output, draft nor JVM is left."""
    process = _process("evaluate", "--config", evaluation_of(tmp_path, log), "--output", tmp_path / "o", **_java())
    assert process.stderr is not None
    # Ctrl-C in the middle of a job, SIGTERM while Spark starts.
    awaited = "reading" if number is signal.SIGINT else "starting Spark"
    for line in process.stderr:
        if awaited in line:
            break
    time.sleep(0.5)

    # As a terminal does: everything the command has started gets it.
    os.killpg(process.pid, number)
    _, err = process.communicate(timeout=120)

    assert process.returncode == 130, err
    assert err.splitlines() == ["interrupted; nothing was written"]
    assert names_in(tmp_path) == ["evaluation.toml"]


def _java() -> dict[str, str]:
    return {"JAVA_HOME": os.environ["JAVA_HOME"]} if "JAVA_HOME" in os.environ else {}
