"""A standalone Spark cluster whose workers lack the package gives the bytes of this machine, or says what it lacks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lookup import __main__ as lookup_main
from tests.processes import awaited
from tests.replay.commands import ROOT, differences, evaluation, lookup
from tests.replay.installing import write_metadata
from tests.replay.standalone import SPARK, Standalone, running_standalone

pytestmark = pytest.mark.cluster

_ASSETS = ROOT / "tests" / "assets"


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """Start a cluster without workers."""
    with running_standalone(tmp_path_factory.mktemp("alone")) as started:
        yield started


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """Start a cluster with two workers."""
    with running_standalone(tmp_path_factory.mktemp("spark")) as started:
        for number in (1, 2):
            started.start_worker(number)
        yield started


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generate a log of two clusters."""
    folder = tmp_path_factory.mktemp("sample") / "sample"
    done = lookup("generate", "--lookups", "20000", "--output", str(folder))
    assert done.returncode == 0, done.stderr
    return folder


def _require_equal(
    cluster: Standalone, sample: Path, folder: Path, config: str, variables: dict[str, str] | None = None
) -> None:
    """Evaluate here without Spark and on the cluster; nothing may differ."""
    there = {**cluster.variables(), **(variables or {})}
    here = lookup(*evaluation(sample, folder / "here", config), "--master", "none", variables={**os.environ, **there})
    assert here.returncode in (0, 3, 4), here.stderr

    done = lookup(*evaluation(sample, folder / "there", config), "--master", cluster.master, variables=there)

    assert done.returncode == here.returncode, done.stderr
    assert differences(folder / "here", folder / "there") == []


def test_sixteen_policies_are_those_of_this_machine(cluster: Standalone, sample: Path, tmp_path: Path) -> None:
    """So do sixteen, whose parts keep memory, explore and shed."""
    config = tmp_path / "sixteen.toml"
    text = (ROOT / "benchmarks" / "evaluation-16.toml").read_text()
    config.write_text(text.replace("[evaluation]", "[evaluation]\nseeds = 2", 1))
    _require_equal(cluster, sample, tmp_path, str(config))


_PLUGINS = """
plugin_files = ["{file}"]

[evaluation]
incumbent = "file"
seeds = 2

[inputs]
lookups = "set on the command line"

[[policies]]
name = "file"
scorers = ["same-rack"]
selector = "best"

[[policies]]
name = "distribution"
filters = ["not-drained"]
selector = "sticky-tenant"
"""


def test_plugins_need_not_be_installed_on_workers(cluster: Standalone, sample: Path, tmp_path: Path) -> None:
    """Parts of a plug-in file and of a distribution that is installed here alone decide on the workers."""
    installed = tmp_path / "installed"
    write_metadata(installed, "lookup_sample_plugin", "0.1.0")
    shutil.copy(_ASSETS / "sample_plugin" / "lookup_sample_plugin.py", installed)
    config = tmp_path / "plugins.toml"
    config.write_text(_PLUGINS.format(file=_ASSETS / "plain_policy.py"))

    _require_equal(cluster, sample, tmp_path, str(config), {"PYTHONPATH": str(installed)})


def _submitted(cluster: Standalone, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `spark-submit` with the main file of this package, as docs/cluster.md does."""
    return subprocess.run(
        [SPARK / "bin" / "spark-submit", "--master", cluster.master, *words[:2], lookup_main.__file__, *words[2:]],
        cwd=ROOT,
        env=cluster.variables() | {"SPARK_HOME": str(SPARK), "PYSPARK_DRIVER_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )


def test_spark_submit_from_a_gateway_is_this_machine(cluster: Standalone, sample: Path, tmp_path: Path) -> None:
    """In client mode `spark-submit` ends with the code of the verdict, and the bytes are those of this machine."""
    here = lookup(*evaluation(sample, tmp_path / "here"), "--master", "none")

    done = _submitted(cluster, "--deploy-mode", "client", *evaluation(sample, tmp_path / "there"))

    assert done.returncode == here.returncode, done.stderr
    assert "No candidate is worse than the incumbent" in done.stdout
    assert differences(tmp_path / "here", tmp_path / "there") == []


def test_standalone_clusters_refuse_cluster_mode(cluster: Standalone, sample: Path, tmp_path: Path) -> None:
    """Which docs/cluster.md says: Spark has no cluster mode for Python there, and a run begins in none."""
    done = _submitted(cluster, "--deploy-mode", "cluster", *evaluation(sample, tmp_path / "out"))

    assert done.returncode == 1
    assert "not supported for python applications on standalone clusters" in done.stderr
    assert not (tmp_path / "out").exists()


def test_log_is_ingested_on_workers(cluster: Standalone, tmp_path: Path) -> None:
    """`lookup ingest` runs its readers on the workers, and writes the bytes of this machine."""
    log, folders = tmp_path / "log.tsv", [tmp_path / "here", tmp_path / "there"]
    rows = [f"host-{number % 7}.edu\t-\t{807256800 + number}\tGET\t/page-{number % 50}" for number in range(5_000)]
    log.write_text("\n".join(["host\tlogname\ttime\tmethod\turl", *rows]) + "\n")

    for folder, master in zip(folders, ("none", cluster.master), strict=True):
        arguments = ["ingest", str(log), "--mapping", "configs/nasa.toml", "--output", str(folder), "--master", master]
        done = lookup(*arguments, variables=cluster.variables())
        assert done.returncode == 0, done.stderr

    assert differences(*folders) == []


def test_output_that_workers_do_not_share_is_refused(cluster: Standalone, sample: Path, tmp_path: Path) -> None:
    """An output that is another folder on each worker is refused before the replay."""
    if not cluster.is_apart:
        pytest.skip("workers share all folders of this machine: it allows no mount namespaces")
    output = cluster.private / "out"

    done = lookup(*evaluation(sample, output), "--master", cluster.master, variables=cluster.variables())

    assert (done.returncode, done.stdout) == (2, "")
    assert any(f"worker {worker.name} " in done.stderr for worker in cluster.workers)
    assert "name an output that all workers reach" in done.stderr
    assert "replaying" not in done.stderr
    assert not output.exists()


def test_log_that_workers_lack_is_refused(cluster: Standalone, sample: Path, tmp_path: Path) -> None:
    """Tables that only this machine has are refused before they are read, and a worker and a path are named."""
    if not cluster.is_apart:
        pytest.skip("workers share all folders of this machine: it allows no mount namespaces")
    here = cluster.private / "sample"
    shutil.copytree(sample, here)

    done = lookup(*evaluation(here, tmp_path / "out"), "--master", cluster.master, variables=cluster.variables())

    assert (done.returncode, done.stdout) == (2, "")
    assert any(f"worker {worker.name} " in done.stderr for worker in cluster.workers)
    assert f"cannot read {here / 'lookups'}: " in done.stderr
    assert "reading" not in done.stderr


def test_ingest_and_explain_ask_workers_too(cluster: Standalone, sample: Path, tmp_path: Path) -> None:
    """A log, an output and a run that only this machine has are refused, and a worker is named."""
    if not cluster.is_apart:
        pytest.skip("workers share all folders of this machine: it allows no mount namespaces")
    log, run = cluster.private / "log.tsv", cluster.private / "run"
    log.write_text("host\tlogname\ttime\tmethod\turl\na.edu\t-\t807256800\tGET\t/a\n")
    shared = shutil.copy(log, tmp_path)
    assert lookup(*evaluation(sample, run), "--set", "evaluation.seeds=[1]", "--master", "none").returncode in (0, 3, 4)
    mapped, on_workers = ["--mapping", "configs/nasa.toml"], ["--master", cluster.master]
    unread = ["ingest", str(log), *mapped, "--output", str(tmp_path / "out")]
    unwritten = ["ingest", str(shared), *mapped, "--output", str(cluster.private / "out")]
    unexplained = ["explain", str(run), "--decision", "east/stock-modular-4.2/1/0"]

    refused = [lookup(*words, *on_workers, variables=cluster.variables()) for words in (unread, unwritten, unexplained)]

    for done, what in zip(refused, (f"cannot read {log}: ", "the output", "the output"), strict=True):
        assert done.returncode == 2, done.stderr
        assert any(f"worker {worker.name} " in done.stderr for worker in cluster.workers), done.stderr
        assert what in done.stderr
    assert not (tmp_path / "out").exists()
    assert not [*run.glob(".*")]


def test_python_that_workers_lack_is_named(cluster: Standalone, sample: Path, tmp_path: Path) -> None:
    """As Spark names it, in one sentence."""
    variables = {**cluster.variables(), "PYSPARK_PYTHON": "/nowhere/python"}

    done = lookup(*evaluation(sample, tmp_path / "out"), "--master", cluster.master, variables=variables)

    assert done.returncode == 2
    assert "/nowhere/python" in done.stderr
    assert "Traceback" not in done.stderr


def test_worker_that_is_lost_changes_no_byte(alone: Standalone, sample: Path, tmp_path: Path) -> None:
    """A worker is killed while it replays: its tasks run again on the other one, and nothing differs."""
    here = lookup(*evaluation(sample, tmp_path / "here"), "--master", "none")
    assert here.returncode in (0, 3, 4), here.stderr
    for number in (1, 2):
        alone.start_worker(number)
    log = tmp_path / "log"
    with log.open("w") as output:
        run = subprocess.Popen(
            [sys.executable, "-m", "lookup", *evaluation(sample, tmp_path / "there"), "--master", alone.master],
            cwd=ROOT, env=alone.variables(), stdout=subprocess.DEVNULL, stderr=output,
        )  # fmt: skip
        awaited(lambda: "replaying" in log.read_text(), "a replay")
        alone.workers[0].kill()
        code = run.wait()

    assert code == here.returncode, log.read_text()
    assert differences(tmp_path / "here", tmp_path / "there") == []
