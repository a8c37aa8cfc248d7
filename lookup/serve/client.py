"""Ask a decision server for topics, labels and properties, and watch topics there, in the place of a catalog's file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPException, HTTPResponse
from queue import Empty, Queue
from threading import Event, Thread
from typing import Any
from urllib.parse import urlencode
from urllib.request import HTTPHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from lookup.collect.answers import whole_body
from lookup.errors import (
    ArgumentError,
    InputError,
    NotFoundError,
    NotSupportedError,
    PolicyError,
    PulsarLookupError,
    StateError,
)
from lookup.model.documents import secret_in
from lookup.model.names import url_problem
from lookup.model.quoting import printable, shown
from lookup.topics.catalog.operations import CatalogOperation, GetPairs, SetPairs
from lookup.topics.listing import TopicQuery, topics_hash
from lookup.topics.watching import Message, Trouble, message_in

__all__ = ["TopicServer", "Watching"]

#: Seconds for one request.
_REQUEST_S = 30.0
#: Seconds without a sign of life after which a watch is lost. A server sends one every ten.
_SILENT_S = 30.0
_ERRORS: Mapping[int, type[PulsarLookupError]] = {
    400: ArgumentError,
    401: InputError,
    404: NotFoundError,
    413: ArgumentError,
    500: PolicyError,
    501: NotSupportedError,
    503: StateError,
}


class _List(BaseModel):
    """The form of a list. Any other answer does not come from a decision server."""

    model_config = ConfigDict(strict=True, alias_generator=to_camel)

    topics: list[str]
    topics_hash: str
    changed: bool
    reads_properties: bool


_LIST = TypeAdapter(_List)
_PAIRS = TypeAdapter(dict[str, str])


class TopicServer:
    """The topics of a decision server.

    Every method raises the error that a catalog would, and InputError if the server cannot be reached.

    Args:
        url: URL of the server, such as `http://127.0.0.1:8900`.
        token_file: path of a file with the server's token, None if it does not need one.

    Raises:
        ArgumentError: if the URL is invalid.
        InputError: if the token cannot be read.
    """

    def __init__(self, url: str, token_file: str | None = None) -> None:
        problem = url_problem(url, "http", "https") or ("names several servers; give one" if "," in url else None)
        if problem is not None:
            raise ArgumentError(f"the server's URL: {problem}")
        self.url = url.rstrip("/ ")
        self._headers = {"Content-Type": "application/json"}
        # Redirects are not followed, since our servers never redirect their clients.
        self._opener = OpenerDirector()
        for handler in (ProxyHandler(), HTTPHandler(), HTTPSHandler()):
            self._opener.add_handler(handler)
        if token_file is not None:
            try:
                token = secret_in(token_file)
            except OSError as error:
                raise InputError(f"the token cannot be read from {token_file}: {error.strerror}") from None
            except ValueError as error:
                raise InputError(f"the token cannot be read: {token_file} {error}") from None
            if re.fullmatch("[ -~]+", token) is None:
                raise InputError(f"the token in {token_file} should be one line of ASCII, and is not")
            self._headers["Authorization"] = f"Bearer {token}"

    def list_topics(self, request: TopicQuery) -> Mapping[str, Any]:
        """Send a request for topics and return the answer, as in `docs/bridge-protocol.md`."""
        body = {
            "namespace": request.namespace,
            "mode": request.mode,
            "properties": dict(request.properties),
            "pattern": request.pattern,
            "selector": ",".join(map(str, request.selector)) or None,
            "includeSystemTopic": request.include_system,
            "topicsHash": request.topics_hash,
        }
        answer: _List = self._ask("POST", "/list", json.dumps(body), _LIST)
        # The whole list, or the known one, since clients would trust a list that lacks topics.
        hashed = topics_hash(answer.topics) if answer.changed else request.topics_hash
        if hashed != answer.topics_hash:
            raise self._build_server_error("a list that does not fit its hash")
        return answer.model_dump(by_alias=True)

    def apply(self, operation: CatalogOperation) -> Mapping[str, str] | None:
        """Apply an operation. Return the labels or properties that it reads, None if it does not read any."""
        body: dict[str, Any] = {"kind": operation.kind, "topic": operation.topic}
        if isinstance(operation, SetPairs):
            body["set"] = dict(operation.pairs)
        elif not isinstance(operation, GetPairs):
            body |= {"removeAll": True} if operation.everything else {"remove": operation.keys}
        form = _PAIRS if isinstance(operation, GetPairs) else None
        pairs: Mapping[str, str] | None = self._ask("POST", "/pairs", json.dumps(body), form)
        return pairs

    def watch(self, query: TopicQuery, mark: str = "") -> Iterator[tuple[str, Message | None]]:
        """Yield the messages about a query's topics, each with its mark for resuming, until the connection ends.

        Args:
            mark: mark of the last message of an earlier connection, empty if there is none.
        """
        fields = [
            ("namespace", query.namespace),
            ("mode", query.mode),
            *([] if query.pattern is None else [("pattern", query.pattern)]),
            *([("selector", ",".join(map(str, query.selector)))] if query.selector else []),
            *(("property", f"{key}={value}") for key, value in sorted(query.properties.items())),
        ]
        headers = self._headers | ({"Last-Event-ID": mark} if mark else {})
        request = Request(f"{self.url}/watch?{urlencode(fields)}", headers=headers)
        with self._answer(request, _SILENT_S) as answer:
            if answer.status != 200:
                raise self._read_refusal(answer.status, whole_body(answer))
            event: dict[str, str] = {}
            while line := answer.readline():
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name:
                    event[name] = value
                    continue
                mark, message = event.get("id", mark), None
                if "data" in event:
                    message = message_in(event.get("event", ""), mark, event["data"])
                event = {}
                yield mark, message

    def _ask(self, method: str, target: str, body: str | None, form: TypeAdapter[Any] | None) -> Any:
        data = None if body is None else body.encode()
        request = Request(f"{self.url}{target}", data, self._headers, method=method)
        with self._answer(request, _REQUEST_S) as answer:
            status, text = answer.status, whole_body(answer)
        if status == 204 and form is None and not text:
            return None
        if status == 200 and form is not None:
            try:
                return form.validate_json(text, strict=True)
            except ValidationError:
                raise self._build_status_error(status, text) from None
        raise self._read_refusal(status, text)

    @contextmanager
    def _answer(self, request: Request, timeout_s: float) -> Iterator[HTTPResponse]:
        """Open an answer. Errors while it is read become a sentence about the server."""
        try:
            with self._opener.open(request, timeout=timeout_s) as answer:
                yield answer
        except OSError as error:
            raise InputError(f"{self.url} cannot be asked: {getattr(error, 'reason', error)}") from None
        except HTTPException as error:
            raise self._build_server_error(f"with an answer that is cut off, or not HTTP: {error!r}") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._build_server_error(f"with {error}") from None

    def _read_refusal(self, status: int, text: bytes) -> PulsarLookupError:
        try:
            return _ERRORS[status](printable(_PAIRS.validate_json(text, strict=True)["error"]))
        except (ValidationError, KeyError):
            return self._build_status_error(status, text)

    def _build_status_error(self, status: int, text: bytes) -> InputError:
        return self._build_server_error(f"with status {status} and {shown(text[:60].decode(errors='replace'))}")

    def _build_server_error(self, problem: str) -> InputError:
        return InputError(f"{self.url} answered {problem}; is it a decision server?")


class Watching:
    """A watch of a server in its own thread, which reconnects when it is lost. Use it as a context.

    Args:
        retry_s: seconds before a lost server is tried again.
    """

    def __init__(self, server: TopicServer, query: TopicQuery, *, retry_s: float = 1.0) -> None:
        self._server, self._query, self._retry_s = server, query, retry_s
        # If it is full, reading stops, and the server cuts the connection off. The missed messages come later at once.
        self._news: Queue[Message | PulsarLookupError] = Queue(1_000)
        self._is_closed = Event()
        Thread(target=self._follow, name=f"watch {server.url}", daemon=True).start()

    def __enter__(self) -> Watching:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the thread end, with the next sign of life of the server."""
        self._is_closed.set()

    def messages(self, wait_s: float | None = 0.0) -> Iterator[Message]:
        """Yield the messages that arrived.

        Args:
            wait_s: seconds to wait for the first message, None for an unlimited time.

        Raises:
            ArgumentError, NotSupportedError: if the server permanently refuses the watch.
        """
        with suppress(Empty):
            news = self._news.get(timeout=wait_s) if wait_s else self._news.get(block=wait_s is None)
            while True:
                if isinstance(news, PulsarLookupError):
                    raise news
                yield news
                news = self._news.get_nowait()

    def _follow(self) -> None:
        server, mark = self._server, ""
        while not self._is_closed.is_set():
            try:
                for last, message in server.watch(self._query, mark):
                    mark = last
                    if self._is_closed.is_set():
                        return
                    if message is not None:
                        self._news.put(message)
                lost = f"{server.url} ended the watch"
            except (ArgumentError, NotSupportedError) as error:
                self._news.put(error)
                return
            except PulsarLookupError as error:
                lost = str(error)
            except Exception as error:  # noqa: BLE001  a thread that ends would leave its list for ever
                lost = f"{server.url}: {type(error).__name__}: {error}"
            self._news.put(Trouble(lost))
            self._is_closed.wait(self._retry_s)
