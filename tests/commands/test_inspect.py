"""`lookup inspect`, with and without settings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.commands.projects import Run, evaluation_of

#: A candidate with a misspelt key.
_MISSPELT = '[[policies]]\nname = "slip"\nscorers = [{ use = "property-match", key = "rakc" }]\nselector = "best"\n'


def test_a_log_is_described_without_settings(lookup: Run, log: Path) -> None:
    """Lookups, demand per minute, labels and load; nothing is said about settings."""
    ran = lookup("inspect", log / "lookups")

    assert ran.code == 0
    assert ran.out.startswith("2,000 rows, of which 0 ")
    lines = {name: text for line in ran.out.splitlines() for name, _, text in [line.strip().partition("  ")]}
    assert lines["tenants"].strip().startswith("tenant-")
    assert re.match(r" *[\d,]+ redirects?, [\d,]+ lookups? ", lines["left out"])
    assert "a broker serves" in lines["load"]
    rate, brokers = float(lines["per minute"].split()[0]), int(lines["brokers"])
    assert float(lines["mean load"].split()[0]) == pytest.approx(rate / 60 / brokers, rel=0.1)
    assert "session_s = " in lines["suggested"]
    assert any(name.startswith("property rack") for name in lines)


def test_settings_are_held_against_the_log(lookup: Run, log: Path, tmp_path: Path) -> None:
    """A misspelt key is found, and the right one suggested; the exit code stays 0."""
    path = evaluation_of(tmp_path, log, _MISSPELT)

    ran = lookup("inspect", log / "lookups", path)

    (line,) = [line for line in ran.out.splitlines() if line.startswith("policy-key: ")]
    assert (ran.code, line.endswith("did you mean 'rack'?")) == (0, True)


def test_accepted_findings_are_silent(lookup: Run, log: Path, tmp_path: Path) -> None:
    """`lint.accept` names kinds that are not reported; one that does not exist is a mistake."""
    path = evaluation_of(tmp_path, log, _MISSPELT + '[lint]\naccept = ["policy-key"]\n')

    assert "policy-key" not in lookup("inspect", log / "lookups", path).out
    path.write_text(path.read_text(encoding="utf-8").replace('"policy-key"', '"policy-kee"'), encoding="utf-8")
    assert "lint.accept[0]" in lookup("inspect", log / "lookups", path).mistakes[0]


def test_bad_input_is_a_sentence(lookup: Run, log: Path, tmp_path: Path) -> None:
    """A log that is not there, and settings without a file, are refused."""
    assert lookup("inspect", tmp_path / "nowhere").mistakes[0].startswith(f"{tmp_path}/nowhere: ")
    assert "--set: changes a setting" in lookup("inspect", log, "--set", "evaluation.tick_s=30").mistakes[0]
