"""`lookup evaluate` as a process of its own: without Java, with workers and JVMs that end, interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.commands.projects import FAILING, Ran, evaluation_of, names_in
from tests.processes import HEEDING, awaited, is_gone, java_of

_ON_SPARK = ("--master", "local[*]")


@contextmanager
def _process(*argv: object, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command; if its test fails, it is not left behind."""
    with subprocess.Popen(
        [sys.executable, "-c", HEEDING, *map(str, argv)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={"PATH": "/usr/bin:/bin", "NO_COLOR": "1", **environment},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _with_scorer(folder: Path, log: Path, statement: str) -> Path:
    """Write an evaluation whose only policy asks a scorer that does what a statement says."""
    plugin = FAILING.replace('raise LookupError("no such rack")', statement)
    (folder / "failing.py").write_text(plugin, encoding="utf-8")
    policy = '[[policies]]\nname = "fails"\nscorers = ["failing"]\nselector = "best"\n'
    return evaluation_of(folder, log, policy, 'plugin_files = ["failing.py"]\n')


def _left(folder: Path) -> set[str]:
    return set(names_in(folder)) - {"__pycache__"}


def _said(err: str) -> list[str]:
    """Return what is no progress."""
    return [line for line in err.splitlines() if not line.startswith("[")]


@pytest.mark.spark
def test_a_worker_that_dies_is_one_sentence(tmp_path: Path, log: Path) -> None:
    """A worker that ends without a word, as for want of memory, is one sentence, and nothing is left."""
    config = _with_scorer(tmp_path, log, "__import__('os')._exit(9)")

    with _process("evaluate", config, "--output", tmp_path / "o", *_ON_SPARK, **_java()) as process:
        out, err = process.communicate(timeout=300)

    (mistake,) = Ran(process.returncode, out, err).mistakes
    assert mistake.startswith("a Spark task failed: Python worker")
    assert [line for line in _said(err) if not line.startswith("error: ")] == []
    assert _left(tmp_path) == {"evaluation.toml", "failing.py"}


@pytest.mark.parametrize("master", [pytest.param(_ON_SPARK, marks=pytest.mark.spark), ()], ids=["spark", "default"])
def test_threads_and_files_of_a_plug_in_s_modules_are_there_for_its_tasks(
    tmp_path: Path, log: Path, master: tuple[str, ...]
) -> None:
    """Spark's workers load them anew, and a process with threads is not forked: a fork would have neither."""
    module = "import tempfile\nfrom concurrent.futures import ThreadPoolExecutor\nFILE, POOL = {}, {}\nPOOL.{}"
    made = ("tempfile.TemporaryFile()", "ThreadPoolExecutor(1)", "submit(int).result()")
    (tmp_path / "table.py").write_text(module.format(*made), encoding="utf-8")
    rows = "__import__('table').POOL.submit(__import__('table').FILE.seek, 0).result(60)"
    config = _with_scorer(tmp_path, log, f"return [float({rows})] * len(brokers)")
    with (tmp_path / "failing.py").open("a", encoding="utf-8") as plugin:
        plugin.write("\nimport table\n")
    variables = {**_java(), "PYTHONPATH": str(tmp_path)}

    with _process("evaluate", config, "--output", tmp_path / "o", *master, **variables) as process:
        _, err = process.communicate(timeout=300)

    assert process.returncode == 0, err
    assert (tmp_path / "o" / "manifest.json").exists()


@pytest.mark.spark
def test_hashes_of_texts_are_the_same_in_each_run(tmp_path: Path, log: Path) -> None:
    """A policy that goes by them decides alike on Spark and without."""
    config = _with_scorer(tmp_path, log, "return [hash(it.id) % 1000 / 1000 for it in brokers]")
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    summaries = []
    for output, master in (("a", "none"), ("b", "none"), ("c", "local[1]")):
        words = ("evaluate", config, "--output", tmp_path / output, "--master", master)
        done = subprocess.run([sys.executable, "-m", "lookup", *words], env=variables, capture_output=True, check=False)
        # Of so few lookups it may stay open whether one is lost.
        assert done.returncode in (0, 4), done.stderr
        summaries.append((tmp_path / output / "summary.json").read_bytes())

    assert summaries == summaries[:1] * 3


@pytest.fixture
def endless(tmp_path: Path, log: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Start an evaluation that never ends, and return it with the file that is there once it is replaying."""
    asked = tmp_path / "asked"
    statement = f"__import__('pathlib').Path({str(asked)!r}).touch() or __import__('time').sleep(3600)"
    config = _with_scorer(tmp_path, log, statement)
    with _process("evaluate", config, "--output", tmp_path / "o", *_ON_SPARK, **_java()) as process:
        yield process, asked


@pytest.mark.spark
def test_a_jvm_that_is_ended_is_one_sentence(endless: tuple[subprocess.Popen[str], Path]) -> None:
    """A JVM that the system ends, as it does where memory is short, is one sentence, and nothing is left."""
    process, asked = endless
    awaited(lambda: asked.exists() or process.poll() is not None)

    os.kill(awaited(lambda: java_of(process.pid)), signal.SIGKILL)
    out, err = process.communicate(timeout=300)

    (mistake,) = Ran(process.returncode, out, err).mistakes
    assert "with signal 9" in mistake
    assert _left(asked.parent) == {"evaluation.toml", "failing.py", "asked"}


@pytest.mark.spark
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "terminated"])
def test_an_interruption_leaves_nothing(endless: tuple[subprocess.Popen[str], Path], number: signal.Signals) -> None:
    """An interrupted run exits with 130 in one line, and neither output, draft nor JVM is left."""
    process, asked = endless
    java = awaited(lambda: java_of(process.pid))
    # Ctrl-C in the middle of a job, SIGTERM while Spark starts.
    if number is signal.SIGINT:
        awaited(lambda: asked.exists() or process.poll() is not None)

    # As a terminal does: everything the command has started gets it.
    os.killpg(process.pid, number)
    _, err = process.communicate(timeout=300)

    assert process.returncode == 130, err
    assert _said(err) == ["interrupted; nothing was written"]
    assert _left(asked.parent) - {"asked"} == {"evaluation.toml", "failing.py"}
    assert awaited(lambda: is_gone(java))


def test_an_interruption_ends_the_forks(tmp_path: Path, log: Path) -> None:
    """Ctrl-C without Spark is the same sentence, and no process of the run is left."""
    asked = tmp_path / "asked"
    asked.mkdir()
    statement = f"__import__('pathlib').Path({str(asked)!r}, str(__import__('os').getpid())).touch() or "
    config = _with_scorer(tmp_path, log, f"{statement}__import__('time').sleep(3600)")
    with _process("evaluate", config, "--output", tmp_path / "o", "--master", "none") as process:
        awaited(lambda: any(asked.iterdir()) or process.poll() is not None)
        forks = [int(path.name) for path in asked.iterdir()]

        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=300)

    assert (process.returncode, _said(err)) == (130, ["interrupted; nothing was written"])
    assert _left(tmp_path) == {"evaluation.toml", "failing.py", "asked"}
    assert awaited(lambda: all(map(is_gone, forks)))


def _java() -> dict[str, str]:
    return {"JAVA_HOME": os.environ["JAVA_HOME"]} if "JAVA_HOME" in os.environ else {}
