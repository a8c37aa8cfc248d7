"""YARN, with a resource manager and one node on this machine, gives the bytes of this process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lookup import __main__ as lookup_main
from tests.processes import awaited
from tests.replay.commands import ROOT, differences, evaluation, lookup
from tests.replay.standalone import SPARK, write_python

pytestmark = pytest.mark.cluster


@dataclass(frozen=True)
class _Yarn:
    """A YARN that runs: a folder with its `yarn-site.xml`, and a `python` for workers without this package."""

    folder: Path

    def variables(self) -> dict[str, str]:
        """Return the environment of a driver, which leaves nothing in the home of who runs the tests."""
        return {
            **os.environ,
            "HADOOP_CONF_DIR": str(self.folder),
            "JAVA_TOOL_OPTIONS": f"-Duser.home={self.folder}",
            "PYSPARK_PYTHON": str(self.folder / "python"),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Yarn]:
    """Start YARN; skip if its jars cannot be had."""
    got = subprocess.run([ROOT / "scripts" / "ensure-yarn.sh"], capture_output=True, text=True, check=False)
    if got.returncode != 0:
        pytest.skip(got.stderr.strip())
    folder = tmp_path_factory.mktemp("yarn")
    write_python(folder)
    java = Path(os.environ["JAVA_HOME"]) / "bin" / "java"
    log = folder / "log"
    with log.open("w") as output, subprocess.Popen(
        [java, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", got.stdout.strip(), "YarnCluster", folder],
        stdin=subprocess.PIPE, stdout=output, stderr=output,
    ) as process:  # fmt: skip
        try:
            awaited(lambda: "ready" in log.read_text() or process.poll() is not None, "YARN")
            assert process.poll() is None, log.read_text()
            yield _Yarn(folder)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generate a log of two clusters."""
    folder = tmp_path_factory.mktemp("sample") / "sample"
    done = lookup("generate", "--lookups", "20000", "--output", str(folder))
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def here(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Evaluate the log in this process."""
    output = tmp_path_factory.mktemp("here") / "run"
    done = lookup(*evaluation(sample, output), "--master", "none")
    assert done.returncode == 0, done.stderr
    return output


def test_evaluation_on_yarn_is_that_of_this_machine(yarn: _Yarn, sample: Path, here: Path, tmp_path: Path) -> None:
    """`--master yarn` needs no more than HADOOP_CONF_DIR, and its containers no package of ours."""
    done = lookup(*evaluation(sample, tmp_path / "there"), "--master", "yarn", variables=yarn.variables())

    assert done.returncode == 0, done.stderr
    assert differences(here, tmp_path / "there") == []


def test_driver_runs_in_a_container(yarn: _Yarn, sample: Path, here: Path, tmp_path: Path) -> None:
    """In cluster mode the driver's Python has this package, and `spark-submit` ends when the command does."""
    done = subprocess.run(
        [
            SPARK / "bin" / "spark-submit", "--master", "yarn", "--deploy-mode", "cluster",
            "--conf", f"spark.yarn.appMasterEnv.PYSPARK_DRIVER_PYTHON={sys.executable}",
            "--conf", f"spark.yarn.appMasterEnv.PYSPARK_PYTHON={yarn.folder / 'python'}",
            lookup_main.__file__, *evaluation(sample, tmp_path / "there", str(ROOT / "configs" / "evaluation.toml")),
        ],
        env=yarn.variables() | {"SPARK_HOME": str(SPARK)}, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert differences(here, tmp_path / "there") == []
    # What it prints stays in the log of its container.
    assert "No candidate is worse" not in done.stdout
