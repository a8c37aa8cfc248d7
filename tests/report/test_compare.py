"""Two finished runs compared."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lookup.report.compare import (
    Change,
    Difference,
    compare_runs,
    difference_markdown,
    headline,
    legend,
    sentences,
    settings_in_words,
    why_incomparable,
)
from lookup.report.figures import Results, read_run
from lookup.score.metrics import lookup_register_metrics
from lookup.settings import EvaluationSection
from tests.report.results import decided, result
from tests.report.runs import edit, write_run
from tests.score.cases import ratios, spread


def _compared(folder: Path, first: Results, second: Results, **manifest: Any) -> Difference:
    runs = [write_run(folder / "first", first), write_run(folder / "second", second, **manifest)]
    return compare_runs(*(read_run(str(run)) for run in runs))


def _answered(*policies: tuple[str, float]) -> Results:
    return decided(
        [ratios(policy, spread(mean, 0.1)) for policy, mean in policies], *(policy for policy, _ in policies)
    )


def test_a_run_and_itself_do_not_differ(tmp_path: Path) -> None:
    """Everything is the same, and there is no table."""
    difference = _compared(tmp_path, result(), result())

    assert difference.settings == ()
    assert difference.changed == ()
    first, second, count = difference.first, difference.second, len(difference.changes)
    assert sentences(difference) == [f"Nothing changed from {first} to {second}: all {count} figures are the same."]
    assert legend(difference) == []
    assert "|" not in difference_markdown(difference)


def test_a_change_is_the_second_less_the_first(tmp_path: Path) -> None:
    """Its interval is that of two independent figures by their wider sides, and its mark follows from it."""
    first, second = _answered(("stock", 0.5), ("new", 0.6)), _answered(("stock", 0.5), ("new", 0.8))
    halves = [
        max(figure.value - figure.low, figure.high - figure.value)
        for figure in (results.pooled["new", "answered_ratio", None] for results in (first, second))
    ]

    (change,) = (change for change in _compared(tmp_path, first, second).changed if change.name == "answered_ratio")

    assert (change.policy, change.mark) == ("new", "▲")
    assert change.delta == pytest.approx(0.2)
    assert len(halves) == 2
    assert change.half == pytest.approx(math.hypot(*halves))
    assert change.row == ("new", "answered_ratio", "0.6000", "0.8000", "+0.2000 ▲", f"{change.half:.4f}")


def _change(name: str, second: float, half: float, unit: str = "ratio", **of: Any) -> Change:
    """Change a figure, of which less is better, from 0.5."""
    return Change("p", name, unit, "down", 0.5, second, half, **of)


def _difference(tmp_path: Path, *changes: Change) -> Difference:
    return replace(_compared(tmp_path, result(), result()), changes=changes)


def test_what_is_shown_to_have_changed_comes_first(tmp_path: Path) -> None:
    """Primary figures before the others of a kind; then what may be chance, has no interval, is not comparable."""
    difference = _difference(
        tmp_path,
        _change("same", 0.5, 0.1),
        _change("unlike", 0.9, 0.1, unlike="tick_s differs (1, 2)", primary=True),
        _change("alone", math.nan, math.nan, primary=True),
        _change("chance", 0.6, 0.2),
        _change("shown", 0.7, 0.1),
        _change("decides", 0.4, 0.0, primary=True),
    )

    assert [change.name for change in difference.changed] == ["decides", "shown", "chance", "alone", "unlike"]


def test_the_headline_says_what_changed(tmp_path: Path) -> None:
    """By kind, a few by name with their units, and how many differ besides."""
    shown = [_change(f"f{place}", 0.7, 0.1) for place in range(5)]
    fewer = _change("moves", 0.1, 0.1, unit="moves")
    rest = [_change("a", 0.6, 0.2), _change("b", 0.6, 0.2), _change("c", 0.9, 0.1, unlike="x"), _change("d", 0.5, 0.1)]

    said = headline(_difference(tmp_path, *shown, fewer, *rest))

    parts = [
        f"From {tmp_path}/first to {tmp_path}/second ",
        "1 figure got better (moves of p -0.4 moves)",
        "5 figures got worse (f0 of p +0.2000, f1 of p +0.2000, f2 of p +0.2000, and 2 more); ",
        "2 more differ",
        "1 cannot be compared",
        "1 is the same.",
    ]
    places = [said.index(part) for part in parts]
    assert places == sorted(places)


def test_runs_without_a_common_policy_have_nothing_to_compare(tmp_path: Path) -> None:
    """The headline says so."""
    difference = _compared(tmp_path, _answered(("stock", 0.5), ("a", 0.5)), _answered(("base", 0.5), ("b", 0.5)))

    assert headline(difference).endswith("there is no figure to compare.")


def test_a_table_has_ten_figures_unless_all_are_wanted(tmp_path: Path) -> None:
    """What is left out is counted, with the command that lists it."""
    difference = _difference(tmp_path, *(_change(f"f{place}", 0.7, 0.1) for place in range(12)))

    text, whole = difference_markdown(difference, "`lookup diff`"), difference_markdown(difference)

    assert (text.count("\n| p "), whole.count("\n| p ")) == (10, 12)
    assert ("2 more figures differ; `lookup diff`" in text, "more figures" in whole) == (True, False)


def test_settings_are_counted_and_folded(tmp_path: Path) -> None:
    """Those that figures depend on come first."""
    runs = []
    for name, balance_s in (("first", 300), ("second", 600)):
        run = write_run(tmp_path / name, result(), plugins=[{"name": "p", "origin": name, "blake2b": None}])
        brokers = [{"id": f"b{place}", "name": f"b{place}", "capacity": balance_s} for place in range(60)]
        edit(run, "manifest.settings.brokers", [*brokers, {"name": "other"}])
        edit(run, "manifest.settings.evaluation.balance_s", balance_s)
        edit(run, "manifest.settings.evaluation.default_bundles", balance_s)
        runs.append(read_run(str(run)))

    difference = compare_runs(*runs)

    assert settings_in_words(difference).startswith("63 settings differ: evaluation.balance_s, ")
    assert settings_in_words(difference).endswith(" and 60 more")
    fold = difference_markdown(difference).partition("<details>\n<summary>63 settings differ: ")[2]
    assert fold.count("\n| brokers") == 60
    assert fold.endswith("\n\n</details>\n")


def test_a_difference_is_json(tmp_path: Path) -> None:
    """A figure or a setting that a run does not have is absent or null."""
    edit(write_run(tmp_path / "second", result()), "manifest.settings.extra", [1])
    runs = [read_run(str(run)) for run in (write_run(tmp_path / "first", result()), tmp_path / "second")]
    difference = replace(compare_runs(*runs), changes=(_change("a", 0.7, math.nan), _change("b", 0.5, 0.1)))

    document = json.loads(json.dumps(difference.document(), allow_nan=False))

    assert document["settings"] == [{"setting": "extra", "second": [1]}]
    assert document["same"] == 1
    (figure,) = document["figures"]
    assert (figure["first"], figure["second"], figure["low"], figure["is_certain"]) == (0.5, 0.7, None, False)


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
    assert first.row[-2:] == ("not comparable", "–")
    assert (first.mark, math.isnan(first.delta), first in difference.changed) == ("", True, True)
    said, reason, settings = sentences(difference)
    assert said.startswith("No change is shown from ")
    assert reason.startswith("Not comparable: ")
    assert reason.endswith(", since warmup_s differs (0, 600).")
    assert settings == "1 setting differs: evaluation.warmup_s."


def test_another_log_is_said(tmp_path: Path) -> None:
    """By its fingerprint, wherever it lay."""
    lookups = {"path": "logs/lookups", "files": 1, "bytes": 9, "rows": 7, "blake2b": "11ee"}

    texts = sentences(_compared(tmp_path, result(), result(), inputs={"lookups": lookups}))

    assert any("different logs" in text for text in texts)


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

    assert why.split(" and ") == ["warmup_s differs (0, 60)", "bytes_per_weight differs (null, 7.0)"]


def test_distances_and_labels_are_part_of_figures_of_places() -> None:
    """Where a topology was read from is not, nor is what an older run has no word of."""
    first, second = _settings(), _settings()
    second["topology"] = {"levels": ["rack", "zone"], "file": "topology.toml"}
    second["clients"] = [{"match": {"client": "*"}, "properties": {"rack": "a"}}]
    moved = {**_settings(), "topology": {"levels": ["rack"], "file": "elsewhere.toml"}}

    assert re.findall("table (.*?) ", why_incomparable("network_ms_mean", first, second)) == ["topology", "clients"]
    assert why_incomparable("match_ratio", first, second) == "the table clients differs"
    assert why_incomparable("moves", first, second) == ""
    assert why_incomparable("network_ms_mean", first, moved) == ""
    assert why_incomparable("network_ms_mean", {"evaluation": {}}, second) == ""
