"""A disk that is full: a sentence that names it, and nothing half written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.report.results import result
from tests.report.runs import write_run

pytestmark = pytest.mark.process

_LOOKUP = Path(sys.executable).parent / "lookup"
#: Makes a small disk at $1, fills it as far as the arguments from $3 on run, and lists what is in it.
_SCRIPT = """
mount -t tmpfs -o size=$2 tmpfs "$1" || exit 77
cd "$1" && mkdir out && echo earlier > out/manifest.json
shift 2
"$@"
echo "code $?"
cat out/manifest.json
find . -mindepth 1 | sort
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Write a log of which no table fits the disk."""
    path = tmp_path / "log.csv"
    rows = (
        f"{1767311760000000 + number * 7919},persistent://t/n/topic-{number * 7919 % 99991},b:8080"
        for number in range(60_000)
    )
    path.write_text("\n".join(("ts,topic,broker", *rows)) + "\n")
    return path


def _run(script: str, disk: Path, *words: str | Path) -> tuple[list[str], list[str]]:
    """Run a script with a disk of its own; return the lines of its errors and of its output."""
    disk.mkdir()
    command = ["unshare", "-m", "sh", "-c", script, "sh", disk, *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode == 77 or "unshare" in ran.stderr:
        pytest.skip(f"no disk of its own: {ran.stderr.strip()}")
    return ran.stderr.splitlines(), ran.stdout.splitlines()


@pytest.mark.parametrize("command", ["generate", "ingest"])
def test_a_full_disk_is_named_and_left_as_it_was(tmp_path: Path, log: Path, command: str) -> None:
    """Exit code 2, earlier results under `--force` whole, and no hidden folder."""
    disk = tmp_path / "disk"
    words = {
        "generate": ["generate", "--lookups", "100000", "--output", "out", "--force", "--quiet"],
        "ingest": ["ingest", str(log), "--reader", "csv", "--cluster", "c", "--output", "out", "--force", "--quiet"],
    }
    errors, output = _run(_SCRIPT, disk, "200k", _LOOKUP, *words[command])

    assert errors == [f"error: {disk}: No space left on device"]
    assert output == ["code 2", "earlier", "./out", "./out/manifest.json"]


#: Makes a small disk at $1, fills it and runs the arguments from $2 on.
_FULL = """
mount -t tmpfs -o size=100k tmpfs "$1" || exit 77
cat /dev/zero > "$1/fill" 2>/dev/null
shift
"$@"
echo "code $?"
"""


def test_a_full_disk_is_named_with_the_file_that_it_has_no_room_for(tmp_path: Path) -> None:
    """One that is written in place."""
    run, file = write_run(tmp_path / "run", result()), tmp_path / "disk" / "junit.xml"
    errors, output = _run(_FULL, file.parent, _LOOKUP, "report", run, "--junit", file)

    assert errors == [f"error: {file}: No space left on device"]
    assert output[-1] == "code 2"
