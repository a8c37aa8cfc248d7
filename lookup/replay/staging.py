"""Where output is written before it is complete: a hidden folder from which it can be moved in one step."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from pyarrow import fs as arrow_fs

from lookup.errors import InputError

__all__ = ["as_given", "made_for", "staging_place"]

#: What Arrow puts before the system's own words: "Cannot create directory 'x'. Detail: [errno 30] Read-only ...".
_BEFORE = re.compile(r".*\. Detail: (?:\[errno \d+\] )?", re.DOTALL)


@contextmanager
def made_for(output: str) -> Iterator[None]:
    """Tell of what the system refuses while a hidden folder is made which output it was for; users know no other.

    Raises:
        InputError: naming the output and what was refused.
    """
    try:
        yield
    except OSError as error:
        said = _BEFORE.sub("", str(error.strerror or error))
        raise InputError(f"--output: {output} cannot be written: {said}") from error


def staging_place(system: arrow_fs.FileSystem, output: str) -> str:
    """Return the path of a hidden folder: in an output that exists, else beside it.

    An output that exists may be a volume mounted there: what lies beside it is then another disk, from which nothing
    can be moved, and often nobody may write there.
    """
    parent, _, name = output.rpartition("/")
    is_there = system.get_file_info(output).type is arrow_fs.FileType.Directory
    return f"{output if is_there else parent}/.{name}.{uuid4().hex[:8]}"


def as_given(output: str, located: str, path: str) -> str:
    """Return a path in or beside an output in the manner in which the output was given, as URI or path.

    Args:
        located: the output's path in its file system.
        path: what to name, in the same file system.
    """
    if "://" not in output:
        return path
    given = output.rstrip("/")
    if path.startswith(f"{located}/"):
        return given + path.removeprefix(located)
    return given.rpartition("/")[0] + path.removeprefix(located.rpartition("/")[0])
