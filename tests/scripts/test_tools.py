"""Scripts of the Makefile that get what a tool needs end in one sentence; ruff refuses dice."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Commands that a script finds beside those of its case.
_SYSTEM = ("sh", "id", "sed", "printf", "dirname", "cat", "cksum", "mkdir", "tail", "tr", "chmod")
_UNREACHABLE = {
    "javac": "",
    "mvn": "echo '[ERROR] 1 error: Could not transfer a.pom: Unknown host -> [Help 2]'\nexit 1",
    "go": "echo 'go: downloading x' >&2\necho 'main.go:16:2: no such host' >&2\nexit 1",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder of commands without Java, Python and package managers, and a copy of what the scripts build."""
    for name in _SYSTEM:
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    for name in ("scripts", "plugins/pulsar_bridge", "tests/acceptance/pulsar", "tests/spark/yarn"):
        shutil.copytree(ROOT / name, tmp_path / "copy" / name, ignore=shutil.ignore_patterns("target"))
    return tmp_path


def _run(folder: Path, script: str, commands: dict[str, str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script with these commands and no others."""
    for name, text in commands.items():
        (folder / name).unlink(missing_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    script, *arguments = script.split()
    variables = {"PATH": str(folder), "JAVA_HOME": "", "PYTHON": "", "XDG_CACHE_HOME": str(folder / "cache")}
    return subprocess.run(
        [folder / "copy" / "scripts" / script, *arguments],
        cwd=folder, env=os.environ | variables | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


#: A machine for which Maven Central has a Python.
_LINUX = {"uname": "echo Linux x86_64", "unzip": "exit 1"}


def _only(*names: str) -> dict[str, str]:
    return {name: _UNREACHABLE[name] for name in names}


@pytest.mark.parametrize(
    ("script", "commands", "named"),
    [
        ("ensure-java.sh", {}, "Spark needs Java 17"),
        ("ensure-pulsar.sh", _only("javac"), "A Pulsar cluster needs Maven"),
        ("ensure-bridge.sh", _only("javac"), "The jar for brokers needs Maven"),
        ("ensure-pulsar.sh", _only("javac", "mvn"), "Could not transfer a.pom: Unknown host."),
        ("ensure-bridge.sh", _only("javac", "mvn"), "Could not transfer a.pom: Unknown host."),
        ("ensure-yarn.sh", _only("javac", "mvn"), "Could not transfer a.pom: Unknown host."),
        ("ensure-go-clients.sh", {}, "need Go 1.24"),
        ("ensure-go-clients.sh", _only("go"), "main.go:16:2: no such host"),
        ("make-venv.sh venv", {"python3": "exit 1"}, "no Python 3.11 or newer"),
        ("ensure-python.sh newest", {}, "'newest' is no release of Python"),
        ("ensure-python.sh 3.14", {"uname": "echo Darwin arm64"}, "There is no Python 3.14 on this machine"),
        ("ensure-python.sh 3.14", _LINUX | _only("javac", "mvn"), "Could not transfer a.pom: Unknown host."),
        *((f"ensure-pulsar.sh {it}", {}, f"'{it}' is no release") for it in ("4.0.x", "newest", "3.3.9", "../4.2.4")),
        ("upstream-tests.sh NoTest", {}, "'NoTest' is none"),
        ("upstream-tests.sh --mode dry", {}, "--mode is 'dry'"),
        ("upstream-tests.sh --mode", {}, "--mode is ''"),
    ],
)
def test_what_is_missing_ends_in_one_sentence(folder: Path, script: str, commands: dict[str, str], named: str) -> None:
    """On stderr, as its last line, with exit code 2."""
    done = _run(folder, script, commands)

    assert (done.returncode, done.stdout) == (2, "")
    assert named in done.stderr.splitlines()[-1]


def test_unfit_python_is_named(folder: Path) -> None:
    """A PYTHON that is too old is refused by name instead of being replaced in silence."""
    done = _run(folder, "make-venv.sh venv", {}, PYTHON="/no/python3")

    assert (done.returncode, "PYTHON is /no/python3" in done.stderr) == (2, True)


@pytest.mark.parametrize(("version", "accepted"), [("1.8", False), ("11", False), ("17", True), ("25", True)])
def test_java_is_judged_by_its_version(folder: Path, version: str, *, accepted: bool) -> None:
    """Java 17 and newer is taken, with its home; an older one is named in the sentence."""
    says = f"echo '    java.specification.version = {version}'\necho '    java.home = /opt/java'"

    done = _run(folder, "ensure-java.sh", {"java": says})

    assert (done.stdout == "/opt/java\n") is accepted
    assert (f"java is Java {version}." in done.stderr) is not accepted


def test_missing_java_is_installed_by_root_on_debian(folder: Path) -> None:
    """Where `apt-get` is there and the user is root, the first package that installs provides Java."""
    java = 'printf \'#!/bin/sh\\necho "  java.specification.version = 17"\\necho "  java.home = /opt/apt"\\n\''
    install = f'case "$*" in *openjdk-17*) {java} > {folder}/java; chmod +x {folder}/java ;; esac'

    done = _run(folder, "ensure-java.sh", {"id": "echo 0", "apt-get": install})

    assert (done.returncode, done.stdout) == (0, "/opt/apt\n")


def test_dice_of_numpy_are_banned_where_decisions_are_made() -> None:
    """Ruff refuses `numpy.random` in an engine and lets a generator roll."""
    ruff = [Path(sys.executable).with_name("ruff"), "check", "--select", "TID251", "-", "--stdin-filename"]
    rolls = "import numpy as np\n\nrolled = np.random.default_rng(1)\n"

    codes = [
        subprocess.run([*ruff, name], cwd=ROOT, input=rolls, capture_output=True, text=True, check=False).returncode
        for name in ("lookup/engine/ballots.py", "plugins/lookup_policies/scorers.py", "lookup/logs/generator/log.py")
    ]

    assert codes == [1, 1, 0]
