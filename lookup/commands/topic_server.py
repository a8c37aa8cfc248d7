"""Ask a decision server for topics, labels and properties, in the place of a catalog's file."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from lookup.errors import ArgumentError, InputError, NotFoundError, PolicyError, PulsarLookupError, StateError
from lookup.model.catalog import Selector, TopicEntry
from lookup.model.names import url_problem
from lookup.topics.catalog.pairs import checked_keys
from lookup.topics.listing import ListRequest
from lookup.topics.listing.rest import (
    GetLabels,
    GetProperties,
    Operation,
    RemoveLabels,
    RemoveProperty,
    SetLabels,
    SetProperties,
    print_call,
)

__all__ = ["TopicServer", "Topics"]

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
    """The part of a catalog that commands about labels and properties use."""

    def meant_by(self, topic: str) -> Sequence[TopicEntry]:
        """Return the entries that a name stands for, at least one."""

    def selected(self, namespace: str, selector: Selector) -> Sequence[str]:
        """Return the topics of a namespace that a selector selects, sorted."""

    def labels_in(self, namespace: str) -> Mapping[str, Sequence[str]]:
        """Return every key of a label in a namespace with its values, both sorted."""

    def set_labels(self, topic: str, labels: Mapping[str, str]) -> None:
        """Add labels to a topic's."""

    def remove_labels(self, topic: str, keys: Iterable[str] = (), *, everything: bool = False) -> None:
        """Remove labels of a topic, some or all."""

    def set_properties(self, topic: str, properties: Mapping[str, str]) -> None:
        """Add properties to a topic's."""

    def remove_properties(self, topic: str, keys: Iterable[str] = (), *, everything: bool = False) -> None:
        """Remove properties of a topic, some or all."""


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

    def listed(self, request: ListRequest, selector: Selector | None = None) -> Mapping[str, Any]:
        """Return the answer to a request for topics: `docs/decisions/bridge-protocol.md`."""
        body = {
            "namespace": request.namespace,
            "mode": request.mode,
            "properties": dict(request.properties or {}),
            "pattern": request.pattern,
            "selector": None if selector is None else ",".join(map(str, selector)),
            "includeSystemTopic": request.include_system,
            "topicsHash": request.topics_hash,
        }
        answer = self._ask("POST", "/list", json.dumps(body))
        if not isinstance(answer, dict) or not isinstance(answer.get("topics"), list):
            raise InputError(f"{self._url} answered no list of topics; is it a decision server?")
        return answer

    def meant_by(self, topic: str) -> Sequence[TopicEntry]:
        """Return the topic: of a partitioned one, labels and properties that all partitions have."""
        properties, labels = self._carry_out(GetProperties(topic)), self._carry_out(GetLabels(topic))
        return (TopicEntry(topic, properties, labels, is_loaded=False),)

    def selected(self, namespace: str, selector: Selector) -> Sequence[str]:
        """Return the topics of a namespace that a selector selects, sorted."""
        names: Sequence[str] = self.listed(ListRequest(namespace, "all"), selector)["topics"]
        return names

    def labels_in(self, namespace: str) -> Mapping[str, Sequence[str]]:
        """Return every key of a label in a namespace with its values, both sorted."""
        labels: Mapping[str, Sequence[str]] = self._ask("GET", f"/labels/{namespace}", None)
        return labels

    def set_labels(self, topic: str, labels: Mapping[str, str]) -> None:
        """Add labels to a topic's."""
        self._carry_out(SetLabels(topic, labels))

    def remove_labels(self, topic: str, keys: Iterable[str] = (), *, everything: bool = False) -> None:
        """Remove labels of a topic, some or all."""
        self._carry_out(RemoveLabels(topic, tuple(keys), everything))

    def set_properties(self, topic: str, properties: Mapping[str, str]) -> None:
        """Add properties to a topic's."""
        self._carry_out(SetProperties(topic, properties))

    def remove_properties(self, topic: str, keys: Iterable[str] = (), *, everything: bool = False) -> None:
        """Remove properties of a topic, some or all, a request for each."""
        removed = checked_keys(keys, everything=everything, what="properties")
        for key in self._carry_out(GetProperties(topic)) if removed is None else removed:
            self._carry_out(RemoveProperty(topic, key))

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
