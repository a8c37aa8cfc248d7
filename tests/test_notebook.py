"""The notebook of the docs runs, cell by cell, as a kernel would run it, and what its cells end with can be shown."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from lookup.api.generating import GeneratedLog
from lookup.api.results import Evaluation

_NOTEBOOK = json.loads((Path(__file__).parents[1] / "docs" / "notebook.ipynb").read_text(encoding="utf-8"))
_CODE = ["".join(cell["source"]) for cell in _NOTEBOOK["cells"] if cell["cell_type"] == "code"]


def _shown(code: str, names: dict[str, Any]) -> Any:
    """Run a cell and return the value of the expression at its end."""
    *before, last = ast.parse(code).body
    exec(compile(ast.Module(before, []), "cell", "exec"), names)
    assert isinstance(last, ast.Expr)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


def test_every_cell_runs_and_shows_something(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From top to bottom in an empty folder: tables, an evaluation with its comparison."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "notebook"}

    values = [_shown(code, names) for code in _CODE]

    assert [type(value) for value in values] == [GeneratedLog, Evaluation, pd.DataFrame, pd.DataFrame, dict]
    assert "<table>" in values[1]._repr_html_()
    assert values[2]["verdict"].isin(["better", "worse", "equivalent", "identical", "inconclusive"]).all()
    assert values[4]["rack"] == ["broker-b:8080"]


def test_the_notebook_is_stored_without_outputs() -> None:
    """What a run left behind would differ at every run and grow the repository."""
    cells = [cell for cell in _NOTEBOOK["cells"] if cell["cell_type"] == "code"]

    assert [(cell["outputs"], cell["execution_count"]) for cell in cells] == [([], None)] * len(cells)
