"""Commands of `lookup` as they are typed, and what two of their outputs differ in."""

from __future__ import annotations

import filecmp
import os
import subprocess
import sys
from pathlib import Path

__all__ = ["ROOT", "differences", "evaluation", "lookup"]

ROOT = Path(__file__).parents[2]
#: What says when and where a run was made.
_ABOUT_THE_RUN = frozenset({"manifest.json", "report.html"})


def lookup(*arguments: str, variables: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command of `lookup` from the root of the project, to its end."""
    return subprocess.run(
        [sys.executable, "-m", "lookup", *arguments],
        cwd=ROOT,
        env=variables or dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )


def evaluation(sample: str | Path, output: str | Path, config: str = "configs/evaluation.toml") -> list[str]:
    """Return the words of an evaluation of a log that `lookup generate` made; paths or URIs."""
    tables = [f"inputs.{name}={sample}/{name}" for name in ("lookups", "brokers", "loads", "bundles", "ownership")]
    settings = [word for table in tables for word in ("--set", table)]
    return ["evaluate", config, *settings, "--output", str(output)]


def differences(one: Path, other: Path) -> list[str]:
    """Return the files of two outputs that are not equal byte by byte."""
    names = {
        str(file.relative_to(folder)) for folder in (one, other) for file in folder.rglob("*") if file.is_file()
    } - _ABOUT_THE_RUN
    assert any(name.endswith(".parquet") for name in names), names
    _, unequal, missing = filecmp.cmpfiles(one, other, sorted(names), shallow=False)
    return unequal + missing
