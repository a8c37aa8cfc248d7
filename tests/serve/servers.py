"""Decision servers in this process or one of their own, and the requests that brokers send them."""

from __future__ import annotations

import asyncio
import gc
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lookup.cli import root_parser
from lookup.commands.options import parse_command
from lookup.commands.serve import admin_rest, load_settings, state_topic
from lookup.errors import PulsarLookupError
from lookup.serve.following import Connect
from lookup.serve.running import serve
from tests.processes import PATIENCE_S, awaited

__all__ = [
    "BUNDLE",
    "CLOCK",
    "FEW_FILES",
    "JUMPING",
    "POLICIES",
    "TOPIC",
    "Server",
    "decide",
    "lookup_entry",
    "read_table",
    "settings_file",
    "started",
    "started_apart",
    "view",
]

BUNDLE = "public/default/0x00000000_0x40000000"
TOPIC = "persistent://public/default/orders"
#: Two policies, the second of which is not asked.
POLICIES = """
[[policies]]
name = "by-rack"
scorers = [{ use = "property-match", key = "rack" }]
selector = "weighted-random"

[[policies]]
name = "anywhere"
selector = "random"
"""
#: Python that keeps the true clock, and that makes every other answer of the clock one of years ago.
CLOCK = "import time; true = time.time_ns"
JUMPING = f"{CLOCK}; calls = iter(range(10**9)); time.time_ns = lambda: true() - (next(calls) % 2) * 10**17"
#: Python that lets the process have few open files.
FEW_FILES = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))"


@dataclass
class Server:
    """A server, where it listens and what it has reported."""

    record: Path
    #: sends it a signal
    signal: Callable[[signal.Signals], None]
    #: waits for its end and returns its exit code
    wait: Callable[[], int]
    port: int = 0
    said: list[str] = field(default_factory=list)

    def ask(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        """Send one request; bytes are sent as they are. Return the status and the answer, JSON where it is JSON."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
            connection.request(method, path, raw, dict(headers or {}))
            response = connection.getresponse()
            text = response.read().decode()
            is_json = response.getheader("Content-Type", "").startswith("application/json")
            return response.status, json.loads(text) if is_json else text
        finally:
            connection.close()

    def figure(self, name: str) -> float:
        """Return one figure of /metrics, written as it stands there."""
        _, text = self.ask("GET", "/metrics")
        values = [line.rpartition(" ")[2] for line in text.splitlines() if line.startswith(f"{name} ")]
        return float(values[0]) if values else 0.0

    def stop(self) -> int:
        """End the server as an operator does and return its exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()


def settings_file(folder: Path, text: str = "", policies: str = POLICIES) -> Path:
    """Write settings of a server that records beside them, and return their path."""
    path = folder / "serving.toml"
    active = 'active = "by-rack"' if policies else ""
    beginning = f'[serving]\ncluster = "c1"\nrecord = "record"\nport = 0\nflush_s = 0.2\n{active}\n'
    path.write_text(f"{beginning}{text}\n{policies}", encoding="utf-8")
    return path


@contextmanager
def started(settings: Path, *flags: str, connect: Connect = state_topic) -> Iterator[Server]:
    """Start a server in a thread of this process and wait until it listens; it is ended at the end if it still runs.

    Args:
        connect: makes the source of the state topic.

    Raises:
        PulsarLookupError: why it cannot start.
    """
    actions: dict[int, Callable[[], object]] = {}
    arguments = parse_command(root_parser(), ["serve", str(settings), *flags])
    failures: list[PulsarLookupError] = []
    loop = asyncio.new_event_loop()

    def run() -> None:
        """Serve until the end, with the errors that a command makes sentences of."""
        try:
            load = partial(load_settings, arguments)
            loop.run_until_complete(serve(load, server.said.append, connect, admin_rest, actions.__setitem__))
        except PulsarLookupError as error:
            failures.append(error)
        finally:
            loop.close()
            # What a server freezes is freed with it here.
            gc.unfreeze()

    def wait() -> int:
        thread.join(PATIENCE_S)
        return 2 if failures else 0

    server = Server(settings.parent / "record", lambda number: _tell(loop, actions, number), wait)
    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        server.port = _port_of(server, lambda: not thread.is_alive())
        if failures:
            raise failures[0]
        yield server
    finally:
        _tell(loop, actions, signal.SIGTERM)
        thread.join(PATIENCE_S)


def _tell(loop: asyncio.AbstractEventLoop, actions: Mapping[int, Callable[[], object]], number: int) -> None:
    """Let a server act on a signal; one that has ended is past it."""
    with suppress(RuntimeError):
        if number in actions:
            loop.call_soon_threadsafe(actions[number])


@contextmanager
def started_apart(
    settings: Path, *flags: str, prelude: str = "", python: str | Path = sys.executable
) -> Iterator[Server]:
    """Start a server as a process of its own and wait until it listens; it is killed at the end if it still runs.

    Args:
        prelude: Python that the process runs first.
        python: the interpreter, of another environment than this one.
    """
    code = f"import sys\n{prelude}\nfrom lookup.cli import main\nsys.exit(main())"
    process = subprocess.Popen([python, "-c", code, "serve", str(settings), *flags], stderr=subprocess.PIPE, text=True)
    server = Server(settings.parent / "record", process.send_signal, partial(process.wait, 30))

    def listen() -> None:
        """Keep what the server reports."""
        assert process.stderr is not None
        for line in process.stderr:
            server.said.append(line.rstrip())

    listener = Thread(target=listen, daemon=True)
    listener.start()
    try:
        server.port = _port_of(server, lambda: process.poll() is not None)
        assert server.port, server.said
        yield server
    finally:
        process.kill()
        process.wait()
        listener.join()
        assert process.stderr is not None
        process.stderr.close()


def _port_of(server: Server, has_ended: Callable[[], bool]) -> int:
    """Wait until a server listens; return its port, 0 if it has ended."""
    first = awaited(lambda: [line for line in server.said if "http://" in line] or has_ended())
    return int(first[0].partition("http://127.0.0.1:")[2].partition(",")[0]) if isinstance(first, list) else 0


def view(*racks: str, usage: float | None = None) -> dict[str, Any]:
    """Return a view with a broker b1, b2, ... for each rack."""
    load = None if usage is None else {"weightedMaxEMA": usage, "maxResourceUsage": usage, "updatedAt": 1}
    brokers = {
        f"b{number}:8080": {"lookupData": {"properties": {"lookup.rack": rack}}, "load": load}
        for number, rack in enumerate(racks, start=1)
    }
    return {"id": f"{'-'.join(racks)}/{usage}", "brokers": brokers}


def decide(seen: Mapping[str, Any], rack: str | None = "a", **changes: Any) -> dict[str, Any]:
    """Return a request to decide among the brokers of a view."""
    body = {
        "broker": "b1:8080",
        "ts": 1_763_817_600_123_456,
        "topic": TOPIC,
        "bundle": BUNDLE,
        "properties": {} if rack is None else {"rack": rack},
        "candidates": [*seen.get("brokers", {})],
        "view": seen,
    }
    return {key: value for key, value in (body | changes).items() if value is not ...}


def lookup_entry(**changes: Any) -> dict[str, Any]:
    """Return a lookup as a broker records it."""
    entry = {
        "ts": time.time_ns() // 1000,
        "topic": TOPIC,
        "bundle": BUNDLE,
        "client": "10.0.0.9:4000",
        "properties": {"rack": "a"},
        "answer": "b1:8080",
        "result": "connect",
        "latencyMicros": 812,
    }
    return entry | changes


def read_table(record: Path, table: str) -> list[dict[str, Any]]:
    """Return the rows of a recorded table, in order of time; a table that is not there has none."""
    files: Sequence[Path] = sorted((record / table).rglob("[!.]*.parquet"))
    pieces = [pq.read_table(file, partitioning=None) for file in files]
    return pa.concat_tables(pieces).sort_by("ts").to_pylist() if pieces else []
