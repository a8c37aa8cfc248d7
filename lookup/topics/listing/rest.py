"""Read the admin API's requests for listing, labels, properties and namespaces, and write those but for listing.

No HTTP here: a server hands in method, target and body and gets an operation; a client prints an operation and sends
it. What a catalog does for an operation is in `lookup.topics.catalog.operations`.

    GET     /admin/v2/{persistent|non-persistent}/TENANT/NS?properties=k1=v1,k2=v2&includeSystemTopic=&bundle=   PIP-452
    GET     /admin/v2/topics/TENANT/NS?properties=k1:v1,k2:v2                                                    PIP-451
    GET     /admin/v2/namespaces/TENANT/NS/topics?mode=PERSISTENT|NON_PERSISTENT|ALL
    DELETE  /admin/v2/namespaces/TENANT/NS?force=true
    GET     /admin/v2/topics/TENANT/NS/TOPIC/custom-labels                                                       PIP-451
    POST    /admin/v2/topics/TENANT/NS/TOPIC/custom-labels         {"labels": {"k1": "v1"}}
    DELETE  /admin/v2/topics/TENANT/NS/TOPIC/custom-labels?keys=k1&keys=k2, or ?all=true
    GET     /admin/v2/{persistent|non-persistent}/TENANT/NS/TOPIC/properties
    PUT     /admin/v2/{persistent|non-persistent}/TENANT/NS/TOPIC/properties        {"k1": "v1"}
    DELETE  /admin/v2/{persistent|non-persistent}/TENANT/NS/TOPIC/properties?key=k1

`topics` in place of a domain means persistent topics if one topic is named, and both domains in a list. For a
query by labels neither draft of PIP-451 gives a form over REST, so there is none here.

Source: PIP-452; both drafts of PIP-451; `docs/pulsar/protocol.md`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import quote, unquote

from lookup.errors import ArgumentError
from lookup.model import Mode, TopicName
from lookup.model.quoting import shown
from lookup.topics.catalog.naming import checked_namespace
from lookup.topics.catalog.operations import (
    LABELS,
    PROPERTIES,
    CatalogOperation,
    DeleteNamespace,
    GetPairs,
    RemovePairs,
    SetPairs,
)
from lookup.topics.catalog.pairs import PairKind, decoded, parse_encoded_pairs
from lookup.topics.listing.topic_query import TopicQuery

__all__ = ["FORMS", "Call", "ListTopics", "Operation", "PairForm", "parse_call", "print_call", "print_map"]

_ROOT = "/admin/v2/"
_MODES: Mapping[str, Mode] = {"PERSISTENT": "persistent", "NON_PERSISTENT": "non-persistent", "ALL": "all"}
_DOMAINS: Mapping[str, Mode] = {"persistent": "persistent", "non-persistent": "non-persistent", "topics": "all"}


@dataclass(frozen=True, slots=True)
class Call:
    """A request as it goes over HTTP."""

    method: str
    #: path and query, encoded
    target: str
    #: JSON, None if there is no body
    body: str | None = None


@dataclass(frozen=True, slots=True)
class PairForm:
    """The words of labels or properties in requests."""

    #: last step of the path
    resource: str
    #: method that adds pairs
    set_method: str
    #: key of the body's only field that holds the pairs; None: the body is the pairs
    body_key: str | None
    #: field of the query that names a key to remove
    key_field: str
    #: whether one request may remove several keys, or all of them
    removes_many: bool


#: The form of each kind of pairs.
FORMS: Mapping[PairKind, PairForm] = {
    LABELS: PairForm("custom-labels", "POST", "labels", "keys", removes_many=True),
    PROPERTIES: PairForm("properties", "PUT", None, "key", removes_many=False),
}
_KINDS = {form.resource: kind for kind, form in FORMS.items()}


@dataclass(frozen=True, slots=True)
class ListTopics(TopicQuery):
    """List the topics of a namespace; the admin API has a form for queries without pattern and selector only."""

    #: range of the only bundle to list; None: all
    bundle: str | None = field(default=None, kw_only=True)


Operation: TypeAlias = ListTopics | CatalogOperation


@dataclass(frozen=True, slots=True)
class _Query:
    """The fields of a query string, in order, values still encoded."""

    fields: tuple[tuple[str, str], ...]

    def only(self, *known: str) -> None:
        """Refuse fields that are not among those known: a typing error must not list or delete more than was meant."""
        for name, _ in self.fields:
            if name not in known:
                permitted = f"known: {', '.join(known)}" if known else "this request has none"
                raise ArgumentError(f"there is no query parameter {name!r}; {permitted}")

    def all(self, name: str) -> tuple[str, ...]:
        """Return every value under a name, decoded; empty ones are none."""
        return tuple(decoded(raw) for key, raw in self.fields if key == name and raw)

    def last(self, name: str) -> str | None:
        """Return the last value under a name."""
        return next(reversed(self.all(name)), None)

    def flag(self, name: str) -> bool:
        """Return whether a truth value is given as true."""
        text = (self.last(name) or "false").lower()
        if text not in ("true", "false"):
            raise ArgumentError(f"query parameter {name} should be true or false, not {text!r}")
        return text == "true"

    def pairs(self, name: str) -> dict[str, str]:
        """Return all pairs under a name."""
        texts = [parse_encoded_pairs(raw) for key, raw in self.fields if key == name]
        return {key: value for text in texts for key, value in text.items()}


# Requests that come in


def parse_call(method: str, target: str, body: str | None = None) -> Operation:
    """Return the operation that a request asks for.

    Args:
        target: path and query as they came, encoded.
        body: text of the body, None or empty if there was none.

    Raises:
        ArgumentError: naming the fault of path, query or body.
        InvalidNameError: if namespace or topic is not written as Pulsar writes it.
    """
    path, _, query = target.partition("?")
    # Divided before decoding: an encoded slash is part of a topic's name.
    steps = [_step(step) for step in path.removeprefix(_ROOT).rstrip("/").split("/")]
    if not path.startswith(_ROOT) or len(steps) < 3:
        raise ArgumentError(
            f"{shown(path)} is not a path of topics; they begin with {_ROOT}persistent/TENANT/NAMESPACE"
        )
    # Values stay encoded: of pairs each key and value is decoded by itself.
    divided = [piece.partition("=") for piece in query.split("&") if piece]
    fields = _Query(tuple((decoded(name), raw) for name, _, raw in divided))
    if steps[0] == "namespaces":
        return _namespace_call(method, steps, fields)
    if steps[0] not in _DOMAINS:
        raise ArgumentError(f"{shown(path)}: {steps[0]!r} should be one of {', '.join(_DOMAINS)}, namespaces")
    if len(steps) > 3:
        return _topic_call(method, steps, fields, body)
    _refuse_method(method, "GET")
    fields.only("properties", "includeSystemTopic", "bundle")
    return ListTopics(
        _namespace(steps),
        _DOMAINS[steps[0]],
        properties=fields.pairs("properties"),
        include_system=fields.flag("includeSystemTopic"),
        bundle=fields.last("bundle"),
    )


def _step(raw: str) -> str:
    # A plus is a plus in a path, so this is not `decoded`.
    try:
        return unquote(raw, errors="strict")
    except UnicodeDecodeError:
        raise ArgumentError(f"path element {shown(raw)} does not decode to UTF-8") from None


def _refuse_method(method: str, *known: str) -> None:
    if method.upper() not in known:
        raise ArgumentError(f"method {method} is not for this path; {', '.join(known)} would be")


def _namespace(steps: Sequence[str]) -> str:
    return checked_namespace(f"{steps[1]}/{steps[2]}")


def _namespace_call(method: str, steps: Sequence[str], query: _Query) -> Operation:
    """Return an operation on a namespace: to delete it, or to list its topics by mode."""
    namespace = _namespace(steps)
    if len(steps) == 3:
        _refuse_method(method, "DELETE")
        query.only("force")
        return DeleteNamespace(namespace, query.flag("force"))
    if steps[3:] != ["topics"]:
        raise ArgumentError(f"{shown('/'.join(steps))} should end with the namespace or topics")
    _refuse_method(method, "GET")
    query.only("mode", "includeSystemTopic")
    mode = query.last("mode") or "PERSISTENT"
    if mode.upper() not in _MODES:
        raise ArgumentError(f"query parameter mode should be one of {', '.join(_MODES)}, not {mode!r}")
    return ListTopics(namespace, _MODES[mode.upper()], include_system=query.flag("includeSystemTopic"))


def _topic_call(method: str, steps: Sequence[str], query: _Query, body: str | None) -> Operation:
    """Return an operation on the labels or properties of one topic, whose name may have slashes."""
    kind, local = _KINDS.get(steps[-1]), "/".join(steps[3:-1])
    if kind is None or not local:
        raise ArgumentError(f"{shown('/'.join(steps))} should end with a topic and {' or '.join(_KINDS)}")
    domain = "persistent" if steps[0] == "topics" else steps[0]
    topic = str(TopicName.parse(f"{domain}://{_namespace(steps)}/{local}"))
    form = FORMS[kind]
    _refuse_method(method, "GET", form.set_method, "DELETE")
    if method.upper() == "DELETE":
        query.only(form.key_field, *(("all",) if form.removes_many else ()))
        # Of a field that has room for one value the last counts, as everywhere in a query.
        keys = query.all(form.key_field)[0 if form.removes_many else -1 :]
        return _checked_removal(RemovePairs(kind, topic, keys, everything=query.flag("all")))
    query.only()
    return GetPairs(kind, topic) if method.upper() == "GET" else SetPairs(kind, topic, _body_pairs(body, form))


def _checked_removal(removal: RemovePairs) -> RemovePairs:
    """Return a removal, unless a query cannot say it or says it without naming what to remove."""
    keys, kind = removal.keys, removal.kind
    form = FORMS[kind]
    if bool(keys) == removal.everything or not all(keys):
        ways = "keys=k1&keys=k2, or all=true, one of the two" if form.removes_many else "key=k1"
        raise ArgumentError(f"say which {kind} to remove: {ways}")
    if not form.removes_many and len(keys) != 1:
        raise ArgumentError(f"one request removes one of a topic's {kind}: key=k1")
    return removal


def _body_pairs(body: str | None, form: PairForm) -> Mapping[str, str]:
    try:
        content, what = json.loads(body or ""), "the body"
    # Nested deep enough, a small body exhausts the stack of the parser.
    except (ValueError, RecursionError):
        raise ArgumentError("the body is not JSON") from None
    if form.body_key is not None:
        if not isinstance(content, dict) or content.keys() != {form.body_key}:
            example = json.dumps({form.body_key: {"env": "prod"}})
            raise ArgumentError(f'the body should be an object with the one key "{form.body_key}", like {example}')
        content, what = content[form.body_key], form.body_key
    if not isinstance(content, dict) or not all(isinstance(value, str) for value in content.values()):
        raise ArgumentError(f'{what} should be an object of texts, like {{"env": "prod"}}')
    return content


# Requests that go out


def print_call(operation: CatalogOperation) -> Call:
    """Return the request that asks for an operation; `parse_call` reads it back.

    Raises:
        InvalidNameError: if its namespace or topic is not written as Pulsar writes it.
        ArgumentError: for pairs to remove without a key, with an empty one or with keys beside all, and for several
            properties to remove.
    """
    match operation:
        case GetPairs(kind, topic):
            return Call("GET", _target(topic, kind))
        case SetPairs(kind, topic, pairs):
            form = FORMS[kind]
            content = dict(pairs) if form.body_key is None else {form.body_key: dict(pairs)}
            return Call(form.set_method, _target(topic, kind), json.dumps(content))
        case DeleteNamespace(namespace, force):
            query = "?force=true" if force else ""
            return Call("DELETE", f"{_ROOT}namespaces/{checked_namespace(namespace)}{query}")
        case RemovePairs(kind, topic, keys, everything):
            _checked_removal(operation)
            named = "&".join(f"{FORMS[kind].key_field}={quote(key, safe='')}" for key in keys)
            return Call("DELETE", f"{_target(topic, kind)}?{'all=true' if everything else named}")


def print_map(pairs: Mapping[str, str]) -> str:
    """Return the body that answers a question for labels or properties: a JSON object."""
    return json.dumps(dict(sorted(pairs.items())), ensure_ascii=False)


def _target(topic: str, kind: PairKind) -> str:
    name = TopicName.parse(topic)
    # PIP-451 writes `topics` for a domain, which means persistent ones.
    domain = "topics" if kind == LABELS and name.domain == "persistent" else name.domain
    return f"{_ROOT}{domain}/{name.namespace}/{quote(name.local, safe='')}/{FORMS[kind].resource}"
