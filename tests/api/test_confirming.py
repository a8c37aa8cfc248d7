"""`lookup.confirm`: the winner of a run once more, with seeds that it has not seen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import lookup
from lookup.errors import SettingsError
from lookup.logs.jobs import InProcess
from tests.api.test_evaluating import log_of_racks

_SETTINGS: dict[str, Any] = {
    "evaluation": {"incumbent": "stock", "seeds": 5},
    "verdict": {"primary": ["match_ratio"]},
    "brokers": [{"id": f"b{n}:8080", "properties": {"lookup.rack": rack}} for n, rack in enumerate("abab")],
    "policies": [
        {"name": "stock", "selector": "random"},
        {"name": "rack", "scorers": ["property-match"], "selector": "best"},
        {"name": "same", "selector": "random"},
    ],
}


def test_the_winner_is_replayed_with_other_seeds(tmp_path: Path) -> None:
    """It and the incumbent alone, over the same log, and what is left of every difference is said."""
    pq.write_table(log_of_racks(), tmp_path / "lookups.parquet")
    lookup.evaluate(_SETTINGS, tmp_path / "lookups.parquet", output=tmp_path / "run", workers=InProcess())

    again, left = lookup.confirm(tmp_path / "run", output=tmp_path / "again", workers=InProcess())

    seeds = [json.loads((tmp_path / name / "manifest.json").read_text())["seeds"] for name in ("run", "again")]
    assert len(seeds[0]) == len(seeds[1]) == 5
    assert not set(seeds[0]) & set(seeds[1])
    assert again.scored.plan.policies == ("stock", "rack")
    assert left[0].startswith("What is left of rack in ")
    assert any(sentence.startswith("match_ratio[rack]: +") for sentence in left)


def test_another_log_is_a_better_test(tmp_path: Path) -> None:
    """It draws seeds of its own."""
    pq.write_table(log_of_racks(), tmp_path / "lookups.parquet")
    lookup.evaluate(_SETTINGS, tmp_path / "lookups.parquet", output=tmp_path / "run", workers=InProcess())

    again, _ = lookup.confirm(tmp_path / "run", log_of_racks(days=1), workers=InProcess())

    assert (
        again.scored.inputs.first_us > json.loads((tmp_path / "run" / "summary.json").read_text())["inputs"]["first_us"]
    )


def test_a_run_without_candidates_confirms_nothing(tmp_path: Path) -> None:
    """It says what to name."""
    pq.write_table(log_of_racks(), tmp_path / "lookups.parquet")
    alone = {**_SETTINGS, "policies": _SETTINGS["policies"][:1], "verdict": {}}
    lookup.evaluate(alone, tmp_path / "lookups.parquet", output=tmp_path / "run", workers=InProcess())

    with pytest.raises(SettingsError, match="has no winner"):
        lookup.confirm(tmp_path / "run", workers=InProcess())
