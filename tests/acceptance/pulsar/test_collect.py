"""`lookup collect` beside a real cluster: it records what happens, and an evaluation reads that while it runs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulsar
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lookup.collect.observing import follow
from lookup.engine.service_unit import ServiceUnitStateData
from lookup.logs.readers.system_topics import STATE_TOPIC, OwnershipChanges
from lookup.logs.schema import CANONICAL
from tests.acceptance.pulsar.clients import JavaClients, PythonClients
from tests.acceptance.pulsar.cluster import CLUSTER, Broker, Cluster
from tests.processes import awaited, connected

pytestmark = pytest.mark.pulsar

_NAMESPACE = "public/collected"

_EVALUATION = """
[evaluation]
incumbent = "stock"
load = "reported"
owner_loss = "leader"
warmup_s = 0
seeds = 2

[inputs]
lookups = "lookups.parquet"
brokers = "record/brokers"
loads = "record/loads"
bundles = "record/bundles"
ownership = "record/ownership"

[[policies]]
name = "stock"
selector = "least-resource-usage"

[[policies]]
name = "near"
scorers = [{ use = "property-match", key = "rack", weight = 1.0 }]
selector = "best"
"""


def _rows(record: Path, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table in the order in which they were written."""
    return [row for part in sorted((record / table).glob("part-*")) for row in pq.read_table(part).to_pylist()]


def _state_topic(client: pulsar.Client) -> list[dict[str, Any]]:
    """Return the changes of ownership in the state topic, read whole and by a reader of its own."""
    reader = client.create_reader(STATE_TOPIC, pulsar.MessageId.earliest)
    changes, rows = OwnershipChanges(), []
    while reader.has_message_available():
        message = reader.read_next(20_000)
        text = message.data().decode()
        data = ServiceUnitStateData.from_json(text) if text else None
        rows.append(changes.take(message.partition_key(), data, message.publish_timestamp() * 1_000))
    reader.close()
    return [row for row in rows if row is not None]


@dataclass
class _Collected:
    """A record, and what the cluster said of itself at the end."""

    record: Path
    #: changes of ownership in the state topic
    changes: list[dict[str, Any]]
    registry: Mapping[str, dict[str, Any]]
    owned: Mapping[str, Broker]
    lost: Broker
    ended: subprocess.CompletedProcess[str]
    evaluated: subprocess.CompletedProcess[str]


def _start(cluster: Cluster, record: Path) -> subprocess.Popen[str]:
    """Start a collector; return it when it has caught up with the topic and the registry."""
    admin = "http://" + ",".join(broker.web_url.removeprefix("http://") for broker in cluster.brokers.values())
    before = len(_rows(record, "brokers"))
    process = subprocess.Popen(
        [
            sys.executable, "-m", "lookup", "collect", "--output", str(record), "--every", "0.5s",
        ],
        env=connected(admin=admin, service_url=cluster.service_url, zookeeper=cluster.zookeeper),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    awaited(lambda: len(_rows(record, "brokers")) >= max(before, 3) and (record / "namespaces.toml").exists())
    return process


@pytest.fixture(scope="module")
def collected(
    cluster: Cluster, java: JavaClients, python: PythonClients, tmp_path_factory: pytest.TempPathFactory
) -> _Collected:
    """Move, split and lose bundles while a collector runs, which is killed on the way and started again."""
    folder = tmp_path_factory.mktemp("collected")
    record = folder / "record"
    cluster.create_namespace(_NAMESPACE, 4)
    clients = [
        java.open(f"collected-{rack}", broker.service_url, {"rack": rack}) for rack, broker in cluster.brokers.items()
    ]
    lookups: list[dict[str, Any]] = []

    def look_up(count: int) -> None:
        for number in range(count):
            rack, client = "ABC"[number % 2], clients[number % 2]
            topic = f"persistent://{_NAMESPACE}/topic-{number}"
            answer = client.do("lookup", topic=topic)
            owner = cluster.broker_at(answer["broker_url"]).id
            row = {"ts": answer["ts"], "cluster": CLUSTER, "topic": topic, "client": client.name, "broker": owner}
            lookups.append(row | {"properties": json.dumps({"rack": rack}), "result": "connect"})

    process = _start(cluster, record)
    look_up(20)
    owned = cluster.owned(_NAMESPACE)
    first, second, *_ = sorted(owned)
    cluster.unload(_NAMESPACE, first)
    cluster.unload(_NAMESPACE, second, next(broker for broker in cluster.running if broker is not owned[second]))
    # Between a change and its file, so that the next collector has to read it again.
    process.kill()
    process.communicate()
    cluster.split(_NAMESPACE, second)
    lost = cluster.brokers["C"]
    process = _start(cluster, record)
    cluster.kill(lost)
    awaited(
        lambda: [row["event"] for row in _rows(record, "brokers")],
        "the loss of a broker",
        enough=lambda events: "unregistered" in events,
    )
    awaited(
        lambda: {broker.id for broker in cluster.owned(_NAMESPACE).values()},
        "other owners",
        enough=lambda owners: lost.id not in owners,
    )
    cluster.restart(lost)
    look_up(20)
    awaited(
        lambda: _rows(record, "brokers"), "the broker's return", enough=lambda rows: rows[-1]["event"] == "registered"
    )
    columns = {name: [row.get(name) for row in lookups] for name in CANONICAL["lookups"].names}
    table = pa.table({**columns, "weight": [1.0] * len(lookups)}, schema=CANONICAL["lookups"])
    pq.write_table(table, folder / "lookups.parquet")
    (folder / "evaluation.toml").write_text(
        _EVALUATION + (record / "namespaces.toml").read_text(encoding="utf-8"), encoding="utf-8"
    )
    evaluated = subprocess.run(
        [sys.executable, "-m", "lookup", "evaluate", "evaluation.toml", "--output", "report"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    reading = python.open(cluster.service_url)
    count = len(_state_topic(reading))
    awaited(
        lambda: len(_rows(record, "ownership")),
        f"{count} changes of ownership",
        enough=lambda recorded: recorded >= count,
    )
    # A broker reports only what has changed; the one that came back may not have had anything to say yet.
    awaited(
        lambda: {row["broker"] for row in _rows(record, "loads")},
        "a report of each broker",
        enough=lambda brokers: brokers == set(cluster.registry()),
    )
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate()
    ended = subprocess.CompletedProcess(process.args, process.returncode, out, err)
    changes = _state_topic(reading)
    reading.close()
    return _Collected(record, changes, cluster.registry(), cluster.owned(_NAMESPACE), lost, ended, evaluated)


def test_ownership_is_that_of_the_state_topic(collected: _Collected) -> None:
    """Every change of ownership is recorded once, at its time, though the collector was killed; none is invented."""
    rows = [
        {key: value for key, value in row.items() if value is not None and key not in ("ts", "cluster")}
        | {"ts": int(row["ts"].timestamp() * 1_000) * 1_000}
        for row in _rows(collected.record, "ownership")
    ]

    # Brokers give owners to bundles of their own topics at any time, also after the collector has ended.
    assert rows == collected.changes[: len(rows)]
    assert {row["event"] for row in rows if row["bundle"].startswith(_NAMESPACE)} == {"owned", "unloaded", "split"}


def test_owners_at_the_end_are_those_that_brokers_name(collected: _Collected) -> None:
    """Following the rows leads to the owners that each broker says it has."""
    owners: dict[str, str] = {}
    for row in _rows(collected.record, "ownership"):
        follow(owners, row)

    assert {bundle: owner for bundle, owner in owners.items() if bundle.startswith(f"{_NAMESPACE}/")} == {
        f"{_NAMESPACE}/{bundle}": broker.id for bundle, broker in collected.owned.items()
    }


def test_registry_is_recorded_as_published(collected: _Collected) -> None:
    """Brokers are recorded with their lookup properties, and the killed one leaves and comes back."""
    rows = _rows(collected.record, "brokers")
    latest = {row["broker"]: json.loads(row["lookup_data"]) for row in rows if row["lookup_data"]}

    assert latest == collected.registry
    assert [row["event"] for row in rows if row["broker"] == collected.lost.id] == [
        "registered", "unregistered", "registered",
    ]  # fmt: skip
    assert latest[collected.lost.id]["properties"] == {"lookup.rack": "C"}


def test_loads_are_recorded(collected: _Collected) -> None:
    """Brokers' reports are there while the collector runs."""
    assert {row["broker"] for row in _rows(collected.record, "loads")} == set(collected.registry)


def test_gap_and_end_are_marked(collected: _Collected) -> None:
    """The journal has both starts, the time without record, and the end by SIGTERM, which exits with 0."""
    journal = _rows(collected.record, "journal")
    events = [row["event"] for row in journal]
    (gap,) = [row for row in journal if row["event"] == "gap"]

    assert (collected.ended.returncode, "Traceback" in collected.ended.stderr) == (0, False)
    assert (events.count("started"), events[-1]) == (2, "stopped")
    assert gap["since"] < gap["ts"]


def test_nothing_is_half_written(collected: _Collected) -> None:
    """After SIGKILL and SIGTERM the record holds tables and its lock, and no hidden file."""
    hidden = [path.name for path in collected.record.rglob(".*")]

    assert hidden == [".lock"]


def test_record_is_evaluated_while_it_grows(collected: _Collected) -> None:
    """An evaluation reads the five tables as they are, before the collector has ended."""
    assert collected.evaluated.returncode in (0, 3, 4), collected.evaluated.stderr
    assert "near" in collected.evaluated.stdout
