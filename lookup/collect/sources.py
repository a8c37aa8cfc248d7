"""Read the published data of a live cluster, from the registry in ZooKeeper, the admin REST, and the load topics.

Each source is a thread that puts records into a queue until it is stopped. A read error is a record too, and the source
tries again, since a source that is absent at the start may come later. No credential appears in a record or a log. No
source changes anything. The client of the admin REST can make changes, for moving bundles.
"""

from __future__ import annotations

import http.client
import json
import logging
import os
import re
import ssl
import threading
import time
import urllib.error
import urllib.request
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from queue import Full, Queue
from typing import IO, Any, TypeVar
from urllib.parse import quote, urlsplit

import pulsar
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from lookup.collect import observing
from lookup.collect.answers import whole_body
from lookup.errors import Argument, InputError
from lookup.logs.readers.system_topics import BROKER_LOAD_TOPIC, STATE_TOPIC, TOP_BUNDLES_TOPIC
from lookup.model.documents import secret_in
from lookup.model.names import split_servers
from lookup.model.quoting import forbidden_character

__all__ = [
    "AdminRefusedError", "AdminRest", "AdminSource", "Credentials", "PulsarTopicSource", "RegistrySource", "Source",
    "now_us", "pulsar_client", "reason_of",
]  # fmt: skip

Result = TypeVar("Result")
#: Where the admin REST begins.
_API = "admin/v2/"
#: Folder of the registry in ZooKeeper.
_REGISTRY = "/loadbalance/brokers"
#: Seconds until a failed source is tried again, and between two reads of data without notifications.
_RETRY_S, _POLL_S = 1.0, 5.0
#: Seconds between two complete lists of bundles. Bundles of new namespaces are listed at the next read.
_LIST_S = 600.0
#: Seconds that a request, and a read of a topic that is quiet, may take.
_REQUEST_S, _QUIET_MS = 10.0, 500
#: Characters of a reason that is no JSON of a broker, such as a page of a proxy.
_REASON = 200
#: Seconds for which a reader may try to connect again by itself. Then another replaces it.
_RECONNECT_S = 10.0


def now_us() -> int:
    """Read the clock, µs since the Unix epoch."""
    return time.time_ns() // 1_000


@dataclass(frozen=True, slots=True)
class Credentials:
    """Proofs of identity, and trusted certificates. Their texts are never printed."""

    #: file with a token, read again for every connection, since tokens are replaced
    token_file: str | None = None
    token: str | None = None
    #: PEM files
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None

    def __repr__(self) -> str:
        return "Credentials(...)"

    def current_token(self) -> str | None:
        """Read the token from the file, or return the given one.

        Raises:
            OSError: if the file cannot be read.
            ValueError: if a header cannot hold the token. The message does not contain it.
        """
        token = self.token
        if self.token_file is not None:
            try:
                token = secret_in(self.token_file)
            except ValueError as error:
                raise ValueError(f"{self.token_file} {error}") from None
        if token is None:
            return None
        token = token.strip()
        if re.fullmatch("[!-~]+", token) is None:
            where = "of the environment" if self.token_file is None else f"in {self.token_file}"
            raise ValueError(f"the token {where} should be one word of ASCII, and is not")
        return token

    def tls_context(self) -> ssl.SSLContext:
        """Build the TLS settings of connections, or raise InputError if a file is malformed."""
        try:
            context = ssl.create_default_context(cafile=self.tls_ca)
        except ssl.SSLError:
            raise InputError(Argument("tls_ca"), f": {self.tls_ca} should hold certificates as PEM") from None
        if self.tls_cert is not None:
            try:
                context.load_cert_chain(self.tls_cert, self.tls_key)
            except ssl.SSLError:
                pair = f": {self.tls_cert} should hold a certificate and {self.tls_key} its key, both as PEM"
                raise InputError(Argument("tls_cert"), ", ", Argument("tls_key"), pair) from None
        return context


class Source(threading.Thread):
    """A thread that reads one source until it is stopped, by repeated calls of `look`."""

    def __init__(self, name: observing.SourceName, records: Queue[observing.Record]) -> None:
        super().__init__(name=f"collect-{name}", daemon=True)
        self.source: observing.SourceName = name
        self.stopped = threading.Event()
        self._records = records
        self._reason: str | None = None

    def run(self) -> None:
        """Call `look` until it is stopped, and report when that fails and when it works again."""
        while not self.stopped.is_set():
            try:
                self.look()
                # A call of `look` that reads a message does not itself report that the source works.
                self.works()
                reason = None
            # Every exception is caught, since a silently ended thread records nothing, and no server's answer is fatal.
            except Exception as error:  # noqa: BLE001
                reason = reason_of(error)
            if reason is not None and reason != self._reason:
                self.put(observing.SourceTrouble(self.source, reason, now_us()))
            self._reason = reason
            if reason is not None:
                self.stopped.wait(_RETRY_S)
        self.close()

    def works(self) -> None:
        """Report that the source can be read again, if it could not."""
        if self._reason is not None:
            self._reason = None
            self.put(observing.SourceTrouble(self.source, None, now_us()))

    def put(self, record: observing.Record) -> None:
        """Put a record into the queue, and wait while it is full."""
        while not self.stopped.is_set():
            with suppress(Full):
                self._records.put(record, timeout=0.5)
                return

    @abstractmethod
    def look(self) -> None:
        """Read the source for a while."""

    def close(self) -> None:
        """End connections. A source without connections does nothing."""


def reason_of(error: Exception) -> str:
    """Explain why a source cannot be read, in one line."""
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP status {error.code}"
    # OSErrors of urllib contain another error, and exceptions of clients may have no text.
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    text = " ".join(str(cause).split())
    return text or type(error).__name__


# The admin REST.


class _Redirects(urllib.request.HTTPRedirectHandler):
    """A handler of brokers' redirects to each other, which sends the token only to the given addresses."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._trusted = {_parse_origin(address) for address in addresses}

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """Build the request that follows a redirect.

        Raises:
            OSError: if it would need the token and leads elsewhere, or away from TLS.
        """
        following: urllib.request.Request | None
        if req.get_method() != "GET" and code in (307, 308):
            # Brokers redirect a change to the bundle's owner. With urllib the caller must follow such a redirect.
            following = urllib.request.Request(newurl, headers=req.headers, method=req.get_method())
        else:
            following = super().redirect_request(req, fp, code, msg, headers, newurl)
        scheme, host = _parse_origin(newurl)
        refusal = ""
        if req.type == "https" and scheme != "https":
            refusal = "without TLS; it was not followed"
        elif following is not None and req.has_header("Authorization") and (scheme, host) not in self._trusted:
            refusal = (
                "which is not among the addresses that were given and so is not sent the token; add it to them if it "
                "is a broker of yours"
            )
        if refusal:
            fp.close()
            raise OSError(f"{req.host} redirects to {scheme}://{host}, {refusal}")
        return following


def _parse_origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, f"{parts.hostname}:{port}"


class AdminRefusedError(OSError):
    """The admin REST refuses a change, with a status and in most cases a reason.

    Args:
        status: of HTTP, 400 or above.
        reason: in the broker's words.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"HTTP status {status}: {reason}")
        self.status, self.reason = status, reason


class AdminRest:
    """A client of the admin REST, which uses the first of several addresses whose answer can be read.

    Args:
        addresses: like `http://broker-0:8080,broker-1:8080`.
    """

    def __init__(self, addresses: str, credentials: Credentials) -> None:
        scheme, servers = split_servers(addresses)
        self._addresses = [f"{scheme}{server}" for server in servers]
        self._credentials = credentials
        context = credentials.tls_context() if scheme == "https://" else None
        handlers = (_Redirects(self._addresses), urllib.request.HTTPSHandler(context=context))
        self._opener = urllib.request.build_opener(*handlers)

    def get(self, path: str, read: Callable[[Any], Result], *, is_json: bool = True) -> Result:
        """Send `GET /admin/v2/PATH`, and read the answer.

        Args:
            read: converts the answer's JSON, and raises ValueError with a description if that has another form.
            is_json: whether `read` gets the answer's JSON, otherwise its bytes.

        Raises:
            OSError: if no address answers, or one refuses.
            ValueError: if the answer of the last address is no JSON, or of another form.
        """
        return self.fetch(f"{_API}{path}", lambda content: read(_parse_json(content) if is_json else content))

    def fetch(self, path: str, read: Callable[[bytes], Result]) -> Result:
        """Send `GET /PATH`, and read the answer. Errors are those of `get`."""
        failure: OSError | ValueError | None = None
        # Several threads may call it.
        addresses = self._addresses
        for number, address in enumerate(addresses):
            try:
                result = read(self._fetch_answer("GET", f"{address}/{path}", _REQUEST_S))
            except urllib.error.HTTPError as error:
                error.close()
                if error.code < 500:
                    raise
                failure = error
            except OSError as error:
                failure = error
            except http.client.HTTPException as error:
                failure = OSError(f"{address} sent an answer that is cut off, or not HTTP: {error!r}")
            except ValueError as error:
                failure = ValueError(f"{address} answered {path.removeprefix(_API)} with {error}")
            else:
                # The next request begins with the address that answered.
                self._addresses = [*addresses[number:], *addresses[:number]]
                return result
        raise failure or OSError("no address is given")

    def send(self, method: str, path: str, *, within_s: float = _REQUEST_S) -> None:
        """Carry out `METHOD /admin/v2/PATH`, which changes the cluster.

        Another address is tried only if one refuses connections, since otherwise a broker may have begun the request.

        Args:
            within_s: seconds that the change may take.

        Raises:
            AdminRefusedError: if it is refused.
            OSError: if no address answers in time. The change may have been carried out, unless none could be reached.
            ValueError: if the token is not valid.
        """
        failure = OSError("no address is given")
        for address in self._addresses:
            try:
                self._fetch_answer(method, f"{address}/{_API}{path}", within_s)
            except urllib.error.HTTPError as error:
                with error:
                    raise AdminRefusedError(error.code, _read_reason(error.read(1 << 20))) from None
            except urllib.error.URLError as error:
                failure = OSError(f"{address}: {reason_of(error)}")
                if not isinstance(error.reason, ConnectionRefusedError):
                    break
            except http.client.HTTPException as error:
                failure = OSError(f"{address} sent an answer that is cut off, or not HTTP: {error!r}")
                break
            else:
                return
        raise failure

    def _fetch_answer(self, method: str, url: str, within_s: float) -> bytes:
        token = self._credentials.current_token()
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        request = urllib.request.Request(url, headers=headers, method=method)
        with self._opener.open(request, timeout=within_s) as answer:
            return whole_body(answer)

    def namespaces(self) -> list[str]:
        """Read the names of all namespaces. Errors are those of `get`."""
        tenants = self.get("tenants", _names_of)
        return [name for tenant in tenants for name in self.get(f"namespaces/{quote(tenant)}", _names_of)]

    def isolation(self, cluster: str) -> dict[str, Any]:
        """Read the isolation policies of a cluster by name, in Pulsar's form. Errors are those of `get`."""
        return self._get_or_none(f"clusters/{quote(cluster)}/namespaceIsolationPolicies", _policies_of) or {}

    def anti_affinity_group(self, namespace: str) -> str | None:
        """Read the anti-affinity group of a namespace, None if it has none. Errors are those of `get`."""
        # A word without quotation marks, or nothing.
        return self._get_or_none(f"namespaces/{quote(namespace)}/antiAffinity", _group_of, is_json=False)

    def topics(self, namespace: str) -> list[str] | None:
        """List all topics of a namespace as the brokers do, None if it does not exist. Errors are those of `get`."""
        # Unlike the lists below `persistent/` this one never uses `pulsarResourcesExtendedClassName`.
        return self._get_or_none(f"namespaces/{quote(namespace)}/topics?mode=ALL&includeSystemTopic=true", _names_of)

    def creation_time(self, topic: str) -> datetime | None:
        """Read when a persistent topic was created, None if it does not exist. Errors are those of `get`.

        Any broker reads it from the metadata, without loading the topic.
        """
        tenant, namespace, name = topic.partition("://")[2].split("/", 2)
        path = f"persistent/{quote(tenant)}/{quote(namespace)}/{quote(name, safe='')}/internal-info"
        return self._get_or_none(path, _creation_of)

    def _get_or_none(self, path: str, read: Callable[[Any], Result], *, is_json: bool = True) -> Result | None:
        try:
            return self.get(path, read, is_json=is_json)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise

    def cluster(self) -> str:
        """Read the name of the cluster.

        Raises:
            OSError: if no address answers.
            InputError: if the answer does not name one.
        """
        names = [name for name in self.get("clusters", _names_of) if name != "global"]
        if len(names) != 1:
            raise InputError(f"there are {len(names)} clusters, {', '.join(sorted(names))}")
        return names[0]

    def brokers(self, cluster: str) -> list[str]:
        """List the ids of all brokers. Errors are those of `get`."""
        return self.get(f"brokers/{quote(cluster)}", _names_of)

    def boundaries(self, namespace: str) -> tuple[int, ...] | None:
        """Read the boundaries of a namespace's bundles, None if it does not exist. Errors are those of `get`."""
        return self._get_or_none(f"namespaces/{quote(namespace)}/bundles", _boundaries_of)


def _parse_json(content: bytes) -> Any:
    try:
        return json.loads(content)
    # Brackets may be nested deeper than Python can follow.
    except (ValueError, RecursionError):
        raise ValueError("no JSON") from None


def _read_reason(content: bytes) -> str:
    text = content.decode(errors="replace")
    with suppress(ValueError, RecursionError):
        answer = json.loads(text)
        text = str(answer.get("reason", text)) if isinstance(answer, dict) else text
    # Of an unexpected failure the reason goes on with a stack trace.
    return " ".join(text.partition("Stacktrace")[0].split())[:_REASON] or "no reason was given"


def _names_of(answer: Any) -> list[str]:
    if not isinstance(answer, list) or not all(isinstance(name, str) for name in answer):
        raise ValueError("no list of names")
    return answer


def _policies_of(answer: Any) -> dict[str, Any]:
    if not isinstance(answer, dict) or not all(isinstance(policy, dict) for policy in answer.values()):
        raise ValueError("no policies by name")
    return answer


def _group_of(content: bytes) -> str | None:
    group = content.decode(errors="replace").strip().strip('"')
    if forbidden_character(group, "<>{}") is not None:
        raise ValueError("no name of a group")
    return None if group in ("", "null") else group


def _creation_of(answer: Any) -> datetime:
    try:
        # Compare it as an instant, since each broker writes it in its own zone.
        return datetime.fromisoformat(answer["creationDate"]).astimezone(UTC)
    except (TypeError, KeyError, ValueError):
        raise ValueError("no date of creation") from None


def _boundaries_of(answer: Any) -> tuple[int, ...]:
    try:
        return tuple(int(end, 16) for end in answer["boundaries"])
    except (TypeError, KeyError, ValueError):
        raise ValueError("no boundaries of bundles") from None


class AdminSource(Source):
    """A source of the bundles of all namespaces.

    Args:
        lists_brokers: whether it reads the registered brokers as well. Their published data is not in the REST.
    """

    def __init__(self, rest: AdminRest, records: Queue[observing.Record], cluster: str, *, lists_brokers: bool) -> None:
        super().__init__("admin", records)
        self._rest, self._cluster, self._lists_brokers = rest, cluster, lists_brokers
        self._listed: set[str] = set()
        self._list_at = 0.0

    def look(self) -> None:
        """Read everything once, and wait for the next time."""
        if self._lists_brokers:
            self.put(observing.BrokerRegistry(dict.fromkeys(self._rest.brokers(self._cluster)), now_us()))
        if time.monotonic() >= self._list_at:
            self._listed.clear()
            self._list_at = time.monotonic() + _LIST_S
        for namespace in self._rest.namespaces():
            if namespace in self._listed or self.stopped.is_set():
                continue
            boundaries = self._rest.boundaries(namespace)
            # It is None if it was deleted since it was listed.
            if boundaries is not None:
                self.put(observing.Bundles(namespace, boundaries, now_us()))
                self._listed.add(namespace)
        self.works()
        self.stopped.wait(_POLL_S)


# The registry.


class RegistrySource(Source):
    """A source of the data that brokers publish in ZooKeeper, whenever one comes or goes.

    Args:
        servers: like `zk-0:2181,zk-1:2181/chroot`, with `tls://` before them for an encrypted connection.
    """

    def __init__(self, servers: str, records: Queue[observing.Record], credentials: Credentials) -> None:
        super().__init__("zookeeper", records)
        logger = logging.getLogger(f"{__name__}.kazoo")
        # Its complaints are reported as reasons, once each.
        logger.disabled = True
        options: dict[str, Any] = {}
        scheme, hosts = split_servers(servers)
        if scheme:
            files = {"ca": credentials.tls_ca, "certfile": credentials.tls_cert, "keyfile": credentials.tls_key}
            options = {"use_ssl": True, **files}
        # Its own retries never end, so a lost session is replaced. A server without contact to others is good enough.
        self._client = KazooClient(",".join(hosts), logger=logger, read_only=True, **options)
        self._changed = threading.Event()
        self._is_started = False

    def look(self) -> None:
        """Read all brokers, and wait until some come or go, or until it is time to read their published data."""
        if not self._is_started:
            self._client.start_async()
            self._is_started = True
        if not self._client.connected:
            self.stopped.wait(_RETRY_S)
            if not self._client.connected:
                raise OSError("there is no connection")
        self._changed.clear()
        brokers: dict[str, str | None] = {}
        for broker in self._client.get_children(_REGISTRY, watch=lambda _event: self._changed.set()):
            try:
                content, _ = self._client.get(f"{_REGISTRY}/{broker}")
            except NoNodeError:
                continue
            brokers[broker] = content.decode(errors="replace")
        self.put(observing.BrokerRegistry(brokers, now_us()))
        self.works()
        deadline = time.monotonic() + _POLL_S
        while not self._changed.wait(0.2) and time.monotonic() < deadline:
            if self.stopped.is_set() or not self._client.connected:
                return

    def close(self) -> None:
        """End the session."""
        self._client.stop()
        self._client.close()


# Topics.


def pulsar_client(service_url: str, credentials: Credentials) -> pulsar.Client:
    """Build a client of Pulsar that writes no log. It connects when it is first used."""
    options: dict[str, Any] = {
        "tls_trust_certs_file_path": credentials.tls_ca,
        "tls_certificate_file_path": credentials.tls_cert,
        "tls_private_key_file_path": credentials.tls_key,
    }
    if credentials.token_file is not None or credentials.token is not None:

        def token() -> str:
            # An exception in a thread of the client ends the process. A broker refuses the empty token.
            with suppress(OSError, ValueError):
                return credentials.current_token() or ""
            return ""

        options["authentication"] = pulsar.AuthenticationToken(token)
    scheme, servers = split_servers(service_url)
    return pulsar.Client(
        f"{scheme}{','.join(servers)}",
        operation_timeout_seconds=10,
        # Its default logger writes to stdout, which is for data.
        logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull),
        **{name: value for name, value in options.items() if value is not None},
    )


_SOURCE_OF: Mapping[str, observing.SourceName] = {
    STATE_TOPIC: "state",
    BROKER_LOAD_TOPIC: "loads",
    TOP_BUNDLES_TOPIC: "bundles",
}


class PulsarTopicSource(Source):
    """A source for a load manager's topic. The state topic is read from its beginning, others from now on."""

    def __init__(self, topic: str, client: pulsar.Client, records: Queue[observing.Record]) -> None:
        super().__init__(_SOURCE_OF[topic], records)
        self._topic, self._client = topic, client
        self._reader: pulsar.Reader | None = None
        self._after = pulsar.MessageId.earliest
        #: when the connection was last seen, of the monotonic clock
        self._connected_at = 0.0
        self._is_caught_up = False

    def look(self) -> None:
        """Read one message, or notice that there is none."""
        if self._reader is None:
            # The compacted topic is read. It does not keep an archive, and the records after compaction are valid.
            is_persistent = self._topic.startswith("persistent")
            self._reader = self._client.create_reader(self._topic, self._after, is_read_compacted=is_persistent)
            self._connected_at = time.monotonic()
            self.works()
        try:
            message = self._reader.read_next(_QUIET_MS)
        except pulsar.Timeout:
            # A reader connects again by itself, and until then looks like a topic that is quiet.
            if not self._reader.is_connected():
                # A reader does not always connect again. After the loss of a broker it was seen to wait for ever.
                if time.monotonic() - self._connected_at > _RECONNECT_S:
                    lost, self._reader = self._reader, None
                    lost.close()
                raise OSError("there is no connection") from None
            self._connected_at = time.monotonic()
            self.works()
            if self.source == "state" and (self._is_caught_up or not self._reader.has_message_available()):
                self._is_caught_up = True
                self.put(observing.CaughtUp(now_us()))
            return
        except pulsar.PulsarException:
            self._reader = None
            raise
        self._connected_at = time.monotonic()
        self._after = message.message_id()
        self.put(self._record(message))

    def _record(self, message: pulsar.Message) -> observing.Record:
        key, text, ts_us = message.partition_key(), message.data().decode(errors="replace"), message.publish_timestamp()
        ts_us *= 1_000
        if self.source == "state":
            position = message.message_id()
            return observing.StateRecord(
                key, text, ts_us, (position.ledger_id(), position.entry_id(), position.batch_index())
            )
        if self.source == "loads":
            return observing.BrokerReport(key, text, ts_us)
        return observing.TopBundles(text, ts_us, key)
