"""Where the lookups of each bundle come from."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Generator, Mapping, MutableMapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pytest

from lookup.model import ClusterView, CycleLabel, CycleOutcome, CycleReason, NamespaceBundle, Ruling, Unload
from lookup.model.bundles import topic_hash
from lookup.replay.exclusive import ExclusiveReplay
from tests.replay.plans import NOON, lookup, planned, policy
from tests.replay.worlds import MICRO

Origins = dict[str, dict[str, dict[str, float]]]


@dataclass(frozen=True)
class _Watcher:
    """Moves nothing and writes down what it sees."""

    name: ClassVar[str] = "watcher"
    reads: frozenset[str] = frozenset({"view.load", "view.load.origins", "view.now"})

    def propose(self, view: ClusterView, memory: MutableMapping[str, Any]) -> Generator[Unload, Ruling, CycleOutcome]:
        seen = {key: {name: dict(found) for name, found in of.items()} for key, of in view.load.origins.items()}
        memory.setdefault("seen", []).append(((view.now_us - NOON) // (60 * MICRO), seen))
        yield from ()
        return CycleOutcome(CycleLabel.SKIP, CycleReason.HIT_COUNT)


def _seen(folder: Path, rows: list[dict[str, Any]], shedder: _Watcher, **given: Any) -> dict[int, Origins]:
    plan = planned(folder, rows, tasks=3, **given)
    replay = ExclusiveReplay(plan.cluster, plan.run, replace(policy(), shedder=shedder), seed=1)
    plan.shown_to(replay)
    return dict(replay.manager.memory["watcher"]["seen"])


def _rows(n_rows: int) -> list[dict[str, Any]]:
    """Four hours over midnight; some clients have no labels, some lookups no weight."""
    dice, rows = Random(7), []
    for second in sorted(dice.sample(range(11 * 3600, 15 * 3600), n_rows)):
        sent = {key: dice.choice("abc") for key in ("rack", "zone") if dice.random() < 0.7}
        topic = f"persistent://t/n{dice.randrange(3)}/topic-{dice.randrange(9)}"
        rows.append(lookup(second, topic=topic, properties=json.dumps(sent), weight=float(dice.randrange(4))))
    return rows


def _bundle_of(topic: str, bundles: list[str]) -> str:
    namespace = topic.removeprefix("persistent://").rpartition("/")[0]
    of_namespace = (NamespaceBundle.parse(name) for name in bundles if name.startswith(f"{namespace}/"))
    return next(str(bundle) for bundle in of_namespace if _holds(bundle, topic_hash(topic)))


def _holds(bundle: NamespaceBundle, hashed: int) -> bool:
    return bundle.range.lower <= hashed < bundle.range.upper or hashed == bundle.range.upper == 0xFFFFFFFF


@pytest.mark.parametrize("session_s", [60, 600])
def test_origins_are_those_of_a_loop_over_the_lookups(tmp_path: Path, session_s: int) -> None:
    """At every instant each bundle has the weight per second of the last `session_s` by value, whoever owns it."""
    rows, split = _rows(400), 13 * 60
    whole = "t/n0/0x00000000_0xffffffff"
    halves = ["t/n0/0x00000000_0x80000000", "t/n0/0x80000000_0xffffffff"]
    event = {"cluster": "east", "bundle": whole, "event": "split", "boundaries": ["0x80000000"]}
    event |= {"ts": NOON + split * 60 * MICRO}
    given = {"evaluation": {"session_s": session_s}, "tables": {"ownership": [event]}}

    seen = _seen(tmp_path, rows, _Watcher(), **given)

    others = ["t/n1/0x00000000_0xffffffff", "t/n2/0x00000000_0xffffffff"]
    assert len(seen) > 200
    for minute, found in seen.items():
        bundles = others + (halves if minute >= split else [whole])
        assert found == _close(_plainly(rows, minute * 60, session_s, bundles)), minute


def _plainly(rows: list[dict[str, Any]], now_s: int, session_s: int, bundles: list[str]) -> Origins:
    sums: Any = defaultdict(lambda: defaultdict(lambda: defaultdict(float)))
    for row in rows:
        if now_s - session_s <= (row["ts"] - NOON) / MICRO < now_s and row["weight"]:
            for key, value in json.loads(row["properties"]).items():
                sums[key][_bundle_of(row["topic"], bundles)][value] += row["weight"] / session_s
    return {key: {name: dict(found) for name, found in of.items()} for key, of in sums.items()}


def _close(origins: Origins) -> Mapping[str, Any]:
    return {key: {name: pytest.approx(found) for name, found in of.items()} for key, of in origins.items()}


def test_a_part_that_does_not_declare_origins_sees_none(tmp_path: Path) -> None:
    """Nothing is counted for a shedder that reads the load alone."""
    seen = _seen(tmp_path, _rows(50), _Watcher(frozenset({"view.load", "view.now"})))

    assert seen
    assert not any(seen.values())


def test_origins_do_not_need_the_loads_of_bundles(tmp_path: Path) -> None:
    """With BUNDLES, loads are bytes that were reported; origins are still the weight of lookups."""
    row = {"ts": NOON, "cluster": "east", "bundle": "t/n/0x00000000_0xffffffff", "stats": '{"msgThroughputIn": 5.0}'}
    rows = [lookup(1, properties='{"rack": "a"}', weight=6.0), lookup(61)]

    seen = _seen(tmp_path, rows, _Watcher(), tables={"bundles": [row]})

    assert seen[1] == {"rack": {"t/n/0x00000000_0xffffffff": {"a": pytest.approx(0.1)}}}
