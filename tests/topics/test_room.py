"""The map of the room in its docstring is true."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import lookup.topics

_ROOM = Path(str(lookup.topics.__file__)).parent
_MODULES = {path.stem: path for path in _ROOM.glob("[a-z]*.py")}


def _groups() -> dict[str, int]:
    """Return for each module on the map which group it stands in, from the top."""
    lines = re.findall(r"^ {4}(\w*) +(\w+) +\S", lookup.topics.__doc__ or "", re.MULTILINE)
    found: dict[str, int] = {}
    group = -1
    for title, module in lines:
        group += bool(title)
        found[module] = group
    return found


def _imported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {name.removeprefix("lookup.topics.") for name in names if name.startswith("lookup.topics.")}


def test_every_module_is_on_the_map() -> None:
    """Once, and nothing else is."""
    assert _groups().keys() == _MODULES.keys()


def test_groups_read_only_those_above() -> None:
    """Or their own."""
    groups = _groups()
    wrong = [
        f"{name} imports {other}"
        for name, path in _MODULES.items()
        for other in _imported(path)
        if groups[other] > groups[name]
    ]

    assert wrong == []
