"""An evaluation of a part of a log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lookup.errors import InputError
from lookup.model.time import time_text
from tests.replay.small import LOOKUP, evaluation_in, replayed, write_log

_MINUTE = 60_000_000
_START: int = LOOKUP["ts"]  # type: ignore[assignment]

#: Minutes with a lookup.
_CLUSTERS = {"east": range(60), "west": range(30, 55)}


def _rows(minutes: range) -> list[dict[str, Any]]:
    return [{"ts": _START + minute * _MINUTE, "topic": f"persistent://t/n/{minute % 7}"} for minute in minutes]


@pytest.mark.parametrize(
    ("bounds", "minutes"),
    [({"since": 20}, range(20, 60)), ({"until": 40}, range(40)), ({"since": 20, "until": 40}, range(20, 40))],
)
def test_a_part_of_a_log_is_a_log(tmp_path: Path, bounds: dict[str, int], minutes: range) -> None:
    """From an instant on and before another one: the same sums as of a log with these rows alone."""
    write_log(tmp_path / "whole", *_rows(range(60)))
    write_log(tmp_path / "part", *_rows(minutes))
    rules = {name: time_text(_START + minute * _MINUTE) for name, minute in bounds.items()}

    found, wanted = replayed(tmp_path / "whole", evaluation=rules), replayed(tmp_path / "part")

    assert found.inputs.lookups == wanted.inputs.lookups == len(minutes)
    assert found.seeds == wanted.seeds
    for one, other in zip(found.sums, wanted.sums, strict=True):
        assert (one.metric, one.key) == (other.metric, other.key)
        assert one.sums.tolist() == other.sums.tolist()


def test_rows_without_a_time_are_refused_all_the_same(tmp_path: Path) -> None:
    """It is not known whether they belong to the part, and they keep their numbers."""
    write_log(tmp_path, *_rows(range(10)), {"ts": None}, *_rows(range(50, 60)))

    found = replayed(tmp_path, evaluation={"since": time_text(_START + 50 * _MINUTE)})

    assert (found.inputs.quarantined, found.inputs.lookups) == (1, 10)


def test_a_part_without_lookups_is_said(tmp_path: Path) -> None:
    """With the settings that left nothing."""
    write_log(tmp_path, *_rows(range(10)))

    with pytest.raises(InputError, match=r"from evaluation\.since to evaluation\.until"):
        replayed(tmp_path, evaluation={"since": "2031-01-01T00:00:00Z"})


def test_a_part_that_ends_before_it_begins_is_refused(tmp_path: Path) -> None:
    """Before anything is read."""
    with pytest.raises(ValueError, match="until: 2026-01-01T00:00:00"):
        evaluation_in(tmp_path, evaluation={"since": "2026-01-02T00:00:00Z", "until": "2026-01-01T00:00:00Z"})


def test_what_is_scored_begins_at_an_instant_in_every_cluster(tmp_path: Path) -> None:
    """West begins half an hour after east: a warm-up would count from there, and leave nothing of it."""
    rows = [{**row, "cluster": cluster} for cluster, minutes in _CLUSTERS.items() for row in _rows(minutes)]
    write_log(tmp_path / "both", *rows)
    write_log(tmp_path / "east", *rows[:60])
    begins = {"scored_from": time_text(_START + 40 * _MINUTE)}

    found = replayed(tmp_path / "both", evaluation=begins)

    east = replayed(tmp_path / "east", evaluation={"warmup_s": 2400, "seeds": list(found.seeds)})
    answered = {one.cluster: one.sums.sum(axis=0) for one in found.sums if one.metric == "answered_ratio"}
    (wanted,) = (one.sums.sum(axis=0) for one in east.sums if one.metric == "answered_ratio")
    assert answered["east"].tolist() == wanted.tolist() == [20.0, 20.0]
    assert answered["west"].tolist() == [15.0, 15.0]


def test_an_instant_after_the_log_is_refused(tmp_path: Path) -> None:
    """Before anything is replayed, with the time of the last lookup."""
    write_log(tmp_path, *_rows(range(10)))

    with pytest.raises(InputError, match=r"^evaluation\.scored_from: no lookup"):
        replayed(tmp_path, evaluation={"scored_from": time_text(_START + 60 * _MINUTE)})
