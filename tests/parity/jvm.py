"""Ask Pulsar's own classes: one JVM for each release, a line of JSON for each question (plugins/pulsar_parts)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

__all__ = ["SCRIPT", "Classes", "NoClassesError", "said"]

_ROOT = Path(__file__).parents[2]
#: Gets the jars of a release, and builds what asks their classes.
SCRIPT = str(_ROOT / "scripts" / "ensure-parts.sh")
_OPENED = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in ("lang", "util", "io", "nio")]


class NoClassesError(Exception):
    """The jars of a release, or a Java that runs them, cannot be had; says why."""


class Classes:
    """The classes of one release, answering until the `with` block ends.

    Raises:
        NoClassesError: if its jars or a fitting Java cannot be had.
    """

    def __init__(self, release: str) -> None:
        java, path = said(SCRIPT, "--java", release), said(SCRIPT, release)
        self._process = subprocess.Popen(
            [java, "-Xmx900m", *_OPENED, "-cp", path, "lookup.parts.Main"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        #: release, Java and checksums of the jars that answer
        self.about: dict[str, Any] = self._answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()

    def ask(self, what: str, **given: Any) -> dict[str, Any]:
        """Return the answer to a question.

        Raises:
            RuntimeError: with what the classes raised, or if the JVM has ended.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"ask": what, **given}) + "\n")
        self._process.stdin.flush()
        answer = self._answer()
        if "error" in answer:
            raise RuntimeError(f"{what}: {answer['error']}")
        return answer

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the JVM ended with exit code {self._process.wait()}")
        found: dict[str, Any] = json.loads(line)
        return found


def said(*command: str) -> str:
    """Return what a command prints.

    Raises:
        NoClassesError: with the last line of its errors, if it fails.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoClassesError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no reason given")
    return done.stdout.strip()
