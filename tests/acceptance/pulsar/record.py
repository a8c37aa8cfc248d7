"""A session in a real cluster, and the truth about it.

Java clients with lookup properties, the Python client and HTTP look topics up while bundles are assigned, unloaded,
moved and split and brokers are killed and started again. `truth.jsonl` has what was asked and done, in the order in
which it ended, one object per line, by `kind`:

    lookup      a client asked a broker: via, client, asked, topic, properties, broker or error
    send        a Java client sent a message; it looks a topic up before the first, and after a loss
    admin       something was done to bundles or brokers: action, what, from when to when

Times are µs since the epoch if their name does not say otherwise; brokers are ids of the registry; `local` is the
address under which the log of the broker that was asked knows the client.
"""

from __future__ import annotations

import random
import threading
import time
import urllib.error
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

from tests.acceptance.pulsar.clients import Client, PythonClients
from tests.acceptance.pulsar.cluster import Broker, Cluster
from tests.acceptance.pulsar.recording import JsonLines, now_us
from tests.processes import awaited

#: Java clients that look up: name, rack of the broker that they ask, lookup properties.
_CLIENTS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("shop-a", "B", {"rack": "A", "app": "shop"}),
    ("shop-b", "C", {"rack": "B", "app": "shop"}),
    ("shop-c", "A", {"rack": "C", "app": "shop"}),
    ("audit", "A", {"rack": "A", "team": "audit"}),
    ("elsewhere", "C", {"rack": "D", "note": "a, b=c {d} – no broker is in rack D"}),
    ("plain", "B", {}),
)
#: Seconds between two lookups of the Python client, between two over HTTP, and between two messages.
_PYTHON_S, _HTTP_S, _MESSAGE_S = 0.7, 2.0, 0.3


class Session:
    """Traffic in a cluster and what is done to its bundles and brokers; all of it is written down as the truth."""

    def __init__(self, cluster: Cluster, python: PythonClients, folder: Path, *, rate: float, seed: int) -> None:
        self.cluster = cluster
        self._truth = JsonLines(folder / "truth.jsonl")
        self._dice = random.Random(seed)
        self._topics: list[str] = []
        #: (client, topic) of what was asked and has no answer yet: a client sends equal lookups only once
        self._pending: set[tuple[str, str]] = set()
        self._ended = threading.Event()
        java = cluster.java_clients()
        self._java = [
            (java.open(name, cluster.brokers[rack].service_url, properties), cluster.brokers[rack], properties)
            for name, rack, properties in _CLIENTS
        ]
        self._senders = [
            (java.open(f"sender-{rack}", broker.service_url, {}), broker) for rack, broker in cluster.brokers.items()
        ]
        self._python = python
        self._python_clients = [(python.open(broker.service_url), broker) for broker in cluster.brokers.values()]
        works = (
            (1 / rate, self._look_up), (_PYTHON_S, self._look_up_by_python), (_HTTP_S, self._look_up_over_http),
            (_MESSAGE_S, self._send),
        )  # fmt: skip
        self._threads = [
            threading.Thread(target=self._repeat, args=(seconds, work, random.Random(f"{seed} {work.__name__}")))
            for seconds, work in works
        ]

    # Traffic

    def start(self) -> None:
        """Begin with the traffic; there must be topics."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End the traffic, wait for the last answers, and close the truth."""
        self._ended.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()
        while self._pending:
            time.sleep(0.1)
        for client, _ in self._python_clients:
            client.close()
        self._truth.close()

    def _repeat(self, seconds: float, work: Callable[[random.Random], None], dice: random.Random) -> None:
        while not self._ended.wait(seconds):
            work(dice)

    def _topic(self, dice: random.Random) -> str:
        """Draw a topic; the first are asked for most."""
        return dice.choices(self._topics, [1 / (rank + 1) for rank in range(len(self._topics))])[0]

    def _look_up(self, dice: random.Random) -> None:
        client, asked, properties = dice.choice(self._java)
        self._ask(client, "lookup", asked, self._topic(dice), properties)

    def _send(self, dice: random.Random) -> None:
        number = dice.randrange(len(self._senders))
        client, asked = self._senders[number]
        # Each sender has topics of its own: what is sent from one place, one broker should own.
        topic = dice.choice(self._topics[number :: len(self._senders)][:6])
        self._ask(client, "send", asked, topic, {}, text="x" * dice.randrange(1_000, 20_000))

    def _ask(
        self, client: Client, command: str, asked: Broker, topic: str, properties: dict[str, str], **arguments: str
    ) -> None:
        question = (client.name, topic)
        if question in self._pending:
            return
        self._pending.add(question)

        def keep(answer: Future[dict[str, Any]]) -> None:
            # Otherwise the JVM has ended, which whoever waits for it reports.
            if answer.exception() is None:
                given = {name: value for name, value in answer.result().items() if name not in ("id", "broker_url")}
                url = answer.result().get("broker_url")
                self._keep(command, "java", client.name, asked, topic, properties=properties, url=url, **given)
            self._pending.discard(question)

        client.ask(command, topic=topic, **arguments).add_done_callback(keep)

    def _look_up_by_python(self, dice: random.Random) -> None:
        client, asked = dice.choice(self._python_clients)
        topic, began = self._topic(dice), now_us()
        answers, error = self._python.look_up(client, topic)
        row = {"ts": began, "took_us": now_us() - began, **({"error": error} if error else {})}
        for answer in answers or [{"broker_url": None}]:
            url = answer.pop("broker_url")
            self._keep("lookup", "python", f"python-{asked.rack}", asked, topic, url=url, **answer, **row)

    def _look_up_over_http(self, dice: random.Random) -> None:
        asked, topic, began = dice.choice(self.cluster.running), self._topic(dice), now_us()
        url, failed = None, {}
        try:
            url = self.cluster.lookup_over_http(topic, asked)
        except OSError as error:
            failed = {"error": str(error)}
        self._keep("lookup", "http", "http", asked, topic, ts=began, took_us=now_us() - began, url=url, **failed)

    def _keep(
        self, kind: str, via: str, client: str, asked: Broker, topic: str, *, url: str | None = None, **rest: Any
    ) -> None:
        broker = self.cluster.broker_at(url).id if url else None
        row = {"kind": kind, "via": via, "client": client, "asked": asked.id, "topic": topic, "broker": broker}
        self._truth.write(row | rest)

    # What is done to bundles and brokers

    def create_namespace(self, namespace: str, bundles: int, topics: int) -> None:
        """Create a namespace, and look up topics of it from now on."""
        self._do("create-namespace", partial(self.cluster.create_namespace, namespace, bundles), namespace=namespace)
        fresh = [f"persistent://{namespace}/topic-{number}" for number in range(topics)]
        # The older ones are mixed with them: the new namespace should not be asked for least.
        self._topics = self._dice.sample([*self._topics, *fresh], len(self._topics) + topics)

    def unload(self, namespace: str, bundle: str, destination: Broker | None = None) -> None:
        """Unload a bundle, to a broker if one is given."""
        unload = partial(self.cluster.unload, namespace, bundle, destination)
        self._do_to_bundle("unload", unload, namespace, bundle, destination=destination.id if destination else None)

    def split(self, namespace: str) -> None:
        """Split a bundle that has an owner."""
        bundle = self.any_owned(namespace)[0]
        self._do_to_bundle("split", partial(self.cluster.split, namespace, bundle), namespace, bundle)

    def kill(self, broker: Broker) -> None:
        """Kill a broker, and note when its registration has ended."""
        self._do("kill", partial(self.cluster.kill, broker), broker=broker.id)

        def expire() -> None:
            awaited(self.cluster.registry, f"a registry without {broker.id}", enough=lambda ids: broker.id not in ids)

        self._do("expire", expire, broker=broker.id)

    def restart(self, broker: Broker) -> None:
        """Start a broker that was killed."""
        self._do("restart", partial(self.cluster.restart, broker), broker=broker.id)

    def any_owned(self, namespace: str) -> tuple[str, Broker]:
        """Draw a bundle that has an owner; return both."""
        return self._dice.choice(sorted(self.cluster.owned(namespace).items(), key=lambda owned: owned[0]))

    def other_than(self, broker: Broker) -> Broker:
        """Draw another broker that runs."""
        return self._dice.choice([other for other in self.cluster.running if other is not broker])

    def leader(self) -> Broker:
        """Return the leader."""
        leader = self.cluster.admin("GET", "brokers/leaderBroker")["brokerId"]
        return next(broker for broker in self.cluster.running if broker.id == leader)

    def _do_to_bundle(self, action: str, work: Callable[[], Any], namespace: str, bundle: str, **what: Any) -> None:
        def owner() -> str | None:
            broker = self.cluster.owned(namespace).get(bundle)
            return broker.id if broker else None

        what |= {"namespace": namespace, "bundle": bundle, "owner_before": owner()}
        self._do(
            action,
            work,
            **what,
            after=lambda: {"owner_after": owner(), "bundles_after": self.cluster.bundles(namespace)},
        )

    def _do(
        self, action: str, work: Callable[[], Any], *, after: Callable[[], dict[str, Any]] = dict, **what: Any
    ) -> None:
        began, refused = now_us(), {}
        try:
            work()
        except urllib.error.HTTPError as error:
            refused = {"refused": error.code, "reason": error.msg}
        row = {"kind": "admin", "action": action, "ts": began, "took_us": now_us() - began}
        self._truth.write(row | what | refused | after())
