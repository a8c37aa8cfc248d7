"""Broker-time that is overloaded whatever policy runs: what proves it, and what does not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lookup.logs.jobs import InProcess
from lookup.replay.outcome import POSSIBLE
from lookup.replay.run import replay
from tests.replay.layouts import Layout, write_lookups
from tests.replay.plans import NOON, WHOLE, lookup, settings
from tests.replay.test_pieces import bounds, totals
from tests.replay.worlds import MICRO

#: Two brokers with room for 51 lookups a minute below the threshold, each.
BROKERS = [{"id": name, "capacity": 1.0} for name in ("a:1", "b:1")]


def overloaded(folder: Path, rows: Sequence[dict[str, Any]], **given: Any) -> list[float]:
    """Return seconds that are surely overloaded, and those of known usage; the third minute is the last."""
    rows = [*rows, lookup(125)]
    return totals(bounds(folder, rows, **{"brokers": BROKERS} | given))["overload_ratio", None]


def minute(count: int, *, second: float = 0.0, **values: Any) -> list[dict[str, Any]]:
    """Return so many lookups of one bundle in one minute."""
    return [lookup(second + n / 10, **values) for n in range(count)]


@pytest.mark.parametrize(("count", "seconds"), [(51, 0.0), (52, 60.0)])
def test_a_bundle_too_heavy_for_any_broker_overloads_one(tmp_path: Path, count: int, seconds: float) -> None:
    """In the minute after its lookups; the first minute has no usage yet."""
    assert overloaded(tmp_path, minute(count)) == [seconds, 4 * 60.0]


def test_bundles_too_heavy_together_overload_one_broker(tmp_path: Path) -> None:
    """Each has room, all three have not; one broker could have them all, so that two are not proven."""
    rows = [one for name in "nmo" for one in minute(40, topic=f"persistent://t/{name}/topic")]

    assert overloaded(tmp_path, rows) == [60.0, 240.0]


def test_shared_lookups_are_divided_by_odds(tmp_path: Path) -> None:
    """No bundle is too heavy for one broker if two can share it."""
    found = [
        overloaded(tmp_path / str(count), minute(count), evaluation={"ownership": "shared"}) for count in (102, 103)
    ]

    assert found == [[0.0, 240.0], [60.0, 240.0]]


def test_a_bundle_without_a_lookup_since_the_last_instant_may_have_no_owner(tmp_path: Path) -> None:
    """A shedder may have unloaded it, and one that weighs nothing may be unanswered: it proves nothing."""
    found = {
        name: overloaded(tmp_path / name, [*minute(110), *more], evaluation={"session_s": 120})
        for name, more in (("quiet", []), ("weightless", [lookup(65, weight=0.0)]), ("asked", [lookup(65, weight=1.0)]))
    }

    assert found == {"quiet": [60.0, 240.0], "weightless": [60.0, 240.0], "asked": [120.0, 240.0]}


@pytest.mark.parametrize("second", [30, 60])
def test_an_unload_of_the_log_takes_the_owner_away(tmp_path: Path, second: int) -> None:
    """Within the minute or at its end, if no lookup comes after it."""
    unload = {"ts": NOON + second * MICRO, "cluster": "east", "bundle": WHOLE, "event": "unloaded", "by": "admin"}

    assert overloaded(tmp_path, minute(60), tables={"ownership": [unload]}) == [0.0, 240.0]


def test_a_broker_that_leaves_may_be_the_overloaded_one(tmp_path: Path) -> None:
    """Only the half minute before is proven; at the next instant the other one has the bundle, or none."""
    brokers = [{**BROKERS[0], "until": "2026-01-01T12:01:30Z"}, BROKERS[1]]

    assert overloaded(tmp_path, minute(60), brokers=brokers) == [30.0, 60.0 + 30.0 + 60.0]


def test_a_broker_of_unknown_capacity_has_room_for_all(tmp_path: Path) -> None:
    """Its usage is not known, so what it has overloads nothing."""
    assert overloaded(tmp_path, minute(60), brokers=[BROKERS[0], {"id": "b:1"}]) == [0.0, 120.0]


def test_warm_up_proves_nothing(tmp_path: Path) -> None:
    """What a policy left unanswered there is not known."""
    assert overloaded(tmp_path, minute(60), evaluation={"warmup_s": 60}) == [0.0, 240.0]


def test_a_policy_without_a_choice_reaches_the_bound(tmp_path: Path) -> None:
    """One broker has all, in a minute of four more than it has room for."""
    write_lookups([*minute(60), lookup(70), lookup(125), lookup(185)], tmp_path / "lookups", Layout(with_seq=False))
    file = settings(inputs={"lookups": str(tmp_path / "lookups")}, brokers=BROKERS[:1])
    outcome = replay(InProcess(), file, str(tmp_path / "run"))
    sums = (*outcome.sums, *outcome.bounds[0].figures)
    found = {one.policy: one.sums.tolist() for one in sums if one.metric == "overload_ratio"}

    assert found == {"p": [[60.0, 180.0]], POSSIBLE: [[60.0, 180.0]]}


def test_nothing_is_bounded_without_simulated_usage(tmp_path: Path) -> None:
    """Neither with assumed capacities nor with reported usage, which no placement changes."""
    report = {"ts": NOON, "cluster": "east", "broker": "a:1", "load": '{"weightedMaxEMA": 0.9}'}
    reported = bounds(
        tmp_path / "reported",
        minute(60),
        brokers=BROKERS,
        evaluation={"load": "reported"},
        tables={"loads": [report]},
    )

    assert ("overload_ratio", None) not in totals(bounds(tmp_path / "assumed", minute(60)))
    assert ("overload_ratio", None) not in totals(reported)
