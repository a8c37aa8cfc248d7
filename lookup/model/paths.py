"""What a path of this machine names if it is neither a file nor a folder: a device, a pipe, a socket."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

__all__ = ["is_device", "special_kind"]

#: Open files of a process: another process has others, or none, under the same name.
_STREAM = re.compile(r"/dev/(?:stdin|stdout|stderr|fd/.+)|/proc/(?:self|thread-self|\d+)/fd/.+")
_KINDS = {
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


def special_kind(path: str) -> str | None:
    """Return what a path names that can be read once at most, or without end; None for all else."""
    if _STREAM.fullmatch(os.path.abspath(path)):
        return "a stream of this process"
    return _kind(Path(path))


def is_device(path: Path) -> bool:
    """Tell whether a path names a device, which may have no end."""
    return _kind(path) == "a device"


def _kind(path: Path) -> str | None:
    try:
        return _KINDS.get(stat.S_IFMT(path.stat().st_mode))
    except (OSError, ValueError):  # ValueError: of a path with a NUL in it
        return None
