"""Runs read back from their folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

from lookup.errors import InputError
from lookup.hooks import Question
from lookup.replay.outcome import InputFacts
from lookup.report.figures import Results, Run, read_run, settings_of, summary, to_json
from lookup.report.markdown import markdown_report
from lookup.score.figures import figures_table
from lookup.score.verdict import Guard
from lookup.settings.evaluation import EvaluationFile
from tests.report.results import decided, near, placed_once, result, scored, varied
from tests.report.runs import edit, write_run
from tests.score.cases import plan, ratios, spread

RUNS = [result(), result(logged=0.7), placed_once(), result(inputs=InputFacts()), varied(), near()]


@pytest.mark.parametrize("results", RUNS, ids=range(len(RUNS)))
def test_a_run_reads_back_as_it_was_scored(tmp_path: Path, results: Results) -> None:
    """Every column of every row, the same summary and the same Markdown come out of the folder as out of the replay."""
    back = read_run(str(write_run(tmp_path / "run", results))).results

    # As text, since a number that is unknown (NaN) equals no other.
    assert list(map(repr, back.figures)) == list(map(repr, results.figures))
    assert summary(back) == summary(results)
    assert markdown_report(back) == markdown_report(results)


def test_what_reads_back_holds_every_kind() -> None:
    """The runs of the test above have a verdict of each, so that none is compared with nothing."""
    rows = [row for results in RUNS for row in results.verdicts]

    assert {row.guard for row in rows} == {None, *get_args(Guard)}
    assert {row.alone for row in rows} == {None, "better", "worse"}
    assert {row.holds_for for row in rows} == {"policy", "hours", "placement"}
    assert {row.question for row in rows} == set(get_args(Question))
    assert any(row.scope == "cluster" and row.has_interval for results in RUNS for row in results.figures)


def test_summary_and_table_hold_the_same_rows() -> None:
    """What a row of the summary leaves out is null in the table, or false."""
    table = figures_table(varied().figures).to_pylist()

    for row, written in zip(table, summary(varied())["figures"], strict=True):
        assert {name: value for name, value in row.items() if name not in written and value} == {}
        assert written == {name: row[name] for name in written}


def test_json_is_strict() -> None:
    """No NaN; the same content gives the same text."""
    text = to_json(summary(result()))

    assert text == to_json(summary(result()))
    assert "NaN" not in text
    assert json.loads(text) == summary(result())


def test_comparisons_are_counted() -> None:
    """Two primary ones together; two candidates by two other figures are four, of which chance turns one in twenty."""
    parts = [
        ratios(policy, spread(0.5, width), "match_ratio", key=key)
        for policy, width in (("stock", 0.1), ("new", 0.2), ("old", 0.3))
        for key in ("rack", "zone")
    ]
    others = scored(parts, plan("stock", "new", "old", primary=()))

    assert result().comparisons == (2, 1, 1)
    assert summary(others)["comparisons"] == {"together": 0, "alone": 4, "expected_by_chance": 0.1}


def test_policies_with_the_same_figures_are_one_group() -> None:
    """In the order of the settings."""
    results = decided([ratios(policy, spread(share, 0.1)) for policy, share in _SHARES], *dict(_SHARES))

    assert results.identical == [("stock", "twin"), ("new",)]
    assert results.like("twin") == ("stock", "twin")


_SHARES = (("stock", 0.5), ("new", 0.6), ("twin", 0.5))


_TIMELESS = {"placed_once": {}, "cannot_act": {}, "first_us": 10**18}


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("manifest.inputs", 7, "manifest.json: inputs is 7: "),
        ("manifest.inputs", {"lookups": "x"}, "manifest.json: inputs.lookups is 'x': "),
        ("manifest.command", ["lookup", 3], "manifest.json: command.1 is 3: "),
        ("manifest.settings.topology.price_per_gb.rack", "'", "manifest.json: settings.topology.price_per_gb.rack is "),
        ("summary.figures", [{"policy": "a"}], "summary.json: figures.0.scope is missing; "),
        ("summary.figures", None, "summary.json: figures is None: "),
        ("summary.inputs", _TIMELESS, "summary.json: inputs.first_us is 1000000000000000000: "),
        ("summary.figures.0.guard", "maybe", "summary.json: figures.0.guard is 'maybe': "),
        ("summary.figures.0.alone", "best", "summary.json: figures.0.alone is 'best': "),
        ("summary.figures.0.holds_for", "ever", "summary.json: figures.0.holds_for is 'ever': "),
        ("summary.figures.0.margin", "1 %", "summary.json: figures.0.margin is '1 %': "),
    ],
)
def test_a_value_that_was_edited_is_named(tmp_path: Path, path: str, value: object, sentence: str) -> None:
    """By file, key and value, and what to do: what may be absent may not be anything."""
    folder = write_run(tmp_path / "run", varied())
    edit(folder, path, value)

    with pytest.raises(InputError) as caught:
        read_run(str(folder))

    assert sentence in str(caught.value)
    assert str(caught.value).endswith("; evaluate again")


def test_a_text_that_no_page_can_hold_is_refused(tmp_path: Path) -> None:
    """JSON can say half a surrogate pair; the emoji of a whole one stays."""
    folder = write_run(tmp_path / "run", result(), versions={"python": "\U0001f600"})
    assert read_run(str(folder)).manifest["versions"]["python"] == "\U0001f600"

    edit(folder, "manifest.versions.python", "\ud800")

    with pytest.raises(InputError, match=r"manifest\.json: .*surrogate pair"):
        read_run(str(folder))


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("summary.json", None, "has no summary.json"),
        ("manifest.json", "{", "manifest.json: is not JSON: "),
        ("summary.json", "[]", "summary.json: is not a JSON object"),
        ("summary.json", "{}", "summary.json: its schema is 'None'"),
        ("summary.json", '{"schema": 1}', "summary.json: its schema is '1', and 2 can be read"),
        ("summary.json", '{"schema": 2}', "summary.json: figures is missing; "),
    ],
)
def test_what_is_no_run_is_one_sentence(tmp_path: Path, name: str, text: str | None, sentence: str) -> None:
    """A file that is missing, cut off or another's is named, with what would be right."""
    folder = write_run(tmp_path / "run", result())
    (folder / name).unlink() if text is None else (folder / name).write_text(text)

    with pytest.raises(InputError) as caught:
        read_run(str(folder))

    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_settings_of_another_version_are_one_sentence(tmp_path: Path) -> None:
    """The key that this version does not know is named."""
    folder = write_run(tmp_path / "run", result())
    edit(folder, "manifest.settings.verdict", {"dice": 3})

    with pytest.raises(InputError, match=r"'0\.1\.0', .* \(dice\)"):
        read_run(str(folder))


def test_the_settings_of_a_manifest_are_those_of_the_run(tmp_path: Path) -> None:
    """Templates and single brokers, and a policy that was read from a `broker.conf`, come back as they were."""
    conf = tmp_path / "broker.conf"
    conf.write_text("advertisedAddress=b9\nwebServicePort=8080\nloadBalancerBrokerLoadTargetStd=0.2\n")
    written = {
        "evaluation": {"incumbent": "p", "seeds": 2},
        "brokers": [
            {"id": "b{n}:8080", "count": 2, "first": 1, "properties": {"lookup.rack": ["a", "b"]}},
            {"id": "late:8080", "from": "2026-01-01T12:00:00Z"},
        ],
        "policies": [{"name": "p", "from_broker_conf": str(conf)}],
    }
    settings = EvaluationFile.model_validate(written)
    run = Run("run", None, {"settings": settings.model_dump(mode="json")}, {})  # type: ignore[arg-type]  # not scored

    assert settings_of(run).model_dump() == settings.model_dump()
    run.manifest["settings"]["policies"] = []
    with pytest.raises(InputError, match=r"run/manifest.json: .* \(policies\)"):
        settings_of(run)
