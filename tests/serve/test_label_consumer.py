"""The consumer of `docs/label-consumer.md`, whose server restarts or is another."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pulsar
import pytest

from lookup.errors import NotSupportedError
from lookup.topics.catalog import Catalog, SqliteStorage
from lookup.topics.client import Pace, TopicSet
from tests.answering import answering, http_answer
from tests.processes import awaited
from tests.serve.label_consumer import consumer_page
from tests.serve.servers import settings_file, started

TOPIC = "persistent://public/default/orders"


class Subscribed:
    """A client of Pulsar, and its only consumer.

    Args:
        failures: how many subscriptions fail before the first that is made, as while a broker restarts.
    """

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        #: topics in the order in which they were asked for
        self.asked: list[str] = []

    def subscribe(self, topic: str, *_: Any, **__: Any) -> Subscribed:
        """Subscribe to any topic."""
        self.asked.append(topic)
        if len(self.asked) <= self.failures:
            raise pulsar.Timeout
        return self

    def unsubscribe(self) -> None:
        """Refuse."""
        raise AssertionError("a subscription was given up")

    def close(self) -> None:
        """End."""


def consumer_of(folder: Path, client: Subscribed, *urls: str) -> Any:
    """Return the program's consumer of orders, which gives up soon what is gone."""
    pace = Pace(retry_us=100_000, grace_us=200_000)
    wanted = TopicSet(pattern="public/default/orders.*", namespaces=["public/default"])
    return consumer_page(folder).TopicConsumer(wanted, "s", client, urls, pace=pace)


def served(folder: Path, port: int = 0) -> Path:
    """Write the settings of a server over a catalog beside them."""
    path = settings_file(folder, '[topics]\ncatalog = "topics.db"\n', policies="")
    path.write_text(path.read_text().replace("port = 0", f"port = {port}"))
    return path


def write(folder: Path, change: Callable[[Catalog], None]) -> None:
    """Write to the catalog as another process does."""
    with closing(SqliteStorage(folder / "topics.db")) as storage:
        change(Catalog(storage))


def create(*topics: str) -> Callable[[Catalog], None]:
    """Return a change that creates topics."""

    def change(catalog: Catalog) -> None:
        catalog.create_namespace("public/default")
        for topic in topics:
            catalog.create(topic)

    return change


def stepped(consumer: Any, *topics: str) -> float:
    """Let a consumer work until it is subscribed to these topics; return how long that took, s."""
    began = time.monotonic()
    awaited(lambda: consumer.step() or consumer.topics == {*topics})
    return time.monotonic() - began


@pytest.mark.path
def test_consumer_is_told_of_topics_and_goes_on_over_a_restart(tmp_path: Path) -> None:
    """What was created and deleted while the server was away is made up for, and nothing else is given up."""
    client, given_up = Subscribed(), list[str]()
    client.unsubscribe = lambda: given_up.append("one")  # type: ignore[method-assign]
    write(tmp_path, create(TOPIC, f"{TOPIC}-1"))
    with started(served(tmp_path)) as server:
        consumer = consumer_of(tmp_path, client, f"http://127.0.0.1:{server.port}")
        stepped(consumer, TOPIC, f"{TOPIC}-1")
        write(tmp_path, create(f"{TOPIC}-2"))
        stepped(consumer, TOPIC, f"{TOPIC}-1", f"{TOPIC}-2")
    write(tmp_path, lambda catalog: catalog.delete(f"{TOPIC}-1"))
    write(tmp_path, create(f"{TOPIC}-3"))
    for _ in range(50):
        consumer.step()
        time.sleep(0.01)
    assert consumer.topics == {TOPIC, f"{TOPIC}-1", f"{TOPIC}-2"}
    with started(served(tmp_path, server.port)):
        stepped(consumer, TOPIC, f"{TOPIC}-2", f"{TOPIC}-3")

    consumer.close()
    assert given_up == ["one"]


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n{",
        http_answer("id: 9-9\nevent: snapshot\ndata: {}\n\n"),
        http_answer('id: 9-9\nevent: update\ndata: {"removed": [5], "added": []}\n\n'),
        http_answer('id: 9-9\nevent: snapshot\ndata: {"topics": []', missing=1),
        http_answer('{"error": "not now"}', status=503),
        *map(http_answer, ("<html></html>", "null", "{}")),
    ],
)
def test_consumer_outlives_an_answer_that_is_none(tmp_path: Path, answer: bytes) -> None:
    """Its subscriptions stay, also beyond the grace, and it goes on asking."""
    client = Subscribed()
    write(tmp_path, create(TOPIC))
    with started(served(tmp_path)) as server:
        consumer = consumer_of(tmp_path, client, f"http://127.0.0.1:{server.port}")
        stepped(consumer, TOPIC)
    with answering(answer, port=server.port):
        for _ in range(60):
            consumer.step()
            time.sleep(0.01)
    assert consumer.topics == {TOPIC}
    write(tmp_path, create(f"{TOPIC}-2"))
    with started(served(tmp_path, server.port)):
        stepped(consumer, TOPIC, f"{TOPIC}-2")
    consumer.close()


def test_consumer_of_a_server_that_watches_nothing_is_refused(tmp_path: Path) -> None:
    """An error, and no empty list."""
    with started(settings_file(tmp_path, policies="")) as server:
        consumer = consumer_of(tmp_path, Subscribed(), f"http://127.0.0.1:{server.port}")
        with pytest.raises(NotSupportedError, match="this server lists no topics"):
            stepped(consumer, TOPIC)
    consumer.close()


def test_consumer_tries_a_subscription_that_failed_again(tmp_path: Path) -> None:
    """Until it is made, and not once more."""
    client = Subscribed(failures=2)
    write(tmp_path, create(TOPIC))
    with started(served(tmp_path)) as server:
        consumer = consumer_of(tmp_path, client, f"http://127.0.0.1:{server.port}")
        stepped(consumer, TOPIC)
        for _ in range(10):
            consumer.step()
            time.sleep(0.01)

    assert client.asked == [TOPIC] * 3
    assert consumer.topics == {TOPIC}
    consumer.close()
