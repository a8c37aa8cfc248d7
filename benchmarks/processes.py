"""Whole processes under the stop-watch, or what all Python processes below them held in memory at the worst moment.

Memory is PSS, each shared page divided among those who share it: workers forked from one parent are not counted double.
Looking at it takes a process's pages under lock, so that it is never done in a run whose time counts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

__all__ = ["Measured", "run_measured"]

#: Seconds between two looks at the memory.
_PERIOD_S = 0.1
_KIB = 1024


@dataclass(frozen=True)
class Measured:
    """One finished process: seconds from start to end, peak memory in bytes if that was looked at, and its output."""

    seconds: float
    python_bytes: int
    #: of the JVM, resident
    java_bytes: int
    output: str
    #: of the one Python process that held the most, resident, mapped files included
    largest_bytes: int = 0


def run_measured(
    arguments: Sequence[str],
    *,
    allowed: tuple[int, ...] = (0,),
    variables: Mapping[str, str] | None = None,
    memory: bool = False,
) -> Measured:
    """Run this interpreter with some arguments.

    Args:
        allowed: exit codes that are no failure.
        variables: added to the environment.
        memory: whether to look at the memory, which takes time.

    Raises:
        SystemExit: with what the process printed, where it failed.
    """
    begin = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **(variables or {})},
    ) as process:
        sampler = _Sampler(process.pid)
        if memory:
            sampler.start()
        output = process.communicate()[0]
        seconds = time.perf_counter() - begin
        if memory:
            sampler.stop()
    if process.returncode not in allowed:
        raise SystemExit(f"{' '.join(arguments)} ended with {process.returncode}:\n{output[-3000:]}")
    return Measured(seconds, sampler.python_bytes, sampler.java_bytes, output, sampler.largest_bytes)


class _Sampler(threading.Thread):
    """Looks at a process and everything below it again and again, and keeps the largest sums."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._root = pid
        self._ended = threading.Event()
        self.python_bytes = 0
        self.java_bytes = 0
        self.largest_bytes = 0

    def run(self) -> None:
        while not self._ended.wait(_PERIOD_S):
            self._look()

    def stop(self) -> None:
        self._ended.set()
        self.join()

    def _look(self) -> None:
        try:
            root = psutil.Process(self._root)
            family = [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return
        sums = {"python": 0, "java": 0}
        for process in family:
            kind, size = _size_of(process)
            if kind:
                sums[kind] += size
            if kind == "python":
                self.largest_bytes = max(self.largest_bytes, _peak(process.pid))
        self.python_bytes = max(self.python_bytes, sums["python"])
        self.java_bytes = max(self.java_bytes, sums["java"])


def _size_of(process: psutil.Process) -> tuple[str, int]:
    """Return what a process is, and its share of memory in bytes; nothing for one that is neither or just ended."""
    try:
        name = process.name()
        if name.startswith("python"):
            return "python", _pss(process.pid)
        return ("java", process.memory_info().rss) if name.startswith("java") else ("", 0)
    except (psutil.Error, OSError):
        return "", 0


def _pss(pid: int) -> int:
    return _kib_of(Path(f"/proc/{pid}/smaps_rollup"), "Pss:") * _KIB


def _peak(pid: int) -> int:
    """Return the most that a process has held so far, bytes; 0 if it has ended."""
    try:
        return _kib_of(Path(f"/proc/{pid}/status"), "VmHWM:") * _KIB
    except OSError:
        return 0


def _kib_of(path: Path, name: str) -> int:
    return next((int(line.split()[1]) for line in path.read_text().splitlines() if line.startswith(name)), 0)
