"""What commands write about the run: bars on a terminal, lines elsewhere, nothing with --quiet."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from lookup.commands.streams import Stages, plain_table
from tests.commands.projects import evaluation_of


def test_a_stage_says_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """Tasks done, rows per second and the time left, once the first task is done; the next stage begins anew."""
    stages = Stages("reading")
    stages.done(0, 4, 1_000)
    before = (stages.text(), stages.share())
    stages.done(1, 4, 1_000)

    assert before == ("reading: 0 of 4 tasks", 0.0)
    assert re.fullmatch(r"reading: 1 of 4 tasks, [\d.,]+( M)? rows/s, \d+ s left", stages.text())
    assert stages.share() == 0.25
    stages("scoring")
    assert (stages.text(), stages.share()) == ("scoring", None)
    assert re.fullmatch(r"\[ +\d+\.\d s\] scoring\n", capsys.readouterr().err)


def test_the_time_that_is_left_goes_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not rise while a task takes longer than those before, and is left out where the last one does."""
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    stages, said = Stages("replaying"), []
    stages.done(0, 3, 0)
    for seconds, tasks in ((10.0, 1), (14.0, 1), (30.0, 1), (40.0, 2), (55.0, 2), (70.0, 2)):
        now = seconds
        stages.done(tasks, 3, 0)
        said.append(stages.text().partition("tasks")[2])

    assert said == [", 20 s left", ", 16 s left", ", 10 s left", ", 20 s left", ", 5 s left", ""]


def test_one_column_gives_way_on_a_narrow_terminal() -> None:
    """The others keep their width, and nothing of it is lost."""
    console = Console(file=(shown := StringIO()), width=40, force_terminal=True, color_system=None)
    plain_table(console, ("policy", "figure", "change"), [("p" * 50, "moves", "+0.2000 ▲")], folded=0)

    assert re.search(r"^ p+ +moves +\+0\.2000 ▲ *$", shown.getvalue(), re.MULTILINE)
    assert shown.getvalue().count("p") == 50 + "policy".count("p")


def _on_a_terminal(argv: Sequence[object], **variables: str) -> str:
    """Run Python with arguments and a terminal as its stderr, and return what that shows."""
    ours, theirs = pty.openpty()
    plain = {name: value for name, value in os.environ.items() if name not in ("CI", "NO_COLOR", "TERM", "COLUMNS")}
    with subprocess.Popen(
        [sys.executable, *map(str, argv)],
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env=plain | {"TERM": "xterm", "COLUMNS": "150"} | variables,
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while read := os.read(ours, 65_536):
                shown += read
        except OSError:  # the other end is closed
            pass
        os.close(ours)

    assert process.returncode in (0, 3, 4), shown
    return shown.decode()


def test_a_terminal_shows_a_bar(tmp_path: Path, log: Path) -> None:
    """With the tasks that are done; a line is drawn over again and gone at the end."""
    config = evaluation_of(tmp_path, log)

    shown = _on_a_terminal(["-m", "lookup.cli", "evaluate", config, "--output", tmp_path / "o", "--master", "none"])

    assert re.search(r"━.* in 14 runs: \d of \d tasks?", shown)
    assert "[  " not in re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", shown)
    assert shown.rstrip().endswith("summary.json for programs")


@pytest.mark.parametrize(
    ("variables", "is_verbose"),
    [({"TERM": "dumb"}, False), ({"CI": "true"}, False), ({}, True)],
    ids=["dumb", "CI", "verbose"],
)
def test_lines_are_written_where_a_bar_is_of_no_use(variables: dict[str, str], is_verbose: bool) -> None:
    """On a terminal that cannot move its cursor, in CI, and where all is to stay; of a long stage every few seconds."""
    script = (
        "from lookup.commands import streams\n"
        "streams._LINE_S = 0.0\n"
        f"with streams.volume(quiet=False, verbose={is_verbose}), streams.progress('reading') as stages:\n"
        "    stages('replaying')\n"
        "    stages.done(0, 3, 60)\n"
        "    stages.done(1, 3, 60)\n"
    )

    lines = _on_a_terminal(["-c", script], **variables).splitlines()

    expected = [r"reading", r"replaying", r"replaying: 1 of 3 tasks, [\d.,]+( M)? rows/s, \d+ s left"]
    assert len(lines) == len(expected)
    assert all(re.fullmatch(rf"\[ +\d+\.\d s\] {text}", line) for text, line in zip(expected, lines, strict=True))
