"""The oracle of the replay is a second opinion."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

_MODULES = sorted((Path(__file__).parent / "oracle").glob("*.py"))
#: What both sides may stand on: the engine they are about, and how settings are read.
_SHARED_ROOMS = {"engine", "errors", "model", "settings"}


@pytest.mark.parametrize("module", _MODULES, ids=lambda module: module.stem)
def test_the_oracle_uses_nothing_of_the_replay(module: Path) -> None:
    """What the replay and its figures are made of would be wrong on both sides at once."""
    nodes = list(ast.walk(ast.parse(module.read_text(encoding="utf-8"))))
    names = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    names |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    rooms = {name.split(".")[1] for name in names if name.startswith("lookup.")}

    assert rooms <= _SHARED_ROOMS
    assert "lookup" not in names
