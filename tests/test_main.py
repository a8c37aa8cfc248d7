"""The start of the command line, before its modules are loaded."""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest

from lookup import __main__, cli


def test_an_interruption_before_a_command_runs_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python would print where it was."""

    def interrupted() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "argv", ["lookup", "diff"])
    monkeypatch.setattr(cli, "main", interrupted)

    assert __main__.main() == 130
    assert capsys.readouterr().err == "interrupted; nothing was written\n"


@pytest.mark.parametrize(
    ("closed", "numbers"), [("<&-", "0"), (">&-", "1"), ("2>&-", "2"), ("<&- >&- 2>&-", "0, 1, 2")]
)
def test_a_standard_file_may_be_closed(closed: str, numbers: str) -> None:
    """As by what starts it from a timer: the command does its work, and no file takes the place of one."""
    body = f"""
import os, sys
from lookup import __main__
__main__._open_standard_files()
sys.exit(not all(os.path.samefile(f"/dev/fd/{{number}}", os.devnull) for number in ({numbers},)))
"""
    for words in (["-c", body], ["-m", "lookup", "plugins", "list"]):
        command = f"{shlex.join([sys.executable, *words])} {closed}"
        done = subprocess.run(["sh", "-c", command], capture_output=True, check=False)

        assert (done.returncode, done.stderr) == (0, b"")
