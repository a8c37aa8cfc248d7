"""A server that gives every request the same bytes, for tests of clients whose server is another, or is killed."""

from __future__ import annotations

import socketserver
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

__all__ = ["answering", "http_answer"]


def http_answer(body: str, status: int = 200, missing: int = 0) -> bytes:
    """Return an answer of HTTP, whose head promises some more bytes than there are."""
    length = len(body.encode()) + missing
    return f"HTTP/1.1 {status} Status\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}".encode()


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
