"""Two finished runs compared."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from lookup.report.difference import Change, Difference, compare_runs, difference_markdown, sentences, why_incomparable
from lookup.report.folder import read_run
from lookup.score.metrics import lookup_register_metrics
from lookup.score.scoring import Scored
from lookup.settings import EvaluationSection
from tests.report.results import result
from tests.report.runs import edit, write_run
from tests.score.cases import decided, ratios, spread


def _compared(folder: Path, first: Scored, second: Scored, **manifest: Any) -> Difference:
    runs = [write_run(folder / "first", first), write_run(folder / "second", second, **manifest)]
    return compare_runs(*(read_run(str(run)) for run in runs))


def _answered(*policies: tuple[str, float]) -> Scored:
    return decided(
        [ratios(policy, spread(mean, 0.1)) for policy, mean in policies], *(policy for policy, _ in policies)
    )


def test_a_run_and_itself_do_not_differ(tmp_path: Path) -> None:
    """Everything is the same, and there is no table."""
    difference = _compared(tmp_path, result(), result())

    assert difference.settings == ()
    assert difference.changed == ()
    assert sentences(difference) == [f"0 settings differ, 0 figures differ and {len(difference.changes)} are the same."]
    assert "##" not in difference_markdown(difference)


def test_a_change_is_the_second_less_the_first(tmp_path: Path) -> None:
    """Its interval is that of two independent figures by their wider sides, and its mark follows from it."""
    first, second = _answered(("stock", 0.5), ("new", 0.6)), _answered(("stock", 0.5), ("new", 0.8))
    halves = [
        max(figure.value - figure.low, figure.high - figure.value)
        for scored in (first, second)
        for figure in scored.estimates
        if (figure.series.policy, figure.series.metric.name, figure.cluster) == ("new", "answered_ratio", None)
    ]

    (change,) = (change for change in _compared(tmp_path, first, second).changed if change.name == "answered_ratio")

    assert (change.policy, change.mark) == ("new", "▲")
    assert change.delta == pytest.approx(0.2)
    assert len(halves) == 2
    assert change.half == pytest.approx(math.hypot(*halves))
    assert change.row[:6] == ("new", "answered_ratio", "ratio", "0.6000", "0.8000", "+0.2000 ▲")


@pytest.mark.parametrize(
    ("better", "second", "half", "mark"),
    [
        ("up", 0.4, 0.05, "▼"),
        ("down", 0.4, 0.05, "▲"),
        ("up", 0.4, 0.2, "?"),
        ("up", 0.5, 0.0, "="),
        ("info", 0.4, 0.05, ""),
        ("up", 0.4, math.nan, ""),
    ],
)
def test_marks(better: str, second: float, half: float, mark: str) -> None:
    """A figure without direction or without interval has none."""
    assert Change("p", "figure", "ratio", better, 0.5, second, half).mark == mark


def test_policies_of_one_run_alone_are_named(tmp_path: Path) -> None:
    """They are not compared."""
    difference = _compared(tmp_path, _answered(("stock", 0.5), ("old", 0.5)), _answered(("stock", 0.5), ("new", 0.5)))

    assert {change.policy for change in difference.changes} == {"stock"}
    assert [text for text in sentences(difference) if text.startswith("Only")] == [
        f"Only {tmp_path}/first has old.",
        f"Only {tmp_path}/second has new.",
    ]


def test_settings_are_compared_by_their_paths(tmp_path: Path) -> None:
    """Policies go by their names, wherever they stand; what only one run has stands beside a dash."""
    for name, policies in (
        ("first", [{"name": "a", "x": 1}, {"name": "b"}]),
        ("second", [{"name": "b"}, {"name": "a", "x": 2}]),
    ):
        edit(write_run(tmp_path / name, result()), "manifest.settings.policies", policies)
    edit(tmp_path / "second", "manifest.settings.extra", True)

    difference = compare_runs(read_run(str(tmp_path / "first")), read_run(str(tmp_path / "second")))

    assert difference.settings == (("policies[a].x", "1", "2"), ("extra", "–", "true"))
    assert "| policies[a].x | 1     | 2      |" in difference_markdown(difference)


def test_figures_of_another_meaning_are_not_compared(tmp_path: Path) -> None:
    """With a warm-up no figure is about the same time: there is no difference, no mark, and a sentence says why."""
    runs = []
    for name, warmup_s in (("first", 0), ("second", 600)):
        edit(write_run(tmp_path / name, result()), "manifest.settings.evaluation.warmup_s", warmup_s)
        runs.append(read_run(str(tmp_path / name)))

    difference = compare_runs(*runs)

    (first, *others) = (change for change in difference.changes if change.name == "moves")
    assert others
    assert first.row[-2:] == ("not comparable: warmup_s differs (0, 600)", "–")
    assert (first.mark, math.isnan(first.delta), first in difference.changed) == ("", True, True)
    counted, reason = sentences(difference)
    assert counted.startswith("1 setting differs: evaluation.warmup_s; 0 figures differ and ")
    assert reason.startswith("Not comparable: ")
    assert reason.endswith(", since warmup_s differs (0, 600).")


def test_another_log_is_said(tmp_path: Path) -> None:
    """By its fingerprint, wherever it lay."""
    lookups = {"path": "logs/lookups", "files": 1, "bytes": 9, "rows": 7, "blake2b": "11ee"}

    texts = sentences(_compared(tmp_path, result(), result(), inputs={"lookups": lookups}))

    assert "The runs replayed different logs, so that changes are those of the log as well." in texts


def test_exit_codes_are_compared(tmp_path: Path) -> None:
    """A gate that has opened or closed is worth a sentence."""
    texts = sentences(_compared(tmp_path, result(), result(), exit_code=0))

    assert f"The exit code of {tmp_path}/first was 3, that of {tmp_path}/second 0." in texts


def _settings(**evaluation: Any) -> dict[str, Any]:
    section = EvaluationSection(incumbent="stock", **evaluation)
    return {"evaluation": section.model_dump(mode="json"), "topology": {"levels": ["rack"]}, "clients": []}


@pytest.mark.parametrize(
    ("key", "value", "metrics"),
    [
        ("balance_s", 300, {"imbalance_cv", "imbalance_max_mean", "load_variation"}),
        ("session_s", 300, {"moved_weight", "overload_ratio"}),
        ("overload_threshold", 0.5, {"overload_ratio"}),
        ("window_s", 60, {"redundant_moves"}),
        ("bytes_per_weight", 7.0, {"network_cost"}),
        ("handover_s", 1.0, {"in_transition", "in_transition_weight"}),
        ("warmup_s", 60, {metric.name for metric in lookup_register_metrics()}),
        ("default_bundles", 8, set()),
        ("seeds", 3, set()),
    ],
)
def test_a_setting_changes_the_meaning_of_its_metrics(key: str, value: float, metrics: set[str]) -> None:
    """And of no others; what changes the course of a replay only is an effect to be compared."""
    first, second = _settings(), _settings(**{key: value})

    unlike = {m.name for m in lookup_register_metrics() if why_incomparable(m.name, first, second)}

    assert unlike == metrics


def test_both_values_are_named() -> None:
    """In the order of the runs, as JSON; of several settings all."""
    first, second = _settings(), _settings(warmup_s=60, bytes_per_weight=7.0)

    why = why_incomparable("network_cost", first, second)

    assert why == "warmup_s differs (0, 60) and bytes_per_weight differs (null, 7.0)"


def test_distances_and_labels_are_part_of_figures_of_places() -> None:
    """Where a topology was read from is not, nor is what an older run has no word of."""
    first, second = _settings(), _settings()
    second["topology"] = {"levels": ["rack", "zone"], "file": "topology.toml"}
    second["clients"] = [{"match": {"client": "*"}, "properties": {"rack": "a"}}]
    moved = {**_settings(), "topology": {"levels": ["rack"], "file": "elsewhere.toml"}}

    assert (
        why_incomparable("network_ms_mean", first, second) == "the table topology differs and the table clients differs"
    )
    assert why_incomparable("match_ratio", first, second) == "the table clients differs"
    assert why_incomparable("moves", first, second) == ""
    assert why_incomparable("network_ms_mean", first, moved) == ""
    assert why_incomparable("network_ms_mean", {"evaluation": {}}, second) == ""
