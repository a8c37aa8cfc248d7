"""Messages of system topics: which change the owner of a bundle and how, and what of JSON Lines is junk."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lookup.engine.service_unit import ServiceUnitState, ServiceUnitStateData
from lookup.errors import InputError, InvalidNameError
from lookup.logs.readers import SystemTopicsReader
from lookup.logs.readers.system_topics import OwnershipChanges, bundle_rows, load_row
from lookup.model.documents import Row, Unreadable
from tests.logs.readers.lines import read_lines

_STATES = "persistent://pulsar/system/loadbalancer-service-unit-state"
_LOADS = "non-persistent://pulsar/system/loadbalancer-broker-load-data"
_BUNDLE = "t/ns/0x00000000_0x80000000"
_S = ServiceUnitState
_LEFT, _RIGHT = "0x00000000_0x40000000", "0x40000000_0x80000000"


def _line(value: object, *, topic: str = _STATES, key: object = _BUNDLE, **rest: Any) -> str:
    return json.dumps({"topic": topic, "key": key, "publish_time_ms": 5, "message_id": "0:1:-1", "value": value} | rest)


def test_tombstones_and_other_topics_are_passed_over() -> None:
    """A broker that has gone has no load to report, and lines may be empty."""
    lines = (_line(None, topic=_LOADS, key="b1:8080"), _line({"x": 1}, topic="persistent://t/ns/other"), "", " ")
    assert read_lines(SystemTopicsReader(), *lines) == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("junk", "the line is not JSON"),
        ("[1]", "not a JSON object but list"),
        (_line({}, topic=7), "topic is 7, not a text"),
        (_line({}, key=None), "key is None, not a text"),
        (_line({}, publish_time_ms="now"), "publish_time_ms is 'now'"),
        (_line("text"), "value is 'text'"),
        (_line({"state": "Gone"}), "state is 'Gone'"),
        (_line({"state": "Owned", "dstBroker": "b"}, key="junk"), "junk"),
        (_line({"cpu": 7}, topic=_LOADS), "cpu is 7, not an object"),
    ],
)
def test_junk_is_reported_and_the_rest_is_read(line: str, reason: str) -> None:
    """A message that Pulsar does not write is refused with its reason, and those behind it are read."""
    bad, good = read_lines(SystemTopicsReader(), line, _line({"state": "Owned", "dstBroker": "b1:8080"}))

    assert isinstance(bad, Unreadable)
    assert reason in bad.reason
    assert isinstance(good, Row)


def _data(state: ServiceUnitState, to: str | None, source: str | None = None, **rest: object) -> ServiceUnitStateData:
    return ServiceUnitStateData(state, to, source, **rest)  # type: ignore[arg-type]  fields of a record


def _changes(*records: ServiceUnitStateData | None, bundle: str = _BUNDLE) -> list[tuple[str, str | None]]:
    """Return kind and broker of the changes that records of one bundle make."""
    changes = OwnershipChanges()
    rows = [changes.take(bundle, data, number) for number, data in enumerate(records)]
    return [(row["event"], row.get("broker")) for row in rows if row is not None]


def test_a_record_that_the_channel_rejects_changes_nothing() -> None:
    """Of two assignments at the same time the first holds."""
    late = (_data(_S.ASSIGNING, "b2"), _data(_S.OWNED, "b2", version_id=2))
    assert _changes(_data(_S.ASSIGNING, "b1"), *late, _data(_S.OWNED, "b1", version_id=2)) == [("owned", "b1")]


def test_an_override_names_the_new_owner_at_once() -> None:
    """The lost broker released nothing; a tombstone instead ends its ownership."""
    owned = _data(_S.OWNED, "b1")
    override = _data(_S.OWNED, "b2", "b1", force=True, version_id=2)
    assert _changes(owned, override) == [("owned", "b1"), ("owned", "b2")]
    assert _changes(owned, None) == [("owned", "b1"), ("unloaded", "b1")]


def test_a_split_leaves_the_owner_to_the_children() -> None:
    """Each child is owned from its own first record on; the end of the parent is no change."""
    changes = OwnershipChanges()
    split = _data(_S.SPLITTING, None, "b1", split={_LEFT: None, _RIGHT: None}, version_id=2)
    messages = [
        (_BUNDLE, _data(_S.OWNED, "b1")), (_BUNDLE, split),
        # Another broker finishes what a lost one began.
        (_BUNDLE, _data(_S.SPLITTING, None, "b2", split=split.split, force=True, version_id=3)),
        (f"t/ns/{_LEFT}", _data(_S.OWNED, "b1")), (f"t/ns/{_RIGHT}", _data(_S.OWNED, "b2")),
        (_BUNDLE, _data(_S.DELETED, None, "b2", version_id=4)), (_BUNDLE, None),
    ]  # fmt: skip
    rows = [changes.take(bundle, data, 7) for bundle, data in messages]

    boundaries = ["0x00000000", "0x40000000", "0x80000000"]
    assert [row for row in rows[1:] if row is not None] == [
        {"ts": 7, "bundle": _BUNDLE, "event": "split", "broker": "b1", "boundaries": boundaries},
        {"ts": 7, "bundle": f"t/ns/{_LEFT}", "event": "owned", "broker": "b1"},
        {"ts": 7, "bundle": f"t/ns/{_RIGHT}", "event": "owned", "broker": "b2"},
    ]


def test_a_reader_may_begin_anywhere() -> None:
    """A release or split that comes first names the owner until then; what is free already is no change."""
    assert _changes(_data(_S.RELEASING, "b2", "b1", version_id=5)) == [("unloaded", "b1")]
    assert _changes(_data(_S.SPLITTING, None, "b1", split={_LEFT: None, _RIGHT: None})) == [("split", "b1")]
    assert _changes(_data(_S.FREE, None, "b1", version_id=5), None) == []


def test_a_record_that_belongs_to_no_bundle_is_left_out() -> None:
    """Names and ranges are checked before the record is taken."""
    changes = OwnershipChanges()
    with pytest.raises(InvalidNameError, match="junk"):
        changes.take("junk", _data(_S.OWNED, "b1"), 1)
    with pytest.raises(InvalidNameError, match="half"):
        changes.take(_BUNDLE, _data(_S.SPLITTING, None, "b1", split={"half": None}), 1)

    assert changes.take(_BUNDLE, _data(_S.OWNED, "b1"), 2) is not None


def test_loads_and_top_bundles_are_checked_and_kept_as_they_are() -> None:
    """The text of a report is the column, bundle by bundle in a list."""
    stats = {"msgRateIn": 1.5, "topics": 2}
    top = json.dumps({"topBundlesLoadData": [{"bundleName": _BUNDLE, "stats": stats}]})

    assert load_row("b1", '{"msgRateIn": 1.0}', 5) == {"ts": 5, "broker": "b1", "load": '{"msgRateIn": 1.0}'}
    assert bundle_rows(top, 5) == [{"ts": 5, "bundle": _BUNDLE, "stats": '{"msgRateIn":1.5,"topics":2}'}]
    assert bundle_rows("{}", 5) == []


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ('{"topBundlesLoadData": 7}', "topBundlesLoadData is 7, not a list"),
        ('{"topBundlesLoadData": [7]}', "topBundlesLoadData is 7, not an object"),
        ('{"topBundlesLoadData": [{"stats": {}}]}', "bundleName is None, not a text"),
        ('{"topBundlesLoadData": [{"bundleName": "x", "stats": {"topics": "many"}}]}', "topics is 'many', not"),
    ],
)
def test_a_list_that_pulsar_does_not_write_is_refused(value: str, reason: str) -> None:
    """The sentence names the key and its value."""
    with pytest.raises(InputError, match=reason):
        bundle_rows(value, 5)
