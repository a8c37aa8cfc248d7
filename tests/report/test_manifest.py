"""Manifests and fingerprints: what made an output, and whether two inputs are the same."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lookup.engine.plugins import load_plugins
from lookup.errors import InputError
from lookup.report.manifest import RunFacts, fingerprint, manifest_json

FACTS = RunFacts(command=("evaluate", "--force"), exit_code=3, settings={"a": 1}, seeds=(1, 2))


def test_a_manifest_has_what_made_the_output() -> None:
    """Command, exit code, settings, seeds and versions stand in it."""
    found = json.loads(manifest_json(FACTS))

    assert found["command"] == ["lookup", "evaluate", "--force"]
    assert (found["exit_code"], found["settings"], found["seeds"]) == (3, {"a": 1}, [1, 2])
    assert found["versions"]["numpy"] == version("numpy")


_PLUGIN = """
from lookup.hooks import hookimpl


@hookimpl
def lookup_register_scorers():
    return []
"""


def test_plug_in_files_have_a_digest(tmp_path: Path) -> None:
    """A file is known by its content, a distribution by its version."""
    file = tmp_path / "empty_plugin.py"
    digests = []
    for text in ("", "# changed\n"):
        file.write_text(f"{_PLUGIN}{text}")
        plugins = {one["name"]: one for one in json.loads(manifest_json(FACTS, load_plugins([file])))["plugins"]}
        digests.append(plugins["empty_plugin"]["blake2b"])

    assert digests[0] != digests[1]
    assert plugins["builtin"]["origin"] == f"pulsar-lookup {version('pulsar-lookup')}"


def _table(path: Path, rows: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"x": list(range(rows))}), path)


def test_a_fingerprint_counts_files_bytes_and_rows(tmp_path: Path) -> None:
    """Rows come from Parquet's footers; hidden files do not count."""
    _table(tmp_path / "t" / "a.parquet", 3)
    _table(tmp_path / "t" / "b" / "c.parquet", 4)
    (tmp_path / "t" / "_SUCCESS").write_text("")

    found = fingerprint(str(tmp_path / "t"))

    assert (found["files"], found["rows"]) == (2, 7)
    assert found["bytes"] == sum(path.stat().st_size for path in (tmp_path / "t").rglob("*.parquet"))


def test_a_fingerprint_follows_the_content_not_the_place(tmp_path: Path) -> None:
    """Equal files in another folder have the same fingerprint; another row or another name a different one."""
    for name, file, rows in (("t", "a", 3), ("copy", "a", 3), ("more", "a", 4), ("renamed", "b", 3)):
        _table(tmp_path / name / f"{file}.parquet", rows)

    digests = [fingerprint(str(tmp_path / name))["blake2b"] for name in ("t", "copy", "more", "renamed")]

    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def test_a_text_file_has_no_rows(tmp_path: Path) -> None:
    """What is no Parquet is fingerprinted by its bytes."""
    (tmp_path / "log").write_text("a\nb\n")

    found = fingerprint(str(tmp_path / "log"))

    assert (found["files"], found["bytes"], found["rows"]) == (1, 4, None)


def test_a_missing_input_is_refused(tmp_path: Path) -> None:
    """There is no fingerprint of nothing."""
    with pytest.raises(InputError, match="does not exist"):
        fingerprint(str(tmp_path / "nowhere"))
