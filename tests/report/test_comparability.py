"""Which settings are part of what a figure is."""

from __future__ import annotations

from typing import Any

import pytest

from lookup.report.comparability import why_incomparable
from lookup.score.metrics import lookup_register_metrics
from lookup.settings import EvaluationSection


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
