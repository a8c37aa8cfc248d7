"""A server of the admin REST on a free port, with answers that tests set."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

__all__ = ["Rest", "running_rest"]

ANSWERS: dict[str, Any] = {
    "clusters": ["east", "global"],
    "brokers/east": ["a:8080", "b:8080"],
    "tenants": ["public"],
    "namespaces/public": ["public/default"],
    "namespaces/public/default/bundles": {"boundaries": ["0x00000000", "0x80000000", "0xffffffff"], "numBundles": 2},
}


class Rest:
    """What the server answers by path, and the tokens and the changes it was sent."""

    def __init__(self, url: str) -> None:
        self.url = url
        #: a number is a status
        self.answers = dict(ANSWERS)
        self.tokens: set[str | None] = set()
        self.changes: list[str] = []


@contextmanager
def running_rest() -> Iterator[Rest]:
    """Answer until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        """Answers from `rest`."""

        def do_GET(self) -> None:
            """Answer by the path behind the version of the API."""
            rest.tokens.add(self.headers.get("Authorization"))
            answer = rest.answers.get(self.path.removeprefix("/admin/v2/"), 404)
            self.send_response(answer if isinstance(answer, int) else 200)
            self.end_headers()
            self.wfile.write(b"" if isinstance(answer, int) else json.dumps(answer).encode())

        def do_PUT(self) -> None:
            """Answer with a status by the path without its parameters."""
            path = self.path.removeprefix("/admin/v2/")
            rest.changes.append(f"{self.command} {path}")
            self.send_response(rest.answers.get(path.partition("?")[0], 404))
            self.end_headers()

        def do_POST(self) -> None:
            """Answer as to PUT."""
            self.do_PUT()

        def log_message(self, *_: Any) -> None:
            """Keep requests out of the output of tests."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        rest = Rest(f"http://127.0.0.1:{server.server_address[1]}")
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield rest
        finally:
            server.shutdown()
            thread.join()
