"""The start of the scripts, and what happens where the other project `lookup` of PyPI is installed as well."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[1]
_SCRIPTS = Path(sys.executable).parent
#: As that project has it: a module, which its script calls like this.
_MODULE = 'def command_line():\n    print("a word, explained")\n'
_SCRIPT = "import sys; from lookup import command_line; sys.exit(command_line())"


def _run(*words: str | Path, folder: Path, path: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(path)}
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def stray(tmp_path: Path) -> Path:
    """Return a folder with their module, and nothing of ours."""
    (tmp_path / "stray").mkdir()
    (tmp_path / "stray" / "lookup.py").write_text(_MODULE, encoding="utf-8")
    return tmp_path / "stray"


@pytest.fixture
def shared(stray: Path) -> Path:
    """Return a folder with both, as site-packages are."""
    shutil.copytree(_ROOT / "lookup", stray / "lookup", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(_ROOT / "pulsar_lookup.py", stray)
    return stray


@pytest.mark.parametrize("script", ["lookup", "pulsar-lookup"])
def test_a_stray_module_that_hides_the_package_is_named(tmp_path: Path, stray: Path, script: str) -> None:
    """One sentence with its path, and exit code 2, for a command of either name; the module is not run."""
    with (stray / "lookup.py").open("a", encoding="utf-8") as file:
        file.write('raise SystemExit("has run")\n')

    done = _run(_SCRIPTS / script, "plugins", "list", folder=tmp_path, path=stray)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: Python finds {stray}/lookup.py ")
    assert done.stderr.count("\n") == 1


def test_a_package_of_the_same_name_is_named(tmp_path: Path, stray: Path) -> None:
    """A folder of somebody's hides ours as a file does."""
    (stray / "lookup.py").unlink()
    (stray / "lookup").mkdir()
    (stray / "lookup" / "__init__.py").touch()

    done = _run(_SCRIPTS / "pulsar-lookup", "--version", folder=tmp_path, path=stray)

    assert (done.returncode, done.stdout) == (2, "")
    assert f"{stray}/lookup/__init__.py" in done.stderr


def test_beside_a_stray_module_the_package_wins(tmp_path: Path, shared: Path) -> None:
    """In one folder Python prefers ours, and commands work."""
    start = "import sys, pulsar_lookup; sys.exit(pulsar_lookup.main())"

    done = _run(sys.executable, "-c", start, "--version", folder=tmp_path, path=shared)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("pulsar-lookup ")


def test_their_script_says_that_ours_is_gone(tmp_path: Path, shared: Path) -> None:
    """Where theirs has replaced ours, it imports our package and is answered in one sentence."""
    done = _run(sys.executable, "-c", _SCRIPT, "word", folder=tmp_path, path=shared)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: this script `lookup` belongs")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("script", ["lookup", "pulsar-lookup"])
def test_help_has_the_name_that_was_typed(tmp_path: Path, script: str) -> None:
    """In the usage, in the examples and in hints."""
    helped = _run(_SCRIPTS / script, "config", "check", "--help", folder=tmp_path, path=tmp_path)
    hinted = _run(_SCRIPTS / script, "config", "chekc", folder=tmp_path, path=tmp_path)

    assert helped.stdout.startswith(f"usage: {script} config check ")
    assert f"\n  {script} config check " in helped.stdout
    assert (hinted.returncode, hinted.stdout) == (2, "")
    assert f"`{script} config --help`" in hinted.stderr
