"""Observers turn what a cluster publishes into rows, whatever it publishes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.collect.observing import (
    BrokerRegistry,
    BrokerReport,
    Bundles,
    CaughtUp,
    Observer,
    Past,
    Record,
    SourceTrouble,
    StateRecord,
    TopBundles,
    follow,
)
from lookup.logs.columns import check_row
from tests.collect.session import records, rows_of, state_records, taken

_HALVES = (0, 0x80000000, 0xFFFFFFFF)
_QUARTERS = (0, 0x40000000, 0x80000000, 0xFFFFFFFF)


def _owned(bundle: str, broker: str, version: int, ts_ms: int) -> StateRecord:
    text = json.dumps({"state": "Owned", "dstBroker": broker, "timestamp": ts_ms, "versionId": version})
    return StateRecord(bundle, text, ts_ms * 1_000, (1, version, -1))


def _splitting(bundle: str, broker: str, middle: str) -> StateRecord:
    low, _, high = bundle.rpartition("/")[2].partition("_")
    children = {f"{low}_{middle}": None, f"{middle}_{high}": None}
    record = {"state": "Splitting", "sourceBroker": broker, "splitServiceUnitToDestBroker": children, "versionId": 2}
    return StateRecord(bundle, json.dumps(record), 2_000, (1, 2, -1))


def _node(rack: str, started: int = 1) -> str:
    return json.dumps({"startTimestamp": started, "properties": {"lookup.rack": rack}})


# The state topic.


def test_session_gives_the_owners_that_its_last_records_name() -> None:
    """Following the rows of a real session leaves exactly the owners of the bundles whose last record is Owned."""
    session = state_records()
    last = {record.bundle: json.loads(record.text) for record in session if record.text}
    gone = {record.bundle for record in session if not record.text}

    owners: dict[str, str] = {}
    for row in rows_of(taken(Observer("c"), session), "ownership"):
        follow(owners, row)

    assert owners == {
        bundle: data["dstBroker"] for bundle, data in last.items() if data["state"] == "Owned" and bundle not in gone
    }


@pytest.mark.parametrize("written", range(0, 136, 9))
def test_record_that_goes_on_is_the_record_that_was_not_interrupted(written: int) -> None:
    """Killed anywhere and started again, the collector reads the topic anew and has each row once."""
    session = state_records()
    whole = rows_of(taken(Observer("c"), session), "ownership")
    killed = taken(Observer("c"), session[:written])
    before = rows_of(killed, "ownership")
    past = Past(position=killed.position)
    for row in before:
        follow(past.owners, row)

    again = taken(Observer("c", past), [*session, CaughtUp(9)])

    assert before + rows_of(again, "ownership") == whole


@pytest.mark.parametrize("written", range(0, 136, 9))
def test_what_compaction_removed_in_a_gap_is_made_up_for(written: int) -> None:
    """If the topic kept only the last record of each bundle, the rows still lead to the owners there are."""
    session = state_records()
    compacted = {record.bundle: record for record in session}
    kept = sorted((record for record in compacted.values() if record.text), key=lambda record: record.position)
    killed = taken(Observer("c"), session[:written])
    past = Past(position=killed.position)
    for row in rows_of(killed, "ownership"):
        follow(past.owners, row)
    owners, true = dict(past.owners), {}

    again = taken(Observer("c", past), [*kept, CaughtUp(session[-1].ts_us)])

    for row in rows_of(again, "ownership"):
        follow(owners, row)
    for row in rows_of(taken(Observer("c"), session), "ownership"):
        follow(true, row)
    assert owners == true


def test_owner_that_has_a_bundle_again_after_a_gap_is_recorded() -> None:
    """The topic says that it owns the bundle since a later time, whatever compaction has left of the time between."""
    past = Past(owners={"t/n/0x00000000_0xffffffff": "a:1"}, position=(0, 9, -1))

    observer = taken(Observer("c", past), [_owned("t/n/0x00000000_0xffffffff", "a:1", 12, 5), CaughtUp(9)])

    assert [(row["ts"], row["broker"]) for row in rows_of(observer, "ownership")] == [(5_000, "a:1")]


def test_topic_of_a_new_cluster_of_that_name_is_recorded() -> None:
    """Where the topic was made anew, its messages have smaller positions, and still nothing is taken for recorded."""
    past = Past(owners={"t/n/0x00000000_0xffffffff": "a:1"}, position=(900, 0, -1))

    observer = taken(Observer("c", past), [_owned("t/n/0x00000000_0xffffffff", "b:1", 1, 5), CaughtUp(9)])

    assert [(row["event"], row["broker"]) for row in rows_of(observer, "ownership")] == [("owned", "b:1")]


def test_records_of_a_bundle_never_go_back_in_time() -> None:
    """A broker whose clock is behind does not put its record before the one that it follows in the topic."""
    bundle = "t/n/0x00000000_0xffffffff"
    release = json.dumps({"state": "Releasing", "sourceBroker": "a:1", "versionId": 2})

    observer = taken(Observer("c"), [_owned(bundle, "a:1", 1, 5), StateRecord(bundle, release, 3_000, (1, 2, -1))])

    assert [(row["ts"], row["event"]) for row in rows_of(observer, "ownership")] == [
        (5_000, "owned"),
        (5_000, "unloaded"),
    ]


# Junk.


@pytest.mark.parametrize(
    "record",
    [
        StateRecord("t/n/0x00000000_0xffffffff", "{", 1, (1, 1, -1)),
        StateRecord("t/n/0x00000000_0xffffffff", "[]", 1, (1, 1, -1)),
        StateRecord("t/n/0x00000000_0xffffffff", '{"state": "Lost"}', 1, (1, 1, -1)),
        StateRecord("t/n/0x00000000_0xffffffff", '{"state": "Owned"}', 1, (1, 1, -1)),
        StateRecord("t/n/0x00000000_0xffffffff", "[" * 10_000, 1, (1, 1, -1)),
        StateRecord("no bundle", '{"state": "Owned", "dstBroker": "a:1"}', 1, (1, 1, -1)),
        StateRecord("", "", 1, (1, 1, -1)),
        BrokerReport("a:1", "nonsense", 1),
        BrokerReport("a:1", '{"cpu": {"usage": NaN}}', 1),
        BrokerReport("", "{}", 1),
        BrokerReport("a:1", "{}", -(10**18)),
        TopBundles('{"topBundlesLoadData": 5}', 1),
        TopBundles('{"topBundlesLoadData": [{"bundleName": "x", "stats": {}}]}', 1),
        BrokerRegistry({"a:1": "nonsense"}, 1),
        Bundles("t/n", (0, 7), 1),
        Bundles("t/n", (), 1),
        Bundles("no namespace", (0, 0xFFFFFFFF), 1),
    ],
)
def test_junk_is_counted(record: Record) -> None:
    """What is not as Pulsar writes it counts once with its reason, and the next message is read."""
    observer = taken(Observer("c"), [record, _owned("t/n/0x00000000_0x80000000", "a:1", 1, 5)])

    assert sum(observer.refused.values()) == 1
    assert list(observer.reasons) == list(observer.refused)
    assert len(observer.pending["ownership"]) == 1


@given(st.text(), st.text(), st.integers(-(2**70), 2**70))
def test_no_message_is_fatal(key: str, text: str, ts_us: int) -> None:
    """Whatever key and text a message has, nothing is raised, and every row can be written."""
    some: list[Record] = [
        StateRecord(key, text, ts_us, (1, 1, -1)),
        BrokerReport(key, text, ts_us),
        TopBundles(text, ts_us),
        BrokerRegistry({key: text}, ts_us),
    ]

    observer = taken(Observer("c"), some)

    for table in ("brokers", "loads", "bundles", "ownership"):
        assert all(isinstance(check_row(table, row, "c"), dict) for row in rows_of(observer, table))


def test_empty_payloads_are_neither_rows_nor_junk() -> None:
    """A broker that leaves empties its reports, for which the registry has the row."""
    observer = taken(Observer("c"), [BrokerReport("a:1", "", 1), TopBundles("", 1)])

    assert not any(observer.pending.values())
    assert not observer.refused


def test_reports_keep_what_brokers_wrote() -> None:
    """Every report of a real session is a row, with limits of -1000 kbit/s as on a loopback device."""
    reports = [record for record in records() if isinstance(record, BrokerReport) and record.text]

    rows = rows_of(taken(Observer("c"), reports), "loads")

    assert [row["load"] for row in rows] == [report.text for report in reports]
    assert json.loads(rows[0]["load"])["bandwidthIn"]["limit"] == -1000.0


def test_top_bundles_are_a_row_each() -> None:
    """Every entry of every list of a real session is a row of BUNDLES."""
    lists = [record for record in records() if isinstance(record, TopBundles) and record.text]
    entries = [entry for each in lists for entry in json.loads(each.text)["topBundlesLoadData"]]

    rows = rows_of(taken(Observer("c"), lists), "bundles")

    assert [(row["bundle"], json.loads(row["stats"])) for row in rows] == [
        (entry["bundleName"], entry["stats"]) for entry in entries
    ]


# The registry.


def _events(observer: Observer) -> list[tuple[int, str, str]]:
    return [(row["ts"], row["broker"], row["event"]) for row in rows_of(observer, "brokers")]


def test_registry_is_recorded_with_properties() -> None:
    """Brokers come with what they publish, change it and go; what stays as it was is no row."""
    looks = [{"a": _node("A"), "b": None}, {"a": _node("A"), "b": None}, {"a": _node("Z")}]

    observer = taken(Observer("c"), [BrokerRegistry(brokers, ts) for ts, brokers in enumerate(looks)])

    assert _events(observer) == [
        (0, "a", "registered"), (0, "b", "registered"), (2, "b", "unregistered"), (2, "a", "updated"),
    ]  # fmt: skip
    assert rows_of(observer, "brokers")[0]["lookup_data"] == _node("A")


def test_broker_that_started_again_between_two_looks_was_away() -> None:
    """Another time of start means that the broker lost what it owned, though its node was seen both times."""
    observer = taken(
        Observer("c"), [BrokerRegistry({"a": _node("A")}, 0), BrokerRegistry({"a": _node("A", started=2)}, 1)]
    )

    assert _events(observer) == [(0, "a", "registered"), (1, "a", "unregistered"), (1, "a", "registered")]


def test_broker_is_registered_whatever_it_publishes() -> None:
    """A node that is junk is counted, and its broker is registered without data."""
    observer = taken(Observer("c"), [BrokerRegistry({"a": "junk"}, 0), BrokerRegistry({"a": "junk"}, 1)])

    assert _events(observer) == [(0, "a", "registered")]
    assert observer.refused["zookeeper"] == 2


# Bundles.


def _splits(observer: Observer) -> list[dict[str, Any]]:
    return [row for row in rows_of(observer, "ownership") if row["event"] == "split"]


@pytest.mark.parametrize(
    "later",
    [
        [Bundles("t/n", _QUARTERS, 9), CaughtUp(10)],
        [CaughtUp(8), Bundles("t/n", _QUARTERS, 9), Bundles("t/n", _QUARTERS, 600)],
    ],
)
def test_split_that_only_the_list_shows_is_recorded(later: list[Record]) -> None:
    """A boundary that the topic has not explained when it was read, or at the next list, is a split of its bundle."""
    first, owned = Bundles("t/n", _HALVES, 0), _owned("t/n/0x00000000_0x80000000", "a:1", 1, 1)

    observer = taken(Observer("c"), [first, owned, *later])

    assert _splits(observer) == [
        {
            "ts": 9,
            "bundle": "t/n/0x00000000_0x80000000",
            "event": "split",
            "broker": "a:1",
            "boundaries": ["0x40000000"],
        }
    ]
    assert observer.first_boundaries == {"t/n": _HALVES}


def test_topic_that_stays_quiet_explains_nothing_more() -> None:
    """That it has been read is said again and again; a list that shows a split waits for the next list as before."""
    listed = [Bundles("t/n", _HALVES, 0), CaughtUp(8), Bundles("t/n", _QUARTERS, 9)]

    assert _splits(taken(Observer("c"), [*listed, CaughtUp(10), CaughtUp(11)])) == []


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_split_is_recorded_once(order: tuple[int, int]) -> None:
    """The list of bundles and the state topic both show a split; whichever comes first, the topic makes the row."""
    seen: list[Record] = [
        Bundles("t/n", _QUARTERS, 2_000),
        _splitting("t/n/0x00000000_0x80000000", "a:1", "0x40000000"),
    ]

    observer = taken(
        Observer("c"),
        [
            Bundles("t/n", _HALVES, 0), _owned("t/n/0x00000000_0x80000000", "a:1", 1, 1), *(seen[i] for i in order),
            CaughtUp(2_500), Bundles("t/n", _QUARTERS, 3_000), Bundles("t/n", _HALVES, 4_000),
        ],
    )  # fmt: skip

    assert [split["boundaries"] for split in _splits(observer)] == [["0x00000000", "0x40000000", "0x80000000"]]


def test_a_bundle_that_was_split_before_the_first_list_has_no_owner() -> None:
    """The list may come before the topic is read, and shows the children already: the record still ends the parent."""
    parent = "t/n/0x00000000_0x80000000"

    observer = taken(
        Observer("c"),
        [
            Bundles("t/n", _QUARTERS, 3_000),
            _owned(parent, "a:1", 1, 1),
            _splitting(parent, "a:1", "0x40000000"),
            CaughtUp(4_000),
        ],
    )

    owners: dict[str, str] = {}
    for row in rows_of(observer, "ownership"):
        follow(owners, row)
    assert owners == {"t/n/0x00000000_0x40000000": "a:1", "t/n/0x40000000_0x80000000": "a:1"}


def test_lists_alone_show_splits_at_once() -> None:
    """Where the state topic is not read, a split is recorded with the list that shows it."""
    lists = [Bundles("t/n", _HALVES, 0), Bundles("t/n", _QUARTERS, 9), Bundles("t/n", _QUARTERS, 10)]

    observer = taken(Observer("c", has_state=False), lists)

    assert [(split["ts"], split["boundaries"]) for split in _splits(observer)] == [(9, ["0x40000000"])]


def test_splits_of_the_past_are_known() -> None:
    """What the record has split already is no new split when it goes on."""
    past = Past(boundaries={"t/n": _HALVES}, cuts={"t/n": {0x40000000}})

    assert _splits(taken(Observer("c", past), [Bundles("t/n", _QUARTERS, 9), CaughtUp(10)])) == []


# The journal.


def test_lost_sources_are_in_the_journal_once() -> None:
    """When one is lost and when it is back."""
    seen = [
        SourceTrouble("admin", "refused", 3), SourceTrouble("admin", "gone", 4), SourceTrouble("admin", None, 5),
        SourceTrouble("admin", None, 6), SourceTrouble("state", "\ud800", 7),
    ]  # fmt: skip

    rows = rows_of(taken(Observer("c"), seen), "journal")

    assert [(row["ts"], row["event"], row.get("detail")) for row in rows] == [
        (3, "lost", "refused"), (5, "back", None), (7, "lost", "?"),
    ]  # fmt: skip


def test_rows_wait_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """While nothing can be written, rows beyond the bound are lost and counted."""
    monkeypatch.setattr("lookup.collect.observing._MOST_PENDING", 3)

    observer = taken(Observer("c"), [BrokerReport("a:1", "{}", ts) for ts in range(5)])

    assert (len(observer.pending["loads"]), observer.lost) == (3, {"loads": 2})
