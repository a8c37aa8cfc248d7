"""The readers on the logs of a session in a real 4.2.4 cluster, held to the truth that was kept beside them."""

from __future__ import annotations

import gzip
import json
import pickle
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from lookup.hooks import LogReader
from lookup.logs.ingest_tasks import SourceJob, read_source
from lookup.logs.readers import CppClientReader, JettyAccessReader, PulsarBrokerReader, SystemTopicsReader
from lookup.model.bundles import NamespaceBundle, topic_hash
from lookup.model.documents import Row
from tests.logs.readers.lines import read_lines
from tests.logs.readers.truth import differences, done_to_bundles, unseen_lookups

_RECORD = Path(__file__).parents[2] / "assets" / "pulsar-4.2.4"
_LAYOUTS = ("clock", "dashes", "pipes", "json")
_Values = dict[str, Any]


def _lines(name: str) -> list[str]:
    return gzip.decompress((_RECORD / name).read_bytes()).decode().split("\n")[:-1]


def _values(reader: LogReader, name: str) -> dict[str, list[_Values]]:
    """Read a file of the record into rows by table; none of it may be unreadable."""
    tables: dict[str, list[_Values]] = {"lookups": [], "ownership": [], "loads": [], "bundles": []}
    for entry in read_lines(reader, *_lines(name), source=name):
        assert isinstance(entry, Row), entry
        tables[entry.table].append(dict(entry.values))
    return tables


def _brokers() -> list[dict[str, str]]:
    brokers: list[dict[str, str]] = json.loads((_RECORD / "about.json").read_text())["brokers"]
    return brokers


def _origin(rack: str) -> dict[str, Any]:
    """Return the parameters of a reader for the log of the broker in a rack."""
    brokers = _brokers()
    broker = next(broker["id"] for broker in brokers if broker["rack"] == rack)
    return {"broker": broker, "broker_ids": {each["service_url"]: each["id"] for each in brokers}}


@pytest.fixture(scope="module")
def logs() -> dict[str, list[_Values]]:
    """Return the rows of all brokers' logs, by table."""
    tables: dict[str, list[_Values]] = {"lookups": [], "ownership": []}
    for rack in "ABC":
        read = _values(PulsarBrokerReader(**_origin(rack)), f"broker-{rack}-2026-11-22.offset.log.gz")
        for table, rows in tables.items():
            rows += read[table]
    return tables


@pytest.fixture(scope="module")
def topics() -> dict[str, list[_Values]]:
    """Return the rows of the system topics, by table."""
    return _values(SystemTopicsReader(), "system-topics.jsonl.gz")


@pytest.fixture(scope="module")
def truth() -> list[_Values]:
    """Return what was asked and done."""
    return [json.loads(line) for line in _lines("truth.jsonl.gz")]


def _answered(truth: Iterable[_Values], *ways: str) -> list[_Values]:
    return [row for row in truth if row["kind"] == "lookup" and row["via"] in ways and row["broker"]]


def test_every_lookup_that_reached_a_broker_is_in_its_debug_log(
    logs: dict[str, list[_Values]], truth: list[_Values]
) -> None:
    """Time, topic, client, the broker that was asked and its answer are those of the client."""
    binary, http = _answered(truth, "java", "python"), _answered(truth, "http")

    assert (len(binary), len(http)) == (3402, 98)
    assert unseen_lookups(binary, logs["lookups"], "client", "asked_broker", "broker") == []
    # The line of a lookup over HTTP has no client.
    over_http = [row for row in logs["lookups"] if "client" not in row]
    assert unseen_lookups(http, over_http, "asked_broker", "broker") == []


def test_changes_of_ownership_in_logs_are_those_of_the_state_topic(
    logs: dict[str, list[_Values]], topics: dict[str, list[_Values]]
) -> None:
    """Owner, bundle and kind agree for 95 of 100 changes at least, and no change is invented."""
    missing, invented = differences(logs["ownership"], topics["ownership"])

    assert invented == []
    assert len(missing) <= 0.05 * len(topics["ownership"])
    assert Counter(row["event"] for row in topics["ownership"]) == {"owned": 65, "unloaded": 16, "split": 2}


def test_causes_in_logs_are_those_of_the_session(logs: dict[str, list[_Values]]) -> None:
    """All unloads were an administrator's, and no other owner than a first one was chosen by a policy."""
    causes = Counter((row["event"], row.get("by")) for row in logs["ownership"])
    assert causes == {
        ("owned", "policy"): 29, ("owned", None): 32, ("unloaded", "admin"): 16, ("split", None): 2,
    }  # fmt: skip


def test_the_state_topic_has_all_that_was_done_to_bundles(
    topics: dict[str, list[_Values]], truth: list[_Values]
) -> None:
    """Each unload and each split that was not refused is a row, a transfer two, and there are no others of the kind."""
    missing, others = differences(topics["ownership"], done_to_bundles(truth))

    assert missing == []
    assert {row["event"] for row in others} == {"owned"}


def test_the_state_topic_explains_every_answer(topics: dict[str, list[_Values]], truth: list[_Values]) -> None:
    """The broker that a client was answered owned the topic's bundle, or was about to, while the client waited."""
    owners: dict[str, list[tuple[int, str | None]]] = {}
    for row in topics["ownership"]:
        if row["event"] == "split":
            for low, high in zip(row["boundaries"], row["boundaries"][1:], strict=False):
                namespace = row["bundle"].rpartition("/")[0]
                owners[f"{namespace}/{low}_{high}"] = [(row["ts"], row["broker"])]
            owners[row["bundle"]].append((row["ts"], None))
        else:
            owner = row["broker"] if row["event"] == "owned" else None
            owners.setdefault(row["bundle"], []).append((row["ts"], owner))
    ranges = {bundle: NamespaceBundle.parse(bundle) for bundle in owners}

    def could_answer(lookup: _Values) -> bool:
        # A transfer takes effect for lookups when it begins, its row is from when it ends.
        first, last = lookup["ts"] - 1_000_000, lookup["ts"] + lookup["took_us"] + 1_000_000
        for bundle, past in owners.items():
            name = ranges[bundle]
            if (
                lookup["topic"].startswith(f"persistent://{name.namespace}/")
                and topic_hash(lookup["topic"]) in name.range
            ):
                ends = [ts for ts, _ in past[1:]] + [last + 1]
                if any(
                    owner == lookup["broker"] and ts <= last and end >= first
                    for (ts, owner), end in zip(past, ends, strict=True)
                ):
                    return True
        return False

    assert [row for row in _answered(truth, "java", "python", "http") if not could_answer(row)] == []


def test_load_topics_are_loads_and_bundles(topics: dict[str, list[_Values]]) -> None:
    """Each report of a broker is a row of LOADS, each entry of a list of top bundles one of BUNDLES."""
    records = [json.loads(line) for line in _lines("system-topics.jsonl.gz")]
    reports = [record["value"] or {} for record in records if record["topic"].endswith("load-data")]

    assert len(topics["loads"]) == sum("cpu" in report for report in reports) == 64
    assert len(topics["bundles"]) == sum(len(report.get("topBundlesLoadData", ())) for report in reports) == 32
    assert {row["broker"] for row in topics["loads"]} == {broker["id"] for broker in _brokers()}


@pytest.mark.parametrize("layout", _LAYOUTS)
def test_every_layout_says_the_same(layout: str) -> None:
    """Ownership, and the lookups of one topic, are the same rows from each layout of one broker's log."""
    reader = PulsarBrokerReader(**_origin("C"))
    offset = _values(reader, "broker-C-2026-11-22.offset.log.gz")
    other = _values(reader, f"broker-C-2026-11-22.{layout}.log.gz")
    # JSON has microseconds, the texts have milliseconds; events of one instant stand in any order.
    for tables in (offset, other):
        for row in (*tables["ownership"], *tables["lookups"]):
            row["ts"] //= 1_000
            row.pop("latency_ms", None)
        tables["ownership"].sort(key=lambda row: (row["ts"], row["bundle"]))

    assert other["ownership"] == offset["ownership"]
    assert other["lookups"] == [row for row in offset["lookups"] if row["topic"].endswith("/topic-10")]
    assert len(other["ownership"]) > 15
    assert len(other["lookups"]) > 20


def test_a_real_info_log_ingests_without_a_refusal(tmp_path: Path) -> None:
    """All lines at INFO and above of a broker's four minutes: ownership and failed lookups, nothing in quarantine."""
    log = tmp_path / "broker-B.log"
    lines = [line for line in _lines("broker-B-2026-11-22.offset.log.gz") if "] DEBUG " not in line]
    log.write_text("\n".join(lines) + "\n")
    reader = pickle.dumps(PulsarBrokerReader(**_origin("B")))
    report = read_source(SourceJob(str(log), 0, reader, "east", str(tmp_path / "stage")))

    assert report.lines > 1_800
    assert report.failure is None
    assert report.reasons == {}
    assert report.rows["ownership"] > 20


@pytest.mark.parametrize("layout", ["offset", *_LAYOUTS])
def test_access_logs_in_every_layout_have_lookups_over_http(layout: str, truth: list[_Values]) -> None:
    """Each HTTP lookup that the broker answered is a row with its client, whatever stands around the request."""
    asked = _origin("C")["broker"]
    rows = _values(JettyAccessReader(broker=asked), f"broker-C-2026-11-22.{layout}.log.gz")["lookups"]
    # The time of an access log is that of the second.
    rows = [{**row, "ts": row["ts"] + 500_000} for row in rows]
    lookups = [
        {**row, "local": "127.0.0.1:0", "ts": row["ts"] - 500_000, "took_us": row["took_us"] + 1_000_000}
        for row in _answered(truth, "http")
        if row["asked"] == asked and (layout == "offset" or row["topic"].endswith("/topic-10"))
    ]

    assert lookups
    assert unseen_lookups(lookups, rows, "client", "asked_broker") == []


def test_the_log_of_a_python_client_has_its_lookups(truth: list[_Values]) -> None:
    """Each answered lookup of the Python clients is a row with client, asked broker and answer."""
    rows = _values(CppClientReader(broker_ids=_origin("A")["broker_ids"]), "python-client.log.gz")["lookups"]
    assert unseen_lookups(_answered(truth, "python"), rows, "client", "asked_broker", "broker") == []
