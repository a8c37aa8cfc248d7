"""One policy under exclusive ownership, in small worlds with known outcomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lookup.replay.exclusive import ExclusiveReplay
from tests.replay.plans import NOON, WHOLE, Planned, lookup, planned, policy
from tests.replay.worlds import MICRO

RACK = {"scorers": [{"use": "property-match", "key": "rack"}], "selector": {"use": "best", "min_score": 1.0}}
A, B = '{"rack":"a"}', '{"rack":"b"}'


def _replayed(plan: Planned, **parts: Any) -> tuple[ExclusiveReplay, dict[int, float]]:
    made = policy(**(parts or RACK))
    replay = plan.shown_to(ExclusiveReplay(plan.cluster, plan.run, made, seed=1, work=plan.work))
    served: dict[int, float] = {}
    for batch in replay.counted().batches():
        for broker, lookups in zip(batch.served.broker.tolist(), batch.served.lookups.tolist(), strict=True):
            served[broker] = served.get(broker, 0.0) + lookups
    return replay, served


def _owners(replay: ExclusiveReplay) -> list[tuple[str, float, float | None, str | None]]:
    return [
        (one.broker, (one.from_us - NOON) / MICRO, one.to_us and (one.to_us - NOON) / MICRO, one.ended_by)
        for one in replay.intervals.all
    ]


def test_the_first_lookup_decides_and_the_others_follow(tmp_path: Path) -> None:
    """A hit asks no policy, whatever its properties say."""
    replay, served = _replayed(planned(tmp_path, [lookup(0, properties=A), lookup(1, properties=B)]))

    assert served == {0: 2.0}
    assert [(entry.decision.broker, entry.ts_us) for entry in replay.decisions] == [("a:1", NOON)]


def test_read_only_and_declined_lookups_leave_a_bundle_unowned(tmp_path: Path) -> None:
    """Unanswered are those before the assigning lookup, and a declined key is decided once per fingerprint."""
    rows = [
        lookup(0, properties=B, read_only=True),
        lookup(1, properties="{}"),
        lookup(2, properties="{}"),
        lookup(3, properties=B, read_only=False),
        lookup(4, properties=A, read_only=True),
    ]
    replay, served = _replayed(planned(tmp_path, rows))

    assert served == {-1: 3.0, 1: 2.0}
    assert [(entry.decision.broker, entry.count) for entry in replay.decisions] == [(None, 2), ("b:1", 1)]
    assert _owners(replay) == [("b:1", 3.0, None, None)]


def test_an_unload_at_a_lookup_s_own_microsecond_comes_first(tmp_path: Path) -> None:
    """The lookup at that instant finds no owner; the move is the administrator's."""
    unload = {"ts": NOON + 5 * MICRO, "cluster": "east", "bundle": WHOLE, "event": "unloaded", "by": "admin"}
    plan = planned(tmp_path, [lookup(0, properties=A), lookup(5, properties=B)], tables={"ownership": [unload]})
    replay, served = _replayed(plan)

    assert served == {0: 1.0, 1: 1.0}
    assert _owners(replay) == [("a:1", 0.0, 5.0, "admin"), ("b:1", 5.0, None, None)]


def test_a_leader_replaces_a_lost_owner_at_once(tmp_path: Path) -> None:
    """With owner_loss = leader the bundle moves at the event, without the lookup's properties."""
    brokers = [{"id": "a:1", "until": "2026-01-01T12:00:07Z"}, {"id": "b:1"}]
    rows = [lookup(0), lookup(20)]
    for loss, begins in (("leader", 7.0), ("next-lookup", 20.0)):
        plan = planned(tmp_path / loss, rows, brokers=brokers, evaluation={"owner_loss": loss})
        replay, _ = _replayed(plan, selector={"use": "rendezvous"})
        owners = _owners(replay)
        if owners[0][0] == "a:1":
            assert owners == [("a:1", 0.0, 7.0, "forced"), ("b:1", begins, None, None)]


def test_children_of_a_split_keep_the_owner(tmp_path: Path) -> None:
    """A split moves nothing: one interval ends and one begins for each child."""
    split = {"cluster": "east", "bundle": WHOLE, "event": "split", "boundaries": ["0x80000000"]}
    plan = planned(
        tmp_path, [lookup(0, properties=A), lookup(9)], tables={"ownership": [{**split, "ts": NOON + 4 * MICRO}]}
    )
    replay, served = _replayed(plan)

    assert served == {0: 2.0}
    assert _owners(replay) == [("a:1", 0.0, 4.0, "split"), ("a:1", 4.0, None, None), ("a:1", 4.0, None, None)]


def test_owners_from_before_the_log_are_no_moves_and_no_assignments(tmp_path: Path) -> None:
    """An owned row at the first lookup's own instant makes that lookup a hit."""
    owned = {"ts": NOON, "cluster": "east", "bundle": WHOLE, "event": "owned", "broker": "b:1"}
    replay, served = _replayed(planned(tmp_path, [lookup(0, properties=A)], tables={"ownership": [owned]}))

    assert (served, replay.decisions) == ({1: 1.0}, [])


def test_pinned_bundles_answer_while_their_broker_is_registered(tmp_path: Path) -> None:
    """Heartbeats go to the broker in their name and ask no policy; those of a stranger go unanswered."""
    rows = [lookup(0, topic="persistent://pulsar/b:1/x"), lookup(1, topic="persistent://pulsar/zz:9/x")]
    replay, served = _replayed(planned(tmp_path, rows))

    assert (served, replay.decisions, replay.intervals.all) == ({1: 1.0, -1: 1.0}, [], [])


def test_what_is_warmed_up_is_simulated_but_not_counted(tmp_path: Path) -> None:
    """Lookups and moves of the warm-up leave owners behind and no figures."""
    plan = planned(tmp_path, [lookup(0, properties=A), lookup(61)], evaluation={"warmup_s": 60})
    replay, served = _replayed(plan)

    assert (served, len(replay.decisions)) == ({0: 1.0}, 1)
