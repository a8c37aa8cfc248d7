"""The newcomer's page, followed to its end: what it says the commands print is what they print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "first-policy.md").read_text(encoding="utf-8")


def _files() -> dict[str, str]:
    return dict(re.findall(r"^<!-- file: (\S+) -->\n\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


def test_the_policy_is_short() -> None:
    """The whole file has fewer than 30 lines."""
    assert len(_files()["racks.py"].splitlines()) < 30


def test_the_tests_on_the_page_pass(tmp_path: Path) -> None:
    """The conformance kit has as many checks as the page says, and the policy meets them all."""
    for name, text in _files().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_racks.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    shown = re.findall(r"^\$ pytest .*\n(.*)\n(\d+ passed)", PAGE, re.MULTILINE)

    assert re.findall(r"^(\.+ .*)\n(\d+ passed)", done.stdout, re.MULTILINE) == shown, done.stdout


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Follow the page from an empty folder; return what each command has written to stdout."""
    folder = tmp_path_factory.mktemp("newcomer")
    for name, text in _files().items():
        (folder / name).write_text(text, encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {command: _ran(command, folder, path) for command in re.findall(r"^\$ (lookup .*)$", PAGE, re.MULTILINE)}


def _ran(command: str, folder: Path, path: str) -> str:
    done = subprocess.run(
        command.split(), cwd=folder, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _shown() -> tuple[list[str], list[str]]:
    """Return the lines of the two blocks of output on the page, without commands and what is left out."""
    marked = r"^<!-- compared by tests/test_first_policy.py -->\n\n```\w+\n(.*?)^```$"
    explained, compared = re.findall(marked, PAGE, re.MULTILINE | re.DOTALL)
    return explained.splitlines(), [line for line in compared.splitlines() if not line.startswith(("$ ", "..."))]


def _of(printed: dict[str, str], command: str) -> str:
    return next(text for words, text in printed.items() if words.startswith(f"lookup {command} "))


@pytest.mark.spark
def test_the_explanation_on_the_page_is_that_of_the_command(printed: dict[str, str]) -> None:
    """It is the end of what `explain` prints, line by line."""
    explained, _ = _shown()

    assert _of(printed, "explain").splitlines()[-len(explained) :] == explained


@pytest.mark.spark
def test_the_comparison_on_the_page_is_that_of_the_command(printed: dict[str, str]) -> None:
    """Every line of the shortened table is printed, and they stand in the same order; the new policy is in it."""
    _, compared = _shown()
    lines = _of(printed, "evaluate").splitlines()

    assert compared == [line for line in lines if line in compared]
    assert len([line for line in compared if line.startswith(("| ↑", "| ↓"))]) == 5
    assert any("racks-first" in line for line in compared)
