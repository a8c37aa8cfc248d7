"""The consumer of `docs/label-consumer.md` on a live cluster, while labels change and a broker is lost."""

from __future__ import annotations

import itertools
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty
from types import ModuleType
from typing import Any

import pulsar
import pytest

from lookup.topics.client import Pace, TopicSet
from lookup.topics.listing.selectors import parse
from tests.acceptance.pulsar.cluster import Cluster
from tests.processes import awaited
from tests.serve.label_consumer import consumer_page
from tests.serve.servers import Server, started_apart

pytestmark = pytest.mark.pulsar

_NUMBERS = itertools.count()
_SETTINGS = """
[serving]
cluster = "racks"
record = "record"
port = 0

[collect]
admin = "http://{brokers}"
topics_every_s = 0.5

[topics]
catalog = "topics.db"
"""
#: A grace in which a test can change its mind, µs.
_PACE = Pace(retry_us=300_000, grace_us=6_000_000)


@pytest.fixture
def page(tmp_path: Path) -> ModuleType:
    """Return the program of the page as a module."""
    return consumer_page(tmp_path)


@pytest.fixture
def server(cluster: Cluster, tmp_path: Path) -> Iterator[Server]:
    """Start a server that follows the cluster's topics."""
    brokers = ",".join(f"127.0.0.1:{broker.web_port}" for broker in cluster.brokers.values())
    (tmp_path / "serving.toml").write_text(_SETTINGS.format(brokers=brokers))
    with started_apart(tmp_path / "serving.toml") as server:
        yield server


@pytest.fixture
def client(cluster: Cluster) -> Iterator[pulsar.Client]:
    """Build a client of all brokers."""
    logger = pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null")
    client = pulsar.Client(cluster.service_url, operation_timeout_seconds=5, logger=logger)
    yield client
    client.close()


class _Recorded:
    """A subscription that notes when it is given up, before it is."""

    def __init__(self, subscription: pulsar.Consumer, topic: str, given_up: list[str]) -> None:
        self._subscription, self._topic, self._given_up = subscription, topic, given_up

    def __getattr__(self, name: str) -> Any:
        return getattr(self._subscription, name)

    def unsubscribe(self) -> None:
        """Note the topic, and delete the subscription."""
        self._given_up.append(self._topic)
        self._subscription.unsubscribe()


class _Recording:
    """A client whose subscriptions are `_Recorded`."""

    def __init__(self, client: pulsar.Client, given_up: list[str]) -> None:
        self._client, self._given_up = client, given_up

    def subscribe(self, topic: str, *arguments: Any, **options: Any) -> _Recorded:
        """Subscribe to a topic."""
        return _Recorded(self._client.subscribe(topic, *arguments, **options), topic, self._given_up)


class Running:
    """A consumer at work in a thread, what it received, by topic, and what it gave up."""

    def __init__(self, make: Callable[[Any], Any], client: pulsar.Client) -> None:
        #: every topic whose subscription was given up, as often as it was
        self.given_up: list[str] = []
        self.consumer = make(_Recording(client, self.given_up))
        self.received: dict[str, set[str]] = defaultdict(set)
        self.ended = threading.Event()
        #: every topic that it was ever seen to be subscribed to
        self.seen: set[str] = set()
        self.thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        while not self.ended.is_set():
            self.consumer.step()
            self.seen |= self.consumer.topics
            with suppress(Empty):
                source, message = self.consumer.messages.get(timeout=0.1)
                self.received[message.topic_name()].add(message.data().decode())
                source.acknowledge(message)

    def await_topics(self, *wanted: str) -> None:
        """Wait until these topics are subscribed to, and no others."""
        awaited(
            lambda: sorted(self.consumer.topics),
            f"subscriptions to {wanted}",
            enough=lambda seen: seen == sorted(wanted),
        )


@contextmanager
def running(make: Callable[[Any], Any], client: pulsar.Client) -> Iterator[Running]:
    """Run the consumer that is made of a client until the block ends."""
    run = Running(make, client)
    run.thread.start()
    try:
        yield run
    finally:
        run.ended.set()
        run.thread.join()
        run.consumer.close()


class Writer:
    """Sends numbered messages, each until a broker has taken it."""

    def __init__(self, client: pulsar.Client) -> None:
        self._client = client
        self._producers: dict[str, pulsar.Producer] = {}
        self.sent: dict[str, set[str]] = defaultdict(set)

    def send(self, *topics: str) -> None:
        """Send one message to each of some topics."""
        for topic in topics:
            text = f"{next(_NUMBERS)}"
            while text not in self.sent[topic]:
                with suppress(pulsar.PulsarException):
                    if topic not in self._producers:
                        self._producers[topic] = self._client.create_producer(topic)
                    self._producers[topic].send(text.encode())
                    self.sent[topic].add(text)


def label(server: Server, topic: str, **labels: str) -> None:
    """Give a topic labels, or take `env` away from it."""
    path = f"/admin/v2/topics/{topic.removeprefix('persistent://')}/custom-labels"
    body = {"labels": labels}
    status, answer = server.ask("POST", path, body) if labels else server.ask("DELETE", f"{path}?keys=env")
    assert status == 204, answer


def subscriptions(cluster: Cluster, topic: str) -> list[str]:
    """Return the subscriptions of a topic, as a broker names them."""
    names: list[str] = cluster.admin("GET", f"persistent/{topic.removeprefix('persistent://')}/subscriptions")
    return names


def test_subscriptions_follow_labels_and_names(
    cluster: Cluster, server: Server, client: pulsar.Client, page: ModuleType
) -> None:
    """Nothing is missed and nothing unsubscribed wrongly, through changes of labels, topics and brokers."""
    first, second = (f"public/labels-{next(_NUMBERS)}" for _ in range(2))
    for namespace in (first, second):
        cluster.create_namespace(namespace, 4)
    a, b, c = (f"persistent://{first}/{local}" for local in ("orders-a", "orders-b", "bills"))
    d, e = (f"persistent://{second}/{local}" for local in ("orders-d", "late"))
    for topic in (a, b, c, d):
        cluster.admin("PUT", topic.replace("://", "/"))
    for topic in (a, c, d):
        label(server, topic, env="prod")
    label(server, b, env="test")
    writer, url = Writer(client), f"http://127.0.0.1:{server.port}"
    by_label = TopicSet(selector=parse("env=prod"), namespaces=[first, second])
    by_name = TopicSet(pattern=f"{first}/orders-.*", namespaces=[first])
    with (
        running(lambda client: page.TopicConsumer(by_label, "labels", client, [url], pace=_PACE), client) as labelled,
        running(lambda client: page.TopicConsumer(by_name, "names", client, [url], pace=_PACE), client) as named,
    ):
        labelled.await_topics(a, c, d)
        named.await_topics(a, b)
        # Found after the first messages were sent.
        cluster.admin("PUT", e.replace("://", "/"))
        writer.send(a, b, c, d, e)
        label(server, e, env="prod")
        labelled.await_topics(a, c, d, e)
        # A broker is lost, and with it the owners of topics.
        lost = cluster.broker_at(cluster.lookup_over_http(a, cluster.running[0]))
        cluster.kill(lost)
        label(server, a)
        # Some looks long, and within the grace.
        time.sleep(2)
        label(server, a, env="prod")
        label(server, b, env="prod")
        # Of a topic that others have read brokers keep nothing for those that come later.
        earlier = {b: set(writer.sent[b])}
        writer.send(a, b, c, d, e)
        cluster.restart(lost)
        labelled.await_topics(a, b, c, d, e)
        assert {topic: sorted(subscriptions(cluster, topic)) for topic in (a, b, c, d, e)} == {
            a: ["labels", "names"],
            b: ["labels", "names"],
            c: ["labels"],
            d: ["labels"],
            e: ["labels"],
        }
        # Of what was taken away within the grace, too, nothing was given up meanwhile.
        assert (labelled.given_up, named.given_up) == ([], [])
        # For good.
        label(server, c)
        labelled.await_topics(a, b, d, e)
        awaited(lambda: subscriptions(cluster, c) == [])
        writer.send(a, b, d, e)
        for run, topics, known in ((labelled, (a, b, d, e), earlier), (named, (a, b), {})):
            awaited(
                lambda run=run, topics=topics, known=known: {
                    topic: writer.sent[topic] - known.get(topic, set()) - run.received[topic] for topic in topics
                },
                "every message of every topic",
                enough=lambda missing: not any(missing.values()),
            )
    # `close` has waited for all that was under way.
    assert (labelled.given_up, named.given_up) == ([c], [])
    assert labelled.seen == {a, b, c, d, e}
    assert named.seen == {a, b}
    assert sorted(subscriptions(cluster, a)) == ["labels", "names"]
