"""A server of Spark Connect whose workers lack the package gives the bytes of this machine, or says what is missing."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes import HEEDING, awaited
from tests.replay.commands import ROOT, differences, evaluation, lookup
from tests.replay.standalone import running_connect, write_older_python, write_python

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def pythons(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a Python that has the wheels alone, as `python`, and one with an older numpy, as `other`."""
    folder = tmp_path_factory.mktemp("pythons")
    write_python(folder)
    write_older_python(folder)
    return folder


@pytest.fixture(scope="module")
def server(pythons: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a server whose workers lack the package."""
    with running_connect(tmp_path_factory.mktemp("connect"), pythons / "python") as url:
        yield url


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generate a log of two clusters."""
    folder = tmp_path_factory.mktemp("sample") / "sample"
    done = lookup("generate", "--lookups", "5000", "--output", str(folder))
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def here(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Evaluate without Spark."""
    output = tmp_path_factory.mktemp("here") / "output"
    done = lookup(*_evaluation(sample, output), "--master", "none")
    assert done.returncode in (0, 3, 4), done.stderr
    return output


def _evaluation(sample: Path, output: Path, config: str = "configs/evaluation.toml") -> list[str]:
    """Return the words of an evaluation that is over soon."""
    return [*evaluation(sample, output, config), "--set", "evaluation.seeds=2"]


def _said(err: str) -> list[str]:
    """Return what is no progress."""
    return [line for line in err.splitlines() if not line.startswith("[")]


@pytest.mark.parametrize("master", ["local[2]", None])
def test_bytes_are_those_of_this_machine(
    server: str, sample: Path, here: Path, tmp_path: Path, master: str | None
) -> None:
    """A server gives the bytes that this process gives, and so does a session of Spark on this machine."""
    done = lookup(*_evaluation(sample, tmp_path / "there"), "--master", master or server)

    assert done.returncode in (0, 3, 4), done.stderr
    assert differences(here, tmp_path / "there") == []


_NOTEBOOK = """
import sys
from pyspark.sql import SparkSession
from lookup import evaluate
from lookup.logs.jobs import InProcess

url, config, sample, output = sys.argv[1:]
spark = SparkSession.builder.remote(url).getOrCreate()
tables = {f"inputs.{name}": f"{sample}/{name}" for name in ("lookups", "brokers", "loads", "bundles", "ownership")}
tables["evaluation.seeds"] = 2
frame = spark.read.parquet(f"{sample}/lookups")
evaluate(settings=config, overrides=tables, output=f"{output}/active")
evaluate(frame, settings=config, overrides=tables, output=f"{output}/frame", workers=spark)
evaluate(frame, settings=config, overrides=tables, output=f"{output}/read", workers=InProcess(2))
"""


def test_session_of_a_notebook_is_used_as_it_is(server: str, sample: Path, here: Path, tmp_path: Path) -> None:
    """The active session runs tasks and reads frames; what it reads may be replayed in this process."""
    done = subprocess.run(
        [sys.executable, "-c", _NOTEBOOK, server, "configs/evaluation.toml", str(sample), str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert differences(here, tmp_path / "active") == []
    assert (tmp_path / "frame" / "summary.json").read_bytes() == (tmp_path / "read" / "summary.json").read_bytes()


def test_interruption_ends_what_the_server_does(server: str, sample: Path, tmp_path: Path) -> None:
    """The server's core is free again at once."""
    begun, plugin = tmp_path / "begun", tmp_path / "endless.py"
    text = (ROOT / "tests" / "assets" / "plain_policy.py").read_text()
    wait = f"__import__('pathlib').Path({str(begun)!r}).touch() or __import__('time').sleep(3600)"
    plugin.write_text(text.replace("rack = request", f"{wait}\n        rack = request"))
    config = tmp_path / "evaluation.toml"
    config.write_text(
        f'plugin_files = ["{plugin}"]\n[evaluation]\nincumbent = "p"\n[inputs]\nlookups = "set"\n'
        '[[policies]]\nname = "p"\nscorers = ["same-rack"]\nselector = "best"\n'
    )
    words = (*_evaluation(sample, tmp_path / "o", str(config)), "--master", server)
    with subprocess.Popen([sys.executable, "-c", HEEDING, *words], stderr=subprocess.PIPE, text=True) as process:
        awaited(lambda: begun.exists() or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)

    assert process.returncode == 130, err
    assert _said(err) == ["interrupted; nothing was written"]
    again = lookup(*_evaluation(sample, tmp_path / "again"), "--master", server)
    assert again.returncode in (0, 3, 4), again.stderr


def test_other_versions_of_workers_are_named(pythons: Path, sample: Path, tmp_path: Path) -> None:
    """Both versions, and the worker."""
    with running_connect(tmp_path, pythons / "other") as url:
        done = lookup(*_evaluation(sample, tmp_path / "o"), "--master", url)

    (mistake,) = _said(done.stderr)
    assert done.returncode == 2
    assert mistake.startswith("error: worker ")
    assert " numpy 1.0 instead of " in mistake


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("sc://127.0.0.1:1", "--master: nobody answers at sc://127.0.0.1:1; "),
        ("sc://127.0.0.1:x/;token=t", "--master: '127.0.0.1:x' of "),
    ],
)
def test_what_is_no_server_is_one_sentence(sample: Path, tmp_path: Path, url: str, sentence: str) -> None:
    """Nobody answers, or the address is none."""
    done = lookup(*_evaluation(sample, tmp_path / "o"), "--master", url)

    assert (done.returncode, _said(done.stderr)[0].startswith(f"error: {sentence}")) == (2, True)


def test_missing_packages_are_one_sentence(server: str, sample: Path, tmp_path: Path) -> None:
    """Which extra has them."""
    program = tmp_path / "program.py"
    program.write_text("import sys\nsys.modules['grpc'] = None\nfrom lookup.cli import main\nsys.exit(main())\n")
    words = [*_evaluation(sample, tmp_path / "o"), "--master", server]
    done = subprocess.run([sys.executable, program, *words], cwd=ROOT, capture_output=True, text=True, check=False)

    (mistake,) = _said(done.stderr)
    assert done.returncode == 2
    assert "pip install 'pulsar-lookup[connect]'" in mistake
