"""What a third party's code has raised, in one line that says where.

The command line prints no tracebacks; the author of a plug-in still has to find the line.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath

import pluggy

from lookup.errors import PluginError

__all__ = ["guarded", "in_one_line", "raised"]

#: Folders of what calls third parties' code; a frame below is none of theirs.
_CALLERS = tuple(f"{PurePath(file).parent}{os.sep}" for file in (PurePath(__file__).parent, pluggy.__file__))


@contextmanager
def guarded(beginning: str) -> Iterator[None]:
    """Call a third party's code: whatever it raises but Ctrl-C is one sentence, which begins as is given.

    Raises:
        PluginError: the sentence, with file and line of the code.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise PluginError(f"{beginning}{raised(error)}") from error


def raised(error: BaseException) -> str:
    """Return an error's name, what it says, and file and line of the code that was called, where that has any."""
    place = None if isinstance(error, SyntaxError) else _place(error)  # whose own text has it
    return in_one_line(error) if place is None else f"{in_one_line(error)} ({place})"


def in_one_line(error: BaseException) -> str:
    """Return an error's name and what it says, however many lines a third party's error has."""
    return ": ".join(filter(None, (type(error).__name__, " ".join(_said(error).split()))))


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  a third party's error may be broken itself
        return ""


def _place(error: BaseException) -> str | None:
    """Return the last line that was reached in the file that was called first: what it uses itself may be deeper."""
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    theirs = [(file, line) for file, line in frames if not file.startswith((*_CALLERS, "<"))]
    lines = [line for file, line in theirs if file == theirs[0][0]]
    return f"{PurePath(theirs[0][0]).name}, line {lines[-1]}" if lines else None
