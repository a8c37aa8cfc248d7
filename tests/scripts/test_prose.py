"""The measure of prose."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.prose import prose_of

_PAGE = """# What a heading says; it is left out

You read what is written; it is short.

| what | a table |
|---|---|

```text
what; code
```
"""
_MODULE = '''"""Say what it is; briefly."""


def told() -> None:
    """Return what `what;` is."""


def build() -> None:
    """Build it."""
'''


def test_pages_are_counted_without_headings_tables_and_code(tmp_path: Path) -> None:
    """Per 1,000 words: eight words, of which one is *what* and one *you*, and a semicolon."""
    (tmp_path / "page.md").write_text(_PAGE)

    figures = prose_of([tmp_path / "page.md"]).figures()

    assert [figures[name] for name in ("what", "you", "semicolons")] == [125.0, 125.0, 125.0]


def test_modules_are_counted_by_docstrings_and_names(tmp_path: Path) -> None:
    """In percent of docstrings and of functions."""
    (tmp_path / "module.py").write_text(_MODULE)

    figures = prose_of([tmp_path / "module.py"]).figures()

    assert figures["docstrings that begin with Return, %"] == pytest.approx(50.0)
    assert figures["functions named by a participle, %"] == pytest.approx(50.0)
