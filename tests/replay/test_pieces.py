"""Pieces of demand and their bounds in logs that have little: no labels, one broker, no demand, splits and slices."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lookup.engine.policy import Policy
from lookup.model.bundles import topic_hash
from lookup.placement.frontier import Multipliers
from lookup.replay.clusters import marks_of
from lookup.replay.facts import FactsWalk
from lookup.replay.outcome import BoundSums
from lookup.replay.pieces import Bounding
from tests.replay.plans import NOON, WHOLE, lookup, planned, policy
from tests.replay.worlds import MICRO

MULTIPLIERS = Multipliers.of(4.0, 4.0 * MICRO, 1)
#: After half a minute the bundle is halved.
HALVED = {
    "ts": NOON + 30 * MICRO,
    "cluster": "east",
    "bundle": WHOLE,
    "event": "split",
    "boundaries": ["0x80000000"],
}


def bounds(
    folder: Path,
    rows: list[dict[str, Any]],
    *,
    multipliers: Multipliers = MULTIPLIERS,
    limited: Sequence[Policy] = (),
    **given: Any,
) -> BoundSums:
    """Return the bounds of a log of one cluster, by default without those of distances."""
    plan = planned(folder, rows, **given)
    walk = FactsWalk(
        plan.cluster,
        plan.run,
        marks_of(plan.cluster, plan.work),
        30 * MICRO,
        has_log=False,
        bounding=Bounding(multipliers, limited),
    )
    found = plan.shown_to(walk).facts().bounds
    assert found is not None
    return found


def totals(found: BoundSums) -> dict[tuple[str, str | None], list[float]]:
    """Return the sums of every figure."""
    return {(one.metric, one.key): one.sums.sum(axis=0).tolist() for one in found.figures}


def wanting(*racks: str, second: float = 0.0, **values: Any) -> list[dict[str, Any]]:
    """Return a lookup of one bundle in one tick for each rack that is wanted."""
    return [lookup(second + n / 10, properties=f'{{"rack": "{rack}"}}', **values) for n, rack in enumerate(racks)]


def test_a_bundle_is_near_most_of_its_clients_in_each_tick(tmp_path: Path) -> None:
    """Two of three in the first minute, all in the next; a rack without a broker is near to nobody."""
    rows = [*wanting("a", "b", "a"), *wanting("b", second=60), *wanting("c", "c", second=120)]
    found = bounds(tmp_path, rows)

    assert totals(found)["match_ratio", "rack"] == [3.0, 6.0]
    # All is one bundle, of which no tick has more than half: two brokers could share it by moving it once.
    assert totals(found)["imbalance_max_mean", None] == [6.0, 6.0]
    assert found.evenness["imbalance_max_mean"][-1] == 12.0 * MICRO
    assert found.evenness["imbalance_cv"][-1] == pytest.approx(6.0 * MICRO)


def test_the_bundle_of_a_minute_may_be_heavier_than_the_mean(tmp_path: Path) -> None:
    """One broker serves it whole: twice the mean of two, and a deviation of one mean."""
    found = totals(bounds(tmp_path, wanting("a", "a", "b", "b")))

    assert found["imbalance_max_mean", None] == [8.0, 4.0]
    assert found["imbalance_cv", None] == pytest.approx([4.0, 4.0])


def test_shared_lookups_are_pieces_of_their_own(tmp_path: Path) -> None:
    """Each may be near, odds divide them evenly, and nothing moves; their weights may differ."""
    rows = [*wanting("a", weight=9.0), *wanting("a", "b", "b", "c", weight=1.0)]
    found = bounds(tmp_path, rows, evaluation={"ownership": "shared"})

    assert totals(found)["match_ratio", "rack"] == [4.0, 5.0]
    assert totals(found)["imbalance_max_mean", None] == [13.0, 13.0]
    assert not np.any(list(found.evenness.values()))
    assert found.localities["match_ratio", "rack"].few is None


def test_children_of_a_split_are_pieces_of_their_own(tmp_path: Path) -> None:
    """From the split on, and what they serve is counted under the bundle that they came from."""
    topics = [f"persistent://t/n/topic-{number}" for number in range(8)]
    racks = ["a" if topic_hash(topic) < 1 << 31 else "b" for topic in topics]
    rows = [
        lookup(second, topic=topic, properties=f'{{"rack": "{rack}"}}')
        for second in (0, 40)
        for topic, rack in zip(topics, racks, strict=True)
    ]
    most = max(racks.count("a"), racks.count("b"))
    whole, halved = (
        totals(bounds(tmp_path / name, rows, tables=tables))
        for name, tables in (("whole", {}), ("halved", {"ownership": [HALVED]}))
    )

    assert most < 8
    assert whole["match_ratio", "rack"] == [2 * most, 16.0]
    assert halved["match_ratio", "rack"] == [most + 8.0, 16.0]


def test_without_labels_nothing_can_be_near(tmp_path: Path) -> None:
    """Neither if clients send none, nor if no broker has any: then nothing but balance is bounded."""
    unlabelled = [{"id": "a:1"}, {"id": "b:1"}]

    assert ("match_ratio", "rack") not in totals(bounds(tmp_path / "clients", [lookup(0)]))
    found = bounds(tmp_path / "brokers", wanting("a", "b"), brokers=unlabelled)
    assert totals(found)["match_ratio", "rack"] == [0.0, 2.0]
    assert not found.localities


def test_one_broker_has_everything(tmp_path: Path) -> None:
    """It is perfectly balanced, and near to the clients of its rack whatever moves."""
    brokers = [{"id": "a:1", "properties": {"lookup.rack": "a"}}]
    found = bounds(tmp_path, wanting("a", "b"), brokers=brokers)

    assert totals(found) == {
        ("imbalance_max_mean", None): [2.0, 2.0],
        ("imbalance_cv", None): [0.0, 2.0],
        ("match_ratio", "rack"): [1.0, 2.0],
    }
    assert found.localities["match_ratio", "rack"].free[0] == 1.0


#: t/n is kept to the broker of rack a, all others off it.
ISOLATED = {"namespaces": [{"name": "t/n", "isolation": [{"primary": ["a"]}]}]}


@pytest.mark.parametrize("ownership", ["exclusive", "shared"])
def test_bundles_are_kept_to_the_brokers_that_isolation_leaves_them(tmp_path: Path, ownership: str) -> None:
    """Of t/n two of five are near its only broker, of t/m one is far; 5 of 6 lookups are on one of two brokers."""
    rows = [*wanting("a", "b", "a", "b", "b"), *wanting("a", topic="persistent://t/m/topic")]
    given = {**ISOLATED, "evaluation": {"ownership": ownership}}
    free = bounds(tmp_path / "free", rows, limited=[policy(), policy(filters=["isolation"])], **given)
    kept = bounds(tmp_path / "kept", rows, limited=[policy(filters=["isolation"])], **given)

    assert totals(free)["match_ratio", "rack"] == [4.0 if ownership == "exclusive" else 6.0, 6.0]
    assert totals(kept)["match_ratio", "rack"] == [2.0, 6.0]
    assert kept.localities["match_ratio", "rack"].free[0] == 2.0
    assert totals(kept)["imbalance_max_mean", None] == [10.0, 6.0]
    assert totals(kept)["imbalance_cv", None] == pytest.approx([4.0, 6.0])
    if ownership == "exclusive":
        assert kept.localities["match_ratio", "rack"].few[0, -1] == 2.0
        assert kept.evenness["imbalance_max_mean"][-1] == 10.0 * MICRO


def test_distances_are_those_to_brokers_that_isolation_leaves(tmp_path: Path) -> None:
    """All brokers are as far from all clients as they can be, but the one in their rack, which t/n may not have."""
    rows = [lookup(0, properties='{"zone": "z", "rack": "b"}')]
    brokers = [{"id": f"{rack}:1", "location": {"zone": "z", "rack": rack}} for rack in "ab"]
    far, near = (
        totals(
            bounds(
                tmp_path / name,
                rows,
                multipliers=Multipliers.of(1.0, 1.0 * MICRO, 1, 0.3),
                limited=[policy(filters=filters)],
                brokers=brokers,
                **ISOLATED,
            )
        )["network_ms_mean", None]
        for name, filters in (("far", ["isolation"]), ("near", []))
    )

    assert far[0] > near[0]
    assert far[1] == near[1] == 1.0


def test_no_distance_counts_to_the_only_broker_if_its_place_is_unknown(tmp_path: Path) -> None:
    """Though another broker, which t/n may not have, has one."""
    rows = [lookup(0, properties='{"zone": "z"}')]
    multipliers = Multipliers.of(1.0, 1.0 * MICRO, 1, 0.3)
    given = {
        "multipliers": multipliers,
        "brokers": [{"id": "a:1"}, {"id": "b:1", "location": {"zone": "z"}}],
        **ISOLATED,
    }
    found = totals(bounds(tmp_path, rows, limited=[policy(filters=["isolation"])], **given))

    assert found["network_ms_mean", None] == [0.0, 0.0]


def test_children_of_a_split_are_kept_to_the_brokers_of_their_namespace(tmp_path: Path) -> None:
    """Both halves of t/n may be on the broker of rack a only."""
    topics = [f"persistent://t/n/topic-{number}" for number in range(8)]
    rows = [one for topic in topics for second in (0, 40) for one in wanting("b", second=second, topic=topic)]
    rows.sort(key=lambda row: row["ts"])
    given = {"limited": [policy(filters=["isolation"])], "tables": {"ownership": [HALVED]}, **ISOLATED}
    found = totals(bounds(tmp_path, rows, **given))

    assert found["match_ratio", "rack"] == [0.0, 16.0]
    assert found["imbalance_max_mean", None] == [32.0, 16.0]


def test_what_comes_while_no_broker_is_there_is_kept_to_none(tmp_path: Path) -> None:
    """It is part of the mean, but not of what the broker of t/n must have."""
    rows = [*wanting("a", "a"), *wanting("a", second=90)]
    ends = {"until": "2026-01-01T12:01:00Z"}
    brokers = [{"id": "a:1", **ends}, {"id": "b:1", **ends}]
    found = totals(bounds(tmp_path, rows, limited=[policy(filters=["isolation"])], brokers=brokers, **ISOLATED))

    assert found["imbalance_max_mean", None] == [4.0, 3.0]


def test_isolated_brokers_may_have_too_little_room(tmp_path: Path) -> None:
    """Two brokers have room for three bundles of a lookup a second, the one of two of them has not."""
    names = ("n", "m", "o")
    rows = [lookup(60 * minute, topic=f"persistent://t/{name}/t", weight=60.0) for minute in range(4) for name in names]
    brokers = [{"id": "a:1", "capacity": 1.5}, {"id": "b:1", "capacity": 9.0}]
    namespaces = [{"name": f"t/{name}", "isolation": [{"primary": ["a"]}]} for name in "nm"]
    given = {"brokers": brokers, "namespaces": namespaces}
    free = totals(bounds(tmp_path / "free", rows, limited=[policy()], **given))["overload_ratio", None]
    kept = totals(bounds(tmp_path / "kept", rows, limited=[policy(filters=["isolation"])], **given))

    assert free[0] == 0.0
    assert kept["overload_ratio", None][0] == pytest.approx(free[1] / 2)


def test_the_warm_up_and_quiet_hours_have_no_bound(tmp_path: Path) -> None:
    """Cells are those of the metrics, from the first scored one on; a quiet one has a row of zeros."""
    rows = [lookup(0), lookup(3 * 3600), lookup(5 * 3600)]
    found = bounds(tmp_path, rows, evaluation={"warmup_s": 3600})
    even = next(one for one in found.figures if one.metric == "imbalance_max_mean")

    assert even.start_us == NOON + 3600 * MICRO
    assert np.flatnonzero(even.sums[:, 1]).tolist() == [2, 4]


def test_bounds_do_not_depend_on_slices(tmp_path: Path) -> None:
    """To the byte, though a slice ends within a cell."""
    rows = [one for minute in range(5) for one in wanting("a", "b", "b", second=60 * minute)]
    cut = [
        bounds(
            tmp_path / str(size),
            rows,
            multipliers=Multipliers.of(15.0, 15.0 * MICRO, 1, 0.3),
            brokers=[{"id": f"{rack}:1", "capacity": 0.1, "properties": {"lookup.rack": rack}} for rack in "ab"],
            evaluation={"slice_rows": size, "balance_s": 240},
        )
        for size in (1, 4_000_000)
    ]

    assert pickle.dumps(cut[0]) == pickle.dumps(cut[1])


def test_smaller_bundles_of_a_policy_are_within_the_bounds(tmp_path: Path) -> None:
    """Two topics of one bundle weigh on one broker; a policy that has them in two bundles may have them on two."""
    topics = [f"persistent://t/n/topic-{number}" for number in range(99)]
    halves = [next(topic for topic in topics if topic_hash(topic) >> 31 == half) for half in (0, 1)]
    rows = [lookup(topic=topic) for topic in halves]
    policies = [{"name": "p", "selector": "best"}, {"name": "q", "selector": "best", "bundles": 2}]
    whole, divided = bounds(tmp_path / "a", rows), bounds(tmp_path / "b", rows, policies=policies)

    assert totals(whole)["imbalance_max_mean", None] == [4.0, 2.0]
    assert totals(divided)["imbalance_max_mean", None] == [2.0, 2.0]
    # A move of half a bundle is not one of a whole: with few moves as much is possible as with many.
    assert whole.evenness["imbalance_max_mean"].any()
    assert not divided.evenness["imbalance_max_mean"].any()
