"""Ask a decision server for topics, labels and properties, in the place of a catalog's file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, Protocol
from urllib.request import OpenerDirector, ProxyHandler, Request

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from lookup.collect.answers import patient_handlers, whole_body
from lookup.errors import (
    ArgumentError,
    ConflictError,
    InputError,
    NotFoundError,
    PolicyError,
    PulsarLookupError,
    StateError,
)
from lookup.model.documents import secret_in
from lookup.model.names import url_problem
from lookup.model.quoting import printable, shown
from lookup.topics.catalog import Catalog
from lookup.topics.catalog.operations import CatalogOperation, GetPairs, RemovePairs, apply
from lookup.topics.listing import ListRequest, TopicQuery, topics_hash
from lookup.topics.listing.rest import FORMS, print_call

__all__ = ["CatalogTopics", "TopicServer", "Topics"]

#: Seconds for one request.
_REQUEST_S = 30.0
_ERRORS: Mapping[int, type[PulsarLookupError]] = {
    400: ArgumentError,
    401: InputError,
    404: NotFoundError,
    409: ConflictError,
    413: ArgumentError,
    500: PolicyError,
    503: StateError,
}


class _List(BaseModel):
    """The form of a list; any other answer is not of a decision server."""

    model_config = ConfigDict(strict=True, alias_generator=to_camel)

    topics: list[str]
    topics_hash: str
    filtered: bool
    changed: bool
    reads_properties: bool


_LIST = TypeAdapter(_List)
_PAIRS = TypeAdapter(dict[str, str])
_VALUES = TypeAdapter(dict[str, list[str]])


class Topics(Protocol):
    """Topics that commands read and write: of a catalog, or of a server."""

    def apply(self, operation: CatalogOperation) -> Mapping[str, str] | None:
        """Apply an operation; return the labels or properties that it asks for, None if it asks for none."""

    def labels_in(self, namespace: str) -> Mapping[str, Sequence[str]]:
        """Return every key of a label in a namespace with its values, both sorted."""

    def selected(self, query: TopicQuery) -> Sequence[str]:
        """Return the topics of a query by labels, sorted."""


@dataclass(frozen=True, slots=True)
class CatalogTopics:
    """The topics of a catalog; errors are those of the catalog."""

    catalog: Catalog

    def apply(self, operation: CatalogOperation) -> Mapping[str, str] | None:
        """Apply an operation; return the labels or properties that it asks for, None if it asks for none."""
        return apply(operation, self.catalog)

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
        self._url = url.rstrip("/ ")
        self._headers = {"Content-Type": "application/json"}
        # No server of ours sends its clients elsewhere, and the token is for it alone.
        self._opener = OpenerDirector()
        for handler in (ProxyHandler(), *patient_handlers()):
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

    def listed(self, request: ListRequest) -> Mapping[str, Any]:
        """Return the answer to a request for topics: `docs/decisions/bridge-protocol.md`."""
        return self._listed("/list", request)

    def selected(self, query: TopicQuery) -> Sequence[str]:
        """Return the topics of a query by labels, sorted."""
        request = ListRequest(query.namespace, query.mode, selector=query.selector)
        names: Sequence[str] = self._listed("/labels", request)["topics"]
        return names

    def labels_in(self, namespace: str) -> Mapping[str, Sequence[str]]:
        """Return every key of a label in a namespace with its values, both sorted."""
        labels: Mapping[str, Sequence[str]] = self._ask("GET", f"/labels/{namespace}", None, _VALUES)
        return labels

    def apply(self, operation: CatalogOperation) -> Mapping[str, str] | None:
        """Apply an operation; return the labels or properties that it asks for, None if it asks for none."""
        operations = [operation]
        if isinstance(operation, RemovePairs) and not FORMS[operation.kind].removes_many:
            # One request has room for one key.
            keys = operation.keys
            if operation.everything:
                keys = tuple(self.apply(GetPairs(operation.kind, operation.topic)) or ())
            operations = [RemovePairs(operation.kind, operation.topic, (key,)) for key in keys]
        form = _PAIRS if isinstance(operation, GetPairs) else None
        pairs: Mapping[str, str] | None = None
        for call in map(print_call, operations):
            pairs = self._ask(call.method, call.target, call.body, form)
        return pairs

    def _listed(self, path: str, request: ListRequest) -> Mapping[str, Any]:
        body = {
            "namespace": request.namespace,
            "mode": request.mode,
            "properties": dict(request.properties),
            "pattern": request.pattern,
            "selector": ",".join(map(str, request.selector)) or None,
            "includeSystemTopic": request.include_system,
            "topicsHash": request.topics_hash,
        }
        answer: _List = self._ask("POST", path, json.dumps(body), _LIST)
        # Whole, or the one that is known: a list that lacks topics would be believed.
        hashed = topics_hash(answer.topics) if answer.changed else request.topics_hash
        if hashed != answer.topics_hash:
            raise self._stranger("a list that does not fit its hash")
        return answer.model_dump(by_alias=True)

    def _ask(self, method: str, target: str, body: str | None, form: TypeAdapter[Any] | None) -> Any:
        """Return the answer to a request.

        Args:
            form: of the answer; None: it has no body.

        Raises:
            PulsarLookupError: that the answer stands for.
            InputError: if there is none, or one of another form.
        """
        data = None if body is None else body.encode()
        request = Request(f"{self._url}{target}", data, self._headers, method=method)
        try:
            with self._opener.open(request, timeout=_REQUEST_S) as answer:
                status, text = answer.status, whole_body(answer)
        except OSError as error:
            raise InputError(f"{self._url} cannot be asked: {getattr(error, 'reason', error)}") from None
        except HTTPException as error:
            raise self._stranger(f"with what is cut off, or no HTTP: {error!r}") from None
        except ValueError as error:
            raise self._stranger(f"with {error}") from None
        if status == 204 and form is None and not text:
            return None
        try:
            if status == 200 and form is not None:
                return form.validate_json(text, strict=True)
            refusal = _ERRORS[status](printable(_PAIRS.validate_json(text, strict=True)["error"]))
        except (ValidationError, KeyError):
            raise self._stranger(f"with status {status} and {shown(text[:60].decode(errors='replace'))}") from None
        raise refusal

    def _stranger(self, what: str) -> InputError:
        return InputError(f"{self._url} answered {what}; is it a decision server?")
