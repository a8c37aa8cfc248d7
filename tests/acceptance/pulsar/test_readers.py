"""The readers on logs and topics of a cluster that has just written them, held to the truth that was kept beside."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from typing import Any

import pytest

from lookup.collect.observing import follow
from lookup.logs.readers import PulsarBrokerReader, SystemTopicsReader
from lookup.logs.readers.broker_ownership import OWNERSHIP_WORDS
from lookup.model.documents import Row
from tests.acceptance.pulsar import record
from tests.acceptance.pulsar.clients import PythonClients
from tests.acceptance.pulsar.cluster import LAYOUTS, Broker, Cluster
from tests.acceptance.pulsar.recording import recorded_topics
from tests.logs.readers.lines import read_lines, unrefuted
from tests.logs.readers.truth import differences, done_to_bundles, unseen_lookups
from tests.processes import awaited

pytestmark = pytest.mark.pulsar

_NAMESPACE = "public/read"
#: Brokers that choose an owner before they hear of each other do so within this time, µs, on a machine that is slow.
_SIDE_BY_SIDE_US = 3_000_000
_OWNERSHIP = re.compile("|".join(OWNERSHIP_WORDS))
_Values = dict[str, Any]


@dataclass
class _Session:
    """What was asked and done in a session, and what the cluster wrote of it."""

    cluster: Cluster
    truth: list[_Values]
    #: OWNERSHIP rows of the session's namespace, from the state topic
    changes: list[_Values]
    #: by range, as brokers name them at the end
    owned: dict[str, Broker]

    def read_logs(self, layout: str) -> dict[str, list[_Values]]:
        """Read all brokers' logs in a layout into rows by table; nothing may be unreadable."""
        ids = {broker.service_url: broker.id for broker in self.cluster.brokers.values()}
        entries = []
        for broker in self.cluster.brokers.values():
            # One of the layouts has no date.
            day = time.strftime("%Y-%m-%d", time.gmtime(self.truth[0]["ts"] / 1e6))
            reader = PulsarBrokerReader(broker=broker.id, broker_ids=ids, date=day)
            entries.extend(read_lines(reader, *broker.log(layout).read_text(errors="replace").split("\n")[:-1]))
        tables: dict[str, list[_Values]] = {"lookups": [], "ownership": []}
        for row in unrefuted(entries):
            assert isinstance(row, Row), row
            tables[row.table].append(dict(row.values))
        return tables

    def said_of(self, rows: list[_Values], layout: str) -> str:
        """Return what logs and the state topic say of the bundles of some rows: why a reader was wrong."""
        bundles = {row["bundle"] for row in rows}
        lines = [f"state topic: {row}" for row in self.changes if row["bundle"] in bundles]
        for broker in self.cluster.brokers.values():
            lines.extend(
                f"{broker.id}: {line}"
                for line in broker.log(layout).read_text(errors="replace").split("\n")
                if any(bundle in line for bundle in bundles) and _OWNERSHIP.search(line)
            )
        return "\n".join(lines)


def _of_the_session(rows: list[_Values]) -> list[_Values]:
    return [row for row in rows if row["bundle"].startswith(f"{_NAMESPACE}/")]


def _play(session: record.Session) -> None:
    """Assign, unload, move and split bundles, and lose a broker, with lookups all the time."""
    cluster = session.cluster
    session.create_namespace(_NAMESPACE, bundles=12, topics=60)
    session.start()
    awaited(lambda: len(cluster.owned(_NAMESPACE)), "owners of all bundles", enough=lambda owners: owners == 12)
    for _ in range(4):
        session.unload(_NAMESPACE, session.any_owned(_NAMESPACE)[0])
        bundle, owner = session.any_owned(_NAMESPACE)
        session.unload(_NAMESPACE, bundle, session.other_than(owner))
    session.split(_NAMESPACE)
    lost = session.other_than(session.leader())
    session.kill(lost)
    awaited(lambda: len(cluster.owned(_NAMESPACE)), "other owners", enough=lambda owners: owners >= 13)
    session.restart(lost)


@pytest.fixture(scope="module")
def session(cluster: Cluster, python: PythonClients, tmp_path_factory: pytest.TempPathFactory) -> _Session:
    """Play a session with DEBUG logs, and read the state topic beside it."""
    folder = tmp_path_factory.mktemp("session")
    reading = python.open(cluster.service_url)
    cluster.set_debug(on=True)
    with recorded_topics(reading, folder):
        played = record.Session(cluster, python, folder, rate=30, seed=1)
        try:
            _play(played)
        finally:
            played.close()
        owned = cluster.owned(_NAMESPACE)
        states = folder / "service-unit-state.jsonl"

        def changes() -> list[_Values]:
            rows = read_lines(SystemTopicsReader(), *states.read_text().splitlines())
            return _of_the_session([dict(row.values) for row in rows if isinstance(row, Row)])

        # What is read comes after what is so.
        read = awaited(changes, "the owners that brokers name", enough=lambda rows: _owners(rows) == _ids(owned))
    reading.close()
    cluster.set_debug(on=False)
    truth = [json.loads(line) for line in (folder / "truth.jsonl").read_text().splitlines()]
    return _Session(cluster, truth, read, owned)


def _changes(rows: list[_Values]) -> list[_Values]:
    """Leave out who is chosen again: brokers that choose the same owner side by side all say so."""
    last: dict[str, _Values] = {}
    changes = []
    for row in sorted(rows, key=lambda row: row["ts"]):
        before = last.get(row["bundle"])
        is_again = (
            before is not None
            and row["event"] == before["event"] == "owned"
            and row["broker"] == before["broker"]
            and row["ts"] - before["ts"] <= _SIDE_BY_SIDE_US
        )
        if not is_again:
            changes.append(row)
        last[row["bundle"]] = row
    return changes


def _said_by_brokers(changes: list[_Values]) -> list[_Values]:
    """Leave out that the children of a split are owned: the state topic has a record of each, and logs have none."""
    owners: dict[str, str] = {}
    said = []
    for row in changes:
        if row["event"] != "owned" or owners.get(row["bundle"]) != row["broker"]:
            said.append(row)
        follow(owners, row)
    return said


def _owners(changes: list[_Values]) -> dict[str, str]:
    owners: dict[str, str] = {}
    for row in changes:
        follow(owners, row)
    return owners


def _ids(owned: dict[str, Broker]) -> dict[str, str]:
    return {f"{_NAMESPACE}/{bundle}": broker.id for bundle, broker in owned.items()}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_lookup_is_in_the_debug_logs(session: _Session, layout: str) -> None:
    """Each lookup that was answered is found with its client, the broker that was asked and the answer."""
    asked = [row for row in session.truth if row["kind"] == "lookup" and row["via"] != "http" and row["broker"]]

    rows = session.read_logs(layout)["lookups"]

    assert len(asked) > 300
    assert unseen_lookups(asked, rows, "client", "asked_broker", "broker") == []


@pytest.mark.parametrize("layout", LAYOUTS)
def test_ownership_in_logs_is_that_of_the_state_topic(session: _Session, layout: str) -> None:
    """Of 100 changes 95 are found, with owner, bundle and kind and within 3 s, and none is invented."""
    rows = _of_the_session(session.read_logs(layout)["ownership"])

    said = _said_by_brokers(session.changes)
    missing, invented = differences(_changes(rows), said)

    assert invented == [], session.said_of(invented, layout)
    assert len(missing) <= 0.05 * len(said)
    # Twelve first owners, four unloads, four moves and a split at least; how many follow from a lost broker is luck.
    assert len(session.changes) > 20
    assert {row["event"] for row in session.changes} == {"owned", "unloaded", "split"}


def test_state_topic_has_all_changes(session: _Session) -> None:
    """From the state topic come all that was done to bundles, and the owners that brokers name at the end."""
    missing, others = differences(session.changes, done_to_bundles(session.truth))

    assert missing == []
    # A bundle whose owner was taken away, or lost, gets another; that is nobody's command.
    assert {row["event"] for row in others} == {"owned"}
    assert _owners(session.changes) == _ids(session.owned)
