"""`lookup simulate`."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from tests.commands.projects import Run
from tests.simulate.scenarios import SMALL, written

_SHIPPED = sorted((Path(__file__).parents[2] / "configs" / "scenarios").glob("*.scenario"))


@pytest.mark.parametrize("path", _SHIPPED, ids=lambda path: path.stem)
def test_shipped_scenarios_print_what_they_expect(lookup: Run, path: Path) -> None:
    """Their assertions hold and their trends are the ones written down."""
    ran = lookup("simulate", path)

    assert (ran.code, ran.err) == (0, "")
    assert "holds: " in ran.out


def test_scenarios_ship_as_data_of_a_package() -> None:
    """Who installs the framework has them."""
    assert (files("lookup.configs") / "scenarios").is_dir()


def test_rewriting_accepts_what_is_printed(lookup: Run, tmp_path: Path) -> None:
    """A file without expectations is fine; rewritten it has them, and differs from then on where it changes."""
    path = written(tmp_path)
    assert lookup("simulate", path).code == 0
    assert lookup("simulate", path, "--rewrite").code == 0
    assert lookup("simulate", path).code == 0
    path.write_text(path.read_text(encoding="utf-8").replace("load = 8.0", "load = 9.0"), encoding="utf-8")
    ran = lookup("simulate", path)

    assert ran.code == 1
    assert "printed something else than expected; --rewrite would accept it" in ran.err


def test_an_assertion_that_fails_is_told(lookup: Run, tmp_path: Path) -> None:
    """On stdout in its place, on stderr with its value; rewriting does not make it hold."""
    path = written(tmp_path, SMALL + 'assertions = [{ figure = "balance", at_most = 1.5 }]\n')
    ran = lookup("simulate", path, "--rewrite")

    assert ran.code == 1
    assert "  FAILED: balance at most 1.5\n" in ran.out
    assert "small.scenario: policy 'stays': balance is 1.71429" in ran.err


def test_the_matrix_has_every_pair(lookup: Run, tmp_path: Path) -> None:
    """Every shedder, and none, with the selectors that are named."""
    ran = lookup("simulate", written(tmp_path), "--matrix", "--selectors", "random,round-robin")
    rows = [line for line in ran.out.splitlines() if "random" in line or "round-robin" in line]

    assert ran.code == 0
    assert len(rows) >= 4
    assert len(rows) % 2 == 0
    assert sum("none" in row for row in rows) == 2


def test_every_selector_has_a_place_in_the_matrix(lookup: Run, tmp_path: Path) -> None:
    """Without names all registered ones run."""
    assert lookup("simulate", written(tmp_path), "--matrix").code == 0


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ((), "SCENARIO must be given"),
        (("--matrix", "--rewrite"), "--matrix and --rewrite cannot be given together"),
        (("--matrix", "--selectors", "bset"), "no selector named 'bset'; did you mean 'best'?"),
        (("--selectors", "best"), "--selectors needs --matrix"),
    ],
)
def test_flags_have_to_go_together(lookup: Run, tmp_path: Path, flags: tuple[str, ...], sentence: str) -> None:
    """A mistake is a sentence."""
    scenarios = (written(tmp_path),) if flags else ()

    assert sentence in lookup("simulate", *scenarios, *flags).mistakes[0]


def test_a_missing_file_is_a_sentence(lookup: Run, tmp_path: Path) -> None:
    """It is named."""
    assert lookup("simulate", tmp_path / "none.scenario").mistakes == [
        f"{tmp_path / 'none.scenario'}: No such file or directory"
    ]


def test_a_policy_that_cannot_be_built_is_a_sentence(lookup: Run, tmp_path: Path) -> None:
    """As in an evaluation."""
    path = written(tmp_path, SMALL.replace('selector = "round-robin"', 'selector = "round-robbin"'))

    assert "did you mean 'round-robin'?" in lookup("simulate", path).mistakes[0]
