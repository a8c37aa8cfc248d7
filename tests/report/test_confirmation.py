"""Confirmations: which candidate has won, with which settings it is replayed, and what is left of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lookup.errors import SettingsError
from lookup.report.confirmation import confirming, remaining_changes
from lookup.report.figures import Results, Run, read_run
from lookup.report.sentences import winner_of
from lookup.settings.evaluation import EvaluationFile
from tests.report.results import decided, scored
from tests.report.runs import write_run
from tests.score.cases import SEEDS, plan, ratios, spread

_SETTINGS: dict[str, Any] = {
    "evaluation": {"incumbent": "stock", "seeds": [5, 6, 7]},
    "inputs": {"lookups": "logs/lookups"},
    "brokers": [{"id": "b:8080"}],
    "policies": [{"name": name, "selector": "random"} for name in ("stock", "near", "even")],
}


def compared(**gains: Mapping[str, float]) -> Results:
    """Compare candidates with `stock` by their gains in locality, which is primary, and in variation."""
    parts = []
    for policy, of in {"stock": {}, **gains}.items():
        parts.append(ratios(policy, spread(0.5 + of.get("locality", 0.0), 0.1), "match_ratio"))
        parts.append(ratios(policy, spread(0.5 - of.get("calm", 0.0), 0.1), "imbalance_cv"))
    return decided(parts, "stock", *gains, primary=("match_ratio",))


def run_of(folder: Path, result: Results) -> Run:
    """Write a run and read it back, with settings of three seeds."""
    settings = EvaluationFile.model_validate(_SETTINGS).model_dump(mode="json")
    return read_run(str(write_run(folder, result, settings=settings, seeds=[5, 6, 7])))


class TestWinner:
    """The best candidate by its verdicts."""

    @pytest.mark.parametrize(
        ("near", "even", "winner"),
        [
            ({"locality": 0.1}, {"calm": 0.1}, "near"),
            ({"locality": -0.1, "calm": 0.1}, {"calm": 0.1}, "even"),
            ({"locality": 0.1, "calm": -0.1}, {"locality": 0.1}, "even"),
            ({"locality": 0.1}, {"locality": 0.1}, "near"),
            ({"locality": -0.1}, {}, None),
        ],
        ids=["primary", "a-loss-that-decides", "another-loss", "the-first", "none"],
    )
    def test_of_two(self, near: Mapping[str, float], even: Mapping[str, float], winner: str | None) -> None:
        """Least losses that decide, then most gains that do, then most of all; none without any gain."""
        assert winner_of(compared(near=near, even=even)) == winner


class TestSettings:
    """What a confirmation replays."""

    def test_the_winner_against_the_incumbent_with_seeds_to_be_drawn(self, tmp_path: Path) -> None:
        """As many as the run had, by a draw that depends on these; all else is as it was."""
        settings = confirming(run_of(tmp_path / "run", compared(near={"locality": 0.1}, even={})))

        read = EvaluationFile.model_validate(settings)
        assert [policy.name for policy in read.policies] == ["stock", "near"]
        assert (read.evaluation.seeds, read.evaluation.draw > 0) == (3, True)
        assert read.inputs.lookups == "logs/lookups"

    def test_two_runs_have_draws_of_their_own(self, tmp_path: Path) -> None:
        """So that a confirmation of a confirmation is another one."""
        run = run_of(tmp_path / "run", compared(near={"locality": 0.1}, even={}))
        other = replace(run, manifest={**run.manifest, "seeds": [5, 6, 8]})

        assert confirming(run) == confirming(run)
        assert confirming(run)["evaluation"]["draw"] != confirming(other)["evaluation"]["draw"]

    def test_another_candidate(self, tmp_path: Path) -> None:
        """The one that is named."""
        run = run_of(tmp_path / "run", compared(near={"locality": 0.1}, even={}))

        assert [policy["name"] for policy in confirming(run, "even")["policies"]] == ["stock", "even"]

    @pytest.mark.parametrize(
        ("near", "candidate", "sentence"),
        [
            ({"locality": 0.1}, "neer", "candidate: .*'neer'; did you mean 'near'?"),
            ({}, None, "confirm: .* has no winner"),
        ],
    )
    def test_mistakes(self, tmp_path: Path, near: Mapping[str, float], candidate: str | None, sentence: str) -> None:
        """A name that is none, and a run without a winner."""
        with pytest.raises(SettingsError, match=sentence):
            confirming(run_of(tmp_path / "run", compared(near=near, even={})), candidate)


def test_what_is_left_is_said_of_what_was_told_apart(tmp_path: Path) -> None:
    """Before and now in the metric's own direction, the share, and the verdict now; nothing of the rest."""
    earlier = run_of(tmp_path / "run", compared(near={"locality": 0.1, "calm": 0.2}, even={}))
    now = compared(near={"locality": 0.05, "calm": -0.1})

    head, gain, loss = remaining_changes(earlier, now)
    assert f"near in {earlier.path}" in head
    for text, parts in (
        (gain, ("match_ratio: +0.1000 ratio", "+0.0500 ratio now, 50% of it", "▲ better")),
        (loss, ("imbalance_cv: -0.2000 ratio", "+0.1000 ratio now, the opposite", "▼ worse")),
    ):
        assert all(part in text for part in parts)


def test_what_is_not_measured_now_is_named(tmp_path: Path) -> None:
    """On another log there may be nothing to measure."""
    earlier = run_of(tmp_path / "run", compared(near={"locality": 0.1}, even={}))
    parts = [ratios(name, spread(0.5, 0.1), "imbalance_cv", seed=seed) for name in ("stock", "near") for seed in SEEDS]
    now = scored(parts, plan("stock", "near", seeds=SEEDS))

    assert [text.partition(",")[0] for text in remaining_changes(earlier, now)[1:]] == ["match_ratio: was better"]
