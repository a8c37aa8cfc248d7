"""`lookup simulate`."""

from __future__ import annotations

from pathlib import Path

import pytest

from lookup.simulation import read_scenario
from tests.commands.projects import Run
from tests.simulation.scenarios import SMALL, written

_ROOT = Path(__file__).parents[2]
_SHIPPED = sorted((_ROOT / "configs" / "scenarios").glob("*.scenario"))


@pytest.mark.parametrize("path", _SHIPPED, ids=lambda path: path.stem)
def test_shipped_scenarios_print_what_is_kept(lookup: Run, path: Path) -> None:
    """Their assertions hold and their trends are the ones written down."""
    ran = lookup("simulate", path)

    expected = (_ROOT / "tests" / "assets" / "scenarios" / f"{path.stem}.txt").read_text(encoding="utf-8")
    assert (ran.code, ran.err) == (0, "")
    assert "holds: " in ran.out
    assert ran.out == f"scenario {path}\n{expected}"


@pytest.mark.parametrize("path", _SHIPPED, ids=lambda path: path.stem)
def test_shipped_assertions_can_fail(path: Path) -> None:
    """Each names a policy of which it is not true, which a run checks, and says where its limits come from."""
    for assertion in read_scenario(path).scenario.assertions:
        assert assertion.unlike, assertion
        assert assertion.because, assertion


def test_an_assertion_that_fails_is_told(lookup: Run, tmp_path: Path) -> None:
    """On stdout in its place, on stderr with its value."""
    path = written(tmp_path, SMALL + 'assertions = [{ figure = "balance", at_most = 1.5 }]\n')
    ran = lookup("simulate", path)

    assert ran.code == 1
    assert "  FAILED: balance at most 1.5\n" in ran.out
    assert "policy 'stays': balance is 1.71429" in ran.err


def test_scenarios_have_to_be_named(lookup: Run) -> None:
    """A mistake is a sentence."""
    assert "SCENARIO must be given" in lookup("simulate").mistakes[0]


def test_a_missing_file_is_told_as_everywhere(lookup: Run, tmp_path: Path) -> None:
    """It is named in the words of the other commands, not of the system."""
    path = tmp_path / "none.scenario"

    assert lookup("simulate", path).mistakes == [f"{path}: there is no such file"]
    assert lookup("explain", path, "--topic", "t").mistakes == [f"{path}: there is no such file"]


def test_a_folder_is_a_sentence(lookup: Run, tmp_path: Path) -> None:
    """With what would be right."""
    assert lookup("simulate", tmp_path).mistakes[0].startswith(f"{tmp_path} is a folder; ")
