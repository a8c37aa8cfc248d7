"""A cluster whose brokers have the bridge's class, and beside it what an operator types: commands of `lookup`."""

from __future__ import annotations

import itertools
import json
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lookup.model.bundles import bundle_of, equal_boundaries
from tests.acceptance.pulsar.clients import Client
from tests.acceptance.pulsar.cluster import CLUSTER, RACKS, Broker, Cluster, running_cluster
from tests.acceptance.pulsar.jvm import Installation, with_bridge
from tests.processes import awaited

__all__ = ["Live", "rows_of", "running_live", "topics_by_bundle"]

#: Lookups of one call that are under way at the same time.
_IN_FLIGHT = 8
_ANSWER_S = 120.0


class Live:
    """A cluster whose brokers have the bridge's class, and beside it, in a folder, what an operator runs."""

    def __init__(self, cluster: Cluster, folder: Path, port: int) -> None:
        self.cluster, self.folder, self._port = cluster, folder, port
        self._java = cluster.java_clients()
        self._clients: dict[tuple[str, str], tuple[Client, dict[str, str]]] = {}
        self._running: list[subprocess.Popen[str]] = []

    @property
    def server_url(self) -> str:
        """Return the address of the decision server, also while none listens there."""
        return f"http://127.0.0.1:{self._port}"

    # Commands

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of `lookup` in the folder, to its end."""
        return subprocess.run(
            [sys.executable, "-m", "lookup", *arguments], cwd=self.folder, capture_output=True, text=True, check=False
        )

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """Begin a command of `lookup` that runs until it is ended; what it says goes to COMMAND.log in the folder."""
        with (self.folder / f"{arguments[0]}.log").open("a", encoding="utf-8") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "lookup", *arguments], cwd=self.folder, stdout=log, stderr=log, text=True
            )
        self._running.append(process)
        return process

    def end(self, process: subprocess.Popen[str]) -> int:
        """End a command by SIGTERM, and return its exit code when it has written everything."""
        process.terminate()
        return process.wait(_ANSWER_S)

    def close(self) -> None:
        """End the commands that still run."""
        for process in self._running:
            process.kill()
            process.wait()

    def write_serving(self, active: str | None, policies: str) -> None:
        """Write `serving.toml`, with policies or without any."""
        chosen = f'active = "{active}"\n' if active else ""
        (self.folder / "serving.toml").write_text(
            f'[serving]\ncluster = "{CLUSTER}"\nrecord = "record"\nport = {self._port}\nflush_s = 0.5\n'
            f"{chosen}{policies}",
            encoding="utf-8",
        )

    def begin_server(self) -> subprocess.Popen[str]:
        """Begin `lookup serve`; return when it answers."""
        process = self.begin("serve", "serving.toml")
        awaited(lambda: self.health() is not None)
        return process

    def reload(self, server: subprocess.Popen[str], active: str) -> None:
        """Send the server SIGHUP; return when it answers by the active policy of `serving.toml`."""
        server.send_signal(signal.SIGHUP)
        awaited(lambda: (self.health() or {}).get("policy") == active)

    def health(self) -> dict[str, Any] | None:
        """Return what the server says of itself, None if it does not answer."""
        try:
            with urllib.request.urlopen(f"{self.server_url}/health", timeout=10) as answer:
                return dict(json.load(answer))
        except OSError:
            return None

    def begin_collector(self) -> subprocess.Popen[str]:
        """Begin `lookup collect`; return when it knows all brokers and bundles."""
        admin = "http://" + ",".join(broker.web_url.removeprefix("http://") for broker in self.cluster.brokers.values())
        lines = {"admin": admin, "service_url": self.cluster.service_url, "zookeeper": self.cluster.zookeeper}
        text = "".join(f'{key} = "{value}"\n' for key, value in lines.items())
        (self.folder / "cluster.toml").write_text(f"[cluster]\n{text}", encoding="utf-8")
        process = self.begin("collect", "--cluster", "cluster.toml", "--output", "collected", "--every", "0.5s")
        collected = self.folder / "collected"
        awaited(lambda: (collected / "namespaces.toml").exists() and len(rows_of(collected / "brokers")) >= len(RACKS))
        return process

    def ingest_logs(self) -> subprocess.CompletedProcess[str]:
        """Ingest the logs of all brokers, from copies of them, into the folder `ingested`."""
        (self.folder / "logs").mkdir(exist_ok=True)
        for broker in self.cluster.brokers.values():
            shutil.copy(broker.log("offset"), self.folder / "logs" / f"broker-{broker.rack}.log")
        ids = [(broker.service_url, broker.id) for broker in self.cluster.brokers.values()]
        ids += [(f"broker-{broker.rack}", broker.id) for broker in self.cluster.brokers.values()]
        names = ", ".join(f'"{name}" = "{broker}"' for name, broker in ids)
        (self.folder / "broker-logs.toml").write_text(
            f"use = \"pulsar-broker\"\nbroker_pattern = '''([^/]+)[.]log$'''\nbroker_ids = {{ {names} }}\n",
            encoding="utf-8",
        )
        return self.run(
            "ingest", "logs", "--mapping", "broker-logs.toml", "--cluster", CLUSTER, "--output", "ingested", "--force"
        )

    # Brokers

    def roll_out(self, mode: str, racks: Sequence[str] = RACKS) -> None:
        """Restart brokers in a mode, one after the other; return when each sees all."""
        for broker in [self.cluster.brokers[rack] for rack in racks]:
            self.cluster.settings[broker.rack]["lookupPolicyMode"] = mode
            self.restart(broker)
        self.await_brokers(len(RACKS))

    def restart(self, broker: Broker) -> None:
        """End a broker in order, which takes its registration back, and start it with the settings it has now."""
        process = broker.running.process
        process.terminate()
        process.wait(_ANSWER_S)
        self.cluster.kill(broker)
        self.cluster.restart(broker)

    def await_brokers(self, count: int) -> None:
        """Wait until every broker that runs sees so many brokers."""
        for broker in self.cluster.running:
            awaited(lambda b=broker: len(self.cluster.admin("GET", f"brokers/{CLUSTER}", asked=b)) == count)

    # Clients

    def ask(self, rack: str, asked: Broker, topic: str) -> Callable[[], dict[str, Any]]:
        """Look a topic up as a client of a rack; return a function that waits for the answer and returns the truth.

        A client of rack "" sends no properties.
        """
        key = rack, asked.rack
        if key not in self._clients:
            properties = {"rack": rack, "app": "shop"} if rack else {}
            self._clients[key] = self._java.open(f"{rack}-at-{asked.rack}", asked.service_url, properties), properties
        client, properties = self._clients[key]
        answer = client.ask("lookup", topic=topic)

        def truth() -> dict[str, Any]:
            given = answer.result(_ANSWER_S)
            broker = self.cluster.broker_at(given["broker_url"]).id if "broker_url" in given else None
            return {"asked": asked.id, "topic": topic, "properties": properties, "broker": broker, **given}

        return truth

    def look_up(self, questions: Iterable[tuple[str, Broker, str]]) -> list[dict[str, Any]]:
        """Look topics up, some at the same time; return the truth about each, in the order of the questions."""
        truth: list[dict[str, Any]] = []
        under_way: list[Callable[[], dict[str, Any]]] = []
        for question in questions:
            if len(under_way) == _IN_FLIGHT:
                truth.append(under_way.pop(0)())
            under_way.append(self.ask(*question))
        return truth + [answer() for answer in under_way]


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of a recorded table in order of time; times are µs, a table that is not there has none."""
    pieces = [pq.read_table(file, partitioning=None) for file in sorted(folder.rglob("[!.]*.parquet"))]
    if not pieces:
        return []
    table = pa.concat_tables(pieces)
    for at, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type):
            table = table.set_column(at, column.name, table.column(at).cast(pa.int64()))
    rows: list[dict[str, Any]] = table.sort_by("ts").to_pylist()
    return rows


def topics_by_bundle(namespace: str, bundles: int) -> dict[str, str]:
    """Name one topic for each of a namespace's bundles of equal size but one; by the bundle's complete name.

    The one holds `__change_events`, which a broker looks up itself as soon as it owns a bundle of the namespace.
    """
    boundaries = equal_boundaries(bundles)
    taken = bundle_of(f"persistent://{namespace}/__change_events", boundaries)
    topics, numbers = dict[str, str](), itertools.count()
    while len(topics) < bundles - 1:
        topic = f"persistent://{namespace}/topic-{next(numbers)}"
        if (bundle := bundle_of(topic, boundaries)) != taken:
            topics.setdefault(f"{namespace}/{bundle}", topic)
    return topics


@contextmanager
def running_live(
    installed: Installation, folder: Path, mode: str, settings: Mapping[str, str] | None = None
) -> Iterator[Live]:
    """Start a cluster whose brokers have the bridge's class, in a mode; end it and all commands when the block does."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    shared = {
        "loadManagerClassName": "lookup.bridge.LookupPolicyLoadManager",
        "lookupPolicyMode": mode,
        "lookupPolicyServer": f"http://127.0.0.1:{port}",
        # Far above what an answer takes, so that a busy machine is no server that hangs.
        "lookupPolicyTimeoutMillis": "9000",
        **(settings or {}),
    }
    work = folder / "operator"
    work.mkdir(parents=True)
    with running_cluster(with_bridge(installed), folder / "cluster", {rack: dict(shared) for rack in RACKS}) as cluster:
        live = Live(cluster, work, port)
        try:
            yield live
        finally:
            live.close()
