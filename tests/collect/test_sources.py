"""Sources read what servers answer, and report what they cannot read."""

from __future__ import annotations

import gc
import socket
import ssl
import urllib.error
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from itertools import count
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from lookup.collect.observing import BrokerRegistry, Bundles, CaughtUp, Record, SourceTrouble
from lookup.collect.sources import AdminRefusedError, AdminRest, AdminSource, Credentials, RegistrySource, Source
from lookup.errors import InputError
from tests.answering import answering, http_answer, serving
from tests.collect.rest import Rest, running_rest


@pytest.fixture
def rest() -> Iterator[Rest]:
    """Run an admin REST."""
    with running_rest() as running:
        yield running


def _read(rest: Rest, count: int, *, lists_brokers: bool = True) -> list[Record]:
    """Return the first records of a source."""
    records: Queue[Record] = Queue()
    source = AdminSource(AdminRest(rest.url, Credentials()), records, "east", lists_brokers=lists_brokers)
    source.start()
    found = [records.get() for _ in range(count)]
    source.stopped.set()
    source.join()
    return found


def test_admin_rest_gives_brokers_and_bundles(rest: Rest) -> None:
    """One look asks for all that the REST knows; what brokers publish is not in it."""
    brokers, bundles = _read(rest, 2)

    assert isinstance(brokers, BrokerRegistry)
    assert brokers.brokers == {"a:8080": None, "b:8080": None}
    assert isinstance(bundles, Bundles)
    assert (bundles.namespace, bundles.boundaries) == ("public/default", (0, 0x80000000, 0xFFFFFFFF))


def test_source_that_answers_again_is_reported(rest: Rest) -> None:
    """A source that was in trouble and can be read again says so, once."""
    rest.answers["tenants"] = 503
    records: Queue[Record] = Queue()
    source = AdminSource(AdminRest(rest.url, Credentials()), records, "east", lists_brokers=False)
    source.start()
    lost = records.get()
    rest.answers["tenants"] = ["public"]

    later = [records.get() for _ in range(2)]

    source.stopped.set()
    source.join()
    assert isinstance(lost, SourceTrouble)
    assert lost.reason == "HTTP status 503"
    assert [record.reason for record in later if isinstance(record, SourceTrouble)] == [None]


class _Topic(Source):
    """Fails once, and reads a message at every later look, as a reader of a busy topic that was lost."""

    def __init__(self, records: Queue[Record]) -> None:
        super().__init__("state", records)
        self._looks = count()

    def look(self) -> None:
        """Read."""
        if not next(self._looks):
            raise OSError("there is no connection")
        self.put(CaughtUp(1))
        self.stopped.wait(0.05)

    def close(self) -> None:
        """Do nothing."""


def test_topic_that_is_never_quiet_can_be_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that reads a message after it was lost is back, though it was never without one."""
    monkeypatch.setattr("lookup.collect.sources._RETRY_S", 0.01)
    records: Queue[Record] = Queue()
    source = _Topic(records)
    source.start()

    some = [records.get() for _ in range(5)]

    source.stopped.set()
    source.join()
    assert [record.reason for record in some if isinstance(record, SourceTrouble)] == ["there is no connection", None]


def test_next_address_is_asked_if_one_is_away(rest: Rest) -> None:
    """Of several addresses the first that answers is asked from then on."""
    asked = AdminRest(f"http://127.0.0.1:1,{rest.url.removeprefix('http://')}", Credentials())

    assert asked.cluster() == "east"


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[", b""])
def test_next_address_is_asked_if_one_is_killed_meanwhile(rest: Rest, answer: bytes) -> None:
    """An answer that is cut off, or no HTTP, is as good as none; with no other address it is an OSError."""
    with answering(answer) as port:
        asked = AdminRest(f"http://127.0.0.1:{port},{rest.url.removeprefix('http://')}", Credentials())
        assert asked.cluster() == "east"
        with pytest.raises(OSError, match=r"127|closed"):
            AdminRest(f"http://127.0.0.1:{port}", Credentials()).cluster()


@pytest.mark.parametrize("body", ["<html>", "[" * 200_000, "{}", "[1]", "null"])
def test_next_address_is_asked_if_one_is_no_broker(rest: Rest, body: str) -> None:
    """An answer that is no JSON, or not of the form, is as good as none; with no other address it is a ValueError."""
    with answering(http_answer(body)) as port:
        broker = rest.url.removeprefix("http://")
        assert AdminRest(f"http://127.0.0.1:{port},{broker}", Credentials()).cluster() == "east"
        said = f"^http://127.0.0.1:{port} answered clusters with no "
        with pytest.raises(ValueError, match=said):
            AdminRest(f"http://127.0.0.1:{port}", Credentials()).cluster()


def test_address_that_is_no_broker_is_not_asked_first(rest: Rest) -> None:
    """Not even if it has answered while the broker failed."""
    with answering(http_answer("<html>")) as port:
        asked = AdminRest(f"{rest.url},127.0.0.1:{port}", Credentials())
        rest.answers["clusters"] = 503
        with pytest.raises(ValueError, match="no JSON"):
            asked.cluster()
        rest.answers["clusters"] = ["east"]

        assert asked.cluster() == "east"
        assert asked.namespaces() == ["public/default"]
        assert asked._addresses[0] == rest.url


@pytest.mark.parametrize("answer", [{"boundaries": 1}, {"boundaries": ["z"]}, {"boundaries": [1]}, {}, [], "abc"])
def test_boundaries_that_are_none_are_refused(rest: Rest, answer: object) -> None:
    """Whatever answers so is no broker."""
    rest.answers["namespaces/public/default/bundles"] = answer
    asked = AdminRest(rest.url, Credentials())

    with pytest.raises(ValueError, match="with no boundaries of bundles"):
        asked.boundaries("public/default")


@pytest.mark.parametrize("answer", [{"a": 1}, None, "abc", [1], [["a"]]])
def test_names_that_are_none_are_refused(rest: Rest, answer: Any) -> None:
    """Whatever lists names answers a list of texts, or it is no broker."""
    rest.answers["tenants"] = answer
    with pytest.raises(ValueError, match="answered tenants with no list"):
        AdminRest(rest.url, Credentials()).namespaces()


def test_refusal_is_not_tried_elsewhere(rest: Rest) -> None:
    """What one broker forbids, the others forbid as well."""
    rest.answers["tenants"] = 403
    asked = AdminRest(f"{rest.url},127.0.0.1:1", Credentials())

    with pytest.raises(urllib.error.HTTPError, match="403"):
        asked.namespaces()


def test_several_clusters_cannot_be_chosen_from(rest: Rest) -> None:
    """A cluster that replicates with others does not say which of their names is its own."""
    rest.answers["clusters"] = ["east", "west"]

    with pytest.raises(InputError, match="there are 2 clusters, east, west"):
        AdminRest(rest.url, Credentials()).cluster()


def test_token_of_the_file_is_read_for_each_request(rest: Rest, tmp_path: Path) -> None:
    """A token that is replaced while the collector runs is sent from the next request on; it wins over one given."""
    token = tmp_path / "token"
    asked = AdminRest(rest.url, Credentials(token_file=str(token), token="given"))
    for text in ("first\n", "second\n"):
        token.write_text(text)
        asked.cluster()

    assert rest.tokens == {"Bearer first", "Bearer second"}


def test_credentials_do_not_print_themselves() -> None:
    """A traceback or a log that shows credentials shows no token."""
    assert "secret" not in f"{Credentials(token='secret')!r} {Credentials(token='secret')}"


def test_registry_that_is_away_is_trouble() -> None:
    """Where no ZooKeeper answers, the source says so and can be stopped."""
    records: Queue[Record] = Queue()
    source = RegistrySource("127.0.0.1:1", records, Credentials())
    source.start()

    trouble = records.get()

    source.stopped.set()
    source.join()
    assert isinstance(trouble, SourceTrouble)
    assert trouble.reason == "there is no connection"


#: Certificate and key of a server on the loopback, for tests alone.
_LOOPBACK = Path(__file__).parent.parent / "assets" / "loopback.pem"


@contextmanager
def _redirecting(target: str, tls: ssl.SSLContext | None = None) -> Iterator[tuple[str, list[str | None]]]:
    """Run a server that sends everybody elsewhere, and keep the tokens that it saw."""
    seen: list[str | None] = []

    def redirect(_method: str, path: str, headers: Message) -> bytes:
        seen.append(headers.get("Authorization"))
        return http_answer("", 307, location=target + path)

    with serving(redirect, tls) as url:
        yield url, seen


def test_the_token_follows_no_redirect_to_a_stranger(rest: Rest) -> None:
    """Brokers send each other's clients to each other: those whose addresses were given get the token, no others."""
    with _redirecting(rest.url) as (away, seen):
        with pytest.raises(OSError, match="is not among the addresses"):
            AdminRest(away, Credentials(token="secret")).cluster()
        assert (seen, rest.tokens) == (["Bearer secret"], set())

        known = AdminRest(f"{away},{rest.url.removeprefix('http://')}", Credentials(token="secret"))
        assert (known.cluster(), rest.tokens) == ("east", {"Bearer secret"})
        # Without a token there is nothing to lose.
        assert AdminRest(away, Credentials()).cluster() == "east"


def test_a_change_follows_a_redirect_as_what_it_is(rest: Rest) -> None:
    """A broker sends an unload to the owner: it arrives there as PUT, with the token only where that may go."""
    rest.answers["namespaces/a/b/unload"] = 204
    with _redirecting(rest.url) as (away, _):
        AdminRest(away, Credentials()).send("PUT", "namespaces/a/b/unload?destinationBroker=c")
        with pytest.raises(OSError, match="is not among the addresses"):
            AdminRest(away, Credentials(token="secret")).send("PUT", "namespaces/a/b/unload")

    assert rest.changes == ["PUT namespaces/a/b/unload?destinationBroker=c"]


def test_a_refused_change_says_why(rest: Rest) -> None:
    """Status and the broker's reason, without the stack trace that follows it; a page is cut short."""
    for answer, reason in (
        (http_answer('{"reason": "no\\n such\\n\\nStacktrace: java.lang"}', 500), "no such"),
        (http_answer("<html>" + "x" * 5_000, 403), "<html>" + "x" * 194),
        (http_answer("", 409), "no reason was given"),
    ):
        with answering(answer) as port, pytest.raises(AdminRefusedError) as refused:
            AdminRest(f"http://127.0.0.1:{port},{rest.url.removeprefix('http://')}", Credentials()).send("PUT", "x")

        assert (refused.value.status, refused.value.reason) == (int(answer.split()[1]), reason)
    assert rest.changes == []


def test_a_change_is_sent_on_only_if_nothing_listened(rest: Rest) -> None:
    """What one address may have begun is not sent to another; where nothing listens, nothing was begun."""
    rest.answers["x"] = 204
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    AdminRest(f"http://127.0.0.1:{port},{rest.url.removeprefix('http://')}", Credentials()).send("POST", "x")
    with answering(b"") as silent, pytest.raises(OSError, match=r"closed|127"):
        AdminRest(f"http://127.0.0.1:{silent},{rest.url.removeprefix('http://')}", Credentials()).send("DELETE", "x")

    assert rest.changes == ["POST x"]


@pytest.mark.parametrize("token", ["secret", None])
def test_no_redirect_leads_away_from_tls(rest: Rest, token: str | None) -> None:
    """What was asked with TLS is not answered without, whether or not there is a token to lose."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_LOOPBACK)
    with _redirecting(rest.url, context) as (away, seen):
        asked = AdminRest(away, Credentials(token=token, tls_ca=str(_LOOPBACK)))
        with pytest.raises(OSError, match=r"http://127\.0\.0\.1:\d+, without TLS"):
            asked.cluster()

    assert (len(seen), rest.tokens) == (1, set())


def test_endless_redirects_are_given_up() -> None:
    """Brokers that send each other's clients in a circle are as good as away."""
    with _redirecting("") as (away, seen), pytest.raises(OSError, match="307"):
        AdminRest(away, Credentials(token="secret")).cluster()

    assert len(seen) <= 10


def test_a_redirect_that_is_not_followed_is_closed(rest: Rest) -> None:
    """A collector that runs for weeks against such a cluster keeps no connection."""
    with _redirecting(rest.url) as (away, _):
        with pytest.raises(OSError, match="redirects to"):
            AdminRest(away, Credentials(token="secret")).cluster()
        with warnings.catch_warnings(record=True) as unclosed:
            warnings.simplefilter("always")
            gc.collect()

    assert [str(one.message) for one in unclosed if "unclosed" in str(one.message)] == []


def test_an_endless_answer_is_given_up(rest: Rest, monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer of a cluster is longer than a bound, whatever its head says."""
    monkeypatch.setattr("lookup.collect.answers._MOST_BYTES", 1_000)
    rest.answers["clusters"] = ["x" * 2_000]

    with pytest.raises(ValueError, match="more than 1,000 bytes"):
        AdminRest(rest.url, Credentials()).cluster()
