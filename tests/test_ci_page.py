"""The workflow in docs/ci.md does what the page says: its commands run in a folder like that of a checkout."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from lookup.cli import main
from tests.pages import block, page

_PAGE = page("docs/ci.md")


def _commands(workflow: str) -> list[list[str]]:
    """Return the words of every `lookup` command of a workflow; a folded line is one command."""
    joined = re.sub(r"\n +--", " --", workflow)
    return [shlex.split(line) for line in re.findall(r"^ +(?:run: )?lookup (.*)$", joined, re.MULTILINE)]


def test_the_workflow_of_the_page_judges_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run of the main branch, then a change of the policies, which is judged and leaves what later steps read."""
    monkeypatch.chdir(tmp_path)
    Path("evaluation.toml").write_text(block(_PAGE, "<!-- file: evaluation.toml -->", "toml"), encoding="utf-8")
    Path("budget.toml").write_text(block(_PAGE, "<!-- file: budget.toml -->", "toml"), encoding="utf-8")
    (generate,) = re.findall(r"^\$ lookup (generate .*)$", _PAGE, re.MULTILINE)
    assert main(generate.split()) == 0
    on_main, on_change = _commands(block(_PAGE, "<!-- compared by tests/test_ci_page.py -->", "yaml"))

    assert main(on_main) == 0
    Path("report").rename("main")
    worse = Path("evaluation.toml").read_text().replace('selector = "best"', 'selector = "random"')
    Path("evaluation.toml").write_text(worse)
    assert main(on_change) == 5
    assert "rack" in Path("report/report.md").read_text().splitlines()[2]
    assert Path("junit.xml").exists()
