"""The settings that `docs/live.md` has an operator type are good as they stand there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lookup.cli import main
from tests.pages import page, shown
from tests.processes import awaited

_PAGE = page("docs/live.md")


def _checked(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    code = main(["config", "check", str(path)])
    return code, [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]


def test_the_evaluation_needs_nothing_but_what_ships(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its policies are found from any folder."""
    path = tmp_path / "evaluation.toml"
    path.write_text(shown(_PAGE, "cat evaluation.toml", "$ "))

    assert _checked(path, capsys) == (0, [])


@pytest.mark.process
def test_the_commands_start_a_server_and_let_it_load_its_settings_again(tmp_path: Path) -> None:
    """As printed, but for the address; the signal reaches the server that was started here, and no other process."""
    commands = [line[2:] for line in _PAGE.splitlines() if line.startswith("$ ")]
    token, serve, signal = (
        next(line for line in commands if line.startswith(start)) for start in ("head -c", "lookup serve", "kill -HUP")
    )
    settings = shown(_PAGE, "cat serving.toml", "$ ").replace("10.0.0.9", "127.0.0.1") + "port = 0\n"
    (tmp_path / "serving.toml").write_text(settings)
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    log = tmp_path / "log"

    def typed(line: str) -> None:
        with log.open("a") as out:
            subprocess.run(["bash", "-c", line], cwd=tmp_path, env=environment, stdout=out, stderr=out, check=True)

    typed(token)
    typed(serve)
    try:
        awaited(lambda: "serving no policy" in log.read_text(), "a server that listens")
        (tmp_path / "serving.toml").write_text(settings + shown(_PAGE, "cat >>serving.toml <<'.'", "."))
        typed(signal)
        awaited(lambda: "the settings were loaded again" in log.read_text(), "settings that are loaded again")
    finally:
        typed("kill -TERM $(cat serve.pid)")
