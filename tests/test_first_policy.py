"""The newcomer's page, followed to its end: the evaluation it shows is run, and the new policy is in the comparison."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "first-policy.md").read_text(encoding="utf-8")


def _files() -> dict[str, str]:
    return dict(re.findall(r"^<!-- file: (\S+) -->\n\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


def test_the_policy_is_short() -> None:
    """The whole file has fewer than 30 lines."""
    assert len(_files()["racks.py"].splitlines()) < 30


@pytest.mark.spark
def test_a_newcomers_policy_is_in_the_comparison(tmp_path: Path) -> None:
    """With the page's files and commands alone, from an empty folder."""
    for name, text in _files().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command in re.findall(r"^\$ (lookup .*)$", PAGE, re.MULTILINE):
        done = subprocess.run(
            command.split(), cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    assert "racks-first" in done.stdout
    verdicts = json.loads((tmp_path / "report" / "summary.json").read_text(encoding="utf-8"))["verdicts"]
    [rack] = [one for one in verdicts if (one["metric"], one["key"]) == ("match_ratio", "rack")]
    assert (rack["policy"], rack["against"], rack["verdict"]) == ("racks-first", "stock", "better")
