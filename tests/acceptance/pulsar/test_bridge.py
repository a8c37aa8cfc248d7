"""Brokers with the class `LookupPolicyLoadManager` record lookups, ask the decision server, and do without it."""

from __future__ import annotations

import itertools
import time
import urllib.error
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any

import pytest

from tests.acceptance.pulsar.clients import Client, Clients, GoClients, JavaClients, PythonClients, lookups
from tests.acceptance.pulsar.cluster import RACKS, Broker, Cluster, running_cluster
from tests.acceptance.pulsar.jvm import Installation, go_clients, with_bridge
from tests.acceptance.pulsar.standin import REST_S, Answer, StandIn, always, same_rack
from tests.processes import awaited

pytestmark = pytest.mark.pulsar

_TOKEN = "open-sesame"
#: By rack; every broker obeys its own settings for what it is asked.
_MODES = {"A": "record", "B": "shadow", "C": "decide"}
#: How long brokers wait for an answer, s: far above what it takes on a busy machine, which would be a pause of asking.
_TIMEOUT_S = 5
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
    token = tmp_path_factory.mktemp("token") / "token"
    token.write_text(f"{_TOKEN}\n", encoding="utf-8")
    settings = {
        rack: {
            "loadManagerClassName": "lookup.bridge.LookupPolicyLoadManager",
            "lookupPolicyMode": mode,
            "lookupPolicyServer": server.url,
            "lookupPolicyTimeoutMillis": str(_TIMEOUT_S * 1_000),
            "lookupPolicyToken": token.as_uri(),
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


@pytest.fixture(scope="module")
def go(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoClients]:
    """Start the process of this module's Go clients; skip the test if there is no Go."""
    try:
        program = go_clients()
    except RuntimeError as error:
        pytest.skip(str(error))
    clients = GoClients(program, tmp_path_factory.mktemp("go"))
    yield clients
    clients.close()


@pytest.fixture
def answers(server: StandIn) -> Iterator[StandIn]:
    """Let a test change what the stand-in answers; afterwards it runs and answers "same rack" again."""
    yield server
    server.answer = same_rack
    server.go_on()


@pytest.fixture
def topics(bridged: Cluster) -> list[str]:
    """Create a namespace whose bundles have no owner, and name one topic of each of 23 bundles.

    The 24th holds `__change_events`, which each broker looks up itself when it gets its first bundle of the namespace.
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
def client(bridged: Cluster, clients: JavaClients) -> Callable[..., Client]:
    """Open a client that asks the broker of a rack, with lookup properties."""

    def opened(asked: str, **properties: str) -> Client:
        return clients.open(f"client-{next(_NUMBERS)}", bridged.brokers[asked].service_url, properties)

    return opened


def _owner(bridged: Cluster, client: Client, topic: str) -> Broker:
    return bridged.broker_at(client.do("lookup", topic=topic)["broker_url"])


def test_first_lookups_get_a_broker_of_their_rack(
    bridged: Cluster, server: StandIn, client: Callable[..., Client], topics: list[str]
) -> None:
    """A broker that decides gives each bundle the owner that the server chose out of what the broker knows of all."""
    asking = {rack: client("C", rack=rack) for rack in RACKS}
    wanted = dict(zip(topics[:12], itertools.cycle(RACKS), strict=False))

    chosen = {topic: _owner(bridged, asking[rack], topic).rack for topic, rack in wanted.items()}

    assert chosen == wanted
    questions = server.asked_about(*wanted)
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

    def loads() -> list[Any]:
        question = _asked_again(bridged, server, asking["A"], topics[0])
        return [load for entry in question["brokers"].values() if (load := entry["load"])] if question else []

    # Brokers that have just started report their load within some seconds.
    known = awaited(loads, "the load of every broker", enough=lambda loads: len(loads) == len(RACKS))
    assert all(load["memory"]["limit"] > 0 for load in known)


@pytest.mark.parametrize("language", ["clients", "go"], ids=["java", "go"])
def test_client_is_served_in_its_rack(
    bridged: Cluster, server: StandIn, topics: list[str], request: pytest.FixtureRequest, language: str
) -> None:
    """PIP-368's example: a client of rack A produces and consumes at a broker of rack A, whichever it asks first."""
    clients: Clients = request.getfixturevalue(language)
    client = clients.open(f"client-{next(_NUMBERS)}", bridged.brokers["C"].service_url, {"rack": "A"})

    answers = [
        client.do("subscribe", topic=topics[0], subscription="reader"),
        client.do("send", topic=topics[0], text="one"),
        client.do("receive", topic=topics[0], timeout_ms=20_000),
        client.do("lookup", topic=topics[1]),
    ]

    assert answers[2]["text"] == "one"
    assert {answer["broker_url"] for answer in answers} == {bridged.brokers["A"].service_url}
    owned = bridged.owned(_namespace(topics[0]))
    assert {owned[bridged.bundle_of(topic)].rack for topic in topics[:2]} == {"A"}
    assert [question["properties"] for question in server.asked_about(*topics)] == [{"rack": "A"}, {"rack": "A"}]
    client.do("close")


def test_client_without_properties_is_served(
    bridged: Cluster, server: StandIn, python: PythonClients, topics: list[str]
) -> None:
    """The Python client sends none: the server is asked without them, and what it declines gets the stock choice."""
    client = python.open(bridged.brokers["C"].service_url)

    answers, error = python.look_up(client, topics[0])

    client.close()
    owner = bridged.owned(_namespace(topics[0]))[bridged.bundle_of(topics[0])]
    assert ([answer["broker_url"] for answer in answers], error) == ([owner.service_url], None)
    assert [question["properties"] for question in server.asked_about(topics[0])] == [{}]


def test_owned_bundle_is_not_asked_about(
    bridged: Cluster, server: StandIn, client: Callable[..., Client], topics: list[str]
) -> None:
    """Once a bundle has an owner, a client of another rack gets that owner and the server hears nothing."""
    _owner(bridged, client("C", rack="A"), topics[0])

    assert _owner(bridged, client("C", rack="B"), topics[0]).rack == "A"
    assert len(server.asked_about(topics[0])) == 1


def test_read_only_lookup_is_not_asked_about(bridged: Cluster, server: StandIn, topics: list[str]) -> None:
    """To delete a bundle, a broker looks for its owner and assigns none: the server is not asked."""
    bundle = f"{_namespace(topics[0])}/{bridged.bundle_of(topics[0])}"

    with pytest.raises(urllib.error.HTTPError) as refused:
        bridged.admin("DELETE", f"namespaces/{bundle}", asked=bridged.brokers["C"])

    assert refused.value.code == HTTPStatus.PRECONDITION_FAILED
    assert [question for question in server.questions if question["bundle"] == bundle] == []
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
    bridged: Cluster, answers: StandIn, client: Callable[..., Client], topics: list[str], answer: Answer
) -> None:
    """After an unknown broker, none, junk or an error a bundle gets an owner, and the next is asked about again."""
    asking = client("C", rack="A")
    answers.answer = answer

    _owner(bridged, asking, topics[0])

    assert len(answers.asked_about(topics[0])) == 1
    answers.answer = same_rack
    assert _owner(bridged, asking, topics[1]).rack == "A"


def test_busy_server_is_left_alone_for_a_while(
    bridged: Cluster, answers: StandIn, client: Callable[..., Client], topics: list[str]
) -> None:
    """After a 503 the next bundles get the stock choice at once, for as long as the server wants to be left alone."""
    asking = client("C", rack="A")
    answers.answer = lambda question, brokers: (HTTPStatus.SERVICE_UNAVAILABLE, {"error": "busy"})
    began = time.monotonic()
    _owner(bridged, asking, topics[0])
    answers.answer = same_rack

    _owner(bridged, asking, topics[1])

    assert answers.asked_about(topics[1]) == []
    _await_decisions(bridged, answers, asking, topics[2])
    assert time.monotonic() - began > REST_S


def test_shadow_does_not_wait(
    bridged: Cluster, answers: StandIn, client: Callable[..., Client], topics: list[str]
) -> None:
    """In shadow a lookup is answered while the server still hangs."""
    asking = client("B", rack="C")
    answers.hang()

    began = time.monotonic()
    _owner(bridged, asking, topics[0])

    assert time.monotonic() - began < _TIMEOUT_S
    answers.go_on()
    awaited(lambda: answers.asked_about(topics[0]), "a question without waiting")


def _asked_again(bridged: Cluster, server: StandIn, client: Client, topic: str) -> dict[str, Any] | None:
    """Look a topic up whose bundle has no owner any more; return the question about it, None if none was asked."""
    bridged.unload(_namespace(topic), bridged.bundle_of(topic))
    before = len(server.asked_about(topic))
    client.do("lookup", topic=topic)
    return next(iter(server.asked_about(topic)[before:]), None)


def _await_decisions(bridged: Cluster, server: StandIn, client: Client, topic: str) -> None:
    """Take a bundle's owner away until the server is asked for the next, which is in rack A."""
    awaited(lambda: _asked_again(bridged, server, client, topic), "a question about a bundle without owner")
    assert _owner(bridged, client, topic).rack == "A"


def _restart(server: StandIn) -> None:
    for _ in range(2):
        server.start()
        time.sleep(0.7)
        server.stop()
        time.sleep(0.3)
    server.start()


@pytest.mark.parametrize(
    ("fault", "repair"),
    [(StandIn.hang, StandIn.go_on), (StandIn.stop, StandIn.start), (StandIn.stop, _restart)],
    ids=["hung", "dead", "restarting"],
)
def test_clients_see_no_error_without_the_server(
    bridged: Cluster,
    answers: StandIn,
    client: Callable[..., Client],
    topics: list[str],
    fault: Callable[[StandIn], None],
    repair: Callable[[StandIn], None],
) -> None:
    """At 50 lookups/s, none fails while the server hangs, is dead or restarts; when it is back it decides again."""
    asking = client("C", rack="A")
    log = bridged.brokers["C"].log("clock")

    def pauses() -> int:
        return log.read_text().count("is not asked for")

    before = pauses()
    with lookups(asking, topics[1:]) as pending:
        awaited(lambda: len(pending), "lookups before the fault", enough=lambda sent: sent >= 50)
        fault(answers)
        awaited(pauses, "a broker that notices", enough=lambda count: count > before)
        repair(answers)
        sent = len(pending)
        awaited(lambda: len(pending), "lookups after the repair", enough=lambda count: count >= sent + 50)

    assert [answer for future in pending if "error" in (answer := future.result(60))] == []
    _await_decisions(bridged, answers, asking, topics[0])


def test_broker_that_shuts_down_is_no_candidate(
    bridged: Cluster, answers: StandIn, client: Callable[..., Client], topics: list[str]
) -> None:
    """A broker that gives its bundles away asks for owners among the others, though it is still in the registry."""
    leaving = bridged.brokers["C"]
    assert _owner(bridged, client("C", rack="C"), topics[0]) is leaving
    bundle = f"{_namespace(topics[0])}/{bridged.bundle_of(topics[0])}"
    before = len(answers.questions)

    bridged.shut_down(leaving)

    question = next(question for question in answers.questions[before:] if question["bundle"] == bundle)
    others = sorted(broker.id for broker in bridged.running)
    assert (question["broker"], sorted(question["candidates"])) == (leaving.id, others)
    assert leaving.id in question["brokers"]
    bridged.restart(leaving)


def test_lost_broker_is_no_candidate_and_wrong_setting_is_a_sentence(
    bridged: Cluster, server: StandIn, client: Callable[..., Client], topics: list[str]
) -> None:
    """Bundles of a killed broker are asked about without it; settings that are wrong keep it from starting again."""
    lost = bridged.brokers["A"]
    assert _owner(bridged, client("C", rack="A"), topics[0]) is lost
    bundle = f"{_namespace(topics[0])}/{bridged.bundle_of(topics[0])}"
    before = len(server.questions)

    bridged.kill(lost)

    question = awaited(
        lambda: next((question for question in server.questions[before:] if question["bundle"] == bundle), None),
        "a question about the bundle",
    )
    assert lost.id not in question["candidates"]
    assert question["topic"] is None
    right = dict(bridged.settings["A"])
    for wrong, sentence in {
        ("lookupPolicyMode", "decides"): "is 'decides' in broker.conf, and should be record, shadow or decide",
        ("lookupPolicyToken", "file:///nowhere/token"): (
            "is file:///nowhere/token in broker.conf, and should be the URL of a file, such as "
            "file:///etc/pulsar/lookup-token, that the broker can read: java.nio.file.NoSuchFileException: "
            "/nowhere/token"
        ),
    }.items():
        bridged.settings["A"] = right | dict([wrong])
        with pytest.raises(RuntimeError, match="it ended with"):
            bridged.restart(lost)
        bridged.kill(lost)
        assert f"{wrong[0]} {sentence}" in lost.log("clock").read_text()
    bridged.settings["A"] = right
    bridged.restart(lost)


@pytest.mark.parametrize(
    "status", [HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.INTERNAL_SERVER_ERROR]
)
def test_lookups_of_a_batch_that_is_never_taken_are_counted(
    bridged: Cluster, answers: StandIn, client: Callable[..., Client], topics: list[str], status: HTTPStatus
) -> None:
    """A batch that is wrong, or that the server fails on, is lost and counted, and holds up nothing behind it."""
    asked, asking = bridged.brokers["A"], client("A")
    _owner(bridged, asking, topics[0])
    awaited(lambda: answers.of(topics), "a record of the first lookup")
    before, refused_before = answers.dropped[asked.id], len(answers.refused)
    answers.refuse_batches(status, is_ready=True)
    for topic in topics:
        _owner(bridged, asking, topic)
    awaited(lambda: {*topics} <= {lookup["topic"] for lookup in answers.refused})
    answers.go_on()

    def lost() -> int:
        _owner(bridged, asking, topics[0])
        return answers.dropped[asked.id] - before

    # A batch that was ready before another failed still says the number of then.
    refused = sum(lookup["broker"] == asked.id for lookup in answers.refused[refused_before:])
    awaited(lost, f"a count of the {refused} lookups that were refused", enough=lambda count: count == refused)
    assert len(answers.of(topics)) > 1


@pytest.mark.parametrize(
    "status", [HTTPStatus.INSUFFICIENT_STORAGE, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.UNAUTHORIZED]
)
def test_lookups_wait_for_a_server_that_may_take_them_later(
    bridged: Cluster, answers: StandIn, client: Callable[..., Client], topics: list[str], status: HTTPStatus
) -> None:
    """A batch that was refused is sent again when the server is ready: nothing is lost, and the order stays."""
    asked, asking = bridged.brokers["A"], client("A")
    _owner(bridged, asking, topics[0])
    awaited(lambda: answers.of(topics), "a record of the first lookup")
    before, refused_before, sent_before = answers.dropped[asked.id], answers.refused_ready, len(answers.refused)
    answers.refuse_batches(status)
    for topic in topics[1:]:
        _owner(bridged, asking, topic)
    awaited(lambda: answers.refused_ready, "a broker that asks", enough=lambda times: times >= refused_before + 3)
    refused = [lookup for lookup in answers.refused[sent_before:] if lookup["broker"] == asked.id]
    answers.go_on()

    awaited(lambda: {*topics[1:]} == {row["topic"] for row in answers.of(topics[1:])}, "a record of what waited")
    # One batch was tried once, and then the question whether there is room for it.
    assert len({lookup["number"] for lookup in refused}) == len(refused)
    assert answers.dropped[asked.id] == before
    _assert_complete(answers)


def _assert_complete(server: StandIn) -> None:
    """Assert that of each start of a broker the numbers ascend, and that gaps are what the broker says it has lost."""
    for (broker, _), numbers in server.numbers.items():
        assert numbers == sorted(set(numbers)), broker
        # Of a broker that was started again only the latest count is kept.
        if sum(other == broker for other, _ in server.numbers) == 1:
            assert numbers[-1] - len(numbers) <= server.dropped[broker]


def test_token_is_in_no_log(bridged: Cluster) -> None:
    """No broker writes the token of its file into its log."""
    assert [broker.id for broker in bridged.brokers.values() if _TOKEN in broker.log("clock").read_text()] == []
