"""Flags of a pipeline, of `lookup report` and `lookup evaluate`, without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from lookup.cli import main
from tests.commands.projects import Run, evaluation_of
from tests.report.results import result
from tests.report.runs import write_run


@pytest.fixture
def budget(tmp_path: Path) -> Path:
    """Write a budget that `new` exceeds."""
    path = tmp_path / "budget.toml"
    path.write_text("[budget]\nmoves = 50\nanswered_ratio = 0.1\n")
    return path


def test_a_finished_run_is_judged_without_replaying(lookup: Run, tmp_path: Path, budget: Path) -> None:
    """The code is 5, and the file is written, folders above it included."""
    run, junit = write_run(tmp_path / "run", result()), tmp_path / "ci" / "junit.xml"

    ran = lookup("report", run, "--budget", budget, "--junit", junit)

    assert ran.code == 5
    assert ran.out.endswith("moves of new (exit code 5).\n")
    assert ET.parse(junit).getroot().get("failures") == "1"


def test_a_run_over_another_log_is_refused(lookup: Run, tmp_path: Path) -> None:
    """By its fingerprints, and so is one with other brokers; both are said at once."""
    run = write_run(tmp_path / "run", result())
    table = {"path": "logs/lookups", "files": 1, "bytes": 9, "rows": 7, "blake2b": "11ee"}
    other = write_run(tmp_path / "other", result(), inputs={"lookups": table, "brokers": table})

    (mistake,) = lookup("report", run, "--against", other).mistakes

    assert mistake.startswith(f"--against: {other} ")
    assert "lookups differ" in mistake
    assert "other brokers" in mistake


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory, log: Path) -> tuple[Path, Path]:
    """Evaluate a small log in this process; the evaluation and its results."""
    folder = tmp_path_factory.mktemp("pipeline")
    config = evaluation_of(folder, log, head="")
    words = ["evaluate", config, "--output", folder / "run", "--master", "none", "--format", "json"]
    assert main([str(word) for word in [*words, "--set", "evaluation.seeds=2"]]) in (0, 3, 4)
    return config, folder / "run"


def test_an_evaluation_passes_against_itself(lookup: Run, tmp_path: Path, replayed: tuple[Path, Path]) -> None:
    """A pinned run of the same log with the same policies: no budget is exceeded, and data on stdout stays data."""
    config, earlier = replayed
    (tmp_path / "budget.toml").write_text("[budget]\nmoves = 0\nanswered_ratio = 0\nimbalance_max_mean = 0\n")
    flags = ("--against", earlier, "--budget", tmp_path / "budget.toml", "--set", "evaluation.seeds=2")

    ran = lookup("evaluate", config, "--output", tmp_path / "o", "--master", "none", "--format", "json", *flags)

    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["schema"] == 2
    assert "6 figures (exit code 0)." in ran.err
    assert "Nothing changed from " in ran.err


def test_a_budget_is_checked_before_anything_is_replayed(
    lookup: Run, tmp_path: Path, replayed: tuple[Path, Path]
) -> None:
    """A name that no metric has is refused at once, and no output appears."""
    (tmp_path / "budget.toml").write_text("[budget]\nmovess = 1\n")
    flags = ("--budget", tmp_path / "budget.toml", "--master", "none")

    mistakes = lookup("evaluate", replayed[0], "--output", tmp_path / "o", *flags).mistakes

    assert [mistake.partition(";")[0] for mistake in mistakes] == ["--budget: no metric is named 'movess'"]
    assert not (tmp_path / "o").exists()


@pytest.mark.usefixtures("budget")
@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--budget", "{0}/budget.toml", "--junit", "{0}/budget.toml"), "--junit: {0}/budget.toml is {0}/budget.toml,"),
        (("--junit", "{0}"), "--junit: {0} is not a file; "),
        (("--junit", "{0}/run/report.md"), "--junit: {0}/run/report.md is {0}/run/report.md,"),
        (("--junit", "{0}/run/cells/x.xml"), "--junit: {0}/run/cells/x.xml lies in {0}/run/cells,"),
        (("--against", "{0}/main", "--junit", "{0}/main/junit.xml"), "--junit: {0}/main/junit.xml lies in {0}/main,"),
    ],
)
def test_results_are_not_replaced_by_what_is_said_of_them(
    lookup: Run, tmp_path: Path, flags: tuple[str, ...], sentence: str
) -> None:
    """Neither those of the run nor an earlier one; any other file beside those of the run is welcome."""
    run, _ = (write_run(tmp_path / name, result()) for name in ("run", "main"))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    (mistake,) = lookup("report", run, *(flag.format(tmp_path) for flag in flags)).mistakes

    assert mistake.startswith(sentence.format(tmp_path))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert lookup("report", run, "--junit", run / "junit.xml").code == 0


def test_an_output_does_not_replace_the_run_that_it_is_compared_with(lookup: Run, replayed: tuple[Path, Path]) -> None:
    """The changes that are printed would be from nowhere."""
    config, run = replayed
    flags = ("--output", run, "--force", "--against", run, "--master", "none")

    (mistake,) = lookup("evaluate", config, *flags).mistakes

    assert mistake.startswith(f"--output: {run} is {run}, which is --against")
