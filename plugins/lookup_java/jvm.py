"""Start the JVM of this process, exchange lines of JSON with it, and describe its failures in a sentence.

It starts at the first question and ends with the process, whose pipe it reads. A forked process has a JVM of its own.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import select
import shutil
import subprocess
import tempfile
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Final

from lookup.errors import ContractError

__all__ = ["JavaError", "ask", "end", "running"]

_OPTIONS: Final = (
    "-Xmx900m",
    "-XX:+UseSerialGC",
    # A run is over before a better compiler has paid.
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",
)
#: Seconds that the JVM gets to end after its message about the reason.
_LAST_S: Final = 5.0
#: Bytes in a pipe, since a line is written before it is read.
_PIPE: Final = 1 << 20
#: Names the jar of `plugins/pulsar_parts`, if it is not where `make parts` puts it.
_PARTS: Final = "PULSAR_PARTS_JAR"
#: Java's message about classes for a later version, with their format, which is 61 for Java 17.
_TOO_OLD: Final = re.compile(r"UnsupportedClassVersionError.*?class file version (\d+)")
_FORMAT_OF_0: Final = 44
_NO_CLASS: Final = re.compile(r"(?:ClassNotFoundException|NoClassDefFoundError): (?!L)([\w/.$]+)")


class JavaError(Exception):
    """Error for an exception of a class, with its name and message as text."""


class _Jvm:
    """A JVM and the pipes to it."""

    def __init__(self) -> None:
        self._java, self._rest = _find_java(), b""
        self._libs: dict[str, int] = {}
        self.number = next(_numbers)
        command = [self._java, *_OPTIONS, "-jar", _find_parts_jar()]
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  as long as the JVM
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, bufsize=0, pipesize=_PIPE
        )

    def answer(self, lib: str, question: str, limit_s: float) -> Any:
        """Send a question to the classes of a class path and return the answer.

        Raises:
            ContractError: if the JVM has ended, or there is no answer within the limit.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):  # its output has the reason
            # The path once, its number from then on.
            about = "" if lib in self._libs else f"{lib}\n"
            rest = memoryview(f"{self._libs.setdefault(lib, len(self._libs))}\t{about}{question}\n".encode())
            while rest:
                rest = rest[self._process.stdin.write(rest) :]
        parts = [self._rest]
        while b"\n" not in parts[-1]:
            if not select.select([self._process.stdout], [], [], limit_s)[0]:
                raise ContractError(f"has not answered within limit_s = {limit_s:g} seconds")
            read = self._process.stdout.read(1 << 20) or b""
            if not read:
                raise ContractError(self._explain_end())
            parts.append(read)
        text, _, self._rest = b"".join(parts).partition(b"\n")
        try:
            return json.loads(text)
        except ValueError:  # messages about a full memory are written there
            raise ContractError(self._explain_end(text.decode(errors="replace"))) from None

    def _explain_end(self, output: str = "") -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_LAST_S)
        code = self._process.poll()
        self._log.seek(0)
        output += self._log.read().decode(errors="replace")
        last = output.strip().splitlines()[-1:]
        return self.explain(output) or ": ".join([f"its JVM ended with exit code {code}", *last])

    def explain(self, said: str) -> str | None:
        """Find the sentence for a JVM's message about a class that cannot be loaded, None for other messages."""
        if match := _TOO_OLD.search(said):
            needed = int(match[1]) - _FORMAT_OF_0
            return f"{self._java} is too old, its classes need Java {needed} or newer; set JAVA_HOME to one"
        if match := _NO_CLASS.search(said):
            return f"lib has no {match[1].replace('/', '.')}; add the folder lib of a Pulsar release to it"
        return None

    def end(self) -> None:
        """End the JVM."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            if pipe is not None:
                pipe.close()


_numbers = count(1)
#: By the number of the process, since a fork must not use the pipes of its parent.
_running: dict[int, _Jvm] = {}


def running() -> int:
    """Find the number of this process's JVM, a different one for each, 0 if there is none."""
    jvm = _running.get(os.getpid())
    return 0 if jvm is None else jvm.number


def ask(lib: str, what: str, limit_s: float, **given: Any) -> dict[str, Any]:
    """Send a question to the classes of a class path and return the answer.

    Raises:
        JavaError: if a class raises an exception.
        ContractError: if there is no JVM, or it ends or does not answer. The next question starts another.
    """
    process = os.getpid()
    jvm = _running.get(process)
    if jvm is None:
        jvm = _running[process] = _Jvm()
    try:
        answer: dict[str, Any] = jvm.answer(lib, json.dumps({"ask": what, **given}), limit_s)
    except ContractError:
        _running.pop(process).end()
        raise
    if "error" in answer:
        error, why = answer["error"], jvm.explain(answer["error"])
        if why is not None or "fatal" in answer:
            raise ContractError(why or error)
        raise JavaError(error)
    return answer


@atexit.register
def end() -> None:
    """End the JVM of this process, if it has one."""
    jvm = _running.pop(os.getpid(), None)
    if jvm is not None:
        jvm.end()


def _find_java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java") if not home else str(Path(home, "bin", "java"))
    if java is None or not os.access(java, os.X_OK):
        where = f"in JAVA_HOME, {home}" if home else "on the path"
        raise ContractError(f"there is no Java {where}; install one, 17 or newer, and set JAVA_HOME")
    return java


def _find_parts_jar() -> str:
    cache = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    jar = os.environ.get(_PARTS) or str(Path(cache, "pulsar-lookup", "pulsar-parts.jar"))
    if not Path(jar).exists():
        raise ContractError(
            f"{jar}: there is no such file; `make parts` builds it, and {_PARTS} may name another place"
        )
    return jar
