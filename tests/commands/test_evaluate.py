"""`lookup evaluate`: what it leaves behind, its exit codes, and what it refuses; with Spark only where it must be.

Runs that need a process of their own are in `test_evaluate_processes.py`.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from lookup.commands.evaluate import OUTPUTS
from tests.commands.projects import Run, evaluation, evaluation_of, names_in

#: A policy beside `stock` that answers nobody.
WORSE = """
[[policies]]
name = "nobody"
filters = [{ use = "load-manager-class", class_name = "org.example.Other" }]
selector = "best"

[verdict]
primary = ["answered_ratio"]
"""

# Refused before Spark starts.


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ((), "there is no log: "),
        (("--lookups", "/no/log"), "inputs.lookups: /no/log: "),
        (("--lookups", "{folder}/garbage.parquet"), "inputs.lookups: {folder}/garbage.parquet"),
        (("--lookups", "{folder}/empty"), "inputs.lookups: {folder}/empty: holds no Parquet"),
        (("--by", "tenant,rak"), "--by rak: "),
        (("--confirm", "run"), "--confirm: "),
        (("--candidate", "rack"), "--candidate: "),
        (("--set", "verdict.primary=['moved']"), "verdict.primary: no metric is named"),
    ],
)
def test_what_cannot_be_evaluated_is_one_sentence(
    lookup: Run, tmp_path: Path, flags: tuple[str, ...], sentence: str
) -> None:
    """Settings and inputs are checked before Spark starts, and no output appears."""
    (tmp_path / "garbage.parquet").write_bytes(b"PAR1 this is not a table")
    (tmp_path / "empty").mkdir()
    config = evaluation(tmp_path)
    before = names_in(tmp_path)

    ran = lookup("evaluate", config, "--output", tmp_path / "o", *(f.format(folder=tmp_path) for f in flags))

    (mistake,) = ran.mistakes
    assert mistake.startswith(sentence.format(folder=tmp_path))
    assert names_in(tmp_path) == before


# A manifest names the platform, for which Python asks `uname`.
@pytest.mark.process
def test_a_log_in_folders_of_cluster_and_day_gives_the_same_results(lookup: Run, tmp_path: Path, log: Path) -> None:
    """All commands that read lookups find the files."""
    older = tmp_path / "log"
    for table in ("lookups", "brokers", "ownership"):
        for file in (log / table).iterdir():
            day = "cluster=east/date=2026-01-05" if table == "lookups" else "."
            (older / table / day).mkdir(parents=True, exist_ok=True)
            shutil.copy(file, older / table / day / file.name)
    printed = []
    for folder, number in ((log, 1), (older, 2)):
        output = tmp_path / f"output-{number}"
        config = evaluation_of(tmp_path, folder)
        flags = ("--set", "evaluation.seeds=[1,5]", "--master", "none")
        assert lookup("evaluate", config, "--output", output, *flags).code == 0
        explained = lookup("explain", output, "--decision", "east/rack/1/0", "--master", "none")
        files = [(output / name).read_bytes() for name in ("summary.json", "report.md", "metrics.parquet")]
        printed.append((files, explained.out, lookup("inspect", folder / "lookups").out))

    assert printed[0] == printed[1]
    assert "equals the record of the run" in printed[0][1]


def test_a_table_without_its_end_or_without_rows_is_one_sentence(lookup: Run, tmp_path: Path, log: Path) -> None:
    """It is named."""
    file = next((log / "lookups").rglob("*.parquet"))
    (tmp_path / "cut.parquet").write_bytes(file.read_bytes()[:-100])
    pq.write_table(pq.ParquetFile(file).read().slice(0, 0), tmp_path / "none.parquet")
    words = ("evaluate", evaluation_of(tmp_path, log), "--output", tmp_path / "o", "--lookups")

    for name in ("cut.parquet", "none.parquet"):
        (mistake,) = lookup(*words, tmp_path / name).mistakes
        assert mistake.startswith(f"inputs.lookups: {tmp_path}/{name}")


def test_all_missing_inputs_are_named(lookup: Run, tmp_path: Path) -> None:
    """Every input that is not there is a sentence of its own."""
    config = evaluation(tmp_path, '[inputs]\nlookups = "a"\nbrokers = "b"\nownership = "c"\n')

    mistakes = lookup("evaluate", config, "--output", tmp_path / "o").mistakes

    assert [mistake.partition(":")[0] for mistake in mistakes] == [
        "inputs.lookups",
        "inputs.brokers",
        "inputs.ownership",
    ]


@pytest.mark.parametrize(("flags", "meant"), [((), "a"), (("--set",), "b"), (("--set", "--lookups"), "c")])
def test_the_log_may_be_named_in_three_places(lookup: Run, tmp_path: Path, flags: tuple[str, ...], meant: str) -> None:
    """`--lookups` wins over `--set`, and that over the file."""
    config = evaluation(tmp_path, '[inputs]\nlookups = "a"\n')
    given = {"--set": f"inputs.lookups={tmp_path}/b", "--lookups": f"{tmp_path}/c"}
    words = [word for flag in flags for word in (flag, given[flag])]

    (mistake,) = lookup("evaluate", config, "--output", tmp_path / "o", *words).mistakes

    assert mistake.startswith(f"inputs.lookups: {tmp_path}/{meant}: ")


def test_a_full_folder_is_kept(lookup: Run, tmp_path: Path, log: Path) -> None:
    """Without `--force` a folder with anything in it is left as it is; a file is never replaced."""
    config = evaluation_of(tmp_path, log)
    full = tmp_path / "o"
    full.mkdir()
    (full / "mine.txt").write_text("mine")

    mistakes = [
        lookup("evaluate", config, "--output", output, *force).mistakes
        for output, force in ((full, ()), (full / "mine.txt", ("--force",)))
    ]

    assert [mistake.partition(";")[0] for (mistake,) in mistakes] == [
        f"--output: {full} is not empty",
        f"--output: {full}/mine.txt is a file",
    ]
    assert names_in(full) == ["mine.txt"]


@pytest.mark.parametrize(
    ("output", "relation", "among"),
    [
        ("log/lookups", "is", ["inputs.lookups"]),
        ("log/loads/o", "lies in", ["inputs.loads"]),
        ("log/brokers/", "is", ["inputs.brokers"]),
        ("settings", "holds", ["EVALUATION"]),
        ("log", "holds", ["inputs.lookups", "inputs.brokers", "inputs.loads"]),
    ],
)
def test_an_output_among_the_inputs_is_refused(
    lookup: Run, tmp_path: Path, output: str, relation: str, among: list[str]
) -> None:
    """An output that is an input, lies in one or holds one is a sentence each, and nothing is written."""
    for name in ("lookups", "brokers", "loads"):
        (tmp_path / "log" / name).mkdir(parents=True)
    (tmp_path / "settings").mkdir()
    inputs = "".join(f'{name} = "../log/{name}"\n' for name in ("lookups", "brokers", "loads"))
    config = evaluation(tmp_path / "settings", f"[inputs]\n{inputs}")
    before = sorted(tmp_path.rglob("*"))

    mistakes = lookup("evaluate", config, "--output", f"{tmp_path}/{output}", "--force").mistakes

    for mistake, name in zip(mistakes, among, strict=True):
        assert mistake.startswith(f"--output: {tmp_path}/{output} {relation} ")
        assert f", which is {name};" in mistake
    assert sorted(tmp_path.rglob("*")) == before


# With Spark.


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_results_are_complete_and_agree(lookup: Run, tmp_path: Path, log: Path) -> None:
    """All results are there, stdout is the summary, the manifest knows how it came about, no draft is left."""
    output = tmp_path / "results"

    ran = lookup(
        *("evaluate", evaluation_of(tmp_path, log), "--output", output, "--format", "json"),
        *("--by", "tenant, hour", "--set", "evaluation.seeds=[1, 2]"),
    )

    assert ran.code == 0, ran.err
    assert set(names_in(output)) == {*OUTPUTS} - {"quarantine"}
    assert names_in(tmp_path) == ["evaluation.toml", "results"]
    summary = json.loads(ran.out)
    assert (output / "summary.json").read_text() == ran.out
    assert {row["policy"] for row in summary["figures"]} == {"stock", "rack"}
    assert any(row["dimension"] == "tenant" for row in summary["figures"])
    assert pq.read_table(output / "metrics.parquet").num_rows == len(summary["figures"])
    assert "scoring" in ran.err
    # Drawn again from the folder alone it is the same page.
    page = (output / "report.html").read_bytes()
    (output / "report.html").unlink()
    assert lookup("report", output).code == 0
    assert (output / "report.html").read_bytes() == page
    _assert_manifest(json.loads((output / "manifest.json").read_text()), log)


def _assert_manifest(manifest: dict[str, Any], log: Path) -> None:
    assert manifest["command"][:2] == ["lookup", "evaluate"]
    assert (manifest["exit_code"], manifest["seeds"]) == (0, [1, 2])
    assert manifest["sources"]["evaluation.seeds"] == "command line"
    assert manifest["inputs"]["lookups"]["path"] == str(log / "lookups")
    assert manifest["inputs"]["lookups"]["rows"] == 2_000
    assert {"python", "pyspark", "numpy", "pulsar-lookup"} <= set(manifest["versions"])
    assert manifest["wall_clock"]["total_s"] > manifest["wall_clock"]["replay_s"] > 0


def test_a_run_is_confirmed(lookup: Run, tmp_path: Path, log: Path) -> None:
    """By the settings in its folder and other seeds; what is left stands below the table, or on stderr beside data."""
    words = ("evaluate", evaluation_of(tmp_path, log), "--output", tmp_path / "run", "--master", "none")
    assert lookup(*words).code == 0

    words = ("evaluate", "--confirm", tmp_path / "run", "--candidate", "rack", "--output", tmp_path / "again")
    ran = lookup(*words, "--master", "none", "--force")
    data = lookup(*words, "--master", "none", "--force", "--format", "json")

    head = f"Changes of rack in {tmp_path / 'run'}, "
    assert (ran.code, data.code) == (0, 0), ran.err
    assert head in ran.out
    assert head in data.err
    assert {row["policy"] for row in json.loads(data.out)["figures"] if "verdict" in row} == {"rack"}
    seeds = [set(json.loads((tmp_path / name / "manifest.json").read_text())["seeds"]) for name in ("run", "again")]
    assert not seeds[0] & seeds[1]


@pytest.mark.spark
def test_this_process_gives_the_same_bytes(spark: SparkSession, lookup: Run, tmp_path: Path, log: Path) -> None:
    """With `--master none` every file is as Spark writes it, but for what the manifest says of the run."""
    path = evaluation_of(tmp_path, log, WORSE)

    codes = [
        lookup("evaluate", path, "--output", tmp_path / name, *flags).code
        for name, flags in (("spark", ()), ("process", ("--master", "none")))
    ]

    files = [sorted(file for file in (tmp_path / name).rglob("*") if file.is_file()) for name in ("spark", "process")]
    names = [
        [str(file.relative_to(tmp_path / name)) for file in of]
        for name, of in zip(("spark", "process"), files, strict=True)
    ]
    assert codes == [3, 3]
    assert names[0] == names[1]
    assert len(names[0]) > 5
    different = [one for one, a, b in zip(names[0], *files, strict=True) if a.read_bytes() != b.read_bytes()]
    # The page shows what the manifest says of the run.
    assert different == ["manifest.json", "report.html"]


def test_a_small_log_needs_no_spark(lookup: Run, tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line says what reads the log; who asks for Spark is told how to get Java, and how to do without."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    path = evaluation_of(tmp_path, log)

    ran = lookup("evaluate", path, "--output", tmp_path / "small")

    assert ran.code in {0, 3, 4}
    assert "2,000 rows, fewer than 200,000" in ran.err
    (sentence,) = lookup("evaluate", path, "--output", tmp_path / "o", "--master", "local[*]").mistakes
    assert "JAVA_HOME" in sentence
    assert sentence.endswith("with --master none")


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_worse_candidate_exits_with_3(lookup: Run, tmp_path: Path, log: Path) -> None:
    """A candidate that answers nobody is worse on a primary metric: exit code 3, in the manifest too."""
    config = evaluation_of(tmp_path, log, WORSE)
    output = tmp_path / "o"
    output.mkdir()
    (output / "mine.txt").write_text("mine")
    (output / "report.md").write_text("old")

    ran = lookup("evaluate", config, "--output", output, "--force", "--format", "markdown")

    assert ran.code == 3, ran.err
    assert ran.out.startswith("# ")
    assert json.loads((output / "manifest.json").read_text())["exit_code"] == 3
    assert (output / "report.md").read_text() == ran.out
    assert (output / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("master", "sentence"),
    [
        ("spark://127.0.0.1:1", "--master: nobody answers at spark://127.0.0.1:1; "),
        ("spark://127.0.0.1:1,[::1]:x", "--master: '[::1]:x' of "),
        ("spark://here", "--master: 'here' of "),
        ("lokal", "--master: 'lokal' is not a master"),
        ("local[0]", "--master: 'local[0]' is not a master"),
    ],
)
def test_a_master_that_does_not_answer_is_one_sentence(
    lookup: Run, tmp_path: Path, log: Path, master: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a JVM is started, which would try for a minute."""
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)

    (mistake,) = lookup(
        "evaluate", evaluation_of(tmp_path, log), "--output", tmp_path / "o", "--master", master
    ).mistakes

    assert mistake.startswith(sentence)
    assert names_in(tmp_path) == ["evaluation.toml"]
