"""`lookup history`, without Spark."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import pty
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest

from tests.commands.projects import Run
from tests.report.results import result
from tests.report.runs import edit, write_run


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Write three runs, of which the second answers more."""
    for day in (1, 2, 3):
        run = write_run(
            tmp_path / "store" / str(day), result(), wall_clock={"started": f"2026-11-0{day}T02:00:00+00:00"}
        )
        edit(run, "summary.metrics.0.value", 0.6 if day == 2 else 0.5)
    return tmp_path / "store"


def test_all_forms_have_the_same_runs(lookup: Run, store: Path) -> None:
    """A table, Markdown, JSON and CSV; the exit code is 0."""
    table, markdown, data, rows = (
        lookup("history", store, "--format", form) for form in "table markdown json csv".split()
    )

    paths = [f"{store}/{day}" for day in (1, 2, 3)]
    assert [ran.code for ran in (table, markdown, data, rows)] == [0, 0, 0, 0]
    assert table.out.startswith("3 runs from 2026-11-01 02:00 to 2026-11-03 02:00 UTC.\n")
    assert all(f"| {path} |" in table.out and f"| {path} |" in markdown.out for path in paths)
    assert [run["run"] for run in json.loads(data.out)["runs"]] == paths
    read = list(csv.DictReader(StringIO(rows.out)))
    assert len(read) == len(json.loads(data.out)["points"])
    assert [(row["run"], row["value"]) for row in read[:3]] == list(zip(paths, ("0.5", "0.6", "0.5"), strict=True))


@pytest.mark.process
def test_values_are_drawn_on_a_terminal_and_printed_elsewhere(lookup: Run, store: Path) -> None:
    """As blocks if the terminal takes UTF-8, else by run, the newest last."""
    printed = [_on_a_terminal("history", str(store), PYTHONIOENCODING=name) for name in ("utf-8", "latin-1:replace")]

    assert ("▁█▁" in printed[0], "▁█▁" in printed[1], "#3" in printed[1]) == (True, False, True)
    assert "| 0.5000 | 0.6000 | 0.5000 | " in lookup("history", store).out


def _on_a_terminal(*words: str, **variables: str) -> str:
    """Run a command with a terminal of 120 columns as its stdout, and return what that shows."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "120"} | variables
    shown = b""
    with subprocess.Popen([sys.executable, "-m", "lookup", *words], stdout=theirs, env=environment):
        os.close(theirs)
        # A terminal whose other end is closed is an error of the system here, and no end of a file.
        with contextlib.suppress(OSError):
            while chunk := os.read(ours, 4096):
                shown += chunk
    os.close(ours)
    return shown.decode("utf-8", "replace")


def test_a_page_is_written_besides(lookup: Run, store: Path, tmp_path: Path) -> None:
    """Whole, with folders above it; an earlier page is replaced."""
    page = tmp_path / "pages" / "history.html"

    ran = [lookup("history", store, "--page", page) for _ in range(2)][-1]

    assert (ran.code, ran.out) == (0, lookup("history", store).out)
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert f"the page is {page}, 0." in ran.err
    assert [path.name for path in page.parent.iterdir()] == ["history.html"]


@pytest.mark.parametrize("name", ["", "summary.json", "folder.html"])
def test_a_page_that_is_none_is_refused_before_anything_is_read(lookup: Run, tmp_path: Path, name: str) -> None:
    """A file of a run, which would be lost, and a folder."""
    (tmp_path / "folder.html").mkdir()
    path = name and str(tmp_path / name)

    (mistake,) = lookup("history", tmp_path / "gone", "--page", path).mistakes

    assert mistake == f"--page: {path or 'an empty path'} is no page; name a file that ends in .html"


def test_a_page_does_not_replace_that_of_a_run(lookup: Run, store: Path) -> None:
    """A run below a named folder is read as well; beside runs a page is welcome."""
    page = store / "2" / "report.html"
    page.write_text("of the run")

    (mistake,) = lookup("history", store, "--page", page).mistakes

    assert mistake == f"--page: {page} lies in {page.parent}, which is run 2; name a file apart from the inputs"
    assert page.read_text() == "of the run"
    assert lookup("history", store, "--page", store / "history.html").code == 0


def test_a_run_that_was_found_and_cannot_be_read_is_a_warning(lookup: Run, store: Path) -> None:
    """The others are printed, and the exit code is 0; named, it is a mistake."""
    edit(store / "2", "manifest.schema", 7)

    found, named = lookup("history", store), lookup("history", store / "1", store / "2")

    said = f"{store}/2/manifest.json: its schema is '7', and 1 can be read; evaluate again with this version"
    assert (found.code, found.err) == (0, f"warning: left out: {said}\n")
    assert named.mistakes == [said]


def test_a_folder_must_be_named(lookup: Run) -> None:
    """There is no default."""
    assert lookup("history").mistakes == ["DIR must be given; see `lookup history --help`"]
