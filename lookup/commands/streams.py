"""Write data to stdout and everything about the run to stderr; without a terminal in plain lines.

Plug-ins may print. While a command runs their prints go to stderr, so that stdout holds data alone.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from typing import Any, NoReturn, TextIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lookup.model.quoting import printable

__all__ = ["DataConsole", "data_console", "detail", "note", "plain", "plain_table", "print_json", "prints_apart"]
__all__ += ["progress", "say", "stdout", "volume", "warn"]

#: Columns of files and pipes, which have no width and must not wrap.
_PLAIN_WIDTH = 1000
#: Characters of a line about the run; a value from a file may be of any length.
_LONGEST = 2000
#: -1 for `--quiet`, 1 for `--verbose`.
_VOLUME: ContextVar[int] = ContextVar("volume", default=0)
#: The stdout of before prints were sent elsewhere; a context variable, so that nested runs find their own.
_DATA: ContextVar[TextIO | None] = ContextVar("data", default=None)


@contextmanager
def prints_apart() -> Iterator[None]:
    """Send prints to stderr, so that those of a plug-in do not spoil data for a program."""
    before = _DATA.set(stdout())
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _DATA.reset(before)


def stdout() -> TextIO:
    """Return the stream of data."""
    return _DATA.get() or sys.stdout


class DataConsole(Console):
    """A console that leaves a closed pipe to the command line; rich's own would exit with 1."""

    def on_broken_pipe(self) -> NoReturn:
        """Raise the error again that rich has caught."""
        raise  # noqa: PLE0704  rich calls this inside its handler


def data_console() -> DataConsole:
    """Return the console of stdout; `NO_COLOR` and pipes are honoured."""
    console = DataConsole(file=stdout(), highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = _PLAIN_WIDTH
    return console


def say(text: str) -> None:
    """Write a line about the run to stderr."""
    lines = printable(text).split("\n")
    rests = (f" ... ({len(line) - _LONGEST:,} characters more)" if len(line) > _LONGEST else "" for line in lines)
    # Written at once, so that lines of Spark's processes, which share stderr, do not come between.
    sys.stderr.write("".join(f"{line[:_LONGEST]}{rest}\n" for line, rest in zip(lines, rests, strict=True)))
    sys.stderr.flush()


@contextmanager
def volume(*, quiet: bool, verbose: bool) -> Iterator[None]:
    """Let the body write less about the run, or more: see `note` and `detail`."""
    before = _VOLUME.set(-1 if quiet else int(verbose))
    try:
        yield
    finally:
        _VOLUME.reset(before)


def note(text: str) -> None:
    """Write a line about the run that nothing depends on to stderr; not with `--quiet`."""
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
    stdout().write(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def plain(text: str, style: str = "") -> Text:
    """Return a text for a console: no markup, and no control character that a file may hold."""
    return Text(printable(text), style=style)


def plain_table(console: Console, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; the last column takes the width that is left, the others keep theirs."""
    # Without a terminal in ASCII: a file or a pipe may be read in any encoding.
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else box.ASCII2, pad_edge=False)
    for name in columns:
        table.add_column(name, no_wrap=name != columns[-1], overflow="fold")
    for row in rows:
        table.add_row(*map(plain, row))
    console.print(table)


@contextmanager
def progress(start: str) -> Iterator[Callable[[str], None]]:
    """Yield a function that reports the current stage: a moving line on a terminal, lines with seconds elsewhere.

    With `--quiet` nothing is reported, with `--verbose` in lines on a terminal, too.
    """
    if _VOLUME.get() < 0:
        yield lambda text: None
        return
    console, began = Console(stderr=True, highlight=False, markup=False, emoji=False), time.monotonic()
    if console.is_terminal and _VOLUME.get() == 0:
        with console.status(Text(start)) as status:
            yield lambda text: status.update(Text(text))
        return

    def line(text: str) -> None:
        """Write a stage with the seconds since the start."""
        say(f"[{time.monotonic() - began:6.1f} s] {text}")

    line(start)
    yield line
