"""`generate`: nothing half-written, nothing overwritten by accident."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lookup.errors import InputError
from lookup.logs import generate as public
from lookup.logs.generate import generate
from lookup.logs.generator import tables
from tests.logs.generator.logs import SMALL, TABLES, read


def test_a_file_is_refused(tmp_path: Path) -> None:
    """An output that is a file is refused with a sentence."""
    (tmp_path / "log").write_text("")

    with pytest.raises(InputError, match=r"^--output: .*log is a file; name a folder that does not exist or is empty"):
        generate(SMALL, tmp_path / "log")


def test_a_full_directory_is_refused(tmp_path: Path) -> None:
    """An output with something in it is refused with a sentence, and left alone."""
    (tmp_path / "precious").write_text("x")

    with pytest.raises(InputError, match=r"is not empty; name another folder, or replace earlier results with --force"):
        generate(SMALL, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_an_empty_directory_is_used(tmp_path: Path) -> None:
    """An output that exists and is empty is filled."""
    generate(replace(SMALL, lookups=100), tmp_path)

    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(TABLES)


def test_force_replaces_the_tables_only(tmp_path: Path) -> None:
    """With force old tables vanish, files and all, and whatever else lies there stays."""
    generate(replace(SMALL, start=datetime(2025, 1, 1, tzinfo=UTC), lookups=500), tmp_path)
    (tmp_path / "precious").write_text("x")
    generate(replace(SMALL, lookups=400), tmp_path, force=True)

    assert len(read(tmp_path, "lookups")) == 400
    assert (tmp_path / "precious").read_text() == "x"


def test_a_failure_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that fails while writing leaves no table and no draft behind."""
    monkeypatch.setattr(public, "write_table", _raising(OSError("disk full")))

    with pytest.raises(OSError, match="disk full"):
        generate(replace(SMALL, lookups=100), tmp_path / "log")
    assert list(tmp_path.iterdir()) == []


def test_a_failing_writer_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes wrong in the writing thread ends the run."""
    monkeypatch.setattr(tables, "write_parquet", _raising(OSError("disk full")))

    with pytest.raises(OSError, match="disk full"):
        generate(replace(SMALL, lookups=100), tmp_path / "log")
    assert list(tmp_path.iterdir()) == []


def _raising(error: Exception) -> Callable[..., None]:
    def raises(*_: object, **__: object) -> None:
        raise error

    return raises
