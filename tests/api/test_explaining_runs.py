"""Owners, decisions and cycles of a finished run, taken once more and compared with the record."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import lookup
from lookup.engine.ballots import roll
from lookup.errors import InputError, SettingsError
from lookup.report.figures import read_run
from lookup.report.past import name_of, recorded_table
from tests.api.run_folders import evaluated, generated


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the tables of a small log."""
    return generated(tmp_path_factory.mktemp("explained"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, log: Path) -> Path:
    """Return the folder of a run in which a leader assigns what a lost broker had."""
    return evaluated(tmp_path_factory.mktemp("run") / "run", log, {"owner_loss": "leader"})


def _rows(run: Path, policy: str, table: str) -> list[Any]:
    past = read_run(str(run))
    return list(recorded_table(past, name_of(past, cluster=None, policy=policy, seed=None), table).to_pylist())


@pytest.mark.parametrize("policy", ["stock", "rack", "fewest"])
def test_a_decision_is_the_recorded_one(run: Path, policy: str) -> None:
    """The first, one in the middle and the last, with the odds, the dice and the candidates that led to it."""
    rows = _rows(run, policy, "decisions")
    for number in (0, len(rows) // 2, len(rows) - 1):
        found = lookup.explain_decision(run, f"east/{policy}/1/{number}")

        assert found.difference is None
        assert (found.ts_us, found.decision.broker) == (rows[number]["ts"], rows[number]["broker"])
        assert found.explanation.document()["declined"] == rows[number]["declined"]
        assert {broker.broker for broker in found.seen} >= {name for name, _ in rows[number]["odds"]}
        if found.rolls is not None:
            bundle = found.request.bundle
            assert found.dice == roll(1, "east", bundle, found.rolls)


def test_a_decision_that_is_not_the_recorded_one_says_so(run: Path, tmp_path: Path) -> None:
    """A record that was changed differs in what was changed."""
    copy = shutil.copytree(run, tmp_path / "copy")
    file = copy / "decisions" / "0000-0000-1.parquet"
    table = pq.read_table(file)
    pq.write_table(table.set_column(table.column_names.index("ties"), "ties", [[99] * table.num_rows]), file)

    assert str(lookup.explain_decision(copy, "east/stock/1/0").difference).startswith("its ties was 99 and is ")


@pytest.mark.parametrize("policy", ["stock", "rack"])
def test_a_cycle_is_the_recorded_one(run: Path, policy: str) -> None:
    """One that moved something and one that did not, with what the shedder remembered before it."""
    rows = _rows(run, policy, "cycles")
    moved = next(row for row in rows if row["accepted"])
    still = next(row for row in rows if not row["accepted"] and row["excess"])
    for row in (moved, still):
        found = lookup.explain_cycle(run, row["ts"] + 1, policy=policy)

        assert found.difference is None
        assert (found.ts_us, len(found.report.accepted)) == (row["ts"], row["accepted"])
        assert {unload.source for unload in found.report.accepted} <= {broker.broker for broker in found.seen}
        assert json.dumps(found.document())


def test_every_change_of_owner_has_its_cause(run: Path, log: Path) -> None:
    """Of topics under every policy: each owner came by a decision, the shedder or a split."""
    topics = sorted(set(pq.read_table(log / "lookups", columns=["topic"])["topic"].to_pylist()))
    topics = [topic for topic in topics if "://tenant-" in topic]
    for policy in ("stock", "rack", "fewest"):
        decisions = _rows(run, policy, "decisions")
        bundles = {row["bundle"] for row in _rows(run, policy, "owners")}
        made = {f"east/{policy}/1/{number}": row for number, row in enumerate(decisions)}
        for topic in topics[::5]:
            (history,) = lookup.explain_owners(run, topic=topic, policy=[policy])
            assert {step.bundle for step in history.steps} <= bundles
            for step in history.steps:
                if step.decision is not None:
                    assert (step.began_by, made[step.decision]["broker"]) == ("decision", step.broker)
                if step.began_by == "shedder":
                    assert policy != "fewest"
                if step.ended_by == "shed":
                    # Of the two shedders `transfer` says why it takes a bundle.
                    assert step.cycle is not None
                    assert step.reason == (step.cycle["reason"] if policy == "rack" else None)
                assert step.began_by != "log" or step.from_us == history.steps[0].from_us


def test_mistakes_name_arguments(run: Path, tmp_path: Path) -> None:
    """Each in one sentence: what is missing, unknown, or not in the run."""
    ts = _rows(run, "stock", "decisions")[0]["ts"]
    topic = lookup.explain_decision(run, "east/stock/1/0").request.topic
    owners, decision = lookup.explain_owners, lookup.explain_decision
    cycle = lookup.explain_cycle
    asked: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
        (owners, {"topic": topic, "policy": ["stok"]}, "policy: the run has no"),
        (owners, {"topic": topic, "seed": 3}, "seed: "),
        (owners, {"topic": topic, "cluster": "est"}, "cluster: "),
        (owners, {"topic": "nosuch"}, "topic: "),
        (decision, {"decision": "7"}, "decision: '7'"),
        (decision, {"decision": "east/stock/1/99999"}, "decision: 'east/stock/1/99999'"),
        (cycle, {"at_us": ts}, "which policy? "),
        (cycle, {"at_us": 0, "policy": ["stock"]}, "at_us: "),
        (cycle, {"at_us": ts, "policy": ["fewest"]}, "there are no cycles"),
    ]
    for explain, given, sentence in asked:
        with pytest.raises(SettingsError) as raised:
            explain(run, **given)
        assert str(raised.value).startswith(sentence)
    with pytest.raises(InputError, match=r"has no manifest\.json"):
        lookup.explain_owners(tmp_path, topic="t")


def test_a_folder_without_decisions_and_a_log_that_changed_are_named(run: Path, log: Path, tmp_path: Path) -> None:
    """What is missing or different, and that a new evaluation is right."""
    copy = shutil.copytree(run, tmp_path / "copy")
    shutil.rmtree(copy / "decisions")
    with pytest.raises(InputError, match=r"copy: has no decisions/0000-0000-1.parquet, .*'stock'"):
        lookup.explain_decision(copy, "east/stock/1/0")

    other = shutil.copytree(run, tmp_path / "other")
    manifest = json.loads((other / "manifest.json").read_text())
    manifest["inputs"]["lookups"]["blake2b"] = "0"
    (other / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"lookups: inputs.lookups .*other"):
        lookup.explain_decision(other, "east/stock/1/0")

    manifest["settings"]["inputs"]["lookups"] = str(tmp_path / "gone")
    (other / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"gone: inputs.lookups .*other"):
        lookup.explain_decision(other, "east/stock/1/0")
