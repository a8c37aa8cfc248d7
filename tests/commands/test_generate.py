"""`lookup generate`: its figures, the manifest, and what it refuses."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lookup.logs.generator.settings import GenerateSettings
from tests.commands.projects import Run

_DOCS = Path(__file__).parents[2] / "docs"

SMALL = ("--lookups", "300", "--clusters", "1", "--hours", "1", "--set", "topics=40", "--set", "clients=30")


def test_every_figure_is_named(lookup: Run) -> None:
    """The help names them all, and the page explains those without a flag."""
    text, page = lookup("generate", "--help").out, (_DOCS / "cli.md").read_text(encoding="utf-8")

    for entry in fields(GenerateSettings):
        assert re.search(rf"\b{entry.name}\b", text)
        assert f"`{entry.name}`" in page or f"--{entry.name} " in text


def test_tables_and_manifest_are_written(lookup: Run, tmp_path: Path) -> None:
    """The tables are there with the rows that are printed, and the manifest says how to make them again."""
    output = tmp_path / "sample"

    ran = lookup("generate", "--output", output, *SMALL, "--seed", "7", "--format", "json")

    printed = json.loads(ran.out)
    manifest = json.loads((output / "manifest.json").read_text())
    assert ran.code == 0
    assert printed["rows"]["lookups"] == pq.read_table(output / "lookups", partitioning=None).num_rows == 300
    assert (manifest["seeds"], manifest["settings"]["topics"]) == ([7], 40)
    assert manifest["command"][:3] == ["lookup", "generate", "--output"]


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--set", "clients=2"), "clients (2)"),
        (("--lookups", "0"), "--lookups is 0, "),
        (
            ("--policy", "ramdom"),
            "--policy is 'ramdom', neither a policy that ships nor a TOML file; did you mean 'random'?",
        ),
        (("--set", "start=soon"), "start: is 'soon'"),
        (("--set", "topic=3"), "did you mean 'topics'?"),
        (("--set", "topics"), "--set: 'topics' should"),
        (("--topics", "5"), "there is no flag --topics"),
        (("--seeds", "1"), "did you mean '--seed'?"),
    ],
)
def test_wrong_figures_are_one_sentence(lookup: Run, tmp_path: Path, flags: tuple[str, ...], sentence: str) -> None:
    """A figure that makes no sense is named with what would; nothing is written."""
    (mistake,) = lookup("generate", "--output", tmp_path / "o", *flags).mistakes

    assert sentence in mistake
    assert list(tmp_path.iterdir()) == []
