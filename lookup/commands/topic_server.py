"""Ask a decision server for topics, labels and properties, in the place of a catalog's file."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from lookup.errors import ArgumentError, InputError, NotFoundError, PolicyError, PulsarLookupError, StateError
from lookup.model.names import url_problem
from lookup.topics.catalog import Catalog
from lookup.topics.listing import ListRequest, TopicQuery
from lookup.topics.listing.rest import GetPairs, Operation, PairKind, RemovePairs, SetPairs, print_call

__all__ = ["CatalogTopics", "TopicServer", "Topics"]

#: Seconds for one request.
_REQUEST_S = 30.0
_ERRORS: Mapping[int, type[PulsarLookupError]] = {
    400: ArgumentError,
    404: NotFoundError,
    413: ArgumentError,
    500: PolicyError,
    503: StateError,
}


class Topics(Protocol):
    """Topics that commands about labels and properties read and write: of a catalog, or of a server."""

    def read(self, kind: PairKind, topic: str) -> Mapping[str, str]:
        """Return the labels or properties of a topic."""

    def write(self, kind: PairKind, topic: str, pairs: Mapping[str, str]) -> None:
        """Add labels or properties to a topic's."""

    def remove(self, kind: PairKind, topic: str, keys: Sequence[str], *, everything: bool) -> None:
        """Remove labels or properties of a topic, some or all."""

    def labels_in(self, namespace: str) -> Mapping[str, Sequence[str]]:
        """Return every key of a label in a namespace with its values, both sorted."""

    def selected(self, query: TopicQuery) -> Sequence[str]:
        """Return the topics of a query by labels, sorted."""


@dataclass(frozen=True, slots=True)
class CatalogTopics:
    """The topics of a catalog; errors are those of the catalog."""

    catalog: Catalog

    def read(self, kind: PairKind, topic: str) -> Mapping[str, str]:
        """Return the labels or properties of a topic: of a partitioned one, those that all partitions have."""
        return kind.read(self.catalog.meant_by(topic)[0])

    def write(self, kind: PairKind, topic: str, pairs: Mapping[str, str]) -> None:
        """Add labels or properties to a topic's."""
        kind.write(self.catalog, topic, pairs)

    def remove(self, kind: PairKind, topic: str, keys: Sequence[str], *, everything: bool) -> None:
        """Remove labels or properties of a topic, some or all."""
        kind.remove(self.catalog, topic, keys, everything)

    def labels_in(self, namespace: str) -> Mapping[str, Sequence[str]]:
        """Return every key of a label in a namespace with its values, both sorted."""
        return self.catalog.labels_in(namespace)

    def selected(self, query: TopicQuery) -> Sequence[str]:
        """Return the topics of a query by labels, sorted."""
        return query.narrow(self.catalog.selected(query.namespace, query.selector))


class TopicServer:
    """The topics of a decision server; satisfies `Topics`.

    Every method raises the error that a catalog would, and InputError if the server cannot be asked.

    Args:
        url: of the server, such as `http://127.0.0.1:8900`.
        token_file: path of a file with the server's token; None: it wants none.

    Raises:
        ArgumentError: if the URL is none.
        InputError: if the token cannot be read.
    """

    def __init__(self, url: str, token_file: str | None = None) -> None:
        problem = url_problem(url, "http", "https")
        if problem is not None:
            raise ArgumentError(f"the server's URL: {problem}")
        self._url = url.rstrip("/")
        self._headers = {"Content-Type": "application/json"}
        if token_file is not None:
            try:
                token = Path(token_file).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise InputError(f"the token cannot be read from {token_file}: {error}") from None
            self._headers["Authorization"] = f"Bearer {token}"

    def listed(self, request: ListRequest) -> Mapping[str, Any]:
        """Return the answer to a request for topics: `docs/decisions/bridge-protocol.md`."""
        body = {
            "namespace": request.namespace,
            "mode": request.mode,
            "properties": dict(request.properties),
            "pattern": request.pattern,
            "selector": ",".join(map(str, request.selector)) or None,
            "includeSystemTopic": request.include_system,
            "topicsHash": request.topics_hash,
        }
        answer = self._ask("POST", "/list", json.dumps(body))
        if not isinstance(answer, dict) or not isinstance(answer.get("topics"), list):
            raise InputError(f"{self._url} answered no list of topics; is it a decision server?")
        return answer

    def selected(self, query: TopicQuery) -> Sequence[str]:
        """Return the topics of a query by labels, sorted."""
        names: Sequence[str] = self.listed(ListRequest(query.namespace, query.mode, selector=query.selector))["topics"]
        return names

    def labels_in(self, namespace: str) -> Mapping[str, Sequence[str]]:
        """Return every key of a label in a namespace with its values, both sorted."""
        labels: Mapping[str, Sequence[str]] = self._ask("GET", f"/labels/{namespace}", None)
        return labels

    def read(self, kind: PairKind, topic: str) -> Mapping[str, str]:
        """Return the labels or properties of a topic: of a partitioned one, those that all partitions have."""
        pairs: Mapping[str, str] = self._carry_out(GetPairs(kind, topic))
        return pairs

    def write(self, kind: PairKind, topic: str, pairs: Mapping[str, str]) -> None:
        """Add labels or properties to a topic's."""
        self._carry_out(SetPairs(kind, topic, pairs))

    def remove(self, kind: PairKind, topic: str, keys: Sequence[str], *, everything: bool) -> None:
        """Remove labels or properties of a topic, some or all; by several requests if one has room for one key only."""
        if kind.removes_many:
            self._carry_out(RemovePairs(kind, topic, tuple(keys), everything))
            return
        for key in self.read(kind, topic) if everything else keys:
            self._carry_out(RemovePairs(kind, topic, (key,)))

    def _carry_out(self, operation: Operation) -> Any:
        call = print_call(operation)
        return self._ask(call.method, call.target, call.body)

    def _ask(self, method: str, target: str, body: str | None) -> Any:
        data = None if body is None else body.encode()
        request = urllib.request.Request(f"{self._url}{target}", data, self._headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=_REQUEST_S) as answer:
                text = answer.read()
            return json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            with error:
                raise _refusal(error.code, error.read(), self._url) from None
        except OSError as error:
            raise InputError(f"{self._url} cannot be asked: {getattr(error, 'reason', error)}") from None
        except ValueError:
            raise InputError(f"{self._url} answered no JSON; is it a decision server?") from None


def _refusal(status: int, body: bytes, url: str) -> PulsarLookupError:
    """Return the error that a server's answer stands for."""
    try:
        sentence = json.loads(body)["error"]
    except (ValueError, TypeError, KeyError):
        return InputError(f"{url} answered with status {status}; is it a decision server?")
    if status == 401:
        return InputError(f"{url}: {sentence}")
    return _ERRORS.get(status, InputError)(str(sentence))
