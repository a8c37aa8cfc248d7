"""Write data to stdout and everything about the run to stderr, in plain lines without a terminal.

Plug-ins may print. While a command runs their prints go to stderr, so that stdout only contains data.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from typing import Any, NoReturn, TextIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lookup.model.quoting import json_text, printed_line, quantity

__all__ = [
    "DataConsole", "Stages", "data_console", "detail", "note", "plain", "plain_table", "print_json", "progress",
    "redirect_prints", "say", "stdout", "volume", "warn",
]  # fmt: skip

#: Columns of files and pipes, which have no width and must not wrap.
_PLAIN_WIDTH = 1000
#: Characters of a line about the run, since a value from a file may be of any length.
_LONGEST = 2000
#: Least seconds between two lines of one stage, and characters of a bar.
_LINE_S, _BAR_WIDTH = 5.0, 24
#: -1 for `--quiet`, 1 for `--verbose`.
_VOLUME: ContextVar[int] = ContextVar("volume", default=0)
#: The stdout before prints were redirected. It is a context variable, so that nested runs find their own.
_DATA: ContextVar[TextIO | None] = ContextVar("data", default=None)


@contextmanager
def redirect_prints() -> Iterator[None]:
    """Send prints to stderr, so that those of a plug-in do not spoil data for a program."""
    before = _DATA.set(stdout())
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _DATA.reset(before)


def stdout() -> TextIO:
    """Find the stream of data."""
    return _DATA.get() or sys.stdout


class DataConsole(Console):
    """A console that leaves a closed pipe to the command line, since rich's own would exit with 1."""

    def on_broken_pipe(self) -> NoReturn:
        """Raise the error again that rich has caught."""
        raise  # noqa: PLE0704  rich calls this inside its handler


def data_console() -> DataConsole:
    """Create the console of stdout, which respects `NO_COLOR` and pipes."""
    console = DataConsole(file=stdout(), highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = _PLAIN_WIDTH
    return console


def say(text: str) -> None:
    """Write a line about the run to stderr."""
    line = printed_line(text)
    rest = f" ... ({len(line) - _LONGEST:,} characters more)" if len(line) > _LONGEST else ""
    # Written at once, so that lines of Spark's processes, which share stderr, do not come between.
    sys.stderr.write(f"{line[:_LONGEST]}{rest}\n")
    sys.stderr.flush()


@contextmanager
def volume(*, quiet: bool, verbose: bool) -> Iterator[None]:
    """Let the body write less about the run, or more, as in `note` and `detail`."""
    before = _VOLUME.set(-1 if quiet else int(verbose))
    try:
        yield
    finally:
        _VOLUME.reset(before)


def note(text: str) -> None:
    """Write a line about the run to stderr that nothing depends on. It is omitted with `--quiet`."""
    if _VOLUME.get() >= 0:
        say(text)


def detail(text: str) -> None:
    """Write a line about the run that few want to know to stderr, with `--verbose` alone."""
    if _VOLUME.get() > 0:
        say(text)


def warn(text: str) -> None:
    """Write something a user should know, but that stops nothing, to stderr."""
    say(f"warning: {text}")


def print_json(content: Mapping[str, Any] | Sequence[Any]) -> None:
    """Write JSON to stdout."""
    stdout().write(json_text(content, indent=2) + "\n")


def plain(text: str, style: str = "") -> Text:
    """Build a line for a console without markup or characters from a file that end it or control the terminal."""
    return Text(printed_line(text), style=style)


def plain_table(console: Console, columns: Sequence[str], rows: Sequence[Sequence[str]], *, folded: int = -1) -> None:
    """Print a table, with columns as wide as their contents.

    Args:
        folded: number of the column that takes the remaining width on a narrow terminal, by default the last one.
    """
    # Without a terminal in ASCII: a file or a pipe may be read in any encoding.
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else box.ASCII2, pad_edge=False)
    for name in columns:
        table.add_column(name, no_wrap=name != columns[folded], overflow="fold")
    for row in rows:
        table.add_row(*map(plain, row))
    console.print(table)


class Stages:
    """The object that `progress` yields. A call with a text begins a stage, and `done` reports its progress."""

    def __init__(self, start: str) -> None:
        """Begin the first stage."""
        self._began = self._stage_began = self._said = time.monotonic()
        self._text, self._far = start, (0, 0, 0)
        #: when the last task of the stage was done
        self._advanced = self._began
        #: writes lines. Otherwise the display reads `text`
        self.writes_lines = True

    def __call__(self, text: str) -> None:
        """Begin a stage."""
        self._text, self._far = text, (0, 0, 0)
        self._stage_began = self._advanced = time.monotonic()
        if self.writes_lines:
            self._write()

    def done(self, tasks: int, of: int, rows: int) -> None:
        """Record the progress of the stage's job, or of the next one, and write a line at most every few seconds."""
        if self._far[1:] != (of, rows) or tasks < self._far[0]:
            self._stage_began = self._advanced = time.monotonic()
        if tasks > self._far[0]:
            self._advanced = time.monotonic()
        self._far = tasks, of, rows
        if self.writes_lines and tasks > 0 and time.monotonic() - self._said >= _LINE_S:
            self._write()

    def share(self) -> float | None:
        """Compute the completed share of the stage, in [0, 1], None if that is not known."""
        tasks, of, _ = self._far
        return tasks / of if of else None

    def text(self) -> str:
        """Describe the stage by completed tasks, rows per second and remaining time. Unknown figures are left out."""
        tasks, of, rows = self._far
        if not of:
            return self._text
        parts = [f"{tasks} of {quantity(of, 'task')}"]
        # Until another task is done the remaining time decreases, except for the time of later tasks.
        seconds, since = self._advanced - self._stage_began, time.monotonic() - self._advanced
        if tasks and seconds:
            if rows:
                rate = rows * tasks / of / seconds
                written = f"{rate / 1e6:.1f} M" if rate >= 1e6 else f"{rate:,.0f}"
                parts.append(f"{written} rows/s")
            remaining_s = seconds / tasks * (of - tasks) - min(since, seconds / tasks)
            if remaining_s > 0:
                parts.append(f"{_format_duration(remaining_s)} left")
        return f"{self._text}: {', '.join(parts)}"

    def _write(self) -> None:
        self._said = time.monotonic()
        say(f"[{self._said - self._began:6.1f} s] {self.text()}")


def _format_duration(seconds: float) -> str:
    for unit, length, most in (("s", 1, 120), ("min", 60, 7_200)):
        if seconds < most:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 3_600:.1f} h"


@contextmanager
def progress(start: str) -> Iterator[Stages]:
    """Yield a reporter of the current stage, which is a bar on a terminal, else lines with seconds.

    Lines are also used with `--verbose`, in CI and on a terminal that cannot move its cursor. `--quiet` prints nothing.
    """
    stages = Stages(start)
    if _VOLUME.get() < 0:
        stages.writes_lines = False
        yield stages
        return
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    if not console.is_terminal or console.is_dumb_terminal or _VOLUME.get() > 0 or os.environ.get("CI"):
        stages(start)
        yield stages
        return
    # A tenth of a second, and only a terminal needs it.
    from rich.live import Live
    from rich.progress_bar import ProgressBar
    from rich.spinner import Spinner

    stages.writes_lines, spinner = False, Spinner("dots")

    def draw() -> Table:
        """Draw the stage as it is now."""
        table, share = Table.grid(padding=(0, 1)), stages.share()
        bar = [] if share is None else [ProgressBar(1.0, share, width=_BAR_WIDTH)]
        table.add_row(spinner, *bar, Text(stages.text()))
        return table

    with Live(get_renderable=draw, console=console, transient=True, refresh_per_second=8):
        yield stages
