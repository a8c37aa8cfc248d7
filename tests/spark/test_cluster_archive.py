"""What can be sent to workers as an archive, and what has to be installed there."""

from __future__ import annotations

import importlib
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from lookup.spark.cluster import unshipped
from tests.replay.installing import write_metadata


@pytest.mark.parametrize(
    ("file", "expected"), [("fast.py", {}), (f"fast{EXTENSION_SUFFIXES[0]}", {"quick-parts": "2.5"})]
)
def test_distribution_with_compiled_modules_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, expected: dict[str, str]
) -> None:
    """A plug-in distribution is named if one of its modules is compiled: Python loads none from an archive."""
    write_metadata(tmp_path, "quick_parts", "2.5")
    package = tmp_path / "quick_parts"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / file).write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()

    assert unshipped() == expected
