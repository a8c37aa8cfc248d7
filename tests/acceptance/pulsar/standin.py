"""A stand-in for the decision server: answers brokers, keeps what they sent, and hangs or ends if a test wants it."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Collection
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["REST_S", "Answer", "StandIn", "always", "same_rack"]

#: With a 503 the stand-in says that it wants no questions for this long, s: more than a lookup takes on a busy machine.
REST_S = 4

#: From a question and the brokers of its view, by id: a status, and a body that is sent as it is if it is a text.
Answer = Callable[[dict[str, Any], dict[str, Any]], tuple[int, Any]]


def same_rack(question: dict[str, Any], brokers: dict[str, Any]) -> tuple[int, Any]:
    """Choose the first candidate in the client's rack; decline without one."""
    rack = question["properties"].get("rack") if question["properties"] else None
    chosen = next(
        (b for b in question["candidates"] if brokers[b]["lookupData"]["properties"].get("lookup.rack") == rack), None
    )
    return HTTPStatus.OK, {"decision": "1", "broker": chosen, "propensity": 1.0, "policy": "same-rack"}


def always(broker: str | None) -> Answer:
    """Build the answer that names one broker, whatever was asked."""
    return lambda question, brokers: (HTTPStatus.OK, {"decision": "1", "broker": broker, "policy": "always"})


class StandIn:
    """A server on a free port of its own; started again, it has the same port and knows no view any more."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.answer: Answer = same_rack
        #: lookups that were recorded, each with the `broker` that was asked
        self.lookups: list[dict[str, Any]] = []
        #: bodies of `/decide` that were answered, each with the brokers of its view
        self.questions: list[dict[str, Any]] = []
        #: by broker, what it has lost since it started
        self.dropped: dict[str, int] = {}
        #: by broker and start, the numbers of its lookups in the order in which they came
        self.numbers: dict[tuple[str, str], list[int]] = {}
        #: lookups of batches that were not taken, each with the `broker` that was asked
        self.refused: list[dict[str, Any]] = []
        #: how often `/ready/records` was answered with an error
        self.refused_ready = 0
        self._is_ready, self._status = True, HTTPStatus.OK
        self._views: dict[str, Any] = {}
        self._connections: set[socket.socket] = set()
        self._flows = threading.Event()
        self._flows.set()
        self._port = 0
        self.start()

    @property
    def url(self) -> str:
        """Return the address to ask."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Listen, on the same port as before."""
        self._views.clear()
        self._http = _Server(("127.0.0.1", self._port), _handler_of(self))
        self._port = self._http.server_port
        threading.Thread(target=self._http.serve_forever, args=(0.05,), name="stand-in", daemon=True).start()

    def stop(self) -> None:
        """Refuse connections and break those that there are."""
        self._http.shutdown()
        self._http.server_close()
        for connection in list(self._connections):
            # Closing it would wait for the thread that reads from it, and that goes on answering.
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def hang(self) -> None:
        """Take requests from now on and answer none."""
        self._flows.clear()

    def refuse_batches(self, status: HTTPStatus, *, is_ready: bool = False) -> None:
        """Answer every batch of lookups from now on with a status, and say that it takes some, or that it does not."""
        self._status, self._is_ready = status, is_ready

    def go_on(self) -> None:
        """Answer again and take batches."""
        self._is_ready, self._status = True, HTTPStatus.OK
        self._flows.set()

    def of(self, topics: Collection[str]) -> list[dict[str, Any]]:
        """Return the lookups of some topics: brokers look up topics of their own in every namespace."""
        return [lookup for lookup in self.lookups if lookup["topic"] in topics]

    def asked_about(self, *topics: str) -> list[dict[str, Any]]:
        """Return the questions about some topics: brokers ask about topics of their own as well."""
        return [question for question in self.questions if question["topic"] in topics]

    def answered(self, path: str, token: str | None, body: dict[str, Any]) -> tuple[int, Any]:
        """Answer a request, as the protocol wants it."""
        self._flows.wait()
        if path == "/ready/records":
            if not self._is_ready:
                self.refused_ready += 1
                return HTTPStatus.SERVICE_UNAVAILABLE, {"status": "failing", "reason": "a full disk"}
            return HTTPStatus.OK, {"status": "ok"}
        if token != f"Bearer {self.token}":
            return HTTPStatus.UNAUTHORIZED, {"error": "a wrong token"}
        if path == "/record":
            lookups = [{"broker": body["broker"], **lookup} for lookup in body["lookups"]]
            if self._status is not HTTPStatus.OK:
                self.refused.extend(lookups)
                return self._status, {"error": "refused"}
            self.numbers.setdefault((body["broker"], body["start"]), []).extend(row["number"] for row in lookups)
            self.dropped[body["broker"]] = body["dropped"]
            self.lookups.extend(lookups)
            return HTTPStatus.OK, {"accepted": len(body["lookups"]), "refused": 0}
        view = body["view"]
        if "brokers" in view:
            self._views[view["id"]] = view["brokers"]
        brokers = self._views.get(view["id"])
        if brokers is None:
            return HTTPStatus.CONFLICT, {"error": "an unknown view"}
        self.questions.append({**body, "brokers": brokers})
        return self.answer(body, brokers)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 100

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a broker that waits no longer, or of a connection that `stop` has broken."""


def _handler_of(standin: StandIn) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            standin._connections.add(self.connection)

        def finish(self) -> None:
            standin._connections.discard(self.connection)
            super().finish()

        def do_GET(self) -> None:
            self.reply(*standin.answered(self.path, None, {}))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.reply(*standin.answered(self.path, self.headers["Authorization"], body))

        def reply(self, status: int, body: Any) -> None:
            data = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            if status == HTTPStatus.SERVICE_UNAVAILABLE:
                self.send_header("Retry-After", str(REST_S))
            self.end_headers()
            self.wfile.write(data)

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            pass  # not into the output of the tests

    return Handler
