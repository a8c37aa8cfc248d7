"""`lookup plugins list`: everything that is registered, and plug-ins that cannot be loaded."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import pytest

from lookup.engine.plugins import load_plugins
from tests.commands.projects import Run

MINE = '''
"""A plug-in."""
from dataclasses import dataclass
from typing import ClassVar
from lookup.hooks import hookimpl


@dataclass(frozen=True)
class Mine:
    """Score my brokers.

    And no others.
    """

    name: ClassVar[str] = "mine"
    table: str
    reads: ClassVar[frozenset[str]] = frozenset({"client"})

    def score(self, request, brokers, view):
        """Return ones."""
        return [1.0] * len(brokers)


@hookimpl
def lookup_register_scorers():
    """Register."""
    return (Mine,)
'''


def test_every_class_is_listed_with_its_origin(lookup: Run) -> None:
    """The list has every registered class, its distribution, parameters with defaults, reads and first line."""
    entries = json.loads(lookup("plugins", "list", "--format", "json").out)

    named = {(entry["kind"], entry["name"]) for entry in entries}
    assert named == {(kind, name) for kind, found in load_plugins().classes.items() for name in found}
    match = next(entry for entry in entries if entry["name"] == "property-match")
    assert match["origin"] == f"pulsar-lookup {version('pulsar-lookup')}"
    assert 'key = "rack"' in match["parameters"]
    assert match["reads"] == ["properties.rack"]
    assert match["summary"].startswith("Score brokers by whether")
    assert all(entry["summary"] and entry["origin"] for entry in entries)


def test_every_summary_stands_alone(lookup: Run) -> None:
    """A line of the list refers to no other, since kinds are listed by name."""
    entries = json.loads(lookup("plugins", "list", "--format", "json").out)

    assert [entry["name"] for entry in entries if "as above" in entry["summary"]] == []


def test_one_kind_as_a_table(lookup: Run) -> None:
    """A kind on the command line leaves out the others."""
    ran = lookup("plugins", "list", "selectors")

    assert ran.code == 0
    assert "power-of-two" in ran.out
    assert "property-match" not in ran.out


def test_plug_in_files_are_listed(lookup: Run, tmp_path: Path) -> None:
    """A class of a file is listed with the file's path; a parameter without default stands alone."""
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")

    ran = lookup("plugins", "list", "scorers", "--plugin-file", tmp_path / "mine.py", "--format", "json")

    mine = next(entry for entry in json.loads(ran.out) if entry["name"] == "mine")
    assert mine == {
        "kind": "scorers",
        "name": "mine",
        "origin": str(tmp_path / "mine.py"),
        "summary": "Score my brokers.",
        "parameters": ["table"],
        "reads": ["client"],
    }


def test_a_class_that_refuses_its_own_defaults_is_listed(lookup: Run, tmp_path: Path) -> None:
    """Its parameters stand alone, like those without default."""
    refusing = MINE.replace("    table: str\n", '    table: str = ""\n\n    def __post_init__(self):\n        1 / 0\n')
    assert refusing != MINE
    (tmp_path / "mine.py").write_text(refusing, encoding="utf-8")

    ran = lookup("plugins", "list", "scorers", "--plugin-file", tmp_path / "mine.py", "--format", "json")

    mine = next(entry for entry in json.loads(ran.out) if entry["name"] == "mine")
    assert (mine["parameters"], mine["reads"]) == (["table"], ["client"])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("raise RuntimeError('no licence')", "cannot be loaded: RuntimeError: no licence"),
        ("def (", "cannot be loaded: SyntaxError"),
        ("import nowhere_to_be_found", "cannot be loaded: ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        (MINE.replace("lookup_register_scorers", "lookup_register_scorer"), "lookup_register_scorer"),
        (MINE.replace('"mine"', '"headroom"'), "which lookup_policies.scorers.Headroom already uses"),
        (MINE.replace("(frozen=True)", ""), "is not a frozen dataclass"),
        (None, "is not a Python file that can be read"),
    ],
    ids=["raises", "syntax", "import", "misspelt-hook", "taken-name", "no-frozen-dataclass", "missing"],
)
def test_a_bad_plug_in_is_one_sentence(lookup: Run, tmp_path: Path, text: str | None, sentence: str) -> None:
    """A plug-in file that is missing, raises, or registers something wrong is named in one sentence."""
    file = tmp_path / "bad_one.py"
    if text is not None:
        file.write_text(text, encoding="utf-8")

    (mistake,) = lookup("plugins", "list", "--plugin-file", file).mistakes

    assert sentence in mistake
    assert "bad_one" in mistake


def test_an_unknown_kind_is_one_sentence(lookup: Run) -> None:
    """A kind there is not is answered with those there are."""
    (mistake,) = lookup("plugins", "list", "policies").mistakes

    assert mistake.startswith("there is no kind 'policies'; known: filters, scorers, selectors")
