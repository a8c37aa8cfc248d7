"""Changes of bundle ownership in brokers' logs: assignments, releases, overrides, unloads and splits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lookup.logs.readers import PulsarBrokerReader
from lookup.model.documents import Refuted, Row, Unreadable
from tests.logs.readers.lines import one_row, read_lines, unrefuted

_TS = 1769860800000000
_NAMESPACE, _RANGE = "public/default", "0x40000000_0x80000000"
_BUNDLE = f"{_NAMESPACE}/{_RANGE}"


def _line(message: str, second: int = 0) -> str:
    return f"2026-01-31T12:00:{second:02},000+0000 [pulsar-io-4-1] INFO  org.apache.pulsar.broker.X - {message}"


def _json(message: str, nanos: int = 0, **context: str) -> str:
    instant = {"epochSecond": _TS // 1_000_000, "nanoOfSecond": nanos}
    return json.dumps({"instant": instant, "loggerName": "o.a.p.X", "message": message, "contextMap": context})


def _record(state: str, to: str | None, source: str | None = None, *, ms: int = 0, force: str = "false") -> str:
    brokers = f"dstBroker={to or 'null'}, sourceBroker={source or 'null'}, splitServiceUnitToDestBroker=null"
    return f"ServiceUnitStateData[state={state}, {brokers}, force={force}, timestamp={_TS // 1_000 + ms}, versionId=3]"


def _handled(broker: str, record: str, tag: str = "Transfer:Owned") -> str:
    return f"{broker} handled {tag} event for serviceUnit:{_BUNDLE}, cur:{record}, next:, totalHandledRequests:1"


def _rows(*lines: str, broker: str = "b1:8080") -> list[dict[str, Any]]:
    """Read lines into the values of their rows; none may be unreadable."""
    entries = unrefuted(read_lines(PulsarBrokerReader(broker=broker), *lines))
    assert all(isinstance(entry, Row) for entry in entries), entries
    return [dict(entry.values) for entry in entries if isinstance(entry, Row)]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            f"Successfully acquired ownership of OwnedBundle(bundle={_BUNDLE}, isActive=1)",
            {"event": "owned", "broker": "b1:8080"},
        ),
        (
            f"Selected new owner broker: b2:8080 for bundle: {_BUNDLE}.",
            {"event": "owned", "broker": "b2:8080", "by": "policy"},
        ),
        (
            f"[admin] Successfully unloaded namespace bundle {_BUNDLE}",
            {"event": "unloaded", "broker": "b1:8080", "by": "admin"},
        ),
        (
            f"Successfully unloaded namespace bundle {{bundle={_BUNDLE}, namespace=public/default}}",
            {"event": "unloaded", "broker": "b1:8080", "by": "admin"},
        ),
        (
            f"Successfully unloaded namespace bundle {{bundle={_RANGE}, namespace=public/default}}",
            {"event": "unloaded", "broker": "b1:8080", "by": "admin"},
        ),
        (
            f"[ThresholdShedder] Unloading bundle: {_BUNDLE} from broker b3:8080",
            {"event": "unloaded", "broker": "b3:8080", "by": "policy"},
        ),
        (
            (
                f"[TransferShedder] Unloading bundle: Unload[sourceBroker=b3:8080, serviceUnit={_BUNDLE}, "
                "destBroker=Optional.empty, force=false]"
            ),
            {"event": "unloaded", "broker": "b3:8080", "by": "policy"},
        ),
        (_handled("b1:8080", _record("Owned", "b1:8080", "b4:8080")), {"event": "owned", "broker": "b1:8080"}),
        (
            _handled("b4:8080", _record("Releasing", "b1:8080", "b4:8080"), "Transfer:Releasing"),
            {"event": "unloaded", "broker": "b4:8080", "by": "policy"},
        ),
        (
            (
                f"Overriding inactiveBroker:b4:8080, ownership serviceUnit:{_BUNDLE} from orphanData:"
                f"{_record('Owned', 'b4:8080')} to overrideData:{_record('Owned', 'b2:8080', 'b4:8080', force='true')}"
            ),
            {"event": "owned", "broker": "b2:8080"},
        ),
        (
            (
                f"Overriding inactiveBroker:b4:8080, ownership serviceUnit:{_BUNDLE} from orphanData:"
                f"{_record('Owned', 'b4:8080')} to overrideData:{_record('Free', None, 'b4:8080', force='true')}"
            ),
            {"event": "unloaded", "broker": "b4:8080"},
        ),
        (
            (
                f"Successfully split {_BUNDLE} parent namespace-bundle to [{_NAMESPACE}/0x40000000_0x50000000, "
                f"{_NAMESPACE}/0x50000000_0x80000000] in 106.0 ms"
            ),
            {"event": "split", "broker": "b1:8080", "boundaries": ["0x40000000", "0x50000000", "0x80000000"]},
        ),
    ],
)
def test_changes_of_ownership_are_rows(message: str, expected: dict[str, Any]) -> None:
    """Assignments, releases, overrides, unloads and splits say who owns the bundle, and by whose will."""
    assert _rows(_line(message)) == [{"ts": _TS, "bundle": _BUNDLE, **expected}]


@pytest.mark.parametrize("is_json", [False, True])
@pytest.mark.parametrize(
    ("message", "context", "expected"),
    [
        (
            "Handled event for serviceUnit",
            {
                "broker": "b1:8080", "event": "Transfer:Owned", "serviceUnit": _BUNDLE,
                "cur": _record("Owned", "b1:8080", "b4:8080"), "next": "",
            },
            {"event": "owned", "broker": "b1:8080"},
        ),
        (
            "Successfully split parent namespace-bundle",
            {
                "childBundles": f"[{_NAMESPACE}/0x40000000_0x50000000, {_NAMESPACE}/0x50000000_0x80000000]",
                "parentBundle": _BUNDLE,
            },
            {"event": "split", "broker": "b1:8080", "boundaries": ["0x40000000", "0x50000000", "0x80000000"]},
        ),
    ],
)  # fmt: skip
def test_events_of_5_0_have_attributes(
    message: str, context: dict[str, str], expected: dict[str, Any], is_json: bool
) -> None:
    """The same comes from the context map in JSON, and behind the message, where a record has commas of its own."""
    attributes = ", ".join(f"{key}={value}" for key, value in context.items())
    line = _json(message, **context) if is_json else _line(f"{message} {{{attributes}}}")

    assert _rows(line) == [{"ts": _TS, "bundle": _BUNDLE, **expected}]


@pytest.mark.parametrize(
    "message",
    [
        # Both ends of a transfer print it; this is the log of the old owner.
        _handled("b4:8080", _record("Owned", "b1:8080", "b4:8080")),
        # The leader has printed the override.
        _handled("b1:8080", _record("Owned", "b1:8080", "b4:8080", force="true")),
        # Debug mode prints first assignments too, which `Selected new owner broker` says.
        _handled("b1:8080", _record("Owned", "b1:8080"), "Owned"),
        _handled("b1:8080", _record("Assigning", "b1:8080", "b4:8080"), "Transfer:Assigning"),
        f"Complete unload bundle: {_BUNDLE}",
        f"Unloading bundle:{_BUNDLE} with 3 topics completed in 25.0 ms",
        f"[null] Successfully split namespace bundle {_RANGE}",
        (
            f"Overriding inactiveBroker:b4:8080, ownership serviceUnit:{_BUNDLE} from orphanData:"
            f"{_record('Assigning', 'b4:8080')} to overrideData:{_record('Free', None, 'b4:8080', force='true')}"
        ),
        # A transfer, whose release the owner prints.
        (
            f"[TransferShedder] Unloading bundle: Unload[sourceBroker=b3:8080, serviceUnit={_BUNDLE}, "
            "destBroker=Optional[b1:8080], force=true]"
        ),
    ],
)
def test_lines_that_repeat_a_change_are_no_rows(message: str) -> None:
    """Each change is read from one of the lines that brokers print of it."""
    assert _rows(_line(message)) == []


_ASKED = _line(f"[null] Unloading namespace bundle {_BUNDLE}")
_CLOSED = _line(f"Unloading bundle:{_BUNDLE} with 3 topics completed in 25.0 ms", 1)
_DONE = _line(f"[null] Successfully unloaded namespace bundle {_RANGE}", 2)
_UNLOADED = {"ts": _TS + 2_000_000, "bundle": _BUNDLE, "event": "unloaded", "broker": "b1:8080", "by": "admin"}


def test_an_unload_has_its_namespace_from_the_line_that_asks_for_it() -> None:
    """The line of success has a range only, with or without a line about closed topics between."""
    assert _rows(_ASKED, _CLOSED, _DONE) == [_UNLOADED]
    assert _rows(_ASKED, _DONE) == [_UNLOADED]


def test_an_unload_is_that_of_the_bundle_whose_topics_were_closed() -> None:
    """A request for the same range of another namespace, which another broker carries out, does not take it."""
    other = _line(f"[null] Unloading namespace bundle public/other/{_RANGE}", 1)
    assert _rows(_ASKED, _CLOSED, other, _DONE) == [_UNLOADED]
    assert _rows(other, _ASKED, _DONE) == [_UNLOADED]


def test_an_unload_of_5_0_has_its_namespace_in_an_attribute() -> None:
    """The line that asks for it has range and namespace apart, and the line of success the range alone."""
    asked = _line(f"Unloading namespace bundle {{bundleRange={_RANGE}, clientAppId=null, namespace={_NAMESPACE}}}")
    done = _line(f"Successfully unloaded namespace bundle {{bundle={_RANGE}, clientAppId=null}}", 2)

    assert _rows(asked, done) == [_UNLOADED]


def test_an_unload_of_an_unowned_bundle_is_no_unload() -> None:
    """The broker says that there is no owner, and success all the same."""
    unowned = _line(f"[null] Namespace bundle is not owned by any broker {_BUNDLE}", 1)
    assert _rows(_ASKED, unowned, _DONE) == []


def test_a_refused_unload_is_forgotten() -> None:
    """What follows for the same range belongs to another request."""
    failed = _line(f"[null] Failed to unload namespace bundle {_BUNDLE}", 1)
    (bad,) = read_lines(PulsarBrokerReader(), _ASKED, failed, _DONE)

    assert isinstance(bad, Unreadable)
    assert "no namespace" in bad.reason
    assert bad.reason.endswith(_RANGE)


def test_an_unload_to_an_inactive_broker_is_refused() -> None:
    """Pulsar 5.0 says so twice, first with the namespace as the bundle; nothing is unloaded, and each line is read."""
    asked = _line(f"Unloading namespace bundle {{bundleRange={_RANGE}, clientAppId=null, namespace={_NAMESPACE}}}")
    what = f"bundleRange={_RANGE}, clientAppId=null"
    warned = _line(
        f"Failed to unload namespace bundle to inactive broker {{broker=b9:8080, bundle={_NAMESPACE}, {what}}}", 1
    )
    failed = _line(f"Failed to unload namespace bundle {{{what}, namespace={_NAMESPACE}}}", 1)

    assert _rows(asked, warned, failed) == []


def test_an_unload_to_a_broker_is_an_admins_release() -> None:
    """The release is the row, and success adds none."""
    release = _handled("b1:8080", _record("Releasing", "b2:8080", "b1:8080"), "Transfer:Releasing")
    assert _rows(_ASKED, _CLOSED, _line(release, 1), _DONE) == [{**_UNLOADED, "ts": _TS + 1_000_000}]


def test_the_unload_that_carries_out_a_shed_is_no_admins() -> None:
    """A shedder calls the admin API itself: what follows its decision within a minute is its own."""
    shed = _line(f"Unloading bundle: {_BUNDLE} from broker b3:8080")
    done = _line(f"[null] Successfully unloaded namespace bundle {_BUNDLE}", 2)
    assert [row["by"] for row in _rows(shed, done)] == ["policy", "policy"]


def _skipped(late: str, valid: str) -> str:
    topic = "persistent://pulsar/system/loadbalancer-service-unit-state"
    return _line(f"Skipped the message from topic {topic}. key={_BUNDLE} value={late} prev={valid}", 1)


_SELECTED = _line(f"Selected new owner broker: b2:8080 for bundle: {_BUNDLE}.")


@pytest.mark.parametrize(
    ("late", "valid", "holds"),
    [
        (_record("Assigning", "b2:8080", ms=3), _record("Assigning", "b3:8080", ms=-40), False),
        (_record("Assigning", "b3:8080", ms=40), _record("Assigning", "b2:8080", ms=3), True),
        # The other broker chose the same owner; it is that one's row which goes.
        (_record("Assigning", "b2:8080", ms=40), _record("Assigning", "b2:8080", ms=3), True),
        (_record("Owned", "b2:8080", ms=3), _record("Assigning", "b3:8080", ms=-40), True),
        # The same owner was chosen by both, and here later.
        (_record("Assigning", "b2:8080", ms=3), _record("Assigning", "b2:8080", ms=-1), False),
        # Both records follow this choice: either may be its own.
        (_record("Assigning", "b2:8080", ms=3), _record("Assigning", "b2:8080", ms=3), True),
        (_record("Assigning", "b2:8080", ms=3), _record("Assigning", "b3:8080", ms=2), False),
        # An earlier choice of the same owner that came too late, printed when this one had been made.
        (_record("Assigning", "b2:8080", ms=-271), _record("Releasing", None, "b2:8080", ms=-700), True),
        # Long after this choice, which held, the bundle was unloaded and another broker chose the same owner too late.
        (_record("Assigning", "b2:8080", ms=1275), _record("Owned", "b3:8080", ms=1286), True),
    ],
)
def test_a_choice_that_came_too_late_is_no_row(late: str, valid: str, *, holds: bool) -> None:
    """Of two brokers that choose at the same time, the one whose record is skipped withdraws its row."""
    assert len(_rows(_SELECTED, _skipped(late, valid))) == holds


@pytest.mark.parametrize("is_json", [False, True])
def test_a_choice_of_5_0_that_came_too_late_is_no_row(is_json: bool) -> None:
    """Bundle and records are attributes, behind the text or in JSON; of other topics no record is meant."""
    late, valid = _record("Assigning", "b2:8080", ms=3), _record("Assigning", "b3:8080", ms=-40)
    attributes = {"key": _BUNDLE, "prev": valid, "topic": "persistent://pulsar/system/x", "value": late}
    text = ", ".join(f"{name}={value}" for name, value in attributes.items())
    message = "Skipped the message"
    skipped = _json(message, **attributes) if is_json else _line(f"{message} {{{text}}}", 1)
    other = _json(message, key="b4:8080", prev="BrokerLoadData(cpu=1)", value="BrokerLoadData(cpu=2)")

    assert _rows(_SELECTED, skipped, other) == []
    assert len(_rows(_SELECTED, other)) == 1


def test_times_of_records_are_milliseconds() -> None:
    """A log that counts microseconds may give a choice a later time than its record has."""
    selected = _json(f"Selected new owner broker: b2:8080 for bundle: {_BUNDLE}.", nanos=726_000)
    late, valid = _record("Assigning", "b2:8080"), _record("Assigning", "b3:8080")

    assert _rows(selected, _skipped(late, valid)) == []


def _overriding(before: str) -> str:
    after = _record("Owned", "b3:8080", ms=10_000, force="true")
    parts = f"ownership serviceUnit:{_BUNDLE} from orphanData:{before} to overrideData:{after}"
    return _line(f"Overriding inactiveBroker:b2:8080, {parts}", 10)


@pytest.mark.parametrize(
    ("before", "owners"),
    [
        # The chosen broker had died, and never owned the bundle.
        (_record("Assigning", "b2:8080", ms=3), ["b3:8080"]),
        (_record("Owned", "b2:8080", ms=30), ["b2:8080", "b3:8080"]),
        # Another choice than the one in this log.
        (_record("Assigning", "b2:8080", ms=5_000), ["b2:8080", "b3:8080"]),
    ],
)
@pytest.mark.parametrize("is_of_one_log", [True, False])
def test_a_choice_of_a_broker_that_had_died_is_no_row(before: str, owners: list[str], *, is_of_one_log: bool) -> None:
    """What the leader overrides says whether the broker that it or another chose ever owned the bundle."""
    reader, overriding = PulsarBrokerReader(), _overriding(before)
    logs = [[_SELECTED, overriding]] if is_of_one_log else [[_SELECTED], [overriding]]

    rows = unrefuted(entry for log in logs for entry in read_lines(reader, *log))

    assert [row.values["broker"] for row in rows if isinstance(row, Row) and row.values["event"] == "owned"] == owners


def test_a_refuted_choice_is_that_of_its_cluster() -> None:
    """A broker of another cluster may have the same id, and bundles have the same names."""
    overriding = _overriding(_record("Assigning", "b2:8080", ms=3))

    (refuted,) = [
        entry
        for entry in read_lines(PulsarBrokerReader(cluster_pattern="^([a-z]+)/"), overriding, source="east/broker.log")
        if isinstance(entry, Refuted)
    ]

    assert refuted.values["cluster"] == "east"


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("Successfully unloaded namespace bundle nonsense", "names no bundle"),
        (_handled("b", "ServiceUnitStateData[state=Owned, dstBro"), "no whole record"),
        (_handled("b", _record("Gone", "b")), "state is 'Gone'"),
        (
            _handled("b", "ServiceUnitStateData[state=Owned, dstBroker=b, timestamp=x]"),
            "timestamp of the record is 'x'",
        ),
        (
            f"Successfully split {_BUNDLE} parent namespace-bundle to [{_NAMESPACE}/0x80000000_0x40000000] in 1 ms",
            "does not ascend",
        ),
    ],
)
def test_a_line_that_cannot_be_used_says_why(message: str, reason: str) -> None:
    """Missing names and records that are cut off or unknown are reported."""
    (bad,) = read_lines(PulsarBrokerReader(), _line(message))

    assert isinstance(bad, Unreadable)
    assert reason in bad.reason


def test_service_urls_in_records_become_ids() -> None:
    """`broker_ids` holds for records as for answers."""
    reader = PulsarBrokerReader(broker_ids={"b9:1": "b2:8080"})
    line = _line(f"Selected new owner broker: b9:1 for bundle: {_BUNDLE}.")
    assert one_row(reader, line)["broker"] == "b2:8080"
    assert one_row(reader, _line(_handled("b9:1", _record("Owned", "b9:1", "b4:8080"))))["broker"] == "b2:8080"


def test_records_may_name_brokers_by_ipv6() -> None:
    """The brackets of an address do not end the record."""
    here, there = "[fd00::a0]:8080", "[fd00::a1]:8080"

    (owned,) = _rows(_line(_handled(here, _record("Owned", here, there))), broker=here)

    assert (owned["event"], owned["broker"]) == ("owned", here)
