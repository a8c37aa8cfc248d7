"""`lookup.generate`: a log for programs, in the words of the command's flags."""

from __future__ import annotations

import gc
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

import lookup
from lookup.errors import InputError, SettingsError
from lookup.logs.jobs import InProcess

SMALL = {"lookups": 300, "clusters": 1, "topics": 40, "clients": 30, "hours": 1}


def test_a_log_is_frames_that_can_be_evaluated(tmp_path: Path) -> None:
    """Its tables have the rows that are written, and go into an evaluation as they are."""
    log = lookup.generate(tmp_path / "sample", seed=7, **SMALL)

    assert log.document() == json.loads(json.dumps(log.document()))
    assert {name: len(getattr(log, name)) for name in log.report.rows} == log.document()["rows"]
    tables = {name: getattr(log, name) for name in ("lookups", "brokers", "ownership")}
    found = lookup.evaluate(policies=["random"], incumbent="random", workers=InProcess(), **tables)
    assert found.results.clusters == ("east",)
    manifest = json.loads((tmp_path / "sample" / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["command"], manifest["seeds"]) == (["lookup", "generate"], [7])


def test_a_temporary_log_goes_with_its_object() -> None:
    """Without an output; until then its folder is there."""
    log = lookup.generate(start="2026-02-01", **SMALL)
    folder = Path(log.folder)

    assert log.lookups["ts"].min() >= datetime(2026, 2, 1, tzinfo=UTC)
    assert repr(log).startswith(f"<Log of 1 cluster in {folder}: 300 lookups, ")
    assert "<td>300</td>" in log._repr_html_()
    del log
    gc.collect()
    assert not folder.exists()


def test_wrong_figures_are_sentences(tmp_path: Path) -> None:
    """All of them at once, and nothing is written."""
    with pytest.raises(SettingsError, match=r"'lookup'; did you mean 'lookups'\?$"):
        lookup.generate(tmp_path / "log", lookup=300)
    with pytest.raises(SettingsError) as raised:
        lookup.generate(tmp_path / "log", lookups="many", start="soon")
    assert [problem.partition(": ")[0] for problem in raised.value.problems] == ["lookups", "start"]
    with pytest.raises(SettingsError, match=r"^racks is 0, .* 1 and 26$"):
        lookup.generate(tmp_path / "log", racks=0)
    with pytest.raises(SettingsError, match=r"^output is 42, "):
        lookup.generate(42)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "notes.txt").touch()
    with pytest.raises(InputError, match="is not empty"):
        lookup.generate(tmp_path, **SMALL)
