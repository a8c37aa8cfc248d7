"""Files that would harm a reader or a terminal: every command has one sentence for them, and prints no byte raw."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.projects import EVALUATION, Run, evaluation

_LIMIT = "is nested too deep: at most 64 tables or lists may stand inside one another"
_DEEP = f"x = {'[' * 2_000}{']' * 2_000}\n"


@pytest.mark.parametrize(
    "words",
    [
        "config check FILE",
        "config show FILE",
        "evaluate FILE --output out",
        "explain FILE --topic persistent://t/ns/x",
        "simulate FILE",
        "topics list public/default --config FILE",
        "ingest a --mapping FILE --output out",
    ],
)
def test_a_file_that_is_nested_too_deep_is_one_sentence(lookup: Run, tmp_path: Path, words: str) -> None:
    """For any kind of file."""
    path = tmp_path / "deep.toml"
    path.write_text(_DEEP, encoding="utf-8")

    assert lookup(*words.replace("FILE", str(path)).split()).mistakes == [f"{path}: {_LIMIT}"]


@pytest.mark.parametrize("words", ["config check", "simulate", "config show"])
def test_an_endless_file_is_one_sentence(lookup: Run, words: str) -> None:
    """A device is not read, since it may have no end."""
    assert lookup(*words.split(), "/dev/zero").mistakes[0].startswith("/dev/zero: is a device")


@pytest.mark.parametrize(
    "text",
    [
        EVALUATION + '[topology]\nfile = "deep.toml"\n',
        EVALUATION + '[[brokers]]\nid = "b:1"\nprofile = "deep.toml"\n',
        'policies = ["deep.toml"]\nevaluation = { incumbent = "stock" }\n',
    ],
)
def test_a_file_that_another_names_is_one_sentence(lookup: Run, tmp_path: Path, text: str) -> None:
    """Topology, profile and policies of their own are read by the same rule."""
    (tmp_path / "deep.toml").write_text(_DEEP, encoding="utf-8")

    ran = lookup("config", "check", evaluation(tmp_path, start=text))

    assert ran.mistakes == [f"{tmp_path / 'deep.toml'}: {_LIMIT}"]


@pytest.mark.parametrize("value", [f"{'[' * 2_000}{']' * 2_000}", f"{'[' * 65}1{']' * 65}", "{" * 2_000])
def test_a_flag_that_is_nested_too_deep_is_one_sentence(lookup: Run, tmp_path: Path, value: str) -> None:
    """A flag has the limit that files have."""
    ran = lookup("config", "check", evaluation(tmp_path), "--set", f"evaluation.seeds={value}")

    assert len(ran.mistakes) == 1
    assert ran.mistakes[0].startswith("command line: evaluation.seeds: ") or "evaluation.seeds" in ran.mistakes[0]
    assert len(ran.mistakes[0]) < 300


def _explored(levels: int) -> str:
    selector = '"best"'
    for _ in range(levels):
        selector = f'{{ use = "explore", child = {selector} }}'
    return f'[[policies]]\nname = "deep"\nselector = {selector}\n'


def test_parts_inside_one_another_have_the_limit_of_their_file(lookup: Run, tmp_path: Path) -> None:
    """Sixty wrappers in one another are built, three hundred are a sentence."""
    good, deep = tmp_path / "good", tmp_path / "deep"
    good.mkdir()
    deep.mkdir()

    assert lookup("config", "check", evaluation(good, _explored(60))).code == 0
    path = evaluation(deep, _explored(300))
    assert lookup("config", "check", path).mistakes == [f"{path}: {_LIMIT}"]


def test_an_endless_key_makes_no_endless_line(lookup: Run, tmp_path: Path) -> None:
    """A value that a sentence repeats in full is cut when it is printed, and the sentence says so."""
    path = evaluation(tmp_path, f"[topology.distance_ms]\n{'k' * 50_000} = '?'\n")

    ran = lookup("config", "check", path)

    assert "characters more)" in ran.err
    assert max(map(len, ran.err.splitlines())) < 2_200
