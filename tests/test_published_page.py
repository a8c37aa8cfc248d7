"""The page about published statements: its questions are asked again, and held against the figures in a file."""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

_ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """Load the script that writes the table."""
    spec = importlib.util.spec_from_file_location("published", _ROOT / "scripts" / "published.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look up the module of their annotations there.
    sys.modules["published"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.thorough
def test_the_table_is_what_the_script_computes(script: ModuleType) -> None:
    """Answers first, then the published figures."""
    page = script.PAGE.read_text(encoding="utf-8")
    found = script.answers()

    statements = tomllib.loads(script.STATEMENTS.read_text(encoding="utf-8"))["statements"]
    assert script.page_with(page, script.table(found, statements)) == page


def test_a_verdict_needs_more_than_half_of_the_runs_with_certainty(script: ModuleType) -> None:
    """Where chance has no part, one run is enough."""
    question = "a new broker under 4.2"
    statement = {"question": question, "where": "here", "said": "There are two.", "at_least": 2, "at_most": 2}

    verdicts = [
        script.table({question: values}, [statement]).rpartition(" | ")[2].rstrip(" |")
        for values in ([2.0] * 20, [3.0] * 20, [2.0] * 12 + [1.0] * 8, [2.0], [1.0])
    ]

    assert verdicts == ["reproduced", "contradicted", "open", "reproduced", "contradicted"]
