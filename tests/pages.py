"""What pages of the documentation show: blocks, output of commands, and tables."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["ROOT", "block", "cells", "page", "shown"]

ROOT = Path(__file__).parent.parent


def page(name: str) -> str:
    """Return the text of a page, by its path in the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE | re.DOTALL)
    assert found is not None, pattern
    return found[1]


def block(text: str, before: str, language: str = r"\w*") -> str:
    """Return the first block behind a text."""
    return _found(rf"^```{language}\n(.*?)^```", text[text.index(before) :])


def shown(text: str, command: str, end: str = "```") -> str:
    """Return what a page shows below a command whose line begins so, up to a line that begins with an end."""
    return _found(rf"^\$ {re.escape(command)}[^\n]*\n(.*?)^{re.escape(end)}", text)


def cells(text: str, head: str) -> list[list[str]]:
    """Return the cells of the table whose head begins with a text, without its head."""
    lines = text[text.index(f"| {head}") :].split("\n\n", maxsplit=1)[0].splitlines()
    return [[cell.strip(" *`") for cell in line.strip("| ").split("|")] for line in lines if line.startswith("|")][2:]
