"""What README.md prints of the demo is what the demo prints."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from lookup.cli import main

_ROOT = Path(__file__).parent.parent
_README = (_ROOT / "README.md").read_text(encoding="utf-8")
_CONFIG = str(_ROOT / "configs" / "evaluation.toml")
_INPUTS = ("lookups", "brokers", "loads", "bundles", "ownership")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the sample log as `make demo` does."""
    output = tmp_path_factory.mktemp("demo") / "sample"

    assert main(["generate", "--output", str(output)]) == 0
    return output


def _flags(sample: Path) -> list[str]:
    return [word for name in _INPUTS for word in ("--set", f"inputs.{name}={sample / name}")]


def _block(before: str) -> list[str]:
    """Return the lines of the block behind a text."""
    block = re.search(r"```\w*\n(.*?)^```", _README[_README.index(before) :], re.MULTILINE | re.DOTALL)
    assert block is not None
    return block[1].splitlines()


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_the_comparison_in_the_readme_is_that_of_the_demo(
    sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every line of the shortened output is printed, and they stand in the same order."""
    code = main(["evaluate", _CONFIG, "--output", str(tmp_path / "report"), *_flags(sample)])
    captured = capsys.readouterr()
    printed = captured.out.replace(str(tmp_path / "report"), "report").splitlines()
    shown = [line for line in _block("<!-- compared by tests/test_readme.py -->") if not line.startswith("+")]

    assert code == 0, captured.err
    # Of the candidates that do not fit beside the first ones there is a second table.
    assert shown == list(dict.fromkeys(line for line in printed if line in shown))
    assert len(shown) == 14
    _assert_interval_is_quoted(tmp_path / "report" / "summary.json")


def _assert_interval_is_quoted(summary: Path) -> None:
    """What the page says of the locality of `rebalance` is the verdict's interval, in points."""
    wanted = {"policy": "rebalance", "metric": "match_ratio", "key": "rack", "verdict": "better"}
    figures = json.loads(summary.read_text(encoding="utf-8"))["figures"]
    (row,) = (row for row in figures if wanted.items() <= row.items())

    assert f"(95 % interval {100 * row['change_low']:.1f} to {100 * row['change_high']:.1f})" in _README


def test_the_explanation_in_the_readme_is_that_of_the_command(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table of odds and scores is printed line by line."""
    command = re.search(r"^\$ lookup (explain .*?)\n\.\.\.", _README, re.MULTILINE | re.DOTALL)
    assert command is not None
    words = command[1].replace("\\\n", " ").replace("configs/evaluation.toml", _CONFIG).split()

    assert main([*words, *_flags(sample)]) == 0
    printed = capsys.readouterr().out
    table = [line for line in _block("**Why this broker?**") if line.startswith(("|", "+"))]
    assert "\n".join(table) in printed
