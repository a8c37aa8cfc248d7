"""Read and write the admin API's requests for listing, labels and properties.

No HTTP here: a server hands in method, target and body and gets an operation; a client prints an operation and sends
it.

    GET     /admin/v2/{persistent|non-persistent}/TENANT/NS?properties=k1=v1,k2=v2&includeSystemTopic=&bundle=   PIP-452
    GET     /admin/v2/topics/TENANT/NS?properties=k1:v1,k2:v2                                                    PIP-451
    GET     /admin/v2/namespaces/TENANT/NS/topics?mode=PERSISTENT|NON_PERSISTENT|ALL
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
from typing import Literal, TypeAlias
from urllib.parse import quote, unquote

from lookup.errors import ArgumentError
from lookup.model import Mode, TopicName
from lookup.model.quoting import shown
from lookup.topics.catalog.naming import checked_namespace
from lookup.topics.catalog.pairs import decoded, encoded_pairs, parse_encoded_pairs

__all__ = [
    "Call", "GetLabels", "GetProperties", "ListTopics", "Operation", "RemoveLabels", "RemoveProperty", "SetLabels",
    "SetProperties", "parse_call", "print_call", "print_map", "print_topics",
]  # fmt: skip

_ROOT = "/admin/v2/"
_MODES: Mapping[str, Mode] = {"PERSISTENT": "persistent", "NON_PERSISTENT": "non-persistent", "ALL": "all"}
_DOMAINS: Mapping[str, Mode] = {"persistent": "persistent", "non-persistent": "non-persistent", "topics": "all"}
_METHODS = {"custom-labels": ("GET", "POST", "DELETE"), "properties": ("GET", "PUT", "DELETE")}


@dataclass(frozen=True, slots=True)
class Call:
    """A request as it goes over HTTP."""

    method: str
    #: path and query, encoded
    target: str
    #: JSON, None if there is no body
    body: str | None = None


@dataclass(frozen=True, slots=True)
class ListTopics:
    """List the topics of a namespace."""

    namespace: str
    mode: Mode = "persistent"
    properties: Mapping[str, str] = field(default_factory=dict)
    include_system: bool = False
    #: range of the only bundle to list; None: all
    bundle: str | None = None


@dataclass(frozen=True, slots=True)
class GetLabels:
    """Return a topic's labels."""

    topic: str


@dataclass(frozen=True, slots=True)
class SetLabels:
    """Add labels to a topic's, over those with the same keys."""

    topic: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RemoveLabels:
    """Remove labels by key, or all of them.

    Raises:
        ArgumentError: if neither keys nor everything is named, or both.
    """

    topic: str
    keys: tuple[str, ...] = ()
    everything: bool = False

    def __post_init__(self) -> None:
        if bool(self.keys) == self.everything or not all(self.keys):
            raise ArgumentError("say which labels to remove: keys=k1&keys=k2, or all=true, one of the two")


@dataclass(frozen=True, slots=True)
class GetProperties:
    """Return a topic's properties."""

    topic: str


@dataclass(frozen=True, slots=True)
class SetProperties:
    """Add properties to a topic's, over those with the same keys."""

    topic: str
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RemoveProperty:
    """Remove one property of a topic.

    Raises:
        ArgumentError: if the key is empty.
    """

    topic: str
    key: str

    def __post_init__(self) -> None:
        if not self.key:
            raise ArgumentError("say which property to remove: key=k1")


Operation: TypeAlias = (
    ListTopics | GetLabels | SetLabels | RemoveLabels | GetProperties | SetProperties | RemoveProperty
)


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
        raise ArgumentError(f"{shown(path)} is no path of topics; they begin with {_ROOT}persistent/TENANT/NAMESPACE")
    # Values stay encoded: of pairs each key and value is decoded by itself.
    divided = [piece.partition("=") for piece in query.split("&") if piece]
    fields = _Query(tuple((decoded(name), raw) for name, _, raw in divided))
    is_by_mode = steps[0] == "namespaces" and steps[3:] == ["topics"]
    if not is_by_mode and steps[0] not in _DOMAINS:
        raise ArgumentError(f"{shown(path)}: {steps[0]!r} should be one of {', '.join(_DOMAINS)}")
    if not is_by_mode and len(steps) > 3:
        return _topic_call(method, steps, fields, body)
    _refuse_method(method, "GET")
    if not is_by_mode:
        fields.only("properties", "includeSystemTopic", "bundle")
        return ListTopics(
            _namespace(steps),
            _DOMAINS[steps[0]],
            fields.pairs("properties"),
            include_system=fields.flag("includeSystemTopic"),
            bundle=fields.last("bundle"),
        )
    fields.only("mode", "includeSystemTopic")
    mode = fields.last("mode") or "PERSISTENT"
    if mode.upper() not in _MODES:
        raise ArgumentError(f"query parameter mode should be one of {', '.join(_MODES)}, not {mode!r}")
    return ListTopics(_namespace(steps), _MODES[mode.upper()], include_system=fields.flag("includeSystemTopic"))


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


def _topic_call(method: str, steps: Sequence[str], query: _Query, body: str | None) -> Operation:
    """Return an operation on the labels or properties of one topic, whose name may have slashes."""
    resource, local = steps[-1], "/".join(steps[3:-1])
    if resource not in _METHODS or not local:
        raise ArgumentError(f"{shown('/'.join(steps))} should end with a topic and {' or '.join(_METHODS)}")
    domain = "persistent" if steps[0] == "topics" else steps[0]
    topic = str(TopicName.parse(f"{domain}://{_namespace(steps)}/{local}"))
    _refuse_method(method, *_METHODS[resource])
    match resource, method.upper():
        case "custom-labels", "DELETE":
            query.only("keys", "all")
            return RemoveLabels(topic, query.all("keys"), everything=query.flag("all"))
        case "properties", "DELETE":
            query.only("key")
            return RemoveProperty(topic, query.last("key") or "")
    query.only()
    match resource, method.upper():
        case "custom-labels", "GET":
            return GetLabels(topic)
        case "custom-labels", _:
            content = _json(body)
            if not isinstance(content, dict) or content.keys() != {"labels"}:
                message = 'the body should be an object with the one key "labels", like {"labels": {"env": "prod"}}'
                raise ArgumentError(message)
            return SetLabels(topic, _texts(content["labels"], "labels"))
        case _, "GET":
            return GetProperties(topic)
        case _:
            return SetProperties(topic, _texts(_json(body), "the body"))


def _json(body: str | None) -> object:
    try:
        return json.loads(body or "")
    # Nested deep enough, a small body exhausts the stack of the parser.
    except (ValueError, RecursionError):
        raise ArgumentError("the body is no JSON") from None


def _texts(content: object, what: str) -> dict[str, str]:
    if not isinstance(content, dict) or not all(isinstance(value, str) for value in content.values()):
        raise ArgumentError(f'{what} should be an object of texts, like {{"env": "prod"}}')
    return content


# Requests that go out


def print_call(operation: Operation) -> Call:
    """Return the request that asks for an operation; `parse_call` reads it back.

    Raises:
        InvalidNameError: if its namespace or topic is not written as Pulsar writes it.
    """
    match operation:
        case ListTopics():
            return Call("GET", _list_target(operation))
        case GetLabels(topic):
            return Call("GET", _target(topic, "custom-labels"))
        case SetLabels(topic, labels):
            return Call("POST", _target(topic, "custom-labels"), json.dumps({"labels": dict(labels)}))
        case RemoveLabels(topic, keys, everything):
            removed = "all=true" if everything else "&".join(f"keys={quote(key, safe='')}" for key in keys)
            return Call("DELETE", f"{_target(topic, 'custom-labels')}?{removed}")
        case GetProperties(topic):
            return Call("GET", _target(topic, "properties"))
        case SetProperties(topic, properties):
            return Call("PUT", _target(topic, "properties"), json.dumps(dict(properties)))
        case RemoveProperty(topic, key):
            return Call("DELETE", f"{_target(topic, 'properties')}?key={quote(key, safe='')}")


def print_topics(topics: Sequence[str]) -> str:
    """Return the body that answers a list: a JSON list of names."""
    return json.dumps(list(topics), ensure_ascii=False)


def print_map(pairs: Mapping[str, str]) -> str:
    """Return the body that answers a question for labels or properties: a JSON object."""
    return json.dumps(dict(sorted(pairs.items())), ensure_ascii=False)


def _list_target(operation: ListTopics) -> str:
    domain = next(name for name, mode in _DOMAINS.items() if mode == operation.mode)
    # Either separator is read in both places; the two PIPs write them so.
    between: Literal["=", ":"] = ":" if domain == "topics" else "="
    fields = {
        "properties": encoded_pairs(operation.properties, between),
        "includeSystemTopic": "true" if operation.include_system else "",
        "bundle": quote(operation.bundle or "", safe=""),
    }
    query = "&".join(f"{name}={text}" for name, text in fields.items() if text)
    return f"{_ROOT}{domain}/{checked_namespace(operation.namespace)}" + (f"?{query}" if query else "")


def _target(topic: str, resource: str) -> str:
    name = TopicName.parse(topic)
    # PIP-451 writes `topics` for a domain, which means persistent ones.
    is_label = resource == "custom-labels" and name.domain == "persistent"
    return f"{_ROOT}{'topics' if is_label else name.domain}/{name.namespace}/{quote(name.local, safe='')}/{resource}"
