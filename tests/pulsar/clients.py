"""Real Java clients of Pulsar, steered from Python: one JVM runs `java/Driver.java` and answers commands."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from tests.pulsar.jvm import Installation, Jvm

__all__ = ["JavaClient", "JavaClients"]

#: A client retries for 30 s; its answer, good or bad, comes soon after.
_ANSWER_S = 120.0


class JavaClients:
    """A JVM with any number of clients; commands run side by side, each is answered once."""

    def __init__(self, installed: Installation, folder: Path, log_settings: Path) -> None:
        self._jvm = Jvm(installed, "Driver", folder=folder, log_settings=log_settings, heap_mb=256, answers=True)
        self._ids = itertools.count()
        self._waiting: dict[int, Future[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._read_answers, name="java-answers", daemon=True).start()

    def open(self, name: str, url: str, properties: Mapping[str, str]) -> JavaClient:
        """Build a client that asks one broker, with lookup properties."""
        client = JavaClient(self, name)
        client.do("open", url=url, properties=dict(properties))
        return client

    def ask(self, **command: Any) -> Future[dict[str, Any]]:
        """Send a command; its answer comes later."""
        answer: Future[dict[str, Any]] = Future()
        # Commands of several threads must not mix on the line.
        with self._lock:
            number = next(self._ids)
            self._waiting[number] = answer
            self._jvm.stdin.write(json.dumps({"id": number, **command}) + "\n")
            self._jvm.stdin.flush()
        return answer

    def close(self) -> None:
        """End the JVM; what was asked and not answered fails."""
        self._jvm.kill()

    def _read_answers(self) -> None:
        for line in self._jvm.stdout:
            answer = json.loads(line)
            self._waiting.pop(answer["id"]).set_result(answer)
        for waiting in self._waiting.values():
            waiting.set_exception(RuntimeError(f"the JVM of the clients has ended; see {self._jvm.console}"))


class JavaClient:
    """One client; every answer has `ts` and `took_us` (µs) and, if a broker was concerned, `broker_url` and `local`."""

    def __init__(self, clients: JavaClients, name: str) -> None:
        self._clients = clients
        self.name = name

    def ask(self, command: str, **arguments: Any) -> Future[dict[str, Any]]:
        """Send a command of `Driver.java`; its answer comes later and may hold `error`."""
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
