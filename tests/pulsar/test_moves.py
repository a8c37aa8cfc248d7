"""`lookup apply` on a real cluster: moves beside clients, an administrator and a lost broker; kills; the way back."""

from __future__ import annotations

import itertools
import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulsar
import pytest

from lookup.collect.collector import Endpoints, reading
from lookup.model.time import parse_iso
from lookup.moving.shedding import KEY
from lookup.moving.state import Owned
from lookup.moving.watching import OwnerWatch
from tests.moving.plans import plan_of_moves, written
from tests.processes import PATIENCE_S, awaited
from tests.pulsar.clients import JavaClients, lookups
from tests.pulsar.cluster import CLUSTER, Broker, Cluster
from tests.pulsar.live import topics_by_bundle

pytestmark = pytest.mark.pulsar

_NUMBERS = itertools.count()
#: Bundles of a namespace, and those that a plan moves.
_BUNDLES, _MOVES = 41, 20


@dataclass
class _World:
    """A namespace whose bundles have owners, and a plan of moves in it."""

    cluster: Cluster
    folder: Path
    namespace: str
    #: by complete name of its bundle
    topics: dict[str, str]
    before: dict[str, Owned]
    plan: Path
    #: bundle, from and to of each step
    steps: list[tuple[str, str, str]] = field(default_factory=list)

    def owners(self) -> dict[str, str]:
        """Return the owners of the namespace's bundles, as brokers say themselves."""
        owned = self.cluster.owned(self.namespace)
        return {f"{self.namespace}/{bounds}": broker.id for bounds, broker in owned.items()}

    @property
    def journal(self) -> Path:
        """Return where the journal is."""
        return Path(f"{self.plan}.journal")

    def entries(self, event: str) -> list[dict[str, Any]]:
        """Return the journal's entries of an event so far."""
        text = self.journal.read_text(encoding="utf-8") if self.journal.exists() else ""
        entries = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
        return [entry for entry in entries if entry["event"] == event]

    def begin(self, *words: str, rate: str = "3/s") -> subprocess.Popen[str]:
        """Begin `lookup apply`."""
        given = ("--yes", "--rate", rate) if "--recover" not in words else ()
        admin = "http://" + ",".join(broker.id for broker in self.cluster.brokers.values())
        to = ("--admin", admin, "--service-url", self.cluster.service_url)
        return subprocess.Popen(
            [sys.executable, "-m", "lookup", "apply", *(words or (str(self.plan),)), *to, *given],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *words: str, rate: str = "3/s") -> tuple[int, str]:
        """Run `lookup apply` to its end; return its exit code and what it said."""
        return _ended(self.begin(*words, rate=rate))

    @property
    def shedding(self) -> str | None:
        """Return what dynamic configuration says of shedding."""
        value: str | None = self.cluster.admin("GET", "brokers/configuration/values").get(KEY)
        return value


def _ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    said, _ = process.communicate(timeout=PATIENCE_S)
    return process.returncode, said


@pytest.fixture
def world(cluster: Cluster, java: JavaClients, tmp_path: Path) -> _World:
    """Make a namespace, give each bundle an owner, and plan moves of half of them to the next broker."""
    namespace = f"public/moves-{next(_NUMBERS)}"
    cluster.create_namespace(namespace, _BUNDLES)
    topics = topics_by_bundle(namespace, _BUNDLES)
    asking = java.open(f"moves-{next(_NUMBERS)}", cluster.service_url, {})
    for topic in topics.values():
        asking.do("lookup", topic=topic)
    before = dict[str, Owned]()
    with reading(Endpoints(CLUSTER, None, cluster.service_url), None, CLUSTER) as records:
        watch = OwnerWatch(CLUSTER, records)
        watch.settle(60.0)
        for bundle in topics:
            owned = watch.owner(bundle)
            assert owned is not None
            before[bundle] = owned
    ids = sorted(broker.id for broker in cluster.running)
    moves = []
    for bundle in [*topics][:_MOVES]:
        owned = before[bundle]
        moves.append((bundle, owned.broker, ids[(ids.index(owned.broker) + 1) % len(ids)], owned.since_us))
    plan = written(plan_of_moves(moves, ids, CLUSTER), tmp_path)
    return _World(cluster, tmp_path, namespace, topics, before, plan, [move[:3] for move in moves])


def _produce(producers: Sequence[pulsar.Producer], counts: Counter[str], ended: threading.Event) -> None:
    for producer in itertools.cycle(producers):
        if ended.wait(0.01):
            return
        try:
            producer.send(str(counts["sent"]).encode())
            counts["sent"] += 1
        except pulsar.PulsarException as error:
            counts[f"send: {error}"] += 1


def _consume(consumer: pulsar.Consumer, counts: Counter[str], ended: threading.Event) -> None:
    seen = set[bytes]()
    while not (ended.is_set() and counts["received"] >= counts["sent"]):
        try:
            message = consumer.receive(5_000)
            consumer.acknowledge(message)
        except pulsar.PulsarException as error:
            counts[f"receive: {error}"] += 1
            return
        seen.add(message.data())
        counts["received"] = len(seen)


@contextmanager
def _traffic(world: _World, topics: Sequence[str]) -> Iterator[Counter[str]]:
    """Produce into some topics and consume from them, with the Python client, until the block ends; count all.

    A message that is received again counts once: an unload ends connections before acknowledgements are answered.
    """
    counts, ended = Counter[str](hangs=0), threading.Event()
    client = pulsar.Client(
        world.cluster.service_url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, str(world.folder / "client.log"))
    )
    producers = [client.create_producer(topic) for topic in topics]
    consumer = client.subscribe(list(topics), "moves")
    threads = [
        threading.Thread(target=_produce, args=(producers, counts, ended), daemon=True),
        threading.Thread(target=_consume, args=(consumer, counts, ended), daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        yield counts
    finally:
        ended.set()
        for thread in threads:
            thread.join(60.0)
            counts["hangs"] += thread.is_alive()
        if not counts["hangs"]:
            client.close()


def test_twenty_moves_beside_clients_and_back(world: _World, java: JavaClients) -> None:
    """Every step ends at its destination, no client sees an error; the way back restores every owner."""
    moving = [world.topics[bundle] for bundle, _, _ in world.steps]
    asking = java.open(f"clients-{next(_NUMBERS)}", world.cluster.service_url, {})
    with _traffic(world, moving[:8]) as counts, lookups(asking, moving) as answers:
        code, said = world.run(str(world.plan), "--freeze-shedding", "--max-backlog", "100000")
        after, shedding = world.owners(), world.shedding
        back_code, back_said = world.run("--rollback", str(world.journal))

    assert (code, shedding) == (0, None), said
    assert {bundle: after[bundle] for bundle, _, _ in world.steps} == {bundle: to for bundle, _, to in world.steps}
    assert back_code == 0, back_said
    assert {bundle: world.owners()[bundle] for bundle in world.topics} == {
        bundle: owned.broker for bundle, owned in world.before.items()
    }
    assert counts["sent"] > 100
    assert counts == {"sent": counts["sent"], "received": counts["sent"], "hangs": 0}
    assert [answer.result(60.0)["error"] for answer in answers if "error" in answer.result(60.0)] == []


def test_what_an_administrator_does_meanwhile_is_named_and_stays(world: _World) -> None:
    """A bundle that was unloaded before its step is skipped by name, whoever owns it then."""
    dice, done = random.Random(7), dict[str, int]()
    process = world.begin(rate="2/s")
    bundles = [bundle for bundle, _, _ in world.steps]

    def others(owner: Broker | None) -> list[Broker]:
        return [broker for broker in world.cluster.running if broker is not owner]

    while process.poll() is None and len(done) < _MOVES // 2:
        bundle = dice.choice([one for one in bundles if one not in done])
        namespace, _, bounds = bundle.rpartition("/")
        # To nobody, which leaves it without owner, or to a broker that does not own it now.
        owner = world.cluster.owned(namespace).get(bounds)
        world.cluster.unload(namespace, bounds, dice.choice([None, *others(owner)]))
        done[bundle] = time.time_ns() // 1000
        time.sleep(0.3)
    code, said = _ended(process)

    requested = {entry["bundle"]: parse_iso(entry["at"]) for entry in world.entries("requested")}
    skipped = {entry["bundle"] for entry in world.entries("skipped")}
    moved = {entry["bundle"] for entry in world.entries("moved")}
    elsewhere = {entry["bundle"] for entry in world.entries("elsewhere")}
    before = {bundle for bundle, at in done.items() if bundle not in requested or at < requested[bundle]}
    assert before, said
    assert before <= skipped, said
    assert skipped <= done.keys()
    assert skipped | moved | elsewhere == set(bundles), said
    assert code == 4
    assert all(bundle in said for bundle in skipped)


def test_a_broker_that_is_killed_stops_it_within_a_step(world: _World) -> None:
    """No step begins once the broker is gone, but for one that had been looked at; the rest is left."""
    process = world.begin(str(world.plan), "--freeze-shedding", rate="1/s")
    awaited(lambda: len(world.entries("moved")) >= 4)
    lost = world.cluster.brokers["C"]
    world.cluster.kill(lost)
    killed_us = time.time_ns() // 1000
    code, said = _ended(process)
    try:
        begun_later = [entry for entry in world.entries("requested") if parse_iso(entry["at"]) > killed_us]

        assert code == 4, said
        assert len(begun_later) <= 1
        assert "stopped" in said
        assert lost.id in said
        assert world.shedding is None
        # What is alive gets back what it had.
        awaited(lambda: lost.id not in world.cluster.registry())
        back_code, back_said = world.run("--rollback", str(world.journal))
        assert back_code in (0, 4), back_said
        owners = world.owners()
        moved = {entry["bundle"] for entry in world.entries("moved") if not entry.get("back")}
        assert moved
        for bundle, source, to in world.steps:
            if bundle in moved and lost.id not in (source, to):
                assert owners[bundle] == source, back_said
    finally:
        world.cluster.restart(lost)


def test_kills_leave_shedding_as_it_was_and_nothing_moves_twice(world: _World) -> None:
    """`kill -9` at any moment: after `--recover` shedding is as it was; the same command goes on."""
    dice = random.Random(11)
    for _ in range(4):
        process = world.begin(str(world.plan), "--freeze-shedding", rate="4/s")
        had = len(world.entries("moved"))
        awaited(lambda had=had: len(world.entries("moved")) > had)  # type: ignore[misc]
        time.sleep(dice.uniform(0.0, 0.4))
        process.send_signal(signal.SIGKILL)
        _ended(process)
        code, said = world.run("--recover", str(world.journal))
        assert (code, world.shedding) == (0, None), said
    code, said = world.run(str(world.plan), "--freeze-shedding", rate="10/s")

    assert (code, world.shedding) == (0, None), said
    owners = world.owners()
    assert {bundle: owners[bundle] for bundle, _, _ in world.steps} == {bundle: to for bundle, _, to in world.steps}
    with reading(Endpoints(CLUSTER, None, world.cluster.service_url), None, CLUSTER) as records:
        watch = OwnerWatch(CLUSTER, records)
        watch.settle(60.0)
        assert {watch.releases[bundle] for bundle, _, _ in world.steps} == {1}


def test_it_ends_after_the_step_under_way(world: _World) -> None:
    """SIGTERM lets the step end and puts shedding back; the same command makes the rest."""
    process = world.begin(str(world.plan), "--freeze-shedding", rate="2/s")
    awaited(lambda: len(world.entries("moved")) >= 2)
    process.send_signal(signal.SIGTERM)
    code, said = _ended(process)

    assert (code, world.shedding) == (130, None), said
    assert len(world.entries("requested")) == len(world.entries("moved")) < _MOVES
    assert world.run(str(world.plan), rate="10/s")[0] == 0
    assert len(world.entries("requested")) == _MOVES


def test_a_broker_is_drained_as_planned_and_what_was_predicted_is_measured(world: _World) -> None:
    """From `lookup plan` through `lookup apply` to `lookup verify`, as they are typed; the way back restores it."""
    # Brokers choose first owners by their load: one may own no bundle of a namespace.
    drained = Counter(owned.broker for owned in world.before.values()).most_common(1)[0][0]
    admin = "http://" + ",".join(broker.id for broker in world.cluster.brokers.values())
    to = ("--admin", admin, "--service-url", world.cluster.service_url, "--zookeeper", world.cluster.zookeeper)

    def typed(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "lookup", *words, *to],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )

    folder = str(world.folder / "drain")
    planned = typed("plan", "--drain", drained, "--only", world.namespace, "--output", folder)
    assert planned.returncode == 0, planned.stderr
    applied = typed("apply", folder, "--yes", "--rate", "10/s", "--freeze-shedding")
    assert applied.returncode == 0, applied.stdout + applied.stderr
    assert drained not in {world.owners()[bundle] for bundle in world.topics}
    verified = typed("verify", "--plan", f"{folder}/plan.json.journal", "--format", "json")
    back = typed("apply", "--rollback", f"{folder}/plan.json.journal", "--yes", "--rate", "10/s")

    # A plan has intervals if each broker has reported three times by then.
    document = json.loads(verified.stdout)
    figures = [(of["low"], of["measured"], of["high"]) for of in document["figures"].values()]
    is_judged = all(low is not None for low, *_ in figures)
    right = all(low <= measured <= high for low, measured, high in figures) if is_judged else None
    assert (verified.returncode, document["right"]) == ({True: 0, False: 3, None: 4}[right], right), verified.stderr
    assert document["figures"]["imbalance"]["measured"] > 0.0
    assert {one["broker"] for one in document["brokers"]} == {broker.id for broker in world.cluster.running}
    assert back.returncode == 0, back.stdout
    assert {bundle: world.owners()[bundle] for bundle in world.topics} == {
        bundle: owned.broker for bundle, owned in world.before.items()
    }
