"""`lookup tune`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lookup.api.generating import generate
from lookup.api.tuning import tune as search
from lookup.logs.jobs import InProcess
from tests.commands.projects import Run

_SEARCH = """
[tune]
evaluation = "evaluation.toml"
objectives = ["match_ratio:rack"]
prices = []
candidates = 4

[[spaces]]
name = "nearness"
[spaces.vary]
"scorers[0].weight" = { low = 0.0, high = 8.0 }
"""
_EVALUATION = """
[evaluation]
incumbent = "today"
seeds = 5
tick_s = 600
session_s = 3600
[inputs]
lookups = "log/lookups"
brokers = "log/brokers"
[[policies]]
name = "today"
scorers = [{ use = "property-match", key = "rack", weight = 0.0 }, "headroom"]
selector = "best"
"""
_SENDERS: dict[str, Any] = {"tenants": 96, "namespaces": 96, "topics": 1_000, "rack_affinity": 1.0, "zipf": 0.2}
_FIGURES: dict[str, Any] = {"hours": 48, "lookups": 20_000, "clusters": 1, "brokers": 6, "losses": 0, **_SENDERS}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a search over two days of lookups from three racks."""
    folder = tmp_path_factory.mktemp("search")
    generate(folder / "log", **_FIGURES, seed=2)
    (folder / "evaluation.toml").write_text(_EVALUATION)
    (folder / "tune.toml").write_text(_SEARCH)
    return folder


def test_the_answer_comes_first(lookup: Run, folder: Path, tmp_path: Path) -> None:
    """Then what was sealed, the finalists, and a policy to paste."""
    ran = lookup("tune", folder / "tune.toml", "--output", tmp_path / "out", "--master", "none")

    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert lines[0].startswith("Change scorers[0].weight = ")
    assert lines[1].startswith("4 candidates were tried on the days from 2026-01-05T00:00:")
    assert "[[policies]]" in lines
    assert "results are in" in ran.err
    refused = lookup("report", tmp_path / "out")
    assert (refused.code, "holds a search" in refused.err) == (2, True)
    refused = lookup("explain", tmp_path / "out", "--topic", "t")
    assert (refused.code, "holds a search" in refused.err) == (2, True)


def test_a_program_gets_the_document(lookup: Run, folder: Path, tmp_path: Path) -> None:
    """And 4 for an exit code if nothing is recommended."""
    ran = lookup(
        "tune", folder / "tune.toml", "--output", tmp_path / "out", "--master", "none", "--no-holdout",
        "--format", "json", "--quiet",
    )  # fmt: skip

    assert ran.code == 4
    written = json.loads((tmp_path / "out" / "tune.json").read_text())
    assert json.loads(ran.out) | {"checksum": written["checksum"]} == written
    assert json.loads(ran.out)["recommended"] == []


def test_the_sealed_evaluation_is_confirmed_on_another_log(lookup: Run, folder: Path, tmp_path: Path) -> None:
    """As any other evaluation is: the days that were sealed are no bounds of the other log."""
    search(folder / "tune.toml", output=tmp_path / "out", workers=InProcess())
    generate(tmp_path / "next", **_FIGURES, seed=3, start="2026-01-12T00:00:00Z")

    ran = lookup(
        "evaluate", "--confirm", tmp_path / "out" / "sealed", "--lookups", tmp_path / "next" / "lookups",
        "--set", f"inputs.brokers={tmp_path / 'next' / 'brokers'}", "--output", tmp_path / "again", "--master", "none",
    )  # fmt: skip

    assert "with seeds that it has not seen" in ran.out, ran.err
    assert ran.code in (0, 3, 4)


def test_a_broker_conf_is_enough(lookup: Run, folder: Path, tmp_path: Path) -> None:
    """Its load manager decides what is varied; what the log lacks for it is said before any work."""
    (tmp_path / "broker.conf").write_text("loadBalancerBrokerThresholdShedderPercentage=30\n")

    ran = lookup(
        "tune", "--broker-conf", tmp_path / "broker.conf", "--lookups", folder / "log" / "lookups",
        "--brokers", folder / "log" / "brokers", "--output", tmp_path / "out",
    )  # fmt: skip

    assert ran.code == 2
    assert "evaluation.bytes_per_weight" in ran.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("key", ["loadBalancerEnabled", "loadBalancerSheddingEnabled"])
def test_without_shedding_there_is_nothing_to_search(lookup: Run, folder: Path, tmp_path: Path, key: str) -> None:
    """It is one sentence, which names the file and the key, and nothing is written."""
    (tmp_path / "broker.conf").write_text(f"{key}=false\n")

    ran = lookup(
        "tune", "--broker-conf", tmp_path / "broker.conf", "--lookups", folder / "log" / "lookups",
        "--brokers", folder / "log" / "brokers", "--output", tmp_path / "out",
    )  # fmt: skip

    (mistake,) = ran.mistakes
    assert (ran.code, f"shedding is off in {tmp_path}/broker.conf ({key} is false)" in mistake) == (2, True)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "SEARCH and --output"),
        (["no.toml", "--output", "out"], "no.toml: "),
        (["a", "--broker-conf", "b", "--output", "out"], "--broker-conf: stands"),
        (["--broker-conf", "no.conf", "--output", "out"], "no.conf: "),
    ],
)
def test_mistakes_are_one_sentence(lookup: Run, words: list[str], sentence: str) -> None:
    """With the exit code 2."""
    ran = lookup("tune", *words)

    assert ran.code == 2
    assert sentence in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ("log/lookups/x", "--output: {0}/log/lookups/x lies in {0}/log/lookups,"),
        ("log", "--output: {0}/log holds {0}/log/brokers,"),
        ("", "--output: {0}/ holds {0}/tune.toml, which"),
        ("", "--output: {0}/ holds {0}/evaluation.toml, which"),
    ],
)
def test_a_search_is_not_written_into_what_it_reads(lookup: Run, folder: Path, output: str, sentence: str) -> None:
    """Neither into a table nor around its settings, and nothing is written."""
    before = sorted(folder.rglob("*"))

    ran = lookup("tune", folder / "tune.toml", "--output", f"{folder}/{output}", "--force")

    assert ran.code == 2
    assert sentence.format(folder) in ran.err
    assert sorted(folder.rglob("*")) == before


def test_a_search_is_checked_and_shown_without_its_log(lookup: Run, folder: Path) -> None:
    """`config check` finds what `tune` would refuse, `config show` prints what reads back."""
    checked = lookup("config", "check", folder / "tune.toml")
    shown = lookup("config", "show", folder / "tune.toml", "--resolved")
    wrong = lookup("config", "check", folder / "tune.toml", "--set", 'tune.prices=["moves_weight"]')

    assert checked.out.endswith("; 1 space, 1 setting\n")
    assert "candidates = 4" in shown.out
    assert (wrong.code, "named 'moves_weight'" in wrong.err) == (2, True)
