"""What moves of bundles are tried on: a namespace with a plan, the commands that carry it out, and steady traffic."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulsar

from lookup.moving.shedding import KEY
from lookup.moving.state import Owned
from tests.acceptance.pulsar.clients import Client
from tests.acceptance.pulsar.cluster import Cluster
from tests.processes import PATIENCE_S, connected

__all__ = ["Traffic", "World", "ended", "traffic"]

#: Seconds without a message after which a consumer is taken to hang.
_SILENCE_S = 60.0


@dataclass
class World:
    """A namespace whose bundles have owners, and a plan of moves in it."""

    cluster: Cluster
    folder: Path
    namespace: str
    #: by complete name of its bundle
    topics: dict[str, str]
    plan: Path
    before: dict[str, Owned] = field(default_factory=dict)
    #: bundle, from and to of each step
    steps: list[tuple[str, str, str]] = field(default_factory=list)

    def owners(self) -> dict[str, str]:
        """Return the owners of the namespace's bundles, as brokers say themselves."""
        owned = self.cluster.owned(self.namespace)
        return {f"{self.namespace}/{bounds}": broker.id for bounds, broker in owned.items()}

    @property
    def journal(self) -> Path:
        """Return where the journal is."""
        return Path(f"{self.plan}.journal")

    def entries(self, event: str) -> list[dict[str, Any]]:
        """Return the journal's entries of an event so far."""
        text = self.journal.read_text(encoding="utf-8") if self.journal.exists() else ""
        entries = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
        return [entry for entry in entries if entry["event"] == event]

    def begin(self, *words: str, rate: str = "3/s") -> subprocess.Popen[str]:
        """Begin `lookup apply`."""
        given = ("--yes", "--rate", rate) if "--recover" not in words else ()
        return self.begin_typed("apply", *(words or (str(self.plan),)), *given)

    def run(self, *words: str, rate: str = "3/s") -> tuple[int, str]:
        """Run `lookup apply` to its end; return its exit code and what it said."""
        return ended(self.begin(*words, rate=rate))

    def begin_typed(self, *words: str, errors: int = subprocess.STDOUT) -> subprocess.Popen[str]:
        """Begin a command of `lookup` as it is typed, with the addresses of the cluster."""
        admin = "http://" + ",".join(broker.id for broker in self.cluster.brokers.values())
        return subprocess.Popen(
            [sys.executable, "-m", "lookup", *words],
            env=connected(admin=admin, service_url=self.cluster.service_url, zookeeper=self.cluster.zookeeper),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )

    @property
    def shedding(self) -> str | None:
        """Return what dynamic configuration says of shedding."""
        value: str | None = self.cluster.admin("GET", "brokers/configuration/values").get(KEY)
        return value


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for the end of a command; return its exit code and what it printed."""
    said, _ = process.communicate(timeout=PATIENCE_S)
    return process.returncode, said


class Traffic:
    """Messages at a fixed rate that clients send and receive: Python's in half of the topics, Java's in the others.

    A message that is received again counts once: an unload ends connections before acknowledgements are answered.
    """

    def __init__(self, url: str, java: Client, topics: Sequence[str], log: Path, per_s: float) -> None:
        #: `sent`, `received` and, if there are any, errors by what clients say
        self.counts = Counter[str](sent=0, received=0)
        self._java, self._per_s = java, per_s
        self._lock, self._over, self._closing = threading.Lock(), threading.Event(), threading.Event()
        self._seen = set[int]()
        #: messages that are sent and not acknowledged
        self._under_way = 0
        self._client = pulsar.Client(url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, str(log)))
        self._topics = list(topics)
        self._producers = {topic: self._client.create_producer(topic) for topic in topics[::2]}
        self._consumer = self._client.subscribe(list(topics[::2]), "moves")
        for topic in topics[1::2]:
            java.do("subscribe", topic=topic, subscription="moves")
            self._receive_in_java(topic)
        # Of two sends at once each would open a producer.
        for place, topic in enumerate(topics[1::2], 1):
            java.do("send", topic=topic, text=f"-{place}")
            self.counts["sent"] += 1
        self._threads = [
            threading.Thread(target=work, daemon=True, name=f"traffic-{work.__name__}")
            for work in (self._send, self._receive)
        ]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Send no more, receive what is under way, and close the clients; what does not come counts as `lost`."""
        self._over.set()
        self._threads[0].join(_SILENCE_S)
        deadline = time.monotonic() + _SILENCE_S
        while self.counts["received"] < self.counts["sent"] + self._under_way and time.monotonic() < deadline:
            time.sleep(0.05)
        lost = self.counts["sent"] + self._under_way - self.counts["received"]
        if lost > 0:
            self.counts["lost"] = lost
        self._closing.set()
        self._threads[1].join(_SILENCE_S)
        self._client.close()
        self._java.do("close")

    def _send(self) -> None:
        began, count = time.monotonic(), len(self._topics)
        for number in itertools.count():
            # By the clock: what was late is made up for, so that the rate is that of each topic.
            if self._over.wait(max(0.0, began + number / (self._per_s * count) - time.monotonic())):
                return
            place = number % count
            topic = self._topics[place]
            # 2 to 32 kB, another size for each of sixteen topics.
            text = f"{number} ".ljust(2048 * (1 + 7 * place % 16), "x")
            with self._lock:
                self._under_way += 1
            if topic in self._producers:
                self._send_in_python(topic, text)
            else:
                answer = self._java.ask("send", topic=topic, text=text)
                answer.add_done_callback(lambda of: self._sent(of.result().get("error")))

    def _send_in_python(self, topic: str, text: str) -> None:
        def acknowledged(result: Any, _: Any) -> None:
            self._sent(None if result == pulsar.Result.Ok else str(result))

        try:
            self._producers[topic].send_async(text.encode(), acknowledged)
        except pulsar.PulsarException as error:
            self._sent(str(error))

    def _sent(self, error: str | None) -> None:
        with self._lock:
            self._under_way -= 1
            self.counts["sent" if error is None else f"send: {error}"] += 1

    def _received(self, text: str) -> None:
        with self._lock:
            self._seen.add(int(text.partition(" ")[0]))
            self.counts["received"] = len(self._seen)

    def _receive(self) -> None:
        last = time.monotonic()
        while not self._closing.is_set():
            try:
                message = self._consumer.receive(500)
                self._consumer.acknowledge(message)
            except pulsar.Timeout:
                if time.monotonic() > last + _SILENCE_S:
                    self.counts["receive: silence"] += 1
                    last = time.monotonic()
                continue
            except pulsar.PulsarException as error:
                self.counts[f"receive: {error}"] += 1
                continue
            last = time.monotonic()
            self._received(message.data().decode())

    def _receive_in_java(self, topic: str) -> None:
        def answered(of: Future[dict[str, Any]]) -> None:
            if self._closing.is_set() or of.exception() is not None:
                return
            answer = of.result()
            if "error" in answer:
                self.counts[f"receive: {answer['error']}"] += 1
            else:
                self._received(answer["text"])
            self._receive_in_java(topic)

        asked = self._java.ask("receive", topic=topic, timeout_ms=int(_SILENCE_S * 1000))
        asked.add_done_callback(answered)


@contextmanager
def traffic(world: World, java: Client, topics: Sequence[str], per_s: float) -> Iterator[Traffic]:
    """Send to each of some topics so many messages per second and receive them until the block ends."""
    clients = Traffic(world.cluster.service_url, java, topics, world.folder / "client.log", per_s)
    try:
        yield clients
    finally:
        clients.end()
