"""The map of the room in its docstring is true."""

from __future__ import annotations

import re
from pathlib import Path

import lookup.topics

_ROOM = Path(str(lookup.topics.__file__)).parent


def test_every_module_is_on_the_map() -> None:
    """Once, under its package, and nothing else is; import-linter holds the order of the packages."""
    described: list[str] = []
    package = ""
    for title, module in re.findall(r"^ {4}(\w*) +(\w+) +\S", lookup.topics.__doc__ or "", re.MULTILINE):
        package = title or package
        described.append(f"{package}/{module}.py")

    modules = [str(path.relative_to(_ROOM)) for path in _ROOM.glob("*/[a-z]*.py")]

    assert sorted(described) == sorted(modules)
    alone = re.findall(r"^ {4}`(\w+\.py)` ", lookup.topics.__doc__ or "", re.MULTILINE)
    assert sorted(alone) == sorted(path.name for path in _ROOM.glob("[a-z]*.py"))
