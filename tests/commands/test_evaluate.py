"""`lookup evaluate`: what it leaves behind, its exit codes, and what it refuses; with Spark only where it must be."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from lookup.commands import extras
from lookup.commands.evaluation import OUTPUTS
from lookup.replay.generate import GenerateSettings, generate
from tests.commands.projects import EVALUATION, Ran, Run, evaluation

#: Policies beside `stock`: one that answers nobody, and one of a plug-in file that fails in the middle of the log.
WORSE = """
[[policies]]
name = "nobody"
filters = [{ use = "load-manager-class", class_name = "org.example.Other" }]
selector = "best"

[verdict]
primary = ["answered_ratio"]
"""
FAILING = """
from dataclasses import dataclass
from typing import ClassVar

from lookup.hooks import hookimpl


@dataclass(frozen=True)
class Failing:
    name: ClassVar[str] = "failing"
    is_silent: bool = False

    def score(self, request, brokers, view):
        if not self.is_silent:
            raise LookupError("no such rack")
        return [float("nan")] * len(brokers)


@hookimpl
def lookup_register_scorers():
    return (Failing,)
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the tables of a small log."""
    folder = tmp_path_factory.mktemp("log")
    settings = GenerateSettings(lookups=2_000, clusters=1, hours=2.0, topics=60, namespaces=6, tenants=2, clients=60)
    generate(settings, folder / "sample")
    return folder / "sample"


def _config(folder: Path, log: Path, text: str = "", head: str = "") -> Path:
    inputs = f'[inputs]\nlookups = "{log}/lookups"\nbrokers = "{log}/brokers"\nownership = "{log}/ownership"\n'
    return evaluation(folder, inputs + text, start=head + EVALUATION)


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# Refused before Spark starts.


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ((), "there is no log: give --lookups PATH, or inputs.lookups in the evaluation"),
        (("--lookups", "/no/log"), "inputs.lookups: /no/log: there is no such file or directory"),
        (
            ("--lookups", "{folder}/garbage.parquet"),
            "inputs.lookups: {folder}/garbage.parquet",
        ),
        (("--lookups", "{folder}/empty"), "inputs.lookups: {folder}/empty: holds no Parquet file"),
        (("--by", "tenant,rak"), "--by rak: demand can be told apart by tenant, namespace, rack, hour"),
        (("--set", "evaluation.tick=1"), "command line: there is no setting evaluation.tick; did you mean 'tick_s'?"),
        (("--set", "evaluation.seeds"), "--set: 'evaluation.seeds' should be of the form evaluation.tick_s=30"),
        (("--set", "verdict.primary=['moved']"), "verdict.primary: no metric is named 'moved'"),
    ],
)
def test_what_cannot_be_evaluated_is_one_sentence(
    lookup: Run, tmp_path: Path, flags: tuple[str, ...], sentence: str
) -> None:
    """Settings and inputs are checked before Spark starts, and no output appears."""
    (tmp_path / "garbage.parquet").write_bytes(b"PAR1 this is no table")
    (tmp_path / "empty").mkdir()
    config = evaluation(tmp_path)
    before = _names(tmp_path)

    ran = lookup(
        "evaluate", "--config", config, "--output", tmp_path / "o", *(f.format(folder=tmp_path) for f in flags)
    )

    (mistake,) = ran.mistakes
    assert mistake.startswith(sentence.format(folder=tmp_path))
    assert _names(tmp_path) == before


def test_a_truncated_table_is_one_sentence(lookup: Run, tmp_path: Path, log: Path) -> None:
    """A Parquet file that lost its end is named."""
    file = next((log / "lookups").rglob("*.parquet"))
    (tmp_path / "cut.parquet").write_bytes(file.read_bytes()[:-100])

    ran = lookup(
        "evaluate",
        "--config",
        _config(tmp_path, log),
        "--output",
        tmp_path / "o",
        "--lookups",
        tmp_path / "cut.parquet",
    )

    (mistake,) = ran.mistakes
    assert mistake.startswith(f"inputs.lookups: {tmp_path}/cut.parquet")


def test_an_empty_table_is_one_sentence(lookup: Run, tmp_path: Path, log: Path) -> None:
    """A table without rows is named."""
    file = next((log / "lookups").rglob("*.parquet"))
    pq.write_table(pq.ParquetFile(file).read().slice(0, 0), tmp_path / "none.parquet")
    config = _config(tmp_path, log)

    ran = lookup("evaluate", "--config", config, "--output", tmp_path / "o", "--lookups", tmp_path / "none.parquet")

    (mistake,) = ran.mistakes
    assert mistake.startswith(f"inputs.lookups: {tmp_path}/none.parquet")


def test_all_missing_inputs_are_named(lookup: Run, tmp_path: Path) -> None:
    """Every input that is not there is a sentence of its own."""
    config = evaluation(tmp_path, '[inputs]\nlookups = "a"\nbrokers = "b"\nownership = "c"\n')

    mistakes = lookup("evaluate", "--config", config, "--output", tmp_path / "o").mistakes

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

    (mistake,) = lookup("evaluate", "--config", config, "--output", tmp_path / "o", *words).mistakes

    assert mistake == f"inputs.lookups: {tmp_path}/{meant}: there is no such file or directory"


def test_an_unknown_part_is_one_sentence(lookup: Run, tmp_path: Path, log: Path) -> None:
    """A policy whose part does not exist is refused with a suggestion."""
    config = _config(tmp_path, log, '[[policies]]\nname = "new"\nselector = "rendezvos"\n')

    mistakes = lookup("evaluate", "--config", config, "--output", tmp_path / "o").mistakes

    assert mistakes == ["policy 'new' selector: no selector named 'rendezvos'; did you mean 'rendezvous'?"]


def test_a_full_folder_is_kept(lookup: Run, tmp_path: Path, log: Path) -> None:
    """Without `--force` a folder with anything in it is left as it is; a file is never replaced."""
    config = _config(tmp_path, log)
    full = tmp_path / "o"
    full.mkdir()
    (full / "mine.txt").write_text("mine")

    mistakes = [
        lookup("evaluate", "--config", config, "--output", output, *force).mistakes
        for output, force in ((full, ()), (full / "mine.txt", ("--force",)))
    ]

    assert mistakes == [
        [f"--output: {full} is not empty; name another folder, or replace earlier results with --force"],
        [f"--output: {full}/mine.txt is a file; name a folder that does not exist or is empty"],
    ]
    assert _names(full) == ["mine.txt"]


@pytest.mark.parametrize(
    ("output", "sentences"),
    [
        ("log/lookups", ["--output: {folder}/log/lookups is {folder}/log/lookups, which is inputs.lookups; name a "]),
        ("log/loads/o", ["--output: {folder}/log/loads/o lies in {folder}/log/loads, which is inputs.loads; name a "]),
        (
            "log/brokers/",
            ["--output: {folder}/log/brokers/ is {folder}/log/brokers, which is inputs.brokers; name a folder "],
        ),
        ("settings", ["--output: {folder}/settings holds {folder}/settings/evaluation.toml, which is --config; "]),
        ("log", ["--output: {folder}/log holds {folder}/log/" + name for name in ("lookups", "brokers", "loads")]),
    ],
)
def test_an_output_among_the_inputs_is_refused(lookup: Run, tmp_path: Path, output: str, sentences: list[str]) -> None:
    """An output that is an input, lies in one or holds one is a sentence each, and nothing is written."""
    for name in ("lookups", "brokers", "loads"):
        (tmp_path / "log" / name).mkdir(parents=True)
    (tmp_path / "settings").mkdir()
    inputs = "".join(f'{name} = "../log/{name}"\n' for name in ("lookups", "brokers", "loads"))
    config = evaluation(tmp_path / "settings", f"[inputs]\n{inputs}")
    before = sorted(tmp_path.rglob("*"))

    mistakes = lookup("evaluate", "--config", config, "--output", f"{tmp_path}/{output}", "--force").mistakes

    assert len(mistakes) == len(sentences)
    for mistake, sentence in zip(mistakes, sentences, strict=True):
        assert mistake.startswith(sentence.format(folder=tmp_path))
    assert sorted(tmp_path.rglob("*")) == before


def test_without_spark_it_says_what_to_install(lookup: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A core installation says in one sentence what to install."""
    monkeypatch.setattr(extras, "find_spec", lambda name: None)

    mistakes = lookup("evaluate", "--config", evaluation(tmp_path), "--output", tmp_path / "o").mistakes

    assert mistakes == ["`lookup evaluate` needs pyspark: install it with pip install 'pulsar-lookup[spark]'"]


def _process(*argv: object, **environment: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "lookup.cli", *map(str, argv)]
    return subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={"PATH": "/usr/bin:/bin", "NO_COLOR": "1", **environment},
    )


def test_without_java_it_is_one_sentence(tmp_path: Path, log: Path) -> None:
    """Where there is no Java the command says so and leaves nothing behind; as a process of its own."""
    config = _config(tmp_path, log)

    process = _process("evaluate", "--config", config, "--output", tmp_path / "o", JAVA_HOME="/no/java")
    out, err = process.communicate(timeout=120)

    ran = Ran(process.returncode, out, err)
    assert ran.mistakes == ["JAVA_HOME is '/no/java', but there is no bin/java; Spark needs Java 17 or newer"]
    assert _names(tmp_path) == ["evaluation.toml"]


def test_an_unknown_master_is_one_sentence(tmp_path: Path, log: Path) -> None:
    """A master that Spark does not know is refused before a JVM is started."""
    process = _process("evaluate", "--config", _config(tmp_path, log), "--output", tmp_path / "o", "--master", "lokal")
    out, err = process.communicate(timeout=120)

    (mistake,) = Ran(process.returncode, out, err).mistakes
    assert mistake.startswith("--master: 'lokal' is no master that Spark knows; write local[*]")
    assert _names(tmp_path) == ["evaluation.toml"]


# With Spark.


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_results_are_complete_and_agree(lookup: Run, tmp_path: Path, log: Path) -> None:
    """All results are there, stdout is the summary, the manifest knows how it came about, no draft is left."""
    output = tmp_path / "results"

    ran = lookup(
        *("evaluate", "--config", _config(tmp_path, log), "--output", output, "--format", "json"),
        *("--by", "tenant, hour", "--set", "evaluation.seeds=[1, 2]"),
    )

    assert ran.code == 0, ran.err
    assert set(_names(output)) == {*OUTPUTS} - {"quarantine"}
    assert _names(tmp_path) == ["evaluation.toml", "results"]
    summary = json.loads(ran.out)
    assert (output / "summary.json").read_text() == ran.out
    assert {row["policy"] for row in summary["metrics"]} == {"stock", "rack"}
    assert any((row["by"] or {}).get("tenant") for row in summary["metrics"])
    assert pq.read_table(output / "metrics.parquet").num_rows == len(summary["metrics"])
    assert "scoring" in ran.err
    _assert_manifest(json.loads((output / "manifest.json").read_text()), log)


def _assert_manifest(manifest: dict[str, Any], log: Path) -> None:
    assert manifest["command"][:2] == ["lookup", "evaluate"]
    assert (manifest["exit_code"], manifest["seeds"]) == (0, [1, 2])
    assert manifest["sources"]["evaluation.seeds"] == "command line"
    assert manifest["inputs"]["lookups"]["path"] == str(log / "lookups")
    assert manifest["inputs"]["lookups"]["rows"] == 2_000
    assert {"python", "pyspark", "numpy", "java", "pulsar-lookup"} <= set(manifest["versions"])
    assert manifest["wall_clock"]["total_s"] > manifest["wall_clock"]["replay_s"] > 0


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_worse_candidate_exits_with_3(lookup: Run, tmp_path: Path, log: Path) -> None:
    """A candidate that answers nobody is worse on a primary metric: exit code 3, in the manifest too."""
    config = _config(tmp_path, log, WORSE)
    output = tmp_path / "o"
    output.mkdir()
    (output / "mine.txt").write_text("mine")
    (output / "report.md").write_text("old")

    ran = lookup("evaluate", "--config", config, "--output", output, "--force", "--format", "markdown")

    assert ran.code == 3, ran.err
    assert ran.out.startswith("# ")
    assert json.loads((output / "manifest.json").read_text())["exit_code"] == 3
    assert (output / "report.md").read_text() == ran.out
    assert (output / "mine.txt").read_text() == "mine"


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("is_silent", "sentence"),
    [
        ("false", "policy 'fails': part 'failing' raised LookupError: no such rack; it was asked about "),
        ("true", "part 'failing' answered score nan for broker '"),
    ],
)
def test_a_part_that_fails_in_a_task_leaves_earlier_results(
    lookup: Run, tmp_path: Path, log: Path, is_silent: str, sentence: str
) -> None:
    """A part of a plug-in file that raises or breaks its protocol on a worker is one sentence; the output stays."""
    (tmp_path / "failing.py").write_text(FAILING, encoding="utf-8")
    part = f'{{ use = "failing", is_silent = {is_silent} }}'
    policy = f'[[policies]]\nname = "fails"\nscorers = [{part}]\nselector = "best"\n'
    config = _config(tmp_path, log, policy, 'plugin_files = ["failing.py"]\n')
    output = tmp_path / "o"
    output.mkdir()
    (output / "report.md").write_text("old")

    (mistake,) = lookup("evaluate", "--config", config, "--output", output, "--force").mistakes

    assert sentence in mistake
    assert (output / "report.md").read_text() == "old"
    assert _names(output) == ["report.md"]
    assert _names(tmp_path) == ["evaluation.toml", "failing.py", "o"]


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_log_of_garbage_is_one_sentence(lookup: Run, tmp_path: Path, log: Path) -> None:
    """A table whose topics are no topics is refused with their share, the limit and the commonest reason."""
    stamps = pa.array([1_767_225_600_000_000 + place for place in range(50)], pa.timestamp("us", "UTC"))
    pq.write_table(
        pa.table({"ts": stamps, "cluster": ["c"] * 50, "topic": ["nonsense"] * 50}), tmp_path / "bad.parquet"
    )
    config = _config(tmp_path, log)

    ran = lookup("evaluate", "--config", config, "--output", tmp_path / "o", "--lookups", tmp_path / "bad.parquet")

    (mistake,) = ran.mistakes
    assert "50 of 50 rows cannot be used, more than max_quarantine_ratio = 0.01 allows" in mistake
    assert "'nonsense'" in mistake
    assert _names(tmp_path) == ["bad.parquet", "evaluation.toml"]


@pytest.mark.spark
def test_a_worker_that_dies_is_one_sentence(tmp_path: Path, log: Path) -> None:
    """A worker that ends without a word, as for want of memory, is one sentence, and nothing is left."""
    dying = FAILING.replace('raise LookupError("no such rack")', "__import__('os')._exit(9)")
    (tmp_path / "failing.py").write_text(dying, encoding="utf-8")
    policy = '[[policies]]\nname = "fails"\nscorers = ["failing"]\nselector = "best"\n'
    config = _config(tmp_path, log, policy, 'plugin_files = ["failing.py"]\n')

    process = _process("evaluate", "--config", config, "--output", tmp_path / "o", **_java())
    out, err = process.communicate(timeout=120)

    assert Ran(process.returncode, out, err).mistakes == [
        "a Spark task failed: Python worker exited unexpectedly (crashed); out of memory?"
    ]
    assert [line for line in err.splitlines() if not line.startswith(("[", "error: "))] == []
    assert set(_names(tmp_path)) - {"__pycache__"} == {"evaluation.toml", "failing.py"}


@pytest.mark.spark
def test_a_jvm_that_is_ended_is_one_sentence(tmp_path: Path, log: Path) -> None:
    """A JVM that the system ends, as it does where memory is short, is one sentence, and nothing is left."""
    process = _process("evaluate", "--config", _config(tmp_path, log), "--output", tmp_path / "o", **_java())
    assert process.stderr is not None
    for line in process.stderr:
        if "replaying" in line:
            break
    children = subprocess.run(["ps", "-A", "-o", "ppid=,pid=,comm="], capture_output=True, text=True, check=True).stdout
    (jvm,) = (words[1] for line in children.splitlines() if (words := line.split())[::2] == [str(process.pid), "java"])

    os.kill(int(jvm), signal.SIGKILL)
    out, err = process.communicate(timeout=120)

    (mistake,) = Ran(process.returncode, out, err).mistakes
    assert mistake.startswith("a Spark task failed: ")
    assert mistake.endswith("; out of memory?")
    assert _names(tmp_path) == ["evaluation.toml"]


@pytest.mark.parametrize(
    ("master", "sentence"),
    [
        ("spark://127.0.0.1:1", "--master: nobody answers at spark://127.0.0.1:1; 127.0.0.1:1: "),
        (
            "spark://127.0.0.1:1,[::1]:x",
            "--master: '[::1]:x' of 'spark://127.0.0.1:1,[::1]:x' is not of the form host:",
        ),
        ("spark://here", "--master: 'here' of 'spark://here' is not of the form host:port, like spark://host:7077"),
    ],
)
def test_a_master_that_does_not_answer_is_one_sentence(
    lookup: Run, tmp_path: Path, log: Path, master: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a JVM is started, which would try for a minute."""
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)

    (mistake,) = lookup(
        "evaluate", "--config", _config(tmp_path, log), "--output", tmp_path / "o", "--master", master
    ).mistakes

    assert mistake.startswith(sentence)
    assert _names(tmp_path) == ["evaluation.toml"]


@pytest.mark.spark
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "terminated"])
def test_an_interruption_leaves_nothing(tmp_path: Path, log: Path, number: signal.Signals) -> None:
    """An interrupted run exits with 130 in one line, and neither output, draft nor JVM is left."""
    process = _process("evaluate", "--config", _config(tmp_path, log), "--output", tmp_path / "o", **_java())
    assert process.stderr is not None
    # Ctrl-C in the middle of a job, SIGTERM while Spark starts.
    awaited = "reading" if number is signal.SIGINT else "starting Spark"
    for line in process.stderr:
        if awaited in line:
            break
    time.sleep(0.5)

    # As a terminal does: everything the command has started gets it.
    os.killpg(process.pid, number)
    _, err = process.communicate(timeout=120)

    assert process.returncode == 130, err
    assert err.splitlines() == ["interrupted; nothing was written"]
    assert _names(tmp_path) == ["evaluation.toml"]


def _java() -> dict[str, str]:
    return {"JAVA_HOME": os.environ["JAVA_HOME"]} if "JAVA_HOME" in os.environ else {}
