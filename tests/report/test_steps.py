"""Commands that a report asks its reader to type."""

from __future__ import annotations

import shlex

import pytest

from lookup.cli import main
from lookup.report.steps import confirmation, explanation


@pytest.mark.parametrize(
    ("command", "end"),
    [
        (confirmation("report", None), " --confirm report --output confirmed"),
        (confirmation("my run", "a b", seeds=34), " 'a b' --set evaluation.seeds=34 --output more"),
        (confirmation("report", None, on_other_log=True), " --lookups LOG --output more"),
        (explanation("report", "rack", "stock"), " --policy rack --policy stock --topic TOPIC"),
    ],
)
def test_a_command_is_one_that_a_shell_takes(
    command: str, end: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    """Names are quoted, and every flag is known: what is refused is the folder, which is none."""
    monkeypatch.chdir(str(tmp_path))

    assert command.endswith(end)
    assert main(shlex.split(command)[1:]) == 2
    assert shlex.split(command)[2 if "explain" in command else 3] in capsys.readouterr().err
