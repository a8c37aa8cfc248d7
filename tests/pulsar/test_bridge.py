"""Brokers with the class `LookupPolicyLoadManager` record lookups, ask the decision server, and do without it."""

from __future__ import annotations

import itertools
import time
import urllib.error
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from http import HTTPStatus
from typing import Any

import pytest

from tests.processes import awaited
from tests.pulsar.clients import JavaClient, JavaClients
from tests.pulsar.cluster import RACKS, Broker, Cluster, running_cluster
from tests.pulsar.jvm import Installation, with_bridge
from tests.pulsar.standin import Answer, StandIn, always, same_rack

pytestmark = pytest.mark.pulsar

_TOKEN = "open-sesame"
#: By rack; every broker obeys its own settings for what it is asked.
_MODES = {"A": "record", "B": "shadow", "C": "decide"}
_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def server() -> Iterator[StandIn]:
    """Start the stand-in that all brokers of this module ask."""
    server = StandIn(_TOKEN)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def bridged(installed: Installation, server: StandIn, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start brokers with the jar: A records, B is in shadow, C decides."""
    settings = {
        rack: {
            "loadManagerClassName": "lookup.bridge.LookupPolicyLoadManager",
            "lookupPolicyMode": mode,
            "lookupPolicyServer": server.url,
            # Far above what an answer takes, so that a busy machine is no server that hangs.
            "lookupPolicyTimeoutMillis": "2000",
            "lookupPolicyToken": _TOKEN,
        }
        for rack, mode in _MODES.items()
    }
    try:
        with_jar = with_bridge(installed)
    except RuntimeError as error:
        pytest.skip(str(error))
    with running_cluster(with_jar, tmp_path_factory.mktemp("bridged"), settings) as started:
        yield started


@pytest.fixture(scope="module")
def clients(bridged: Cluster) -> JavaClients:
    """Start the JVM of this module's Java clients."""
    return bridged.java_clients()


@pytest.fixture
def answers(server: StandIn) -> Iterator[StandIn]:
    """Let a test change what the stand-in answers; afterwards it runs and answers "same rack" again."""
    yield server
    server.answer = same_rack
    server.go_on()


@pytest.fixture
def topics(bridged: Cluster) -> list[str]:
    """Create a namespace whose bundles have no owner, and name one topic of each of 23 bundles.

    The 24th holds `__change_events`: a broker looks that topic up itself as soon as it serves a topic of the namespace.
    """
    namespace = f"public/bridged-{next(_NUMBERS)}"
    bridged.create_namespace(namespace, 24)
    taken = bridged.bundle_of(f"persistent://{namespace}/__change_events")
    by_bundle: dict[str, str] = {}
    numbers = itertools.count()
    while len(by_bundle) < 23:
        topic = f"persistent://{namespace}/topic-{next(numbers)}"
        if (bundle := bridged.bundle_of(topic)) != taken:
            by_bundle.setdefault(bundle, topic)
    return list(by_bundle.values())


def _namespace(topic: str) -> str:
    return topic.removeprefix("persistent://").rpartition("/")[0]


@pytest.fixture
def client(bridged: Cluster, clients: JavaClients) -> Callable[..., JavaClient]:
    """Open a client that asks the broker of a rack, with lookup properties."""

    def opened(asked: str, **properties: str) -> JavaClient:
        return clients.open(f"client-{next(_NUMBERS)}", bridged.brokers[asked].service_url, properties)

    return opened


def _owner(bridged: Cluster, client: JavaClient, topic: str) -> Broker:
    return bridged.broker_at(client.do("lookup", topic=topic)["broker_url"])


def test_every_lookup_is_recorded_with_its_properties(
    bridged: Cluster, server: StandIn, client: Callable[..., JavaClient], topics: list[str]
) -> None:
    """In every mode, each lookup of a client is recorded with properties, bundle, asked broker and answer."""
    expected: Counter[Any] = Counter()
    sent: list[dict[str, str]] = [{"rack": "B", "app": "shop"}, {}]
    for asked, properties in itertools.product(RACKS, sent):
        asking = client(asked, **properties)
        for topic in topics:
            answer = _owner(bridged, asking, topic).id
            expected[bridged.brokers[asked].id, topic, frozenset(properties.items()), answer] += 1
    answer = bridged.broker_at(bridged.lookup_over_http(topics[0], bridged.brokers["A"])).id
    expected[bridged.brokers["A"].id, topics[0], frozenset(), answer] += 1

    recorded = awaited(lambda: rows if len(rows := server.of(topics)) >= expected.total() else None)

    assert expected == Counter(
        (row["broker"], row["topic"], frozenset((row["properties"] or {}).items()), row["answer"]) for row in recorded
    )
    assert {row["result"] for row in recorded} == {"connect"}
    assert {row["bundle"] for row in recorded if row["topic"] == topics[0]} == {
        f"{_namespace(topics[0])}/{bridged.bundle_of(topics[0])}"
    }
    assert all(0 < row["latencyMicros"] < 60_000_000 for row in recorded)
    assert set(server.dropped.values()) == {0}


def test_first_lookups_get_a_broker_of_their_rack(
    bridged: Cluster, server: StandIn, client: Callable[..., JavaClient], topics: list[str]
) -> None:
    """A broker that decides gives each bundle the owner that the server chose out of what the broker knows of all."""
    asking = {rack: client("C", rack=rack) for rack in RACKS}
    wanted = dict(zip(topics[:12], itertools.cycle(RACKS), strict=False))
    before = len(server.questions)

    chosen = {topic: _owner(bridged, asking[rack], topic).rack for topic, rack in wanted.items()}

    assert chosen == wanted
    questions = server.questions[before:]
    assert [(question["topic"], question["properties"]) for question in questions] == [
        (topic, {"rack": rack}) for topic, rack in wanted.items()
    ]
    registry = bridged.registry()
    for question in questions:
        assert not question["shadow"]
        assert sorted(question["candidates"]) == sorted(registry)
        assert {
            broker: {key: value for key, value in known["lookupData"].items() if value is not None}
            for broker, known in question["brokers"].items()
        } == registry
    unasked = iter(topics[12:])

    def loads() -> list[Any]:
        # Brokers that have just started report their load within some seconds.
        time.sleep(1)
        _owner(bridged, asking["A"], next(unasked))
        return [load for entry in server.questions[-1]["brokers"].values() if (load := entry["load"])]

    known = awaited(lambda: found if len(found := loads()) == len(RACKS) else None)
    assert all(load["memory"]["limit"] > 0 for load in known)


def test_owned_bundle_is_not_asked_about(
    bridged: Cluster, server: StandIn, client: Callable[..., JavaClient], topics: list[str]
) -> None:
    """Once a bundle has an owner, a client of another rack gets that owner and the server hears nothing."""
    _owner(bridged, client("C", rack="A"), topics[0])
    before = len(server.questions)

    assert _owner(bridged, client("C", rack="B"), topics[0]).rack == "A"
    assert len(server.questions) == before


def test_read_only_lookup_is_not_asked_about(bridged: Cluster, server: StandIn, topics: list[str]) -> None:
    """To delete a bundle, a broker looks for its owner and assigns none: the server is not asked."""
    before = len(server.questions)

    with pytest.raises(urllib.error.HTTPError) as refused:
        bridged.admin(
            "DELETE", f"namespaces/{_namespace(topics[0])}/{bridged.bundle_of(topics[0])}", asked=bridged.brokers["C"]
        )

    assert refused.value.code == HTTPStatus.PRECONDITION_FAILED
    assert len(server.questions) == before
    assert bridged.owned(_namespace(topics[0])) == {}


@pytest.mark.parametrize(
    "answer",
    [
        always("10.0.0.1:8080"),
        always(None),
        lambda question, brokers: (HTTPStatus.OK, "no JSON"),
        lambda question, brokers: (HTTPStatus.BAD_REQUEST, {"error": "a wrong request"}),
        lambda question, brokers: (HTTPStatus.INTERNAL_SERVER_ERROR, {"error": "a defect"}),
    ],
    ids=["unknown", "declined", "junk", "refused", "defect"],
)
def test_useless_answer_ends_in_the_stock_choice(
    bridged: Cluster, answers: StandIn, client: Callable[..., JavaClient], topics: list[str], answer: Answer
) -> None:
    """After an unknown broker, none, junk or an error a bundle gets an owner, and the next is asked about again."""
    asking = client("C", rack="A")
    answers.answer = answer
    before = len(answers.questions)

    _owner(bridged, asking, topics[0])

    assert len(answers.questions) == before + 1
    answers.answer = same_rack
    assert _owner(bridged, asking, topics[1]).rack == "A"


def test_busy_server_is_left_alone_for_a_while(
    bridged: Cluster, answers: StandIn, client: Callable[..., JavaClient], topics: list[str]
) -> None:
    """After a 503 the next bundles get the stock choice at once; later the server is asked again."""
    asking = client("C", rack="A")
    answers.answer = lambda question, brokers: (HTTPStatus.SERVICE_UNAVAILABLE, {"error": "busy"})
    _owner(bridged, asking, topics[0])
    answers.answer = same_rack
    before = len(answers.questions)

    _owner(bridged, asking, topics[1])

    assert len(answers.questions) == before
    _await_decisions(bridged, answers, asking, topics[2:])


def test_shadow_changes_nothing(
    bridged: Cluster, answers: StandIn, client: Callable[..., JavaClient], topics: list[str]
) -> None:
    """In shadow the server is asked about every bundle, its answer is logged, and the owners are not those it names."""
    named = bridged.brokers["C"]
    answers.answer = always(named.id)
    before = len(answers.questions)
    asking = client("B", rack="C")

    owners = {_owner(bridged, asking, topic).rack for topic in topics}

    awaited(lambda: len(answers.questions) == before + len(topics))
    assert all(question["shadow"] for question in answers.questions[before:])
    assert owners != {named.rack}
    log, line = bridged.brokers["B"].log("clock"), f"would choose broker {named.id} for bundle"
    awaited(lambda: log.read_text().count(line) == len(topics))


def test_shadow_does_not_wait(
    bridged: Cluster, answers: StandIn, client: Callable[..., JavaClient], topics: list[str]
) -> None:
    """In shadow a lookup is answered while the server still hangs."""
    asking = client("B", rack="C")
    answers.hang()

    began = time.monotonic()
    _owner(bridged, asking, topics[0])

    # The time-out is 2 s: whoever waits for the server takes longer.
    assert time.monotonic() - began < 2


def _await_decisions(bridged: Cluster, server: StandIn, client: JavaClient, fresh: list[str]) -> None:
    """Look bundles up for the first time until one is asked about; its owner is in rack A."""
    unasked = iter(fresh)

    def is_asked() -> bool:
        time.sleep(0.5)
        before = len(server.questions)
        owner = _owner(bridged, client, next(unasked))
        return len(server.questions) > before and owner.rack == "A"

    awaited(is_asked)


def _restart(server: StandIn) -> None:
    for _ in range(3):
        server.stop()
        time.sleep(0.3)
        server.start()
        time.sleep(0.7)


@pytest.mark.parametrize(
    ("fault", "repair"),
    [(StandIn.hang, StandIn.go_on), (StandIn.stop, StandIn.start), (_restart, lambda server: None)],
    ids=["hung", "dead", "restarting"],
)
def test_clients_see_no_error_without_the_server(
    bridged: Cluster,
    answers: StandIn,
    client: Callable[..., JavaClient],
    topics: list[str],
    fault: Callable[[StandIn], None],
    repair: Callable[[StandIn], None],
) -> None:
    """At 50 lookups/s, none fails while the server hangs, is dead or restarts; when it is back it decides again."""
    asking = client("C", rack="A")
    traffic = topics[:12]
    pending: list[Future[dict[str, Any]]] = []
    deadline = time.monotonic() + 1

    def look_up_until(ends: float) -> None:
        while time.monotonic() < ends:
            pending.append(asking.ask("lookup", topic=traffic[len(pending) % 4 + 4 * (len(pending) // 50 % 3)]))
            time.sleep(0.02)

    look_up_until(deadline)
    fault(answers)
    look_up_until(time.monotonic() + 3)
    repair(answers)
    look_up_until(time.monotonic() + 1)

    assert [answer for future in pending if "error" in (answer := future.result(60))] == []
    assert len(pending) > 100
    _await_decisions(bridged, answers, asking, topics[12:])


def test_lost_broker_is_no_candidate_and_wrong_setting_is_a_sentence(
    bridged: Cluster, server: StandIn, client: Callable[..., JavaClient], topics: list[str]
) -> None:
    """Bundles of a killed broker are asked about without it; a setting that is wrong keeps it from starting again."""
    lost = bridged.brokers["A"]
    assert _owner(bridged, client("C", rack="A"), topics[0]) is lost
    bundle, before = f"{_namespace(topics[0])}/{bridged.bundle_of(topics[0])}", len(server.questions)

    bridged.kill(lost)

    question = awaited(lambda: next((q for q in server.questions[before:] if q["bundle"] == bundle), None))
    assert lost.id not in question["candidates"]
    assert question["topic"] is None
    bridged.settings["A"]["lookupPolicyMode"] = "decides"
    with pytest.raises(RuntimeError, match="the JVM ended"):
        bridged.restart(lost)
    bridged.kill(lost)
    assert (
        "lookupPolicyMode is 'decides' in broker.conf, and should be record, shadow or decide"
        in lost.log("clock").read_text()
    )
    bridged.settings["A"]["lookupPolicyMode"] = "record"
    bridged.restart(lost)


def test_token_is_in_no_log(bridged: Cluster) -> None:
    """No broker writes the token into its log."""
    assert [broker.id for broker in bridged.brokers.values() if _TOKEN in broker.log("clock").read_text()] == []
