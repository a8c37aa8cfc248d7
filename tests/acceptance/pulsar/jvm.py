"""Processes that end with the one that started them, JVMs above all, and what they run."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from tests.processes import PATIENCE_S

__all__ = ["Child", "Installation", "Jvm", "go_clients", "installation", "printed_by", "with_bridge"]

_SCRIPTS = Path(__file__).parents[3] / "scripts"
# As Pulsar's own bin/pulsar opens them, for Netty's and BookKeeper's direct memory and the load report.
_OPENED = (
    "java.base/java.io", "java.base/java.lang", "java.base/java.nio", "java.base/java.util", "java.base/java.util.zip",
    "java.base/jdk.internal.misc", "java.base/jdk.internal.platform", "java.management/sun.management",
    "jdk.management/com.sun.management.internal",
)  # fmt: skip
_FLAGS = ("-Dio.netty.tryReflectionSetAccessible=true", "-Duser.timezone=UTC")


@dataclass(frozen=True)
class Installation:
    """A Java and what it runs."""

    java: Path
    class_path: str
    # For JVMs of a few minutes: the second compiler and parallel collectors take cores from each other and never pay.
    options: tuple[str, ...] = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

    @property
    def release(self) -> tuple[int, int]:
        """Return the first two numbers of the release of Pulsar that it runs: `(4, 2)`."""
        found = re.search(r"pulsar-broker-(\d+)\.(\d+)\.[^/]*\.jar", self.class_path)
        assert found, self.class_path
        return int(found[1]), int(found[2])


def installation(version: str | None = None) -> Installation:
    """Return Java and the jars of Pulsar; what is missing is got, if the machine and the network allow.

    Args:
        version: a release on Maven Central; None for that of `pom.xml`.

    Raises:
        RuntimeError: a sentence that says what is missing.
    """
    home = Path(printed_by("ensure-java.sh"))
    return Installation(home / "bin" / "java", printed_by("ensure-pulsar.sh", *([version] if version else [])))


def with_bridge(installed: Installation) -> Installation:
    """Put the jar of `plugins/pulsar_bridge`, built now if need be, in front of Pulsar's.

    Raises:
        RuntimeError: a sentence that says what is missing.
    """
    return replace(installed, class_path=f"{printed_by('ensure-bridge.sh')}:{installed.class_path}")


def go_clients() -> Path:
    """Return the program of Go clients, built now if need be.

    Raises:
        RuntimeError: a sentence that says what is missing.
    """
    return Path(printed_by("ensure-go-clients.sh"))


def printed_by(script: str, *arguments: str) -> str:
    """Return what a script prints.

    Raises:
        RuntimeError: the last sentence of a script that ends with an error.
    """
    done = subprocess.run([_SCRIPTS / script, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return done.stdout.strip()


class Child:
    """One process of ours, with its output in a file of a folder.

    Its standard input is a pipe, and it ends when that does: so it ends with this process however that ends, by SIGKILL
    too, since the kernel closes the other end. `PR_SET_PDEATHSIG` exists on Linux only, and fires as soon as the thread
    ends that started the child. A session of its own keeps Ctrl-C from it: fixtures end it in order.
    """

    def __init__(
        self, command: Sequence[str | Path], folder: Path, *, answers: bool, variables: Mapping[str, str] | None = None
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.console = folder / "console.log"
        with self.console.open("ab") as console:
            self.process = subprocess.Popen(
                command,
                env={**os.environ, **(variables or {})},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if answers else console,
                stderr=console,
                text=True,
                start_new_session=True,
            )

    @property
    def stdin(self) -> IO[str]:
        """Return the writing end of its standard input."""
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def stdout(self) -> IO[str]:
        """Return the reading end of its standard output, if it answers."""
        assert self.process.stdout is not None
        return self.process.stdout

    def wait_until(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait until something holds that this process brings about; fail with its last words if it ends before.

        Raises:
            RuntimeError: if it ended, or did not bring it about in time.
        """
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            if self.process.poll() is not None:
                words = "\n".join(self.console.read_text(errors="replace").splitlines()[-20:])
                raise RuntimeError(f"waiting for {what}: it ended with {self.process.returncode}:\n{words}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"waiting for {what}: not within {PATIENCE_S:.0f} s; see {self.console}")
            time.sleep(0.05)

    def shut_down(self) -> None:
        """Ask it to end, by SIGTERM, and wait until it is gone."""
        self.process.terminate()
        self.process.wait(PATIENCE_S)
        self.kill()

    def kill(self) -> None:
        """End it at once, by SIGKILL, and wait until it is gone."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


class Jvm(Child):
    """A JVM that runs one of the classes in `java/`, with its logs in a folder."""

    def __init__(
        self,
        installed: Installation,
        *command: str,
        folder: Path,
        log_settings: Path,
        heap_mb: int,
        answers: bool = False,
    ) -> None:
        super().__init__(
            [
                installed.java,
                *_FLAGS,
                *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
                f"-Xmx{heap_mb}m",
                f"-XX:MaxDirectMemorySize={heap_mb}m",
                # Of two sizes the last one holds.
                *installed.options,
                f"-Dlog4j2.configurationFile={log_settings}",
                f"-Dpulsar.logs={folder}",
                *command,
            ],
            folder,
            answers=answers,
            variables={"CLASSPATH": installed.class_path},
        )
