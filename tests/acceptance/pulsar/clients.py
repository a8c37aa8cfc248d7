"""Real clients of Pulsar: Java and Go, which run by commands (`java/Driver.java`, `go/main.go`), and Python."""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pulsar

from tests.acceptance.pulsar.jvm import Child, Installation, Jvm

__all__ = ["Client", "Clients", "GoClients", "JavaClients", "PythonClients", "lookups"]

#: A client retries for 30 s; its answer, good or bad, comes soon after.
_ANSWER_S = 120.0
#: The only place where the Python client says what it was answered is its log.
_ANSWERED = re.compile(
    r"Lookup response for (?P<topic>\S+), lookup-broker-url (?P<broker_url>[^,\s]+), from \[(?P<local>\S+) ->"
)


class Clients:
    """A process with any number of clients; commands run side by side, each is answered once."""

    def __init__(self, process: Child) -> None:
        self._process = process
        self._ids = itertools.count()
        self._waiting: dict[int, Future[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._read_answers, name="client-answers", daemon=True).start()

    def open(self, name: str, url: str, properties: Mapping[str, str]) -> Client:
        """Build a client that asks one broker, with lookup properties."""
        client = Client(self, name)
        client.do("open", url=url, properties=dict(properties))
        return client

    def ask(self, **command: Any) -> Future[dict[str, Any]]:
        """Send a command; its answer comes later."""
        answer: Future[dict[str, Any]] = Future()
        # Commands of several threads must not mix on the line.
        with self._lock:
            number = next(self._ids)
            self._waiting[number] = answer
            self._process.stdin.write(json.dumps({"id": number, **command}) + "\n")
            self._process.stdin.flush()
        return answer

    def close(self) -> None:
        """End the process; what was asked and not answered fails."""
        self._process.kill()

    def _read_answers(self) -> None:
        for line in self._process.stdout:
            answer = json.loads(line)
            self._waiting.pop(answer["id"]).set_result(answer)
        for waiting in self._waiting.values():
            waiting.set_exception(RuntimeError(f"the process of the clients has ended; see {self._process.console}"))


class JavaClients(Clients):
    """A JVM with Java clients."""

    def __init__(self, installed: Installation, folder: Path, log_settings: Path) -> None:
        super().__init__(Jvm(installed, "Driver", folder=folder, log_settings=log_settings, heap_mb=256, answers=True))


class GoClients(Clients):
    """A process with Go clients; their answers have no `local`, and `lookup` opens a producer and closes it."""

    def __init__(self, program: Path, folder: Path) -> None:
        super().__init__(Child([program], folder, answers=True))


class Client:
    """One client; every answer has `ts` and `took_us` (µs) and, if a broker was concerned, `broker_url` and `local`."""

    def __init__(self, clients: Clients, name: str) -> None:
        self._clients = clients
        self.name = name

    def ask(self, command: str, **arguments: Any) -> Future[dict[str, Any]]:
        """Send a command of `Driver.java` and `main.go`; its answer comes later and may hold `error`."""
        return self._clients.ask(do=command, client=self.name, **arguments)

    def do(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a command and wait for its answer.

        Raises:
            RuntimeError: if it failed, with what the client says.
        """
        answer = self.ask(command, **arguments).result(_ANSWER_S)
        if "error" in answer:
            raise RuntimeError(f"{command} of client {self.name}: {answer['error']}")
        return answer


@contextmanager
def lookups(client: Client, topics: Sequence[str]) -> Iterator[list[Future[dict[str, Any]]]]:
    """Look topics up at 50/s, every 0.2 s another for the first time; give the answers that are there or will be."""
    answers: list[Future[dict[str, Any]]] = []
    ended = threading.Event()

    def look_up() -> None:
        while not ended.wait(0.02):
            answers.append(client.ask("lookup", topic=topics[len(answers) // 10 % len(topics)]))

    thread = threading.Thread(target=look_up, name="lookups")
    thread.start()
    try:
        yield answers
    finally:
        ended.set()
        thread.join()


class PythonClients:
    """Python clients of this process; the library writes the log of all into the file that its first client names."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self._logger = pulsar.FileLogger(pulsar.LoggerLevel.Info, str(log))

    def open(self, url: str) -> pulsar.Client:
        """Build a client; it has no lookup properties, which the library does not know."""
        return pulsar.Client(url, operation_timeout_seconds=10, logger=self._logger)

    def look_up(self, client: pulsar.Client, topic: str) -> tuple[list[dict[str, str]], str | None]:
        """Make a client look a topic up, for a producer that is closed again; return the answers and what failed.

        There are several answers if the client loses the broker that it was given, and asks again. An answer has
        `broker_url` and `local`.
        """
        logged, error = self.log.stat().st_size, None
        try:
            client.create_producer(topic).close()
        except pulsar.PulsarException as failure:
            error = str(failure)
        with self.log.open(encoding="utf-8") as lines:
            lines.seek(logged)
            answers = [match.groupdict() for match in _ANSWERED.finditer(lines.read())]
        return [answer for answer in answers if answer.pop("topic") == topic], error
