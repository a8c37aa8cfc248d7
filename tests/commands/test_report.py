"""`lookup report`, without Spark."""

from __future__ import annotations

import json
from pathlib import Path

from tests.commands.projects import Run
from tests.report.results import result, varied
from tests.report.runs import edit, write_run


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


def test_a_folder_of_something_else_is_one_sentence(lookup: Run, tmp_path: Path) -> None:
    """Nothing is written, and the sentence says what would be right."""
    ran = lookup("report", tmp_path)

    assert ran.code == 2
    assert ran.mistakes[0].startswith(f"{tmp_path}: has no manifest.json")
    assert list(tmp_path.iterdir()) == []


def test_all_forms_have_the_same_headline(lookup: Run, tmp_path: Path) -> None:
    """What differs is printed as a table, Markdown or JSON, and the exit code is 0."""
    first, second = write_run(tmp_path / "a", result()), write_run(tmp_path / "b", result(), exit_code=0)

    table, markdown, data = (lookup("diff", first, second, "--format", form) for form in ("table", "markdown", "json"))

    said = json.loads(data.out)["headline"]
    assert said.startswith(f"Nothing changed from {first} to {second}: ")
    assert (table.code, markdown.code, data.code) == (0, 0, 0)
    assert table.out.startswith(f"{said}\nThe exit code of ")
    assert markdown.out.startswith(f"# {first} and {second}\n\n{said}\n\n* The exit code of ")


def test_figures_lead_and_tables_have_ten_rows(lookup: Run, tmp_path: Path) -> None:
    """Settings follow, long values cut off; `--all` prints every row."""
    first, second = write_run(tmp_path / "a", varied()), write_run(tmp_path / "b", varied())
    figures = json.loads((second / "summary.json").read_text())["figures"]
    for place in [place for place, row in enumerate(figures) if row["cluster"] is None and row["value"]][:14]:
        edit(second, f"summary.figures.{place}.value", 0.123)
    edit(second, "manifest.settings.extra", list(range(100)))

    short, whole = lookup("diff", first, second).out, lookup("diff", first, second, "--all").out

    figures, settings = (short.index(head) for head in ("|policy", "|setting"))
    assert figures < settings
    assert "4 more figures differ; --all" in short
    rows = [text.partition("|setting")[0].count("\n|") for text in (short, whole)]
    assert rows == [11, 15]
    assert f"|extra   | –     | {str(list(range(100)))[:57]}...|" in short


def test_each_folder_that_is_no_run_is_named(lookup: Run, tmp_path: Path) -> None:
    """The second as well as the first."""
    run = write_run(tmp_path / "a", result())

    mistakes = lookup("diff", run, tmp_path).mistakes

    assert [mistake.partition(";")[0] for mistake in mistakes] == [f"{tmp_path}: has no manifest.json"]
