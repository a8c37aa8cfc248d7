"""Times of brokers that do not fit those of a log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lookup.errors import InputError
from lookup.replay.inspecting import inspect_log
from lookup.replay.presence import require_some_registered
from lookup.replay.timeline import Registration, times_registered
from tests.replay.small import BROKER, evaluation_in, replayed, write_log, write_table
from tests.replay.worlds import START_US

_MINUTE = 60_000_000
_LATE = {**BROKER, "from": "2026-01-05T09:00:00Z"}
_GONE = {**BROKER, "until": "2025-12-31T23:00:00Z"}


def _log(folder: Path, **row: Any) -> None:
    """Write a lookup in each of ten minutes."""
    write_log(folder, *({"ts": START_US + minute * _MINUTE, **row} for minute in range(11)))


def _found(folder: Path, **given: Any) -> list[str]:
    (folder / "work").mkdir()
    inspection = inspect_log(str(folder / "lookups"), str(folder / "work"), settings=evaluation_in(folder, **given))
    return [finding.sentence for finding in inspection.findings if finding.kind == "broker-times"]


@pytest.mark.parametrize(
    ("brokers", "says"),
    [
        ([_LATE], r"brokers are registered from 2026-01-05T09:00:00Z; `from` and `until`"),
        ([_GONE], r"brokers are registered until 2025-12-31T23:00:00Z; "),
        ([_LATE, _GONE], r"brokers are registered, but not all the time; "),
    ],
)
def test_a_log_without_a_broker_in_its_time_is_refused(
    brokers: list[dict[str, Any]], says: str, tmp_path: Path
) -> None:
    """With the time of the log and that of the brokers: policies that answer nobody are alike and pass every gate."""
    _log(tmp_path)

    with pytest.raises(
        InputError,
        match=r"cluster 'east' of the log has no broker that is registered at any time of it.*: its lookups come from "
        r"2026-01-01T23:56:00Z to 2026-01-02T00:06:00Z, and " + says,
    ):
        replayed(tmp_path, brokers=brokers)


def test_one_cluster_without_a_broker_is_refused_beside_others(tmp_path: Path) -> None:
    """As one that has no broker at all: no gate would see what a policy does there."""
    rows = [{"ts": START_US + minute * _MINUTE, "cluster": name} for minute in range(11) for name in ("east", "west")]
    write_log(tmp_path, *rows)
    brokers = [{**BROKER, "clusters": ["east"]}, {**_LATE, "clusters": ["west"]}]

    with pytest.raises(InputError, match=r"cluster 'west' .* has no broker"):
        replayed(tmp_path, brokers=brokers)


def test_brokers_of_the_warm_up_answer_nothing_that_is_scored(tmp_path: Path) -> None:
    """Nor do those that a BROKERS table lets go before the first lookup."""
    _log(tmp_path)
    came = {"ts": START_US - _MINUTE, "cluster": "east", "broker": "b1:8080", "event": "registered"}
    write_table(tmp_path, "brokers", came, {**came, "ts": START_US + 2 * _MINUTE, "event": "unregistered"})

    assert replayed(tmp_path).inputs.lookups == 11
    with pytest.raises(InputError, match="no broker that is registered"):
        replayed(tmp_path, evaluation={"warmup_s": 300})


@pytest.mark.parametrize(
    ("brokers", "says"),
    [
        ([BROKER], []),
        ([_LATE], ["in 600 of 600 s"]),
        ([{**BROKER, "until": "2026-01-02T00:01:00Z"}], ["in 300 of 600 s"]),
    ],
)
def test_times_that_do_not_fit_are_a_finding(brokers: list[dict[str, Any]], says: list[str], tmp_path: Path) -> None:
    """Also those that fit a part of the log."""
    _log(tmp_path)

    found = _found(tmp_path, brokers=brokers)

    assert [part in sentence for part, sentence in zip(says, found, strict=True)] == [True] * len(says)


@pytest.mark.parametrize("has_table", [False, True])
def test_a_part_of_a_log_is_held_against_the_brokers_of_every_cluster(tmp_path: Path, *, has_table: bool) -> None:
    """Before anything of the log is read, when its clusters are not known."""
    if has_table:
        row = {"ts": START_US, "cluster": "west", "broker": "b1:8080", "event": "registered"}
        write_table(tmp_path, "brokers", row, {**row, "ts": START_US + _MINUTE, "event": "unregistered"})
    until = {"from": "2026-01-01T00:00:00Z", "until": "2026-01-03T00:00:00Z"}
    settings = evaluation_in(tmp_path, brokers=[{**BROKER, "clusters": ["west"], **until}])

    require_some_registered(settings, START_US, START_US + _MINUTE, "the log")
    with pytest.raises(InputError, match=r"^no broker is registered"):
        require_some_registered(settings, START_US + 2_880 * _MINUTE, START_US + 4_320 * _MINUTE, "the log")


def test_times_of_several_brokers_are_put_together() -> None:
    """A broker that takes over at the instant another leaves lets no gap."""
    events = [(10, "a", "registered"), (15, "b", "registered"), (20, "a", "unregistered"), (30, "b", "unregistered")]
    events += [(30, "b", "updated"), (35, "a", "unregistered"), (40, "c", "registered"), (50, "c", "unregistered")]
    events += [(50, "d", "registered")]

    times = times_registered(Registration(*event) for event in events)

    assert [*times[:2], times[2][0]] == [(10, 30), (40, 50), 50]
    assert len(times) == 3
