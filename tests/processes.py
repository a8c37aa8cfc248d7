"""Processes that tests start and end: how they hear Ctrl-C, their JVMs, and waiting for what they do."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["HEEDING", "awaited", "is_gone", "java_of"]

Found = TypeVar("Found")

#: What a shell does to its background jobs is inherited: they do not notice Ctrl-C. A command here does.
HEEDING = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from lookup.cli import main
sys.exit(main())
"""


def awaited(look: Callable[[], Found | None]) -> Found:
    """Look until there is something, and return it; what never comes ends with the timeout that every test has."""
    while not (found := look()):
        time.sleep(0.05)
    return found


def java_of(process: int) -> int | None:
    """Return the JVM that a process has started; None where there is none yet."""
    lines = _told("-A", "-o", "ppid=,pid=,comm=").splitlines()
    return next((int(words[1]) for line in lines if (words := line.split())[::2] == [str(process), "java"]), None)


def is_gone(process: int) -> bool:
    """Tell whether a process has ended, or only waits to be forgotten."""
    return _told("-o", "stat=", "-p", str(process)).strip()[:1] in {"", "Z"}


def _told(*arguments: str) -> str:
    # ps ends with 1 where it finds nothing.
    return subprocess.run(["ps", *arguments], capture_output=True, text=True, check=False).stdout
