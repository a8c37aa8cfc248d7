"""`lookup plugins list`: everything that is registered, and plug-ins that cannot be loaded."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import pytest

from lookup.engine.plugins import load_plugins
from tests.commands.projects import Run

GALLERY = Path(__file__).parents[2] / "docs" / "gallery.md"
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
        "ranges": {},
        "reads": ["client"],
    }


def test_the_gallery_is_that_of_the_command(lookup: Run) -> None:
    """`docs/gallery.md` is what is printed for the distribution itself; if it is not, this command writes it anew."""
    ran = lookup("plugins", "list", "--distribution", "pulsar-lookup", "--format", "markdown")

    assert GALLERY.read_text(encoding="utf-8") == ran.out


@pytest.mark.parametrize(
    ("annotation", "default", "cell"),
    [
        ("Annotated[float, Ge(0), Le(1)]", "0.5", "`table = 0.5`, 0 to 1"),
        ("Annotated[int, Gt(0), Lt(9)] | None", "None", "`table = unset`, above 0, below 9"),
        ('Annotated[float, Ge(0), Unit("bytes/s")]', "1.0", "`table = 1.0`, at least 0, bytes/s"),
        ('Literal["a|b", "c"]', '"c"', '`table = "c"`, one of "a\\|b", "c"'),
        ("tuple[Selector, ...]", "()", "`table = []`, selectors"),
        ("Nowhere", "1", "`table = 1`"),
    ],
    ids=["closed", "open", "unit", "choices", "children", "unreadable"],
)
def test_a_page_says_what_a_parameter_may_be(
    lookup: Run, tmp_path: Path, annotation: str, default: str, cell: str
) -> None:
    """Bounds, choices, unit and kinds of children, in the words of a reader; nothing of what cannot be known."""
    imports = "from typing import Annotated, Literal\nfrom lookup.hooks import Ge, Gt, Le, Lt, Selector, Unit\n"
    mine = MINE.replace('"""A plug-in."""', f'"""A plug-in."""\nfrom __future__ import annotations\n{imports}')
    text = mine.replace("    table: str\n", f"    table: {annotation} = {default}\n").replace("my brokers", "a < b * c")
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")

    page = lookup("plugins", "list", "--plugin-file", tmp_path / "mine.py", "--format", "markdown").out

    section = page.partition(f"\n## {tmp_path}/mine.py\n\n### Scorers of {tmp_path}/mine.py\n\n")[2]
    assert section.splitlines()[2] == f"| `mine` | Score a &lt; b \\* c. | {cell} | `client` |"


def test_one_distribution(lookup: Run, tmp_path: Path) -> None:
    """What other distributions and files bring is left out; one that brings nothing is answered with those that do."""
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    words = ("plugins", "list", "scorers", "--plugin-file", tmp_path / "mine.py", "--distribution")

    entries = json.loads(lookup(*words, "pulsar-lookup", "--format", "json").out)
    (mistake,) = lookup(*words, "pulsar-lokup").mistakes

    assert {entry["distribution"] for entry in entries} == {"pulsar-lookup"}
    assert mistake.startswith("--distribution: 'pulsar-lokup' ")


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
