"""`lookup report`, without Spark."""

from __future__ import annotations

import json
from pathlib import Path

from tests.commands.projects import Run
from tests.report.results import result
from tests.report.runs import write_run


def test_the_page_is_written_beside_the_results(lookup: Run, tmp_path: Path) -> None:
    """An earlier page is replaced, nothing else is touched, and the size is said."""
    folder = write_run(tmp_path / "run", result())
    (folder / "report.html").write_text("old")
    before = {path.name for path in folder.iterdir()}

    ran = lookup("report", folder)

    assert ran.code == 0
    assert {path.name for path in folder.iterdir()} == before
    assert (folder / "report.html").read_text().startswith("<!doctype html>")
    assert f"the page is {folder}/report.html, 0." in ran.err


def test_all_forms_have_the_same_headline(lookup: Run, tmp_path: Path) -> None:
    """What differs is printed as a table, Markdown or JSON, and the exit code is 0."""
    first, second = write_run(tmp_path / "a", result()), write_run(tmp_path / "b", result(), exit_code=0)

    table, markdown, data = (lookup("diff", first, second, "--format", form) for form in ("table", "markdown", "json"))

    said = json.loads(data.out)["headline"]
    assert said.startswith(f"Nothing changed from {first} to {second}: ")
    assert (table.code, markdown.code, data.code) == (0, 0, 0)
    assert table.out.startswith(f"{said}\nThe exit code of ")
    assert markdown.out.startswith(f"# {first} and {second}\n\n{said}\n\n* The exit code of ")
