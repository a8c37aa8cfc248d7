"""`lookup plan`: what it prints and writes, its exit codes, and mistakes in its flags."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lookup.cli import main
from tests.moving.worlds import World, broker


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The record of a crowded cluster."""
    return str(World.crowded().write(tmp_path_factory.mktemp("plan") / "record"))


def test_a_plan_is_printed_and_written(record: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The headline says how many moves there are."""
    code = main(["plan", "--record", record, "--max-moves", "3", "--output", str(tmp_path / "plan")])
    printed = capsys.readouterr()

    assert code == 0
    assert printed.out.startswith("cluster east, 2026-11-26 12:09:00 UTC: 3 moves")
    assert "nothing was moved" in printed.err
    assert json.loads((tmp_path / "plan" / "plan.json").read_text())["limits"]["max_moves"] == 3


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [(["--lookups", "nowhere"], "--lookups: nowhere: "), (["--namespaces", "{wrong}"], "{wrong}: tune: ")],
)
def test_wrong_files_are_found_before_a_cluster_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], sentence: str
) -> None:
    """Nothing is there to be asked."""
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("[tune]\n")
    (tmp_path / "cluster.toml").write_text('[cluster]\nadmin = "http://b:1"\nservice_url = "pulsar://b:1"\n')

    assert (
        main(["plan", "--cluster", str(tmp_path / "cluster.toml"), *(flag.format(wrong=wrong) for flag in flags)]) == 2
    )
    assert sentence.format(wrong=wrong) in capsys.readouterr().err


def test_an_earlier_plan_goes_only_if_that_is_said(
    record: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it was stays until then, and the cluster is not read in vain."""
    words = ["plan", "--output", str(tmp_path / "plan"), "--record"]
    main([*words, record])
    before = (tmp_path / "plan" / "plan.json").read_bytes()

    refused = main([*words, "nowhere"])
    sentence = capsys.readouterr().err
    kept = (tmp_path / "plan" / "plan.json").read_bytes()

    assert (refused, kept) == (2, before)
    assert "is not empty" in sentence
    assert main([*words, record, "--max-moves", "1", "--force"]) == 0
    assert (tmp_path / "plan" / "plan.json").read_bytes() != before


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ("record/brokers", "lies in {folder}/record, which"),
        ("record", "is {folder}/record, which is --record"),
        ("", "holds {folder}/record, which is --record"),
        ("served/lookups", "is {folder}/served/lookups, which is --lookups"),
        ("rules", "holds {folder}/rules/policy.toml, which"),
        ("rules", "holds {folder}/rules/namespaces.toml, which"),
    ],
)
def test_a_plan_is_not_written_into_what_it_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], output: str, sentence: str
) -> None:
    """An output that is an input, lies in one or holds one is refused, and nothing is written."""
    record = World.crowded().write(tmp_path / "record")
    (tmp_path / "served" / "lookups").mkdir(parents=True)
    (tmp_path / "rules").mkdir()
    given = {"lookups": "served/lookups", "policy": "rules/policy.toml", "namespaces": "rules/namespaces.toml"}
    for name in ("policy", "namespaces"):
        (tmp_path / given[name]).touch()
    words = [word for name, path in given.items() for word in (f"--{name}", str(tmp_path / path))]
    files = sorted(tmp_path.rglob("*"))

    code = main(["plan", "--record", str(record), *words, "--output", str(tmp_path / output), "--force"])

    assert code == 2
    assert sentence.format(folder=tmp_path) in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == files


def test_a_program_gets_the_document(record: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing else on stdout."""
    code = main(["plan", "--record", record, "--drain", "broker-1", "--format", "json", "--quiet"])

    document = json.loads(capsys.readouterr().out)
    assert code == 0
    assert document["limits"]["drain"] == [broker(1)]
    assert {step["from"] for step in document["steps"] if step["reason"] == "drain"} == {broker(1)}


def test_a_plan_is_shown_again(record: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By its folder or its file, as it was printed when it was made."""
    folder = tmp_path / "plan"
    main(["plan", "--record", record, "--output", str(folder)])
    made = capsys.readouterr().out

    for path in (folder, folder / "plan.json"):
        assert main(["plan", "show", str(path)]) == 0
        assert capsys.readouterr().out == made


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--cluster", "shipped:cluster", "--at", "2026-01-01T00:00:00Z"], "--at: is an instant"),
        (["--record", "{record}", "--at", "2026-01-01T00:00:00Z"], "--at: 2026-01-01T00:00:00Z is outside"),
        (["--record", "{record}", "--wait", "5m"], "--wait: "),
        (["--record", "nowhere"], "--record: nowhere/brokers: "),
        (["--record", "{record}", "--drain", "broker-4"], "broker 'broker-4'"),
        (["--record", "{record}", "--only", "shop"], "bundle of namespace 'shop'"),
        (["--record", "{record}", "--max-moves", "0"], "--max-moves: 0 is"),
        (["--record", "{record}", "--policy", "shipped:rack-only"], "--policy: rack-only"),
        (["--cluster", "no.toml"], "no.toml: there is no such file"),
    ],
)
def test_mistakes_are_one_sentence_and_nothing_is_printed(
    record: str, flags: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, stdout empty, and no output was begun."""
    words = [flag.format(record=record) for flag in flags]

    code = main(["plan", *words, "--output", str(tmp_path / "plan"), "--quiet"])

    printed = capsys.readouterr()
    assert (code, printed.out) == (2, "")
    assert sentence.format(record=record) in printed.err
    assert len(printed.err.splitlines()) == 1
    assert not (tmp_path / "plan").exists()
