"""Servers of HTTP on this machine: one that answers what a function says, and one that always sends the same bytes."""

from __future__ import annotations

import socketserver
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

__all__ = ["answering", "http_answer", "serving"]

#: From method, path and headers to the bytes of an answer; None closes the connection without one.
Answer = Callable[[str, str, Message], bytes | None]


def http_answer(body: str, status: int = 200, missing: int = 0, location: str = "") -> bytes:
    """Return an answer of HTTP, whose head promises some more bytes than there are."""
    length = len(body.encode()) + missing
    to = f"Location: {location}\r\n" if location else ""
    return f"HTTP/1.1 {status} Status\r\nContent-Length: {length}\r\n{to}Connection: close\r\n\r\n{body}".encode()


@contextmanager
def serving(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Answer requests until the block ends, each in a thread of its own; the value is the address."""

    class Handler(BaseHTTPRequestHandler):
        def respond(self) -> None:
            """Send the answer; whoever asked may have ended meanwhile."""
            if (data := answer(self.command, self.path, self.headers)) is not None:
                with suppress(ConnectionError):
                    self.wfile.write(data)

        do_GET = do_PUT = do_POST = do_DELETE = respond  # noqa: N815  names that the base class calls

        def log_message(self, *_: Any) -> None:
            """Keep requests out of the output of tests."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Say nothing of a client that was killed."""

    with Server(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def answering(answer: bytes, port: int = 0) -> Iterator[int]:
    """Answer until the block ends, at a port or at any; the value is the port, on this machine."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            """Read a request, so that closing does not reset the connection, and answer."""
            length = 0
            while (line := self.rfile.readline().strip().lower()) != b"":
                if line.startswith(b"content-length:"):
                    length = int(line.partition(b":")[2])
            self.rfile.read(length)
            self.wfile.write(answer)

    class Server(socketserver.ThreadingTCPServer):
        # A server that was there a moment ago has left connections behind.
        allow_reuse_address = True

    with Server(("127.0.0.1", port), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
