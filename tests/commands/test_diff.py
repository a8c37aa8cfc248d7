"""`lookup diff`, without Spark."""

from __future__ import annotations

from pathlib import Path

from tests.commands.projects import Run
from tests.report.results import result
from tests.report.runs import write_run


def test_tables_and_markdown_have_the_same_rows(lookup: Run, tmp_path: Path) -> None:
    """Figures that differ are printed either way, and the exit code is 0."""
    first, second = write_run(tmp_path / "a", result()), write_run(tmp_path / "b", result(logged=0.7), exit_code=0)

    table, markdown = lookup("diff", first, second), lookup("diff", first, second, "--format", "markdown")

    assert (table.code, markdown.code) == (0, 0)
    assert "0 settings differ" in table.out
    assert markdown.out.startswith(f"# {first} and {second}\n\n* 0 settings differ")


def test_each_folder_that_is_no_run_is_named(lookup: Run, tmp_path: Path) -> None:
    """The second as well as the first."""
    run = write_run(tmp_path / "a", result())

    mistakes = lookup("diff", run, tmp_path).mistakes

    assert mistakes == [f"{tmp_path}: has no manifest.json; name a folder that `lookup evaluate` has written"]


def test_two_folders_must_be_named(lookup: Run) -> None:
    """A missing one is a sentence."""
    assert lookup("diff", "a").mistakes == ["RUN_B must be given; see `lookup diff --help`"]
