"""Two thousand watchers of a decision server over HTTP: what they take, and what the creation of one topic costs them.

    python benchmarks/watches.py                  a server and its watchers, each a process of its own, half a minute

Every watcher is sent the topic that is created, in three rounds: all watch the same pattern, each has a pattern of its
own, and each has a label. The costs are CPU time of the server's process; how long a creation takes to reach the
watchers is by the clock of a machine whose client has as much to do as the server.
"""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from urllib.parse import urlencode

import psutil
from figures import Figure

from lookup.topics.catalog import Catalog, SqliteStorage

__all__ = ["measure_watches"]

_WATCHERS, _CREATIONS, _TOPICS = 2_000, 20, 1_000
_NAMESPACE = "public/default"
_HERE = f"persistent://{_NAMESPACE}/"
_SETTINGS = """
[serving]
cluster = "bench"
record = "record"
port = 0

[topics]
catalog = "topics.db"
"""
#: What the i-th watcher asks for, by the name of the round; all of it has the topics that are created.
_ROUNDS: dict[str, Callable[[int], dict[str, str]]] = {
    "of one pattern": lambda _: {"pattern": f"{_NAMESPACE}/new-.*"},
    "of patterns of their own": lambda i: {"pattern": f"{_NAMESPACE}/new-[0-9]+(x{i})?"},
    "of labels of their own": lambda i: {"selector": f"env in (prod,x{i})"},
}


def measure_watches() -> Iterator[Figure]:
    """Measure all rounds, one server after the other."""
    # A connection is a file, here and in the server, which inherits the limit.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4 * _WATCHERS), hard))
    for name, fields in _ROUNDS.items():
        with _served() as (process, folder, url):
            bytes_each, cpu_ms, delays_ms = asyncio.run(_watched(process, folder, url, fields))
        among = f"{_WATCHERS:,} connected watchers {name}"
        # Some kilobytes of it are RE2's, for each pattern.
        bound = None if "patterns" in name else 20.0
        yield Figure(f"{among}: memory each", bytes_each / 1e3, "kB", bound, note="growth of the server's process")
        note = f"mean, CPU time of the server; {cpu_ms * 1e3 / _WATCHERS:.1f} µs for each"
        yield Figure(f"creation of a topic, {among}", cpu_ms, "ms", 50.0, note=note)
        note = f"p50 until the last of all has it; longest {max(delays_ms):.0f} ms"
        yield Figure(f"creation of a topic, {among}: until it is there", median(delays_ms), "ms", 500.0, note=note)


@contextmanager
def _served() -> Iterator[tuple[psutil.Process, Path, str]]:
    """Start a server over a catalog of some topics."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "serving.toml").write_text(_SETTINGS)
        catalog = Catalog(SqliteStorage(folder / "topics.db"))
        with catalog.together():
            catalog.create_namespace(_NAMESPACE)
            for number in range(_TOPICS):
                catalog.create(f"{_HERE}topic-{number:06d}", labels={"env": "test"})
        catalog.close()
        command = [sys.executable, "-m", "lookup", "serve", str(folder / "serving.toml")]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as started:
            assert started.stderr is not None
            line = next(line for line in started.stderr if "http://" in line)
            try:
                yield psutil.Process(started.pid), folder, line.partition(" on ")[2].partition(",")[0]
            finally:
                started.terminate()


async def _watched(
    process: psutil.Process, folder: Path, url: str, fields: Callable[[int], dict[str, str]]
) -> tuple[float, float, list[float]]:
    """Connect all watchers, and create topics; return bytes for each, and CPU time and delays of creations, ms."""
    host, port = url.removeprefix("http://").split(":")
    # Once for what is there from the first request on.
    urllib.request.urlopen(f"{url}/health").read()
    before = process.memory_info().rss
    readers: list[asyncio.StreamReader] = []
    # A connection is closed when its writer is forgotten.
    writers: list[asyncio.StreamWriter] = []
    for number in range(_WATCHERS):
        reader, writer = await asyncio.open_connection(host, int(port))
        query = urlencode({"namespace": _NAMESPACE} | fields(number))
        writer.write(f"GET /watch?{query} HTTP/1.1\r\nHost: x\r\nUser-Agent: Python-urllib/3.11\r\n\r\n".encode())
        await reader.readuntil(b"event: snapshot\n")
        readers.append(reader)
        writers.append(writer)
    await asyncio.sleep(1.0)
    bytes_each = (process.memory_info().rss - before) / _WATCHERS
    # Looks at the file and signs of life are no part of the cost; the clock of CPU times counts in steps of 10 ms.
    idle_s, began = _cpu_s(process), time.perf_counter()
    await asyncio.sleep(10.0)
    idle_s = (_cpu_s(process) - idle_s) / (time.perf_counter() - began)
    delays_ms: list[float] = []
    spent_s, began = _cpu_s(process), time.perf_counter()
    for number in range(_CREATIONS):
        created = time.perf_counter()
        await asyncio.to_thread(_create, folder, f"{_HERE}new-{number:06d}")
        await asyncio.gather(*(reader.readuntil(b"event: update\n") for reader in readers))
        delays_ms.append(1e3 * (time.perf_counter() - created))
        await asyncio.sleep(0.5)
    spent_s = _cpu_s(process) - spent_s - idle_s * (time.perf_counter() - began)
    return bytes_each, 1e3 * spent_s / _CREATIONS, delays_ms


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _create(folder: Path, topic: str) -> None:
    """Create a topic as another process does; the server sees it at its next look."""
    catalog = Catalog(SqliteStorage(folder / "topics.db"))
    catalog.create(topic, labels={"env": "prod"})
    catalog.close()


if __name__ == "__main__":
    for figure in measure_watches():
        print(figure.row(), flush=True)
