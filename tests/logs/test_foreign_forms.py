"""Logs of other programs, by `lookup init` and the `lookup ingest` that it proposes: the truth, or a sentence."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from lookup.model.time import to_us
from tests.commands.projects import Run, runner
from tests.logs.foreign_forms import CHANGES, FORMS, TRUTH, Form

#: What is said of a log whose rows are not those of the truth, by what happened to it.
_SAID = {
    "reversed": (),
    "shuffled": ("is not in the order of time",),
    "prefix": (),
    "doubled": ("are the same as others in every column",),
}


@pytest.fixture
def lookup(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs a command line in this process."""
    monkeypatch.setenv("NO_COLOR", "1")
    return runner(capsys)


def _expected(form: Form) -> Counter[tuple[Any, ...]]:
    return Counter(
        (
            to_us(each.at) // form.step_us,
            each.topic,
            each.client if form.has_client else None,
            each.owner if form.has_owner else None,
        )
        for each in TRUTH
    )


def _read(output: Path, form: Form) -> Counter[tuple[Any, ...]]:
    rows = [
        row
        for file in sorted((output / "lookups").rglob("*.parquet"))
        for row in pq.ParquetFile(file).read().to_pylist()
    ]
    return Counter((to_us(row["ts"]) // form.step_us, row["topic"], row["client"], row["broker"]) for row in rows)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", FORMS)
def test_a_log_gives_the_truth_or_a_sentence(lookup: Run, tmp_path: Path, name: str, change: str) -> None:
    """Rows with time, topic, client and owner as they were; else what is wrong is said, and never nothing."""
    form = FORMS[name]
    log = tmp_path / "log"
    log.write_bytes("\n".join([*CHANGES[change](form), ""]).encode())

    found = lookup("init", tmp_path / "trial", "--log", log)
    if found.code == 2:
        assert change in ("reversed", "prefix", "shuffled"), found.err
        assert found.err.startswith(f"error: {log}: ")
        return
    mapping = ("--mapping", tmp_path / "trial" / "mapping.toml", "--cluster", "main", "--master", "none")
    ran = lookup("ingest", log, *mapping, "--output", tmp_path / "tables")

    rows = _read(tmp_path / "tables", form) if ran.code == 0 else Counter()
    if rows != _expected(form):
        assert change in _SAID, (ran.err, rows - _expected(form), _expected(form) - rows)
        assert ran.code == 2 or any(words in ran.err for words in (*_SAID[change], "in quarantine")), (ran.err, rows)
