"""Read the JSON of brokers, which is batches of lookups and requests to decide.

The protocol is described in `docs/bridge-protocol.md`. Every mistake is an `InputError` that names the
field. The resulting texts can be written to Parquet unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, cast

from lookup.errors import ArgumentError, InputError, InvalidNameError, LimitError
from lookup.logs.columns import check_row
from lookup.model import LookupOptions, LookupRequest, TopicName
from lookup.model.bundles import NamespaceBundle
from lookup.model.catalog import Mode
from lookup.model.documents import NestingError, flag, json_value, mapping, text, texts, whole_number
from lookup.model.quoting import shown
from lookup.model.request import request_of
from lookup.model.time import FIRST_US, LAST_US
from lookup.settings.serving import ServingSection
from lookup.topics.catalog.naming import checked_namespace, schemes_of
from lookup.topics.catalog.operations import LABELS, PROPERTIES, CatalogOperation, GetPairs, RemovePairs, SetPairs
from lookup.topics.catalog.pairs import PairKind
from lookup.topics.listing import TopicQuery
from lookup.topics.listing.selectors import parse

__all__ = [
    "PROTOCOL", "DecideMessage", "RecordMessage", "body_of", "decide_message", "list_message", "pairs_message",
    "record_message", "recorded_client", "recorded_properties",
]  # fmt: skip

#: Version of the protocol that this server speaks.
PROTOCOL = 1
#: Brokers that a view may have, and a request to choose from.
_MOST_CANDIDATES = 10_000
_MOST_LOOKUPS = 1000
_LONGEST_VIEW_ID = 200
#: Fields of a request about labels or properties that change them. Without any of these, they are read.
_CHANGES = ("set", "remove", "removeAll")
#: Recorded replacement of a masked value.
_MASK = "masked"


# A tuple, as `Answer` is, since one is created for each request, and a frozen dataclass takes four times as long.
class DecideMessage(NamedTuple):
    """A broker's question who should own a bundle."""

    broker: str
    asked_us: int
    request: LookupRequest
    candidates: tuple[str, ...]
    view_id: str
    #: by broker id a pair of JSON texts, of `BrokerLookupData` and of `BrokerLoadData`, None if the view is known
    view: Mapping[str, tuple[str, str | None]] | None
    #: whether the asking broker keeps its own choice, whatever is answered
    is_shadow: bool


@dataclass(frozen=True, slots=True)
class RecordMessage:
    """Lookups that a broker has answered."""

    broker: str
    #: name of the broker's start to which its numbers belong, "" if it does not number its lookups
    start: str
    #: numbers of all lookups of the batch, ascending, and up to which the broker sends none any more
    numbers: tuple[int, ...]
    up_to: int
    #: lookups that the broker has lost since its start, among the lookups up to that number
    dropped: int
    #: checked rows of LOOKUPS without cluster, seq and propensity, each with its number and the bundle of its topic
    rows: tuple[tuple[int, str, dict[str, Any]], ...]
    #: why other rows cannot be recorded
    refused: tuple[str, ...]


def body_of(raw: bytes) -> dict[str, Any]:
    """Read a body as a JSON object, or raise InputError."""
    try:
        value = json_value(raw.decode())
        # Half a surrogate pair can be written in JSON and not in UTF-8, so not in Parquet either.
        if b"\\u" in raw:
            value = json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
    except NestingError as error:
        raise InputError(f"the body {error}") from None
    except ValueError as error:
        raise InputError(f"the body is not JSON in UTF-8: {error}") from None
    return mapping(value, "the body")


def decide_message(body: Mapping[str, Any], section: ServingSection) -> DecideMessage:
    """Read a request to decide.

    Raises:
        InputError: with the field that is missing or wrong.
        LimitError: if there are too many, or too long, properties.
    """
    view = mapping(_require(body, "view"), "view")
    view_id = _require_text(view, "id", "view.id")
    if len(view_id) > _LONGEST_VIEW_ID:
        raise InputError(f"view.id has {len(view_id)} characters, more than {_LONGEST_VIEW_ID}")
    candidates = _require(body, "candidates")
    try:
        # A text and an object have items as well, and are no lists.
        offered = _check_candidates(tuple(candidates) if isinstance(candidates, list) else (None,))
    except TypeError:
        raise InputError(f"candidates is {shown(candidates)}, not a list of broker ids") from None
    topic, bundle, client = _read_optional(body, "topic"), _require_text(body, "bundle"), _read_optional(body, "client")
    try:
        NamespaceBundle.parse(bundle)
    except InvalidNameError as error:
        raise InputError(f"bundle: {error}") from None
    properties = _read_properties(body, section)
    options = LookupOptions(advertised_listener_name=_read_optional(body, "listener"), properties=properties)
    return DecideMessage(
        broker=_require_text(body, "broker"),
        asked_us=_read_moment(body),
        request=request_of(topic, bundle, options, client),
        candidates=offered,
        view_id=view_id,
        view=None if view.get("brokers") is None else _read_brokers(mapping(view["brokers"], "view.brokers")),
        is_shadow=flag(body.get("shadow") or False, "shadow"),
    )


@lru_cache(maxsize=256)
def _check_candidates(candidates: tuple[Any, ...]) -> tuple[str, ...]:
    """Check the candidates of a request, or raise TypeError. Those of most requests are the same, and are kept once."""
    if not all(isinstance(broker, str) for broker in candidates):
        raise TypeError
    if not 1 <= len(candidates) <= _MOST_CANDIDATES:
        raise InputError(f"candidates has {len(candidates)} entries, not 1 to {_MOST_CANDIDATES}")
    if len({*candidates}) < len(candidates):
        raise InputError("candidates names a broker twice")
    return candidates


def record_message(body: Mapping[str, Any], section: ServingSection) -> RecordMessage:
    """Read a batch of lookups, or raise InputError. Lookups that cannot be recorded are refused one by one."""
    broker, dropped = _require_text(body, "broker"), _read_count(body, "dropped")
    lookups = _require(body, "lookups")
    if not isinstance(lookups, list):
        raise InputError(f"lookups is {shown(lookups)}, not a list")
    if len(lookups) > _MOST_LOOKUPS:
        raise InputError(f"lookups has {len(lookups)} entries, more than {_MOST_LOOKUPS}")
    start, up_to = _read_optional(body, "start") or "", _read_count(body, "upTo")
    numbers = _read_numbers(lookups, up_to) if start else (0,) * len(lookups)
    rows: list[tuple[int, str, dict[str, Any]]] = []
    refused: list[str] = []
    for place, entry in enumerate(lookups):
        try:
            record = mapping(entry, f"lookups[{place}]")
            properties = recorded_properties(_read_properties(record, section), section.masked)
            latency = record.get("latencyMicros")
            values = {
                "ts": record.get("ts"),
                "topic": record.get("topic"),
                "client": recorded_client(_read_optional(record, "client"), section.masked),
                "properties": properties,
                "asked_broker": broker,
                "broker": record.get("answer"),
                "result": record.get("result"),
                "read_only": record.get("readOnly"),
                "authoritative": record.get("authoritative"),
                "listener": record.get("listener"),
                "latency_ms": None if latency is None else whole_number(latency, "latencyMicros") / 1000,
            }
            row = check_row("lookups", values, "checked later")
            bundle = _require_text(record, "bundle")
        except InputError as error:
            refused.append(f"lookups[{place}]: {error}")
            continue
        if isinstance(row, str):
            refused.append(f"lookups[{place}]: {row}")
        else:
            rows.append((numbers[place], bundle, row))
    return RecordMessage(broker, start, numbers, up_to, dropped, tuple(rows), tuple(refused))


def _read_numbers(lookups: list[Any], up_to: int) -> tuple[int, ...]:
    """Read the numbers of lookups, or raise InputError if they do not ascend from 1 to the last one."""
    numbers = [0]
    for place, entry in enumerate(lookups):
        where = f"lookups[{place}].number"
        number = whole_number(mapping(entry, f"lookups[{place}]").get("number"), where)
        if not numbers[-1] < number <= up_to:
            raise InputError(f"{where} is {number}, and should be above {numbers[-1]} and at most upTo, {up_to}")
        numbers.append(number)
    return tuple(numbers[1:])


def list_message(body: Mapping[str, Any]) -> TopicQuery:
    """Read a request for the topics of a namespace, or raise InputError with the field that is missing or wrong."""
    mode = (_read_optional(body, "mode") or "PERSISTENT").lower().replace("_", "-")
    properties, selector = body.get("properties"), _read_optional(body, "selector")
    try:
        schemes_of(cast(Mode, mode))
        return TopicQuery(
            checked_namespace(_require_text(body, "namespace")),
            cast(Mode, mode),
            pattern=_read_optional(body, "pattern"),
            selector=() if selector is None else parse(selector),
            properties={} if properties is None else texts(properties, "properties"),
            include_system=flag(body.get("includeSystemTopic") or False, "includeSystemTopic"),
            topics_hash=_read_optional(body, "topicsHash"),
        )
    except (ArgumentError, InvalidNameError) as error:
        raise InputError(str(error)) from None


def pairs_message(body: Mapping[str, Any]) -> CatalogOperation:
    """Read an operation on the labels or properties of a topic, or raise InputError likewise."""
    strange = sorted(body.keys() - {"topic", "kind", *_CHANGES})
    if strange:
        # A misspelt change would be a question.
        raise InputError(f"{shown(strange[0])} is not a field; topic, kind, {', '.join(_CHANGES)} are")
    kind, changes = _require_text(body, "kind"), [name for name in _CHANGES if body.get(name)]
    if kind not in (LABELS, PROPERTIES):
        raise InputError(f"kind is {shown(kind)}, not {LABELS} or {PROPERTIES}")
    if len(changes) > 1:
        raise InputError(f"{' and '.join(changes)}: one at a time")
    try:
        topic = str(TopicName.parse(_require_text(body, "topic")))
    except InvalidNameError as error:
        raise InputError(str(error)) from None
    pairs_kind = cast(PairKind, kind)
    if body.get("set") is not None:
        return SetPairs(pairs_kind, topic, texts(body["set"], "set"))
    keys, everything = body.get("remove"), flag(body.get("removeAll") or False, "removeAll")
    if keys is None and not everything:
        return GetPairs(pairs_kind, topic)
    if not isinstance(keys or [], list):
        raise InputError(f"remove is {shown(keys)}, not a list of keys")
    return RemovePairs(pairs_kind, topic, tuple(text(key, "remove") for key in keys or ()), everything)


def recorded_properties(properties: Mapping[str, str], masked: Collection[str]) -> dict[str, str]:
    """Convert properties to their recorded form, with masked values replaced by a word."""
    if "properties" in masked:
        return dict.fromkeys(properties, _MASK)
    return {key: _MASK if f"properties.{key}" in masked else value for key, value in properties.items()}


def recorded_client(client: str | None, masked: Collection[str]) -> str | None:
    """Convert a client to its recorded form."""
    return _MASK if client is not None and "client" in masked else client


def _read_properties(record: Mapping[str, Any], section: ServingSection) -> dict[str, str]:
    content = record.get("properties")
    if content is None:
        return {}
    properties, most = texts(content, "properties"), section.max_property_length
    if len(properties) > section.max_properties:
        raise LimitError(f"properties: {len(properties)} are more than the {section.max_properties} accepted")
    longest = max((max(len(key), len(value)) for key, value in properties.items()), default=0)
    if longest > most:
        raise LimitError(f"properties: one has {longest} characters, more than the {most} accepted")
    return properties


def _read_brokers(brokers: Mapping[str, Any]) -> dict[str, tuple[str, str | None]]:
    """Convert the records of a view to texts in one spelling, so that equal views are equal texts."""
    if len(brokers) > _MOST_CANDIDATES:
        raise InputError(f"view.brokers has {len(brokers)} entries, more than {_MOST_CANDIDATES}")
    if "" in brokers:
        raise InputError("view.brokers names a broker with no text")
    records: dict[str, tuple[str, str | None]] = {}
    for broker, entry in sorted(brokers.items()):
        record = mapping(entry, f"view.brokers.{shown(broker)}")
        data = mapping(_require(record, "lookupData"), f"view.brokers.{shown(broker)}.lookupData")
        load = record.get("load")
        records[broker] = (
            _ENCODER.encode(data),
            None if load is None else _ENCODER.encode(mapping(load, f"view.brokers.{shown(broker)}.load")),
        )
    return records


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def _require(record: Mapping[str, Any], key: str) -> Any:
    value = record.get(key)
    if value is None:
        raise InputError(f"{key} is missing")
    return value


def _require_text(record: Mapping[str, Any], key: str, title: str | None = None) -> str:
    value = text(_require(record, key), title or key)
    if not value:
        raise InputError(f"{title or key} is empty")
    return value


def _read_optional(record: Mapping[str, Any], key: str) -> str | None:
    value = record.get(key)
    return None if value is None else text(value, key)


def _read_count(record: Mapping[str, Any], key: str) -> int:
    value = whole_number(record.get(key) or 0, key)
    if not 0 <= value < 1 << 63:
        raise InputError(f"{key} is {value}, not a number of lookups")
    return value


def _read_moment(record: Mapping[str, Any]) -> int:
    value = whole_number(_require(record, "ts"), "ts")
    if not FIRST_US <= value <= LAST_US:
        raise InputError(f"ts is {value}, not an instant of the years 1 to 9999 in µs")
    return value
