"""Commands that a report asks its reader to type."""

from __future__ import annotations

import shlex

import pytest

from lookup.cli import main
from lookup.report.steps import confirmation, explanation


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (confirmation("report", None), "lookup evaluate --confirm report --output confirmed"),
        (
            confirmation("my run", "a b", seeds=34),
            "lookup evaluate --confirm 'my run' --candidate 'a b' --set evaluation.seeds=34 --output more",
        ),
        (
            confirmation("report", None, on_other_log=True),
            "lookup evaluate --confirm report --lookups LOG --output more",
        ),
        (explanation("report", "rack", "stock"), "lookup explain report --policy rack --policy stock --topic TOPIC"),
    ],
)
def test_a_command_is_one_that_a_shell_takes(
    command: str, text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    """Names are quoted, and every flag is known: what is refused is the folder, which is none."""
    monkeypatch.chdir(str(tmp_path))

    assert command == text
    assert main(shlex.split(command)[1:]) == 2
    assert shlex.split(command)[2 if "explain" in command else 3] in capsys.readouterr().err
