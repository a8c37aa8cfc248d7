"""`lookup plugins list`: everything that is registered, and plug-ins that cannot be loaded."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

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


def test_plug_in_files_are_listed(lookup: Run, tmp_path: Path) -> None:
    """A class of a file is listed with the file's path; a parameter without default stands alone."""
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")

    ran = lookup("plugins", "list", "scorers", "--plugin-file", tmp_path / "mine.py", "--format", "json")

    mine = next(entry for entry in json.loads(ran.out) if entry["name"] == "mine")
    assert mine == {
        "kind": "scorers",
        "name": "mine",
        "origin": str(tmp_path / "mine.py"),
        "distribution": None,
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


def test_an_unknown_kind_is_one_sentence(lookup: Run) -> None:
    """A kind there is not is answered with those there are."""
    (mistake,) = lookup("plugins", "list", "policies").mistakes

    assert mistake.startswith("there is no kind 'policies'; ")
