"""Seeds of a run: those given, or as many as asked for, drawn from what the log is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lookup.replay.outcome import ReplayOutcome
from tests.replay.layouts import write_rows
from tests.replay.small import LOOKUP, replayed, write_log

_ROWS = tuple({"ts": LOOKUP["ts"] + second * 1_000_000, "topic": f"persistent://t/n/{second}"} for second in range(9))


def seeds_of(folder: Path, rows: tuple[dict[str, Any], ...] = _ROWS, **evaluation: Any) -> tuple[int, ...]:
    """Replay a log and return the seeds."""
    write_log(folder, *rows)
    outcome: ReplayOutcome = replayed(folder, evaluation=evaluation)

    assert {part.seed for part in outcome.sums if part.policy == "p"} == set(outcome.seeds)
    return outcome.seeds


def test_a_list_is_taken_as_it_is(tmp_path: Path) -> None:
    """Whatever the log."""
    assert seeds_of(tmp_path, seeds=[7, 3]) == (7, 3)


def test_a_number_is_drawn(tmp_path: Path) -> None:
    """So many different ones, the same for the same log, and fewer are among more."""
    drawn = seeds_of(tmp_path / "a", seeds=5)

    assert len(set(drawn)) == 5
    assert seeds_of(tmp_path / "b", seeds=5) == drawn
    assert set(seeds_of(tmp_path / "c", seeds=3)) < set(drawn)


def test_how_a_log_is_cut_into_files_does_not_matter(tmp_path: Path) -> None:
    """A log is its lookups."""
    whole = seeds_of(tmp_path / "whole", seeds=4)
    parts = tmp_path / "parts"
    for number, rows in enumerate((_ROWS[:2], _ROWS[2:])):
        write_rows([{**LOOKUP, **row} for row in rows], "lookups", parts / "lookups" / f"part-{number}.parquet")

    assert replayed(parts, evaluation={"seeds": 4}).seeds == whole


def test_another_log_has_others(tmp_path: Path) -> None:
    """A lookup less, another day or another cluster is another log."""
    day = 86_400 * 1_000_000
    logs = (
        _ROWS,
        _ROWS[:-1],
        tuple({**row, "ts": row["ts"] + day} for row in _ROWS),
        tuple({**row, "cluster": "west"} for row in _ROWS),
    )
    found = [set(seeds_of(tmp_path / str(number), rows, seeds=5)) for number, rows in enumerate(logs)]

    assert all(not one & other for place, one in enumerate(found) for other in found[:place])


def test_another_draw_has_others(tmp_path: Path) -> None:
    """Of the same log."""
    first, second = (set(seeds_of(tmp_path / str(draw), seeds=5, draw=draw)) for draw in (0, 1))

    assert not first & second
