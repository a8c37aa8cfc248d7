"""`lookup tune`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from lookup.api.generating import generate
from lookup.api.tuning import tune as search
from lookup.logs.jobs import InProcess
from tests.commands.projects import Run
from tests.tuning.files import write_search_file

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
    page = tmp_path / "out" / "tune.html"
    drawn = page.read_bytes()
    page.unlink()
    redrawn = lookup("report", tmp_path / "out")
    assert (redrawn.code, page.read_bytes() == drawn) == (0, True)
    refused = lookup("report", tmp_path / "out", "--junit", tmp_path / "junit.xml")
    assert (refused.code, "holds a search" in refused.err) == (2, True)
    explained = lookup("explain", tmp_path / "out", "--candidate", "1")
    assert explained.out.startswith("candidate 1, wide, of the space nearness\nscorers[0].weight = ")
    (figures,) = [line.split() for line in explained.out.splitlines() if "match_ratio:rack" in line]
    today, candidate, gain = (float(text) for text in " ".join(figures).replace("|", " ").split()[1:4])
    assert candidate - today == pytest.approx(gain, abs=2e-3)
    for words, sentence in ((("--candidate", "99"), "there is no candidate 99"), ((), "of which --candidate explains")):
        refused = lookup("explain", tmp_path / "out", *words)
        assert (refused.code, sentence in refused.err) == (2, True)
    document = json.loads((tmp_path / "out" / "tune.json").read_text())
    document["finalists"] = [one for one in document["finalists"] if one["candidate"] != 2]
    for raced, said in ((True, "in the last race"), (False, "it was not in the last race")):
        document["candidates"][2]["raced"] = raced
        write_search_file(tmp_path / "tune.json", document)
        assert said in lookup("explain", tmp_path, "--candidate", "2").out.splitlines()[2]


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


@pytest.fixture(scope="module")
def finished(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Search, and write three other logs: of the next week, of three lookups, and of another cluster."""
    place = tmp_path_factory.mktemp("finished")
    search(folder / "tune.toml", output=place / "out", workers=InProcess())
    generate(place / "next", **_FIGURES, seed=3, start="2026-01-12T00:00:00Z")
    rows = pd.read_parquet(place / "next" / "lookups")
    rows.assign(cluster="elsewhere").to_parquet(place / "elsewhere.parquet")
    rows.head(3).to_parquet(place / "few.parquet")
    return place


@pytest.mark.parametrize(("log", "code"), [("next/lookups", 0), ("few.parquet", 4)])
def test_another_log_confirms_a_finished_search_or_does_not(
    lookup: Run, finished: Path, tmp_path: Path, log: str, code: int
) -> None:
    """Its figures stand beside those of the search and of the sealed days; asked twice it has one answer."""
    shutil.copytree(finished / "out", tmp_path / "out")
    before = json.loads((tmp_path / "out" / "tune.json").read_text())
    words = ("--against", finished / log, "--brokers", finished / "next" / "brokers", "--output")

    ran = [lookup("tune", *words, tmp_path / "out", "--master", "none") for _ in range(2)]

    assert [one.code for one in ran] == [code, code], ran[0].err
    assert ran[0].out == ran[1].out
    assert ran[0].out.splitlines()[0].endswith(f" on {finished / log}") or code == 4
    assert f"| match_ratio:rack, {finished / log} " in ran[0].out
    document = json.loads((tmp_path / "out" / "tune.json").read_text())
    (entry,) = document["against"]
    assert bool(entry["recommended"]) == (code == 0)
    figures = [row for row in document["figures"] if row["days"] != entry["folder"]]
    assert {row["days"] for row in document["figures"]} == {"search", "sealed", entry["folder"]}
    assert document | {"figures": figures, "against": [], "checksum": ""} == before | {"checksum": ""}
    assert (tmp_path / "out" / entry["folder"] / "summary.json").exists()
    assert (tmp_path / "out" / "tune.html").read_bytes() != (finished / "out" / "tune.html").read_bytes()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--against", "none"], "none"),
        (["--against", "{folder}/log/lookups"], "is the log of the search"),
        (["--against", "elsewhere.parquet"], "cluster 'elsewhere' of the log has no broker"),
        (["--against", "next/lookups", "--set", "evaluation.warmup_s=900000"], "before anything of it is scored"),
        (["--against", "next/lookups", "{folder}/tune.toml"], "--against: stands for"),
        (["--against", "next/lookups", "--lookups", "next/lookups"], "--against: judges a finished search"),
        (["--against", "next/lookups", "--set", "tune.candidates=9"], "tune"),
        (["--against", "next/lookups", "--output", "next"], "next: holds no tune.json"),
    ],
)
def test_a_log_that_can_confirm_nothing_is_refused_in_one_sentence(
    lookup: Run, folder: Path, finished: Path, words: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the exit code 2, before any replay, and the search stays as it is."""
    monkeypatch.chdir(finished)
    before = (finished / "out" / "tune.json").read_bytes()

    ran = lookup("tune", "--output", "out", *(word.format(folder=folder) for word in words), "--master", "none")

    assert ran.code == 2
    assert sentence in ran.err.splitlines()[-1]
    assert "Traceback" not in ran.err
    assert (finished / "out" / "tune.json").read_bytes() == before
    assert not list((finished / "out").glob("against-*"))


def test_another_log_needs_finalists_and_tables_of_its_own(lookup: Run, finished: Path, tmp_path: Path) -> None:
    """LOADS of the search's log are those of other days."""
    shutil.copytree(finished / "out", tmp_path / "out")
    words = ("tune", "--against", finished / "next" / "lookups", "--output", tmp_path / "out", "--master", "none")
    manifest = tmp_path / "out" / "sealed" / "manifest.json"
    content = json.loads(manifest.read_text())
    content["settings"]["inputs"]["loads"] = "loads.parquet"
    manifest.write_text(json.dumps(content))

    without_loads = lookup(*words)
    document = json.loads((tmp_path / "out" / "tune.json").read_text())
    write_search_file(tmp_path / "out" / "tune.json", document | {"finalists": []})
    without_finalists = lookup(*words)

    assert (without_loads.code, "inputs.loads: " in without_loads.err) == (2, True)
    assert (without_finalists.code, "had no finalist" in without_finalists.err) == (2, True)


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
