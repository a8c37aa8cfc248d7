"""`lookup explain RUN_DIR`: what is printed about a finished run, and every way to ask for it wrongly."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from lookup.logs.schema import CELLS, CYCLES, DECISIONS, FLOWS, OWNERS
from tests.api.run_folders import evaluated, generated
from tests.commands.projects import Run
from tests.programs import Elsewhere, written


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run."""
    folder = tmp_path_factory.mktemp("runs")
    return evaluated(folder / "run", generated(folder))


@pytest.mark.parametrize(
    ("table", "schema"),
    {"decisions": DECISIONS, "owners": OWNERS, "cycles": CYCLES, "cells": CELLS, "flows": FLOWS}.items(),
)
def test_other_programs_read_the_tables_of_a_run(
    elsewhere: Elsewhere, run: Path, table: str, schema: pa.Schema
) -> None:
    """Odds, and counts by reason, are maps there too."""
    assert elsewhere(run / table, schema) == written(run / table, schema) != []


def test_a_decision_is_taken_apart(lookup: Run, run: Path) -> None:
    """What was asked, the brokers that were seen, the scores, the dice, and that it is the recorded one."""
    ran = lookup("explain", run, "--decision", "east/rack/1/3", "--master", "none")

    assert ran.code == 0
    assert ran.out.startswith("decision:   east/rack/1/3, at 2026-01-05T")
    assert "topic:      persistent://" in ran.out
    assert "property-match × 0.7" in ran.out
    assert "Dice: 0." in ran.out
    assert ran.out.endswith("equals the record of the run.\n")
    assert "replaying rack over east" in ran.err


def test_a_cycle_names_figures_and_settings(lookup: Run, run: Path) -> None:
    """The outcome in words, and the settings as they are."""
    flags = ("--policy", "rack", "--at", "2026-01-05T01:30:00Z", "--master", "none")
    ran = lookup("explain", run, *flags)
    document = json.loads(lookup("explain", run, *flags, "--format", "json").out)

    assert "cycle:      2026-01-05T01:30:00Z, shedder transfer" in ran.out
    assert f"outcome:    {document['label']}, {document['reason']}: " in ran.out
    assert "settings:   target_std 0.1, hit_count 1, " in ran.out
    assert document["difference"] is None


def test_the_owners_of_a_bundle_are_listed(lookup: Run, run: Path) -> None:
    """Under every policy, or under those that are named, with the cause of every change; no log is read for that."""
    topic = json.loads(
        lookup("explain", run, "--decision", "east/rack/1/0", "--master", "none", "--format", "json").out
    )["request"]["topic"]
    ran = lookup("explain", run, "--topic", topic)
    (history,) = json.loads(lookup("explain", run, "--topic", topic, "--policy", "rack", "--format", "json").out)

    assert ran.code == 0
    assert [line for line in ran.out.splitlines() if line.startswith(topic)] == [
        f"{topic} under {policy}, seed 1" for policy in ("stock", "rack", "fewest")
    ]
    assert "| decision east/rack/1/0, odds 0." in ran.out
    assert "Cycles of the shedder" in ran.out
    assert history["owners"][0]["decision"] == "east/rack/1/0"
    assert "once more" not in ran.err


def test_a_topic_that_the_log_does_not_have_is_refused(lookup: Run, run: Path) -> None:
    """With the name that was probably meant: the same in another namespace, or a similar one in this namespace."""
    topic = json.loads(lookup("explain", run, "--decision", "east/rack/1/0", "--format", "json").out)["request"][
        "topic"
    ]
    (strange,) = lookup("explain", run, "--topic", "nosuch").mistakes

    assert strange == "--topic: the log has no topic 'persistent://public/default/nosuch'"
    for wrong in (f"{topic}x", topic.rpartition("/")[2]):
        (mistake,) = lookup("explain", run, "--topic", wrong).mistakes
        assert mistake.endswith("'?")
        assert "; did you mean '" in mistake


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ((), "one of --decision, --topic and --at"),
        (("--topic", "t", "--decision", "d"), "one of --decision, --topic and --at"),
        (("--decision", "east/stock/1/0", "--seed", "9"), "leave --seed out"),
        (("--at", "2026-01-05T01:00:00Z"), "give --policy once"),
        (("--policy", "rack", "--at", "2026-01-05T01:00:00Z", "--seed", "9"), "--seed: "),
    ],
)
def test_mistakes_name_flags(lookup: Run, run: Path, flags: tuple[str, ...], sentence: str) -> None:
    """Each in one sentence, with exit code 2."""
    (mistake,) = lookup("explain", run, *flags).mistakes

    assert sentence in mistake


def test_flags_of_a_run_need_its_folder(lookup: Run, tmp_path: Path) -> None:
    """Without one a lookup is meant, which has an evaluation and a topic; a folder of something else is named."""
    for words, named in (
        (("e.toml", "--decision", "d"), "--decision: "),
        (("e.toml",), "--topic must"),
        ((tmp_path, "--topic", "t"), f"{tmp_path}: has no manifest.json"),
    ):
        assert lookup("explain", *words).mistakes[0].startswith(named)
