"""The consumer of `docs/label-consumer.md`, whose server is cut off or another; on a live cluster: `tests/pulsar`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pulsar
import pytest

from lookup.topics.client import TopicSet
from lookup.topics.listing import topics_hash
from lookup.topics.rules import Pace
from tests.answering import answering, http_answer
from tests.processes import awaited
from tests.serve.label_consumer import consumer_page

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


def answer_of(topics: str) -> str:
    """Return a list that is whole."""
    return f'{{"topics": [{topics}], "topicsHash": "{topics_hash([TOPIC])}", "filtered": true, "changed": true}}'


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n{",
        http_answer(answer_of(""), missing=1),
        http_answer("{}", status=503, missing=1),
        *map(http_answer, ("<html></html>", "[]", "null", "{}", '{"topics": 5}', answer_of("")[:-1])),
    ],
)
def test_consumer_outlives_an_answer_that_is_none(tmp_path: Path, answer: bytes) -> None:
    """Its subscriptions stay, also beyond the grace, and it goes on asking."""
    client = Subscribed()
    pace = Pace(poll_us=10_000, retry_us=10_000, grace_us=50_000)
    wanted = TopicSet(pattern="public/default/orders.*", namespaces=["public/default"])
    with answering(http_answer(answer_of(f'"{TOPIC}"'))) as port:
        consumer = consumer_page(tmp_path).TopicConsumer(wanted, "s", client, f"http://127.0.0.1:{port}", pace=pace)
        awaited(lambda: consumer.step() or consumer.topics == {TOPIC})
    with answering(answer) as port:
        consumer._server = f"http://127.0.0.1:{port}"
        for _ in range(50):
            consumer.step()
            time.sleep(0.01)

    assert consumer.topics == {TOPIC}
    consumer.close()


def test_consumer_tries_a_subscription_that_failed_again(tmp_path: Path) -> None:
    """Until it is made, and not once more."""
    client = Subscribed(failures=2)
    pace = Pace(poll_us=10_000, retry_us=10_000, grace_us=50_000)
    wanted = TopicSet(pattern="public/default/orders.*", namespaces=["public/default"])
    with answering(http_answer(answer_of(f'"{TOPIC}"'))) as port:
        consumer = consumer_page(tmp_path).TopicConsumer(wanted, "s", client, f"http://127.0.0.1:{port}", pace=pace)
        awaited(lambda: consumer.step() or consumer.topics == {TOPIC})
        for _ in range(10):
            consumer.step()
            time.sleep(0.01)

    assert client.asked == [TOPIC] * 3
    assert consumer.topics == {TOPIC}
    consumer.close()
