"""The decision server over real HTTP, beside a handler that answers a constant: decisions a second of one core.

    python benchmarks/serve.py                    both servers in turns, each pinned to one core, for two minutes

The client, on another core, sends what brokers send: each connection is a broker, topics, bundles and properties
differ, views are named, and sent when they are new, every few seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from aiohttp import web

__all__ = ["ServeTimes", "measure_serving"]

_BROKERS, _CONNECTIONS = 100, 16
#: Seconds of one round, and before it; seconds after which brokers have reported again.
_ROUND_S, _WARM_UP_S, _REPORT_S = 12.0, 3.0, 3.0
_ROUNDS = 3
_RACKS = "abc"
_SETTINGS = """
[serving]
cluster = "bench"
record = "record"
port = 0
active = "rack-then-load"

[[policies]]
name = "rack-then-load"
scorers = [{ use = "property-match", key = "rack", weight = 0.7 }, { use = "headroom", weight = 0.3 }]
selector = "best"
"""


@dataclass(frozen=True, slots=True)
class ServeTimes:
    """What one server managed in one round."""

    #: requests a second
    rate: float
    #: CPU time of the server's process for one request, all of its threads, µs
    cpu_us: float
    p50_ms: float
    p99_ms: float


def measure_serving() -> tuple[ServeTimes, ServeTimes]:
    """Return the fastest of some rounds of the decision server and of the constant handler, in turns."""
    cores = sorted(os.sched_getaffinity(0))
    rounds: list[tuple[ServeTimes, ServeTimes]] = []
    os.sched_setaffinity(0, {cores[-1]})
    try:
        for _ in range(_ROUNDS):
            with _decision_server(cores[0]) as server:
                decided = _round(*server)
            with _constant_server(cores[0]) as server:
                rounds.append((decided, _round(*server)))
    finally:
        os.sched_setaffinity(0, cores)
    servers = zip(*rounds, strict=True)
    decided, constant = (min(times, key=lambda each: each.cpu_us) for times in servers)
    return decided, constant


@contextlib.contextmanager
def _decision_server(core: int) -> Iterator[tuple[int, psutil.Process]]:
    with tempfile.TemporaryDirectory(prefix="bench-serve-") as folder:
        path = Path(folder) / "serving.toml"
        path.write_text(_SETTINGS, encoding="utf-8")
        with _listening(core, "-m", "lookup", "serve", str(path)) as server:
            yield server


@contextlib.contextmanager
def _constant_server(core: int) -> Iterator[tuple[int, psutil.Process]]:
    with _listening(core, __file__, "constant") as server:
        yield server


@contextlib.contextmanager
def _listening(core: int, *words: str) -> Iterator[tuple[int, psutil.Process]]:
    """Start a server on one core; give the port that it reports and its process."""
    command = ["taskset", "-c", str(core), sys.executable, *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        line = next(line for line in process.stderr if "http://127.0.0.1:" in line)
        yield int(line.partition("http://127.0.0.1:")[2].partition(",")[0]), psutil.Process(process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()


def _round(port: int, process: psutil.Process) -> ServeTimes:
    return asyncio.run(_load(port, process))


async def _load(port: int, process: psutil.Process) -> ServeTimes:
    loop, brokers = asyncio.get_running_loop(), _Brokers()
    ends = loop.time() + _WARM_UP_S
    clients = [
        (await loop.create_connection(lambda n=n: _Client(brokers, n), "127.0.0.1", port))[1]
        for n in range(_CONNECTIONS)
    ]
    await asyncio.sleep(ends - loop.time())
    for client in clients:
        client.times.clear()
    began, before = time.perf_counter(), process.cpu_times()
    await asyncio.sleep(_ROUND_S)
    spent, after = time.perf_counter() - began, process.cpu_times()
    times = sorted(each for client in clients for each in client.times)
    for client in clients:
        client.stop()
    cpu_s = after.user + after.system - before.user - before.system
    count = len(times)
    return ServeTimes(count / spent, 1e6 * cpu_s / count, 1e3 * times[count // 2], 1e3 * times[count * 99 // 100])


class _Brokers:
    """What the brokers of a cluster know of each other, and the requests they send."""

    def __init__(self) -> None:
        self.ids = [f"broker-{number:03d}.example.com:8080" for number in range(_BROKERS)]
        self._began = time.monotonic()
        self._views: dict[int, bytes] = {}
        candidates = json.dumps(self.ids)
        #: of bodies, what stands between the asking broker and the id of the view
        self.middles = [
            f', {json.dumps(_question(number))[1:-1]}, "candidates": {candidates}, "view": {{"id": "'.encode()
            for number in range(4_000)
        ]

    def turn(self) -> int:
        """Return how often brokers have reported."""
        return int((time.monotonic() - self._began) / _REPORT_S)

    def view(self, turn: int) -> bytes:
        """Return the records of all brokers after so many reports, as JSON."""
        if turn not in self._views:
            records = {broker: _record(number, turn) for number, broker in enumerate(self.ids)}
            self._views[turn] = json.dumps(records).encode()
        return self._views[turn]


def _question(number: int) -> dict[str, object]:
    """Return what a client asks: each about a topic and a bundle of its own, in one of sixteen namespaces."""
    namespace = f"tenant-{number % 4}/ns-{number % 16}"
    return {
        "ts": 1_763_817_600_000_000 + 977 * number,
        "topic": f"persistent://{namespace}/topic-{number}",
        "bundle": f"{namespace}/0x{number << 16:08x}_0x{(number + 1) << 16:08x}",
        "client": f"10.0.{number % 250}.{number % 199}:{40_000 + number}",
        "properties": {"rack": _RACKS[number % 3], "app": f"app-{number % 40}"},
    }


def _record(number: int, turn: int) -> dict[str, object]:
    """Return what brokers know of one: its lookup data, and its latest report; a fifth of them reports in each turn."""
    turn = turn if number % 5 == turn % 5 else 0
    usage, host = (number * 37 + turn * 11) % 80, f"broker-{number:03d}.example.com"
    return {
        "lookupData": {
            "webServiceUrl": f"http://{host}:8080",
            "pulsarServiceUrl": f"pulsar://{host}:6650",
            "persistentTopicsEnabled": True,
            "nonPersistentTopicsEnabled": True,
            "advertisedListeners": {},
            "protocols": {},
            "loadManagerClassName": "lookup.bridge.LookupPolicyLoadManager",
            "brokerVersion": "4.2.4",
            "startTimestamp": 1_763_817_600_000 + number,
            "properties": {"lookup.rack": _RACKS[number % 3]},
        },
        "load": {
            "cpu": {"usage": float(usage), "limit": 100.0},
            "memory": {"usage": 512.0, "limit": 2048.0},
            "directMemory": {"usage": 64.0, "limit": 1024.0},
            "bandwidthIn": {"usage": 10.0, "limit": 1e6},
            "bandwidthOut": {"usage": 10.0, "limit": 1e6},
            "msgThroughputIn": 1e4,
            "msgThroughputOut": 1e4,
            "msgRateIn": 100.0,
            "msgRateOut": 100.0,
            "bundleCount": 40,
            "topics": 900,
            "maxResourceUsage": usage / 100,
            "weightedMaxEMA": usage / 100,
            "msgThroughputEMA": 2e4,
            "updatedAt": 1_763_817_600_000 + turn,
            "reportedAt": 1_763_817_600_000 + turn,
        },
    }


class _Client(asyncio.Protocol):
    """A broker that asks again as soon as it is answered."""

    def __init__(self, brokers: _Brokers, number: int) -> None:
        self._brokers, self._number, self._turn = brokers, number * 251, -1
        self._asking = b'{"broker": "%s"' % brokers.ids[number].encode()
        self.times: list[float] = []
        self._transport: asyncio.Transport | None = None
        self._is_stopped = False
        self._asked = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the first time."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._ask()

    def stop(self) -> None:
        """Ask no more."""
        self._is_stopped = True
        assert self._transport is not None
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        """Take the answer, which is small and comes in one piece, and ask again."""
        assert data.startswith(b"HTTP/1.1 200"), data
        if self._is_stopped:
            return
        self.times.append(time.perf_counter() - self._asked)
        self._ask()

    def _ask(self) -> None:
        turn, brokers = self._brokers.turn(), self._brokers
        self._number += 1
        known = b"%d" % turn
        records = b"" if turn == self._turn else b', "brokers": ' + brokers.view(turn)
        self._turn = turn
        body = b"".join(
            (self._asking, brokers.middles[self._number % len(brokers.middles)], known, b'"', records, b"}}")
        )
        assert self._transport is not None
        self._asked = time.perf_counter()
        self._transport.write(
            b"POST /decide HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nX-Lookup-Protocol: 1\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        )


def _serve_constant() -> None:
    """Run a handler that reads a body and answers a constant of the size of a decision."""

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return web.json_response({"decision": "18a1c2-000001", "broker": "b", "propensity": 1.0, "policy": "constant"})

    async def run() -> None:
        application = web.Application(client_max_size=1 << 20)
        application.add_routes([web.post("/decide", answer)])
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        print(f"http://127.0.0.1:{runner.addresses[0][1]}, constant", file=sys.stderr, flush=True)
        ended = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
        await ended.wait()
        await runner.cleanup()

    asyncio.run(run())


if __name__ == "__main__":
    if sys.argv[1:] == ["constant"]:
        _serve_constant()
    else:
        print(*measure_serving(), sep="\n")
