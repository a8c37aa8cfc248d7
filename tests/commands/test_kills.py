"""`kill -9` at any instant of a command that replaces results: the earlier or the new ones are there, whole, or both.

A few instants here, more with `KILLS=200`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest

from tests.commands.projects import evaluation_of
from tests.processes import awaited

_KILLS = int(os.environ.get("KILLS", "4"))
#: What each command leaves in its output.
_LEFT = {
    "generate": {"brokers", "bundles", "loads", "lookups", "manifest.json", "ownership"},
    "ingest": {"lookups", "manifest.json", "quarantine"},
    "evaluate": {
        *("cells", "cycles", "decisions", "flows", "manifest.json", "metrics.parquet", "owners", "report.html"),
        *("report.md", "summary.json"),
    },
}


def _words(name: str, folder: Path, log: Path, turn: int) -> Sequence[str]:
    """Return the words of a command whose results differ from turn to turn."""
    if name == "generate":
        return ("--lookups", str(2_000 + turn % 2), "--clusters", "1", "--hours", "1")
    if name == "ingest":
        lines = (
            f'{{"ts": {1_767_571_200_000_000 + n}, "topic": "persistent://a/b/c-{turn % 2}"}}\n' for n in range(5_000)
        )
        (folder / "log.jsonl").write_text("".join(lines))
        return (str(folder / "log.jsonl"), "--reader", "jsonl", "--cluster", "c", "--master", "none")
    return (str(evaluation_of(folder, log)), "--set", f"evaluation.seeds={1 + turn % 2}", "--master", "none")


def _whole(name: str, output: Path) -> int:
    """Return of which turn the results are, 0 or 1; they are whole."""
    assert {path.name for path in output.iterdir()} == _LEFT[name]
    manifest = json.loads((output / "manifest.json").read_text())
    tables = {path: pq.ParquetFile(path).read() for path in output.rglob("*.parquet")}
    lookups = [table for path, table in tables.items() if path.is_relative_to(output / "lookups")]
    if name == "generate":
        assert sum(table.num_rows for table in lookups) == manifest["settings"]["lookups"]
        return int(manifest["settings"]["lookups"]) - 2_000
    if name == "ingest":
        assert manifest["inputs"]
        (topic,) = {text for table in lookups for text in table["topic"].to_pylist()}
        return int(topic[-1])
    assert len(list((output / "owners").iterdir())) == 2 * len(manifest["seeds"])
    assert len(json.loads((output / "summary.json").read_text())["inputs"]["clusters"]) == 1
    return len(manifest["seeds"]) - 1


@pytest.mark.parametrize("name", _LEFT)
def test_results_survive_a_kill(tmp_path: Path, log: Path, name: str) -> None:
    """At instants all over its duration; what the killed one left beside them is gone after the next run."""
    output, dice = tmp_path / "o", Random(name)
    command = [sys.executable, "-m", "lookup", name, "--output", str(output), "--force", "-q"]
    began = time.monotonic()
    subprocess.run([*command, *_words(name, tmp_path, log, 0)], check=True, capture_output=True, timeout=120)
    lasts_s, before = time.monotonic() - began, 0
    for turn in range(1, _KILLS + 1):
        words = [*command, *_words(name, tmp_path, log, turn)]
        with subprocess.Popen(
            words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        ) as run:
            time.sleep(dice.uniform(0.0, 1.1) * lasts_s)
            os.killpg(run.pid, signal.SIGKILL)

        # Between two renames both lie beside the output, and the next run says so.
        if not output.exists():
            (new,) = tmp_path.glob(".o.????????")
            assert _whole(name, new) == turn % 2
            output.with_name(".o.old").rename(output)
        after = _whole(name, output)

        assert after in (before, turn % 2)
        before = after
    assert {oct(path.stat().st_mode & 0o777) for path in output.rglob("*") if path.is_file()} <= {"0o640", "0o600"}
    finished = [*command, *_words(name, tmp_path, log, 1)]
    awaited(lambda: subprocess.run(finished, check=False, capture_output=True, timeout=120).returncode == 0)
    assert _whole(name, output) == 1
    assert not list(tmp_path.glob(".o.*"))
