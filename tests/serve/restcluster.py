"""The part of a cluster's admin REST that lists topics, over HTTP, for tests of what follows it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote, urlsplit

from tests.answering import http_answer, serving

__all__ = ["RestCluster", "rest_cluster"]


class RestCluster:
    """Namespaces of the tenant `public` with their topics, which tests change."""

    def __init__(self) -> None:
        self.url = ""
        #: namespace -> topics; one that is not here is answered 404
        self.topics: dict[str, list[str]] = {}
        #: topics of which it was asked when they were created
        self.asked_created: list[str] = []
        #: when topics were created, if not at the same time as all others
        self.created: dict[str, str] = {}
        #: status of every answer in place of 200, and what is sent in place of a list
        self.status: int | None = None
        self.junk: str | None = None
        #: what is cut off in its answers: `tenants`, `namespaces` or `topics`
        self.cut: str | None = None
        #: while it is there, each list of topics waits for it once it was made
        self.held: threading.Event | None = None
        #: namespaces whose topics were asked for
        self.asked: list[str] = []

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Hold back every list of topics that is asked for in the block, until its end."""
        self.held = held = threading.Event()
        try:
            yield
        finally:
            self.held = None
            held.set()

    def answer(self, path: str) -> tuple[int, str]:
        """Return status and body of an answer."""
        if self.status is not None:
            return self.status, "{}"
        steps = unquote(path).removeprefix("/admin/v2/").split("/")
        if steps == ["tenants"]:
            return 200, '["public"]'
        if steps == ["namespaces", "public"]:
            return 200, json.dumps(sorted(self.topics))
        names = self.topics.get("/".join(steps[1:3]))
        if steps[-1] == "internal-info":
            self.asked_created.append(steps[-2])
            topic = f"{steps[0]}://{'/'.join(steps[1:-1])}"
            created = self.created.get(topic, "2026-11-28T12:00:00.000Z")
            is_there = names is not None and topic in names
            return (200, json.dumps({"version": 1, "creationDate": created})) if is_there else (404, "{}")
        if names is None or steps[3:] != ["topics"]:
            return 404, '{"reason": "no such namespace"}'
        return 200, self.junk or json.dumps(names)

    def respond(self, _method: str, target: str, _headers: object) -> bytes:
        """Send what `answer` returns, after a list that is held back was let go."""
        path = urlsplit(target).path
        (status, body), held = self.answer(path), self.held
        parts = path.removeprefix("/admin/v2/").split("/")
        if parts[-1] == "topics":
            self.asked.append(unquote("/".join(parts[1:-1])))
            if held is not None:
                held.wait()
        what = parts[0] if len(parts) < 3 else parts[-1]
        return http_answer(body, status, missing=what == self.cut)


@contextmanager
def rest_cluster() -> Iterator[RestCluster]:
    """Serve a cluster without namespaces on a free port."""
    cluster = RestCluster()
    with serving(cluster.respond) as cluster.url:
        yield cluster
