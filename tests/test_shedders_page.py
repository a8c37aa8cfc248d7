"""The page about shedders: its tables are computed again, and its sentences are held against them."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.spark

_ROOT = Path(__file__).parent.parent
_PAGE = (_ROOT / "docs" / "shedders.md").read_text(encoding="utf-8")
_TRACE = _ROOT.parent / "shared" / "data" / "nasa_http_19950801.tsv"
_NUMBER = r"-?[\d.]+(?:e[+-]\d+)?"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """Load the script that writes the tables."""
    spec = importlib.util.spec_from_file_location("shedders", _ROOT / "scripts" / "shedders.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _table(name: str) -> str:
    found = re.search(rf"<!-- {name} -->\n\n(.*?)\n\n<!-- end of {name} -->", _PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def _figures(name: str) -> dict[str, list[list[float]]]:
    """Return by shedder the numbers of each column: the figure, and its interval if there is one."""
    rows = [[cell.strip(" `") for cell in line.strip("| ").split("|")] for line in _table(name).splitlines()[2:]]
    return {row[0]: [[float(number) for number in re.findall(_NUMBER, cell)] for cell in row[1:]] for row in rows}


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["sample", "scenarios"])
def test_a_table_is_what_the_script_computes(script: ModuleType, name: str) -> None:
    """Figure by figure, with intervals."""
    assert getattr(script, name)() == _table(name)


@pytest.mark.thorough
@pytest.mark.skipif(not _TRACE.exists(), reason="NASA's trace is not here")
def test_the_table_of_the_trace_is_what_the_script_computes(script: ModuleType) -> None:
    """Figure by figure, with intervals."""
    assert script.nasa(_TRACE) == _table("nasa")


def test_balance_is_bought_with_moves_by_what_pulsar_ships() -> None:
    """By their intervals on the synthetic log, and more weight moves."""
    rows = _figures("sample")
    even, moved = {name: row[0] for name, row in rows.items()}, {name: row[3] for name, row in rows.items()}
    for name in ("threshold", "uniform", "transfer", "avg"):
        assert (even[name][2] < even["none"][1]) == (name != "transfer")
        assert moved[name][1] > moved["none"][2]


def test_rebalance_is_as_even_with_less_moved_and_more_near() -> None:
    """On both logs; how much less, the page says."""
    for name, ours, share in (
        ("sample", "rebalance", 2 / 3),
        ("sample", "shipped:rebalance", 1),
        ("nasa", "rebalance", 1 / 2),
        ("nasa", "shipped:rebalance", 1 / 2),
    ):
        rows = _figures(name)
        assert rows[ours][0][1] <= rows["threshold"][0][2]
        assert rows[ours][3][0] < share * rows["threshold"][3][0]
    shipped, stock = (_figures("sample")[name] for name in ("shipped:rebalance", "threshold"))
    assert shipped[0][0] <= stock[0][0]
    assert shipped[1][0] > 1.5 * stock[1][0]


def test_rebalance_settles_with_few_moves() -> None:
    """In every scenario with at most as many as `threshold`, and at least as even as `uniform`."""
    rows = _figures("scenarios")
    names = [cell.strip(" `") for cell in _table("scenarios").splitlines()[0].strip("| ").split("|")][1:]
    for row in rows.values():
        moves, balance = (dict(zip(names, column, strict=True)) for column in zip(*row, strict=True))
        assert moves["rebalance"] <= moves["threshold"]
        assert balance["rebalance"] <= balance["uniform"]


def test_shedders_that_cannot_act_are_those_named() -> None:
    """They are what no shedder is on the log without BUNDLES, and act on the one that has them."""
    assert _figures("sample")["uniform"] != _figures("sample")["none"] != _figures("sample")["avg"]
    rows = _figures("nasa")
    assert rows["uniform"] == rows["avg"] == rows["none"]
