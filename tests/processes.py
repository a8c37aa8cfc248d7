"""Processes that tests start and end: scripts, how they hear Ctrl-C, their JVMs, and waiting for what they do."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["HEEDING", "PATIENCE_S", "awaited", "connected", "is_gone", "java_of", "output_of"]

Seen = TypeVar("Seen")

#: Longest wait for anything, s: on a busy machine three brokers start in one minute.
PATIENCE_S = 240.0

#: What a shell does to its background jobs is inherited: they do not notice Ctrl-C. A command here does.
HEEDING = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from lookup.cli import main
sys.exit(main())
"""


def connected(**keys: str) -> dict[str, str]:
    """Return the environment of a command with the connection to a cluster in it, by the keys of `[cluster]`."""
    return os.environ | {f"LOOKUP_CLUSTER__{key.upper()}": value for key, value in keys.items()}


def awaited(look: Callable[[], Seen | None], what: str = "", *, enough: Callable[[Seen], object] = bool) -> Seen:
    """Look until enough is seen, and return it.

    Args:
        look: what it returns is named if it is never enough: a list says more than whether there is one.
        what: names what is waited for; without it, the source of `look` does.
        enough: whether to stop; by default anything that is true is enough.

    Raises:
        AssertionError: if that does not come, with what was looked for and what was seen last.
    """
    deadline = time.monotonic() + PATIENCE_S
    while (seen := look()) is None or not enough(seen):
        if time.monotonic() > deadline:
            looked_for = what or " ".join(inspect.getsource(look).split())
            raise AssertionError(
                f"waited {PATIENCE_S:.0f} s in vain for {looked_for}; last seen: {repr(seen)[-2_000:]}"
            )
        time.sleep(0.05)
    return seen


def java_of(process: int) -> int | None:
    """Return the JVM that a process has started; None where there is none yet."""
    lines = _listed("-A", "-o", "ppid=,pid=,comm=").splitlines()
    return next((int(words[1]) for line in lines if (words := line.split())[::2] == [str(process), "java"]), None)


def is_gone(process: int) -> bool:
    """Tell whether a process has ended, or only waits to be forgotten."""
    return _listed("-o", "stat=", "-p", str(process)).strip()[:1] in {"", "Z"}


def output_of(script: str, **environment: str) -> str:
    """Run a script that has to end well and without a word on stderr, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        env=os.environ | environment,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def _listed(*arguments: str) -> str:
    # ps ends with 1 where it finds nothing.
    return subprocess.run(["ps", *arguments], capture_output=True, text=True, check=False).stdout
