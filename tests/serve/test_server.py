"""The decision server over real HTTP: what it answers, records and counts, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.processes import awaited
from tests.serve.servers import BUNDLE, TOPIC, Server, decide, lookup_entry, read_table, settings_file, started, view


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a policy that decides, and one that is not asked."""
    with started(settings_file(tmp_path_factory.mktemp("server"), 'masked = ["client", "properties.email"]')) as server:
        yield server


def written(server: Server, table: str, **wanted: Any) -> list[dict[str, Any]]:
    """Wait until rows with some values are in a file and return them."""

    def look() -> list[dict[str, Any]]:
        """Return the rows that are there."""
        return [row for row in read_table(server.record, table) if wanted.items() <= row.items()]

    return awaited(look)


def test_health_names_version_and_policy(server: Server) -> None:
    """A broker learns the version of the protocol and the policy that decides."""
    status, content = server.ask("GET", "/health")

    assert (status, content["status"], content["protocol"], content["policy"]) == (200, "ok", 1, "by-rack")


def test_lookups_become_rows_with_properties(server: Server) -> None:
    """A lookup is a row of LOOKUPS with its properties, the asked broker and the answer; masked fields are hidden."""
    entry = lookup_entry(
        topic=f"{TOPIC}-recorded", properties={"rack": "a", "email": "x@y"}, listener="internal", readOnly=True
    )

    status, content = server.ask("POST", "/record", {"broker": "b3:8080", "lookups": [entry], "dropped": 17})

    assert (status, content) == (200, {"accepted": 1, "refused": 0})
    (row,) = written(server, "lookups", topic=f"{TOPIC}-recorded")
    assert row["properties"] == '{"email":"masked","rack":"a"}'
    assert (row["asked_broker"], row["broker"], row["result"]) == ("b3:8080", "b1:8080", "connect")
    assert (row["client"], row["listener"], row["read_only"], row["latency_ms"]) == ("masked", "internal", True, 0.812)
    assert row["ts"].timestamp() == entry["ts"] / 1e6
    assert server.figure('lookup_sender_dropped{broker="b3:8080"}') == 17


def test_lookup_that_cannot_be_recorded_is_counted(server: Server) -> None:
    """Of a batch the sound rows stand; a bad topic, time, answer or property is refused and counted."""
    bad = [
        lookup_entry(topic="no topic"),
        lookup_entry(ts=-(1 << 62)),
        lookup_entry(ts="now"),
        lookup_entry(result="perhaps"),
        lookup_entry(answer=7),
        lookup_entry(bundle=None),
        lookup_entry(properties={"rack": 7}),
        lookup_entry(properties={str(number): "" for number in range(65)}),
        lookup_entry(properties={"rack": "x" * 1_000_000}),
        "no object",
    ]
    before = server.figure("lookup_refused_lookups_total")

    status, content = server.ask("POST", "/record", {"broker": "b1:8080", "lookups": [*bad, lookup_entry()]})

    assert (status, content["accepted"], content["refused"]) == (200, 1, len(bad))
    assert content["reason"].startswith("lookups[0]: topic: ")
    assert server.figure("lookup_refused_lookups_total") == before + len(bad)


def test_decision_falls_on_a_broker_of_the_rack(server: Server) -> None:
    """The policy decides among the candidates, with the odds it states."""
    status, content = server.ask("POST", "/decide", decide(view("a", "b", "a")))

    assert status == 200
    assert content["broker"] in {"b1:8080", "b3:8080"}
    assert (content["propensity"], content["policy"]) == (0.5, "by-rack")


def test_only_candidates_are_chosen(server: Server) -> None:
    """A broker of the view that is no candidate is not chosen."""
    answers = [
        server.ask("POST", "/decide", decide(view("a", "b", "a"), candidates=["b2:8080", "b3:8080"]))[1]
        for _ in range(5)
    ]

    assert {answer["broker"] for answer in answers} == {"b3:8080"}


def test_policy_without_odds_declines(server: Server) -> None:
    """If no broker has odds, the answer names none and says why."""
    status, content = server.ask("POST", "/decide", decide(view("a", "b"), rack="nowhere"))

    assert (status, content["broker"], content["propensity"], content["declined"]) == (200, None, None, "no-odds")


def test_view_is_sent_once(server: Server) -> None:
    """A view is known by its id from then on, to its sender alone; an unknown one is asked for."""
    seen = view("a", "b")
    server.ask("POST", "/decide", decide(seen))
    named = decide(seen) | {"view": {"id": seen["id"]}}

    assert server.ask("POST", "/decide", named)[0] == 200
    assert server.ask("POST", "/decide", named | {"broker": "b9:8080"})[0] == 409
    assert server.ask("POST", "/decide", named | {"view": {"id": "other"}})[0] == 409


def test_decision_is_recorded_with_all_it_depends_on(server: Server) -> None:
    """Odds, propensity, dice, candidates, view and settings stand in DECISIONS, VIEWS and a document."""
    seen = view("a", "b", "a", usage=0.25)

    _, content = server.ask("POST", "/decide", decide(seen, client="10.0.0.9:4000"))

    (row,) = written(server, "decisions", decision=content["decision"], policy="by-rack")
    assert row["odds"] == [("b1:8080", 0.5), ("b3:8080", 0.5)]
    assert (row["broker"], row["propensity"], row["carried"]) == (content["broker"], 0.5, True)
    assert 0.0 <= row["dice"] < 1.0
    assert (row["bundle"], row["topic"], row["client"]) == (BUNDLE, TOPIC, "masked")
    assert row["candidates"] == ["b1:8080", "b2:8080", "b3:8080"]
    assert row["fingerprint"] == f"{row['view']}/all"
    views = written(server, "views", view=row["view"])
    assert [entry["broker"] for entry in views] == row["candidates"]
    assert json.loads(views[0]["load"])["weightedMaxEMA"] == 0.25
    document = json.loads((server.record / "settings" / f"{row['settings']}.json").read_text())
    assert [policy["name"] for policy in document["policies"]] == ["by-rack", "anywhere"]
    assert document["plugins"]["builtin"].startswith("pulsar-lookup ")


def test_broker_in_shadow_carries_nothing_out(server: Server) -> None:
    """A broker that keeps its own choice gets an answer, which is recorded as not carried out."""
    _, content = server.ask("POST", "/decide", decide(view("a", "b"), shadow=True))

    (row,) = written(server, "decisions", decision=content["decision"], policy="by-rack")
    assert row["carried"] is False


def test_lookups_after_a_decision_have_its_propensity(server: Server) -> None:
    """A lookup that got the chosen owner has the probability it was chosen with, any other has none."""
    bundle = "public/default/0x40000000_0x80000000"
    _, content = server.ask("POST", "/decide", decide(view("a", "b", "a"), bundle=bundle))
    entries = [
        lookup_entry(topic=f"{TOPIC}-{number}", bundle=bundle, answer=answer)
        for number, answer in ((1, content["broker"]), (2, "b2:8080"))
    ]

    server.ask("POST", "/record", {"broker": "b1:8080", "lookups": entries})

    assert written(server, "lookups", topic=f"{TOPIC}-1")[0]["propensity"] == 0.5
    assert written(server, "lookups", topic=f"{TOPIC}-2")[0]["propensity"] is None


def test_registry_and_loads_are_recorded_as_they_change(tmp_path: Path) -> None:
    """Brokers register, are updated and leave; a load report is recorded once, an older one never."""
    with started(settings_file(tmp_path)) as server:
        for seen in (view("a", "b", usage=0.1), view("a", "b", usage=0.2), view("c", "b"), view("c")):
            assert server.ask("POST", "/decide", decide(seen))[0] == 200
        assert server.stop() == 0
    brokers = [(row["broker"], row["event"]) for row in read_table(tmp_path / "record", "brokers")]

    assert sorted(brokers[:2]) == [("b1:8080", "registered"), ("b2:8080", "registered")]
    assert brokers[2:] == [("b1:8080", "updated"), ("b2:8080", "unregistered")]
    assert len(read_table(tmp_path / "record", "loads")) == 2


def test_broker_leaves_when_no_view_has_it(tmp_path: Path) -> None:
    """A broker that one of the others does not see any more is registered until none does."""
    with started(settings_file(tmp_path)) as server:
        for sender, seen in (("b1", view("a", "b")), ("b2", view("a", "b")), ("b1", view("a")), ("b2", view("a"))):
            assert server.ask("POST", "/decide", decide(seen, broker=f"{sender}:8080"))[0] == 200
        server.ask("POST", "/decide", decide(view("b"), broker="b2:8080"))
        assert server.stop() == 0
    brokers = read_table(server.record, "brokers")
    decisions = [row for row in read_table(server.record, "decisions") if row["policy"] == "by-rack"]

    (left,) = [row for row in brokers if row["event"] == "unregistered"]
    assert left["broker"] == "b2:8080"
    assert decisions[2]["ts"] < left["ts"]


def test_decision_is_explained(server: Server) -> None:
    """Every broker's scores and odds can be asked for by the name of the decision."""
    _, content = server.ask("POST", "/decide", decide(view("a", "b")))

    status, explained = server.ask("GET", f"/explain/{content['decision']}")

    assert (status, explained["broker"]) == (200, content["broker"])
    assert [(vote["broker"], vote["score"]) for vote in explained["brokers"]] == [("b1:8080", 1.0), ("b2:8080", 0.0)]
    assert server.ask("GET", "/explain/none")[0] == 404


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"{", "the body is not JSON"),
        (b"\xff\xfe", "not JSON in UTF-8"),
        (b"[" * 5000, "nested too deep"),
        (b"[]", "not an object"),
        (decide(view("a"), bundle="x"), "bundle: "),
        (decide(view("a"), broker=...), "broker is missing"),
        (decide(view("a"), ts=1e300), "ts is "),
        (decide(view("a"), ts=True), "ts is True"),
        (decide(view("a"), properties=[]), "properties is []"),
        (decide(view("a"), candidates=[]), "candidates has 0 entries"),
        (decide(view("a"), candidates=[7]), "candidates is [7]"),
        (decide(view("a"), candidates="b1:8080"), "candidates is 'b1:8080'"),
        (decide(view("a"), candidates=["b1:8080", "b1:8080"]), "names a broker twice"),
        (decide(view("a"), candidates=["b7:8080"]), "'b7:8080'"),
        (decide({"id": "x", "brokers": {"b1:8080": {"lookupData": {"properties": 3}}}}), "broker b1:8080: properties"),
        (decide({"id": "x", "brokers": {"b1:8080": {"lookupData": {}, "load": {"cpu": 3}}}}), "broker b1:8080: cpu"),
        (decide({"id": "x", "brokers": {"b1:8080": None}}), "view.brokers.'b1:8080' is None"),
        (decide({"id": "x", "brokers": {"": {"lookupData": {}}}}), "view.brokers"),
        (decide({"id": "x", "brokers": dict.fromkeys(map(str, range(10_001)))}, candidates=["0"]), "has 10001 entries"),
        (decide(view("a"), ts=float("nan")), "ts is nan"),
        (decide(view("a"), view={"id": "x" * 201}), "view.id has 201 characters"),
    ],
)
def test_malformed_request_is_answered_with_a_sentence(server: Server, body: Any, sentence: str) -> None:
    """What is no request of the protocol is answered 400, with what is wrong; the server goes on."""
    status, content = server.ask("POST", "/decide", body)

    assert status == 400
    assert sentence in content["error"]
    assert server.ask("GET", "/health")[0] == 200


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"{", "the body is not JSON"),
        (b'{"broker": "b1:8080", "lookups": [' + b"[" * 5000, "nested too deep"),
        ({"lookups": []}, "broker is missing"),
        ({"broker": "b1:8080", "lookups": [], "dropped": -1}, "dropped is -1"),
        ({"broker": 7, "lookups": []}, "broker is 7, not a text"),
        ({"broker": "b1:8080", "lookups": 3}, "lookups is 3, not a list"),
        ({"broker": "b1:8080", "lookups": [{}] * 1001}, "lookups has 1001 entries"),
        ({"broker": "b1:8080", "dropped": "many", "lookups": []}, "dropped is 'many'"),
    ],
)
def test_malformed_batch_is_answered_with_a_sentence(server: Server, body: Any, sentence: str) -> None:
    """What is no batch of lookups is answered 400 as a whole, and nothing of it is recorded."""
    before = server.figure("lookup_recorded_lookups_total")

    status, content = server.ask("POST", "/record", body)

    assert status == 400
    assert sentence in content["error"]
    assert server.figure("lookup_recorded_lookups_total") == before


def test_brokers_that_nobody_knows_are_recorded_as_they_are(server: Server) -> None:
    """A lookup names brokers that no view has, and is a row like others: views come with decisions only."""
    topic = "persistent://public/default/of-strangers"
    body = {"broker": "stranger:1", "lookups": [lookup_entry(topic=topic, answer="other:2")]}

    assert server.ask("POST", "/record", body)[1]["accepted"] == 1
    (row,) = written(server, "lookups", topic=topic)
    assert (row["asked_broker"], row["broker"], row["propensity"]) == ("stranger:1", "other:2", None)


@pytest.mark.parametrize(
    ("path", "body", "sentence"),
    [
        ("/decide", decide(view("a"), properties={"rack": "x" * 1_100_000}), "larger than 1048576 bytes"),
        ("/decide", decide(view("a"), properties={"rack": "x" * 5000}), "5000 characters"),
        ("/decide", decide(view("a"), properties={str(n): "" for n in range(100)}), "100 are more than the 64"),
        ("/record", b" " * 4_300_000, "larger than 4194304 bytes"),
    ],
)
def test_too_large_a_request_is_refused(server: Server, path: str, body: Any, sentence: str) -> None:
    """A megabyte of properties, or too many of them, is answered 413."""
    status, content = server.ask("POST", path, body)

    assert status == 413
    assert sentence in content["error"]


def test_half_a_surrogate_pair_is_recorded(server: Server) -> None:
    """JSON can hold a text that Parquet cannot; the row is written all the same."""
    body = json.dumps(decide(view("a", "b"), listener="\ud800")).encode()

    status, content = server.ask("POST", "/decide", body)

    assert status == 200
    assert written(server, "decisions", decision=content["decision"])[0]["listener"] == "?"


def test_only_the_latest_decisions_can_be_explained(server: Server) -> None:
    """The oldest of more than a thousand is forgotten."""
    named = [server.ask("POST", "/decide", decide(view("a", "b")))[1]["decision"] for _ in range(1001)]

    assert [server.ask("GET", f"/explain/{named[place]}")[0] for place in (0, 1, -1)] == [404, 200, 200]


def test_other_protocol_and_path_are_refused(server: Server) -> None:
    """A broker that speaks another version learns which is spoken; an unknown path is 404."""
    status, content = server.ask("GET", "/health", headers={"X-Lookup-Protocol": "2"})

    assert (status, "protocol 2" in content["error"]) == (400, True)
    assert server.ask("GET", "/elsewhere")[0] == 404
    assert server.ask("GET", "/decide")[0] == 405


def test_token_is_needed_where_one_is_set(tmp_path: Path) -> None:
    """Without the token nothing is answered but /health, and the token is in no output."""
    (tmp_path / "token").write_text("s3cret\n")
    with started(settings_file(tmp_path, 'token_file = "token"')) as server:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "s3cret"}):
            assert server.ask("POST", "/decide", decide(view("a")), headers)[0] == 401
        right = {"Authorization": "Bearer s3cret"}
        assert server.ask("POST", "/decide", decide(view("a")), right)[0] == 200
        assert server.ask("GET", "/metrics", headers=right)[0] == 200
        assert (server.ask("GET", "/health")[0], server.ask("GET", "/metrics")[0]) == (200, 401)
        assert server.stop() == 0
    assert "s3cret" not in "".join(server.said)
    assert not any(b"s3cret" in file.read_bytes() for file in server.record.rglob("*") if file.is_file())


def test_server_without_policy_records_only(tmp_path: Path) -> None:
    """Without policies lookups are recorded, and a request to decide is answered 404."""
    with started(settings_file(tmp_path, policies="")) as server:
        assert server.ask("GET", "/health")[1]["policy"] is None
        assert server.ask("POST", "/record", {"broker": "b1:8080", "lookups": [lookup_entry()]})[0] == 200
        assert server.ask("POST", "/decide", decide(view("a")))[0] == 404
        assert server.stop() == 0
    assert len(read_table(server.record, "lookups")) == 1


def test_requests_in_flight_are_bounded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """More requests at once than the bound are refused with 503 and the time to wait, never queued."""
    monkeypatch.setattr("lookup.serve.connections.PATIENCE_S", 2.0)
    with started(settings_file(tmp_path, "max_in_flight = 1")) as server, ThreadPoolExecutor(1) as pool:
        hanging = [pool.submit(_hangs, server)]

        def is_refused() -> bool | None:
            # A body that does not arrive keeps its request in flight, but not for ever.
            if hanging[-1].done():
                hanging.append(pool.submit(_hangs, server))
            return server.ask("POST", "/decide", decide(view("a")))[0] == 503 or None

        awaited(is_refused)

        assert server.ask("GET", "/health")[0] == 200
        assert {slow.result() for slow in hanging} == {400}


def _hangs(server: Server) -> int:
    """Promise a body that never comes and return the status of the answer."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.putrequest("POST", "/decide")
    connection.putheader("Content-Length", "100")
    connection.endheaders()
    status = connection.getresponse().status
    connection.close()
    return status
