"""The settings that `docs/live.md` has an operator type are good as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lookup.cli import main

_PAGE = (Path(__file__).parents[1] / "docs" / "live.md").read_text(encoding="utf-8")


def _typed(command: str, end: str) -> str:
    """Return the lines between a command of the page and what ends them."""
    found = re.search(rf"^\$ {re.escape(command)}\n(.*?)^{re.escape(end)}", _PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def _checked(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    code = main(["config", "check", "--config", str(path)])
    return code, [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]


def test_the_evaluation_needs_nothing_but_what_ships(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its policies are found from any folder."""
    path = tmp_path / "evaluation.toml"
    path.write_text(_typed("cat evaluation.toml", "$ "))

    assert _checked(path, capsys) == (0, [])


def test_the_server_takes_the_settings_of_both_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """First without a policy, then with the lines that the third step appends."""
    path = tmp_path / "serving.toml"
    (tmp_path / "token").write_text("secret")
    recording = _typed("cat serving.toml", "$ ")

    for text in (recording, recording + _typed("cat >>serving.toml <<'.'", ".")):
        path.write_text(text)
        assert _checked(path, capsys) == (0, [])
