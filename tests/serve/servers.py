"""Decision servers as processes of their own, and the requests that brokers send them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.processes import awaited

__all__ = [
    "BUNDLE",
    "POLICIES",
    "TOPIC",
    "Server",
    "decide",
    "lookup_entry",
    "read_table",
    "settings_file",
    "started",
    "view",
]

BUNDLE = "public/default/0x00000000_0x40000000"
TOPIC = "persistent://public/default/orders"
#: Two policies, one of them in shadow.
POLICIES = """
[[policies]]
name = "by-rack"
scorers = [{ use = "property-match", key = "rack" }]
selector = "weighted-random"

[[policies]]
name = "anywhere"
selector = "random"
"""


@dataclass
class Server:
    """A server, where it listens and what it has reported."""

    process: subprocess.Popen[str]
    record: Path
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
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


def settings_file(folder: Path, text: str = "", policies: str = POLICIES) -> Path:
    """Write settings of a server that records beside them, and return their path."""
    path = folder / "serving.toml"
    active = 'active = "by-rack"' if policies else ""
    beginning = f'[serving]\ncluster = "c1"\nrecord = "record"\nport = 0\nflush_s = 0.2\n{active}\n'
    path.write_text(f"{beginning}{text}\n{policies}", encoding="utf-8")
    return path


@contextmanager
def started(settings: Path, *flags: str, prelude: str = "", python: str | Path = sys.executable) -> Iterator[Server]:
    """Start a server and wait until it listens; it is killed at the end if it still runs.

    Args:
        prelude: Python that the process runs first.
        python: the interpreter, of another environment than this one.
    """
    code = f"import sys\n{prelude}\nfrom lookup.cli import main\nsys.exit(main())"
    process = subprocess.Popen(
        [python, "-c", code, "serve", "--config", str(settings), *flags], stderr=subprocess.PIPE, text=True
    )
    server = Server(process, settings.parent / "record")

    def listen() -> None:
        """Keep what the server reports."""
        assert process.stderr is not None
        for line in process.stderr:
            server.said.append(line.rstrip())

    listener = Thread(target=listen, daemon=True)
    listener.start()
    try:
        first = awaited(lambda: [line for line in server.said if "http://" in line] or process.poll() is not None)
        assert isinstance(first, list), server.said
        server.port = int(first[0].partition("http://127.0.0.1:")[2].partition(",")[0])
        yield server
    finally:
        process.kill()
        process.wait()
        listener.join()
        assert process.stderr is not None
        process.stderr.close()


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
