"""Runs read back from their folders."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from lookup.engine.measuring import question_of
from lookup.errors import InputError
from lookup.hooks import Question
from lookup.replay.outcome import InputFacts
from lookup.report.caveats import caveats
from lookup.report.folder import Run, read_run, settings_of
from lookup.report.gate import gate_of
from lookup.report.markdown import markdown_report
from lookup.report.wording import opening, winners_luck
from lookup.score.scoring import Scored
from lookup.score.summary import summary
from lookup.score.verdict import Guard, Span
from lookup.settings.evaluation import EvaluationFile
from tests.report.results import near, placed_once, result, varied
from tests.report.runs import broad, edit, write_earlier, write_run


@pytest.mark.parametrize(
    "scored", [result(), result(logged=0.7), placed_once(), result(inputs=InputFacts()), varied(), near()]
)
def test_a_run_reads_back_as_it_was_scored(tmp_path: Path, scored: Any) -> None:
    """The same summary and the same Markdown, byte by byte, come out of the folder as out of the replay."""
    run = read_run(str(write_run(tmp_path / "run", scored)))

    assert summary(run.scored) == summary(scored)
    assert markdown_report(run.scored) == markdown_report(scored)


@pytest.mark.parametrize("scored", [result(), placed_once(), varied()])
def test_verdicts_and_winners_read_back_in_every_field(tmp_path: Path, scored: Scored) -> None:
    """Margins, guards, what a verdict would be alone, both questions and clusters among them; NaN stays NaN."""
    run = read_run(str(write_run(tmp_path / "run", scored)))

    # As text, since a number that is unknown (NaN) equals no other.
    assert list(map(repr, run.scored.verdicts)) == list(map(repr, scored.verdicts))
    assert list(map(repr, run.scored.winners)) == list(map(repr, scored.winners))


def test_what_reads_back_holds_every_kind(tmp_path: Path) -> None:
    """The run of the test above has a verdict of each, so that none is compared with nothing."""
    scored = read_run(str(write_run(tmp_path / "run", varied()))).scored
    verdicts = scored.verdicts

    assert {verdict.guard for verdict in verdicts} == {None, *get_args(Guard)}
    assert {verdict.alone for verdict in verdicts} == {None, "better", "worse"}
    assert {verdict.holds_for for verdict in verdicts} == {"policy", "hours"}
    assert {verdict.question for verdict in verdicts} == set(get_args(Question))
    assert [one.cluster for verdict in verdicts for one in verdict.clusters] == ["c", "d"]
    assert any(verdict.on_log.low != verdict.for_demand.low for verdict in verdicts)
    assert [winner.metric for winner in scored.winners] == ["answered_ratio", "moves"]


def test_guarded_metrics_read_back_as_guarded(tmp_path: Path) -> None:
    """So that a budget of them is as strict with a run out of its folder: an open figure has exit code 4."""
    scored = read_run(str(write_run(tmp_path / "run", varied()))).scored

    assert [metric.name for metric in scored.metrics if question_of(metric) == "log"] == [
        "answered_ratio",
        "overload_ratio",
        "waiting",
    ]
    gate = gate_of(scored, {"answered_ratio": 0.0})
    assert ([check.outcome for check in gate.checks], gate.exit_code) == (["undecided", "passed"], 4)


def test_a_run_reads_back_with_its_sentences(tmp_path: Path) -> None:
    """What decides, the luck of the winner, clusters that disagree and hours come out of the folder too."""
    scored = read_run(str(write_run(tmp_path / "run", varied()))).scored

    assert opening(scored) == opening(varied())
    assert winners_luck(scored) is not None
    assert caveats(scored) == caveats(varied())


def test_a_run_of_an_earlier_version_reads_back(tmp_path: Path) -> None:
    """Without what it does not say: margins, what verdicts would be alone, guards, clusters, winners."""
    scored = read_run(str(write_earlier(tmp_path / "run", varied()))).scored
    unknown = {
        "alone": None,
        "question": "demand",
        "guard": None,
        "on_log": Span(math.nan, math.nan, math.nan),
        "for_demand": Span(math.nan, math.nan, math.nan),
        "clusters": (),
    }

    expected = [replace(verdict, margin=math.nan, **unknown) for verdict in varied().verdicts]
    assert list(map(repr, scored.verdicts)) == list(map(repr, expected))
    assert list(scored.winners) == []
    assert scored.exit_code == varied().exit_code
    assert {question_of(metric) for metric in scored.metrics} == {"demand"}


def test_a_run_of_an_earlier_version_has_a_report(tmp_path: Path) -> None:
    """Of its verdicts as they stand: no light mark, a dash for the margin, and no caveat of clusters."""
    text = markdown_report(read_run(str(write_earlier(tmp_path / "run", varied()))).scored)

    assert re.search(r"\| match_ratio\[zone\] +\| \? inconclusive .*\| ±?– +\|", text)
    assert "clusters disagree" not in text
    assert "equal candidates" not in text


def test_a_run_of_many_policies_reads_back(tmp_path: Path) -> None:
    """Policies stay in the order of the settings, whatever their verdicts."""
    run = read_run(str(broad(tmp_path / "run", policies=12, clusters=2, hours=30)))

    assert run.scored.plan.policies == tuple(f"policy-{number:02}" for number in range(12))
    assert run.scored.clusters == ("cluster-0", "cluster-1")


_TIMELESS = {"placed_once": {}, "cannot_act": {}, "first_us": 10**18}


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("manifest.inputs", 7, "manifest.json: inputs is 7: "),
        ("manifest.inputs", {"lookups": "x"}, "manifest.json: inputs.lookups is 'x': "),
        ("manifest.command", ["lookup", 3], "manifest.json: command.1 is 3: "),
        ("manifest.settings.topology.price_per_gb.rack", "'", "manifest.json: settings.topology.price_per_gb.rack is "),
        ("summary.metrics", [{"policy": "a"}], "summary.json: metrics.0.cluster is missing; "),
        ("summary.verdicts", None, "summary.json: verdicts is None: "),
        ("summary.inputs", _TIMELESS, "summary.json: inputs.first_us is 1000000000000000000: "),
        ("summary.verdicts.0.guard", "maybe", "summary.json: verdicts.0.guard is 'maybe': "),
        ("summary.verdicts.0.question", "both", "summary.json: verdicts.0.question is 'both': "),
        ("summary.verdicts.0.alone", "best", "summary.json: verdicts.0.alone is 'best': "),
        ("summary.verdicts.0.holds_for", "ever", "summary.json: verdicts.0.holds_for is 'ever': "),
        ("summary.verdicts.0.margin", "1 %", "summary.json: verdicts.0.margin is '1 %': "),
        (
            "summary.verdicts.0.on_log",
            {"low": 1.0, "high": 2.0},
            "summary.json: verdicts.0.on_log.p_value is missing; ",
        ),
        ("summary.verdicts.0.clusters", [{"cluster": 7}], "summary.json: verdicts.0.clusters.0.cluster is 7: "),
        ("summary.winners.0.candidates", "two", "summary.json: winners.0.candidates is 'two': "),
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
        ("manifest.json", "{", "manifest.json: is no JSON: "),
        ("summary.json", "[]", "summary.json: is no JSON object"),
        ("summary.json", "{}", "summary.json: its schema is 'None'"),
        ("summary.json", '{"schema": 1}', "summary.json: metrics is missing; "),
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
