"""A quick test starts no process, and files that are marked as a whole exist."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import conftest


@pytest.mark.parametrize(("mark", "code"), [("", 1), ("@pytest.mark.process\n", 0)], ids=["quick", "marked"])
def test_a_quick_test_that_starts_a_process_fails(tmp_path: Path, mark: str, code: int) -> None:
    """It says so in a sentence; a test that is marked may start one."""
    begun = f"import os\n\nimport pytest\n\n\n{mark}def test_begins() -> None:\n    assert os.system('true') == 0\n"
    (tmp_path / "test_begun.py").write_text(begun, encoding="utf-8")
    words = ["-q", "-p", "tests.conftest", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == code, done.stdout + done.stderr
    assert ("test_begun.py::test_begins starts b'true'" in done.stdout) is bool(code)


def test_files_that_are_marked_as_a_whole_exist() -> None:
    """A file that is renamed keeps its marker."""
    named = [file for files in conftest.FILES.values() for file in files]

    assert [file for file in named if not (Path(__file__).parent / file).is_file()] == []
