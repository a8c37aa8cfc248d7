"""The record of a live cluster: what docs/live-record.md types is run and compared with what the page shows."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from lookup.cli import main
from tests.pages import ROOT, block, cells, page, shown

_PAGE = page("docs/live-record.md")
_RECORD = ROOT / "tests" / "assets" / "live-4.2.4"
_MOST_BYTES = 300_000


def _run(*words: str) -> tuple[int, str]:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        code = main([*words])
    return code, printed.getvalue()


def test_record_is_small_and_as_the_page_counts_it() -> None:
    """The record fits the repository, and each of its tables has as many rows as the page says."""
    rows = {path.parent.name: pq.ParquetFile(path).metadata.num_rows for path in _RECORD.rglob("*.parquet")}

    assert sum(path.stat().st_size for path in _RECORD.rglob("*") if path.is_file()) <= _MOST_BYTES
    assert {row[0]: int(row[1].replace(",", "")) for row in cells(_PAGE, "table")} == rows
    assert rows == json.loads((_RECORD / "about.json").read_text(encoding="utf-8"))["rows"]


def test_page_counts_what_was_done() -> None:
    """Lookups, unloads and brokers lost on the page are those that the session has counted."""
    done = json.loads((_RECORD / "about.json").read_text(encoding="utf-8"))["done"]

    assert f"{done['lookups']:,} lookups" in _PAGE
    assert f"{done['unloads']} times" in _PAGE
    assert done["lost brokers"] == 1


def test_every_decision_of_the_record_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """`lookup verify` prints what the page shows: all decisions agree."""
    monkeypatch.chdir(ROOT)

    assert _run("verify", "tests/assets/live-4.2.4") == (0, shown(_PAGE, "lookup verify"))


@pytest.fixture(scope="module")
def evaluated(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, str, dict[str, Any]]:
    """Evaluate the shipped settings as the page does; return exit code, output and summary."""
    folder = tmp_path_factory.mktemp("live") / "report"
    settings = ROOT / "configs" / "live-evaluation.toml"
    code, printed = _run("evaluate", str(settings), "--output", str(folder))
    return (
        code,
        printed.replace(str(folder), "live-report"),
        json.loads((folder / "summary.json").read_text(encoding="utf-8")),
    )


@pytest.mark.spark
def test_page_shows_what_the_evaluation_prints(evaluated: tuple[int, str, dict[str, Any]]) -> None:
    """Every line of the comparison on the page is one of a fresh run, which ends with the exit code that it names."""
    code, printed, _ = evaluated

    assert shown(_PAGE, "lookup evaluate").rstrip() in printed
    assert f"exit code is {code}" in _PAGE


@pytest.mark.spark
def test_page_quotes_the_fidelity(evaluated: tuple[int, str, dict[str, Any]]) -> None:
    """Logged figures and ranges of the replay on the page are those of the run."""
    rows = {(row["metric"], row["key"]): row for row in evaluated[2]["figures"] if "logged" in row}

    quoted = cells(_PAGE, "figure of the policy that")
    assert len(quoted) >= 3
    for name, logged, low, high in quoted:
        metric, _, key = name.rstrip("]").partition("[")
        row = rows[metric, key or None]
        assert [logged, low, high] == [f"{row[field]:.3f}" for field in ("logged", "replay_low", "replay_high")], name


@pytest.mark.spark
def test_page_quotes_the_differences(evaluated: tuple[int, str, dict[str, Any]]) -> None:
    """Differences from the policy that ran and their intervals on the page are those of the run."""
    verdicts = {(row["policy"], row["metric"], row["key"]): row for row in evaluated[2]["figures"] if "verdict" in row}

    for policy, match, balance in cells(_PAGE, "against"):
        for text, (metric, key) in ((match, ("match_ratio", "rack")), (balance, ("imbalance_max_mean", None))):
            row = verdicts[policy, metric, key]
            change, low, high = (row[name] for name in ("change", "change_low", "change_high"))
            assert text == f"{change:+.3f} ({low:+.3f} to {high:+.3f}) {row['verdict']}"


def test_estimate_on_the_page_is_what_its_code_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    """The off-policy estimate runs as it stands on the page, and prints what the page shows."""
    monkeypatch.chdir(ROOT)
    code = block(_PAGE, "```python")

    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "docs/live-record.md", "exec"), {"__name__": "page"})

    assert printed.getvalue() == block(_PAGE, f"{code}```\n", "text")
