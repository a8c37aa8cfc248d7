"""References that a reader can open: every file that docstrings, comments and pages name is in the repository."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from lookup.settings.pulsar_keys import LOAD_MANAGER_KEYS
from lookup.settings.releases import RELEASES

ROOT = Path(__file__).parent.parent
PAGES = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts),
)
CODE = sorted(
    path for room in ("lookup", "plugins", "tests", "benchmarks", "scripts") for path in (ROOT / room).rglob("*.py")
)
ASSETS = sorted((ROOT / "tests" / "assets").rglob("*.json"))

#: A file in running text: a path with a slash behind a blank, a backtick or a parenthesis.
_NAMED = re.compile(r"(?:^|[\s`(])((?:[\w.-]+/)+[\w.-]+\.(?:md|toml|txt|json|py|conf))\b")
#: Folders of a user's own files in examples.
_EXAMPLE = re.compile(r"(?:logs|sample|report|trial|upgrade|plan|my|their|out|some|path)/")
#: A file that a page writes for its own code blocks; see conftest.py.
_WRITTEN = re.compile(r"^<!-- file: (\S+) -->$", re.MULTILINE)
_CITATION = re.compile(r"docs/pulsar/[\w-]+\.\w+")
_ROW = re.compile(r"^\| `(\w+)` \| ([^|]*) \|", re.MULTILINE)


def _prose(source: str) -> str:
    """Return the docstrings and comments of a module: its other texts may be data."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = [ast.get_docstring(node) or "" for node in ast.walk(ast.parse(source)) if isinstance(node, documented)]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return "\n".join([*docstrings, *(token.string for token in tokens if token.type == tokenize.COMMENT)])


def _missing(text: str, folder: Path) -> Iterator[str]:
    """Yield the files that a text names and that are neither there nor examples.

    Args:
        folder: of the file with this text; names may be relative to it.
    """
    known = set(_WRITTEN.findall(text))
    for name in _NAMED.findall(text):
        if name not in known and not _EXAMPLE.match(name) and not any((at / name).exists() for at in (ROOT, folder)):
            yield name


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_names_only_files_that_exist(path: Path) -> None:
    """Links of pages are files as well."""
    assert list(_missing(path.read_text(encoding="utf-8"), path.parent)) == []


def test_docstrings_and_comments_name_only_files_that_exist() -> None:
    """One test for all modules; the failure lists file and name."""
    missing = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in CODE
        for name in _missing(_prose(path.read_text(encoding="utf-8")), path.parent)
    ]

    assert missing == []


def test_every_citation_of_pulsars_facts_has_its_page() -> None:
    """Wherever it stands: in literals and vectors too."""
    texts = {path: path.read_text(encoding="utf-8") for path in (*CODE, *PAGES, *ASSETS)}
    cited = {name for text in texts.values() for name in _CITATION.findall(text)}

    assert {name for name in cited if not (ROOT / name).is_file()} == set()
    assert "docs/pulsar/load-managers.md" in cited


def test_the_page_of_keys_has_every_key_and_the_defaults_of_the_code() -> None:
    """`docs/pulsar/configuration.md`; of a cell the text before `;` or `(` is the default of 4.2."""
    rows = dict(_ROW.findall((ROOT / "docs/pulsar/configuration.md").read_text(encoding="utf-8")))
    defaults = RELEASES["4.2"].defaults
    missing = {*LOAD_MANAGER_KEYS, *defaults, "lookupPropertyPrefix"} - rows.keys()
    shown = {key: re.split(r"[;(]", rows[key])[0].strip(" `") for key in defaults if key in rows}

    assert missing == set()
    assert shown == {key: _as_shown(value) for key, value in defaults.items()}


def _as_shown(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text.replace("org.apache.pulsar.broker.loadbalance.", "...")
