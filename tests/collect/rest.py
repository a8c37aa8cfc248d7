"""A server of the admin REST on a free port, with answers that tests set."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from typing import Any

from tests.answering import http_answer, serving

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

    def __init__(self) -> None:
        self.url = ""
        #: a number is a status
        self.answers = dict(ANSWERS)
        self.tokens: set[str | None] = set()
        self.changes: list[str] = []

    def answer(self, method: str, target: str, headers: Message) -> bytes:
        """Answer by the path behind the version of the API; a change by its path without parameters."""
        path = target.removeprefix("/admin/v2/")
        if method == "GET":
            self.tokens.add(headers.get("Authorization"))
            answer = self.answers.get(path, 404)
        else:
            self.changes.append(f"{method} {path}")
            answer = self.answers.get(path.partition("?")[0], 404)
        return http_answer("", answer) if isinstance(answer, int) else http_answer(json.dumps(answer))


@contextmanager
def running_rest() -> Iterator[Rest]:
    """Answer until the block ends."""
    rest = Rest()
    with serving(rest.answer) as rest.url:
        yield rest
