"""Findings of a replay about evidence: traffic that sits on few bundles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.replay.small import LOOKUP, replayed, write_log

_NAMESPACES = 20


def found(folder: Path, heavy: int, **given: Any) -> list[Mapping[str, str]]:
    """Replay ten lookups of each of twenty namespaces and so many more of the first; return the findings of a rule."""
    topics = [f"persistent://t/n{number}/x" for number in [*list(range(_NAMESPACES)) * 10, *[0] * heavy]]
    write_log(
        folder, *({"ts": LOOKUP["ts"] + second * 1_000_000, "topic": topic} for second, topic in enumerate(topics))
    )
    outcome = replayed(folder, evaluation={"default_bundles": 1}, **given)
    return [finding for finding in outcome.inputs.findings or () if finding.rule == "skewed"]


def test_one_bundle_with_most_of_the_traffic_is_a_finding(tmp_path: Path) -> None:
    """With its share, and how many bundles the log is worth: 490² / (300² + 19 · 10²)."""
    (finding,) = found(tmp_path, heavy=290)

    assert finding.what == "one bundle carries 61% of the traffic"
    assert finding.how_often == "20 bundles"
    assert "the evidence of 2.6 bundles of equal weight, fewer than verdict.min_units = 8" in finding.evidence


def test_traffic_that_is_spread_is_none(tmp_path: Path) -> None:
    """Twenty equal bundles are twenty, and a limit below the evidence asks for nothing."""
    assert found(tmp_path / "even", heavy=0) == []
    assert found(tmp_path / "enough", heavy=290, verdict={"min_units": 2}) == []


def test_it_can_be_accepted(tmp_path: Path) -> None:
    """As every finding."""
    assert found(tmp_path, heavy=290, lint={"accept": ["skewed"]}) == []
