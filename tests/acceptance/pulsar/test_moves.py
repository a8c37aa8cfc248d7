"""`lookup apply` on a real cluster: moves beside clients, an administrator and a lost broker; kills; the way back."""

from __future__ import annotations

import itertools
import json
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from lookup.collect.collector import Endpoints, reading
from lookup.model.time import parse_iso
from lookup.moving.state import Owned
from lookup.moving.watching import OwnerWatch
from tests.acceptance.pulsar.clients import JavaClients, lookups
from tests.acceptance.pulsar.cluster import CLUSTER, Broker, Cluster
from tests.acceptance.pulsar.live import topics_by_bundle
from tests.acceptance.pulsar.moves import World, ended, traffic
from tests.moving.plans import plan_of_moves, written
from tests.processes import PATIENCE_S, awaited

pytestmark = pytest.mark.pulsar

_NUMBERS = itertools.count()
#: Bundles of a namespace, and those that a plan moves.
_BUNDLES, _MOVES = 41, 20


@pytest.fixture
def world(cluster: Cluster, java: JavaClients, tmp_path: Path) -> World:
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
    return World(cluster, tmp_path, namespace, topics, plan, before, [move[:3] for move in moves])


def test_twenty_moves_beside_clients_and_back(world: World, java: JavaClients) -> None:
    """Every step ends at its destination, no client sees an error; the way back restores every owner."""
    moving = [world.topics[bundle] for bundle, _, _ in world.steps]
    asking = java.open(f"clients-{next(_NUMBERS)}", world.cluster.service_url, {})
    sending = java.open(f"clients-{next(_NUMBERS)}", world.cluster.service_url, {})
    with traffic(world, sending, moving[:8], per_s=12.0) as clients, lookups(asking, moving) as answers:
        code, said = world.run(str(world.plan), "--freeze-shedding")
        after, shedding = world.owners(), world.shedding
        back_code, back_said = world.run("--rollback", str(world.journal))

    assert (code, shedding) == (0, None), said
    assert {bundle: after[bundle] for bundle, _, _ in world.steps} == {bundle: to for bundle, _, to in world.steps}
    assert back_code == 0, back_said
    assert {bundle: world.owners()[bundle] for bundle in world.topics} == {
        bundle: owned.broker for bundle, owned in world.before.items()
    }
    assert clients.counts["sent"] > 100
    assert clients.counts == {"sent": clients.counts["sent"], "received": clients.counts["sent"]}
    assert [answer.result(60.0)["error"] for answer in answers if "error" in answer.result(60.0)] == []


def test_what_an_administrator_does_meanwhile_is_named_and_stays(world: World) -> None:
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
    code, said = ended(process)

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


def test_a_broker_that_is_killed_stops_it_within_a_step(world: World) -> None:
    """No step begins once the broker is gone, but for one that had been looked at; the rest is left."""
    process = world.begin(str(world.plan), "--freeze-shedding", rate="1/s")
    awaited(lambda: len(world.entries("moved")) >= 4)
    lost = world.cluster.brokers["C"]
    world.cluster.kill(lost)
    killed_us = time.time_ns() // 1000
    code, said = ended(process)
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


def test_kills_leave_shedding_as_it_was_and_nothing_moves_twice(world: World) -> None:
    """`kill -9` at any moment: after `--recover` shedding is as it was; the same command goes on."""
    dice = random.Random(11)
    for _ in range(4):
        process = world.begin(str(world.plan), "--freeze-shedding", rate="4/s")
        had = len(world.entries("moved"))
        awaited(lambda had=had: len(world.entries("moved")) > had)  # type: ignore[misc]
        time.sleep(dice.uniform(0.0, 0.4))
        process.send_signal(signal.SIGKILL)
        ended(process)
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


def test_it_ends_after_the_step_under_way(world: World) -> None:
    """SIGTERM lets the step end and puts shedding back; the same command makes the rest."""
    process = world.begin(str(world.plan), "--freeze-shedding", rate="2/s")
    awaited(lambda: len(world.entries("moved")) >= 2)
    process.send_signal(signal.SIGTERM)
    code, said = ended(process)

    assert (code, world.shedding) == (130, None), said
    assert len(world.entries("requested")) == len(world.entries("moved")) < _MOVES
    assert world.run(str(world.plan), rate="10/s")[0] == 0
    assert len(world.entries("requested")) == _MOVES


def test_a_broker_is_drained_as_planned_and_what_was_predicted_is_measured(world: World) -> None:
    """From `lookup plan` through `lookup apply` to the next plan, as they are typed; the way back restores it."""
    # Brokers choose first owners by their load: one may own no bundle of a namespace.
    drained = Counter(owned.broker for owned in world.before.values()).most_common(1)[0][0]

    def typed(*words: str) -> subprocess.CompletedProcess[str]:
        process = world.begin_typed(*words, errors=subprocess.PIPE)
        said, errors = process.communicate(timeout=PATIENCE_S)
        return subprocess.CompletedProcess(words, process.returncode, said, errors)

    folder = str(world.folder / "drain")
    planned = typed("plan", "--drain", drained, "--only", world.namespace, "--output", folder)
    assert planned.returncode == 0, planned.stderr
    applied = typed("apply", folder, "--yes", "--rate", "10/s", "--freeze-shedding")
    assert applied.returncode == 0, applied.stdout + applied.stderr
    assert drained not in {world.owners()[bundle] for bundle in world.topics}
    measured = typed("plan", "--only", world.namespace, "--format", "json")
    back = typed("apply", "--rollback", f"{folder}/plan.json.journal", "--yes", "--rate", "10/s")

    assert measured.returncode in (0, 4), measured.stderr
    document = json.loads(measured.stdout)
    assert document["figures"][0]["before"] > 0.0
    assert {one["id"] for one in document["brokers"]} == {broker.id for broker in world.cluster.running}
    assert back.returncode == 0, back.stdout
    assert {bundle: world.owners()[bundle] for bundle in world.topics} == {
        bundle: owned.broker for bundle, owned in world.before.items()
    }
