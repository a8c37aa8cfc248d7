"""Report an error of a third party's code in one line, with file and line of that code.

The command line does not print tracebacks, but the author of a plug-in has to find the line.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import PurePath
from typing import Any

import pluggy

from lookup.errors import PluginError

__all__ = ["MOST_ANSWERS", "describe_error", "guard_call", "in_one_line", "read_bounded"]

#: Answers after which a third party's code is taken to have no end.
MOST_ANSWERS = 1_000_000

#: Folders of the code that calls third parties, whose frames are not the third party's.
_CALLERS = tuple(f"{PurePath(file).parent}{os.sep}" for file in (PurePath(__file__).parent, pluggy.__file__))


def read_bounded(answers: Iterable[Any], most: int = MOST_ANSWERS) -> list[Any]:
    """Read the answers of a third party's code. Raise OverflowError if they do not end."""
    items = list(islice(answers, most + 1))
    if len(items) > most:
        raise OverflowError(f"has more than {most:,} answers")
    return items


@contextmanager
def guard_call(beginning: str) -> Iterator[None]:
    """Call a third party's code, and convert any error but Ctrl-C to one sentence with the given beginning.

    Raises:
        PluginError: the sentence, with file and line of the code.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise PluginError(f"{beginning}{describe_error(error)}") from error


def describe_error(error: BaseException) -> str:
    """Format an error's name and message, with file and line of the third party's code if they are known."""
    if isinstance(error, SyntaxError):  # whose own text has file and line
        return in_one_line(error)
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    theirs = [(file, line) for file, line in frames if not file.startswith((*_CALLERS, "<"))]
    if not theirs:
        return in_one_line(error)
    # The last line reached in the file that was called first, since libraries it uses may be deeper.
    first = theirs[0][0]
    return f"{in_one_line(error)} ({PurePath(first).name}, line {[at for file, at in theirs if file == first][-1]})"


def in_one_line(error: BaseException) -> str:
    """Format an error's name and message in one line."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001  a third party's error may be broken itself
        message = ""
    return ": ".join(filter(None, (type(error).__name__, " ".join(message.split()))))
