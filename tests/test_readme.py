"""What README.md prints of the demo is what the demo prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from lookup.cli import main
from tests.pages import ROOT, block, page

_README = page("README.md")
_CONFIG = str(ROOT / "configs" / "evaluation.toml")
_INPUTS = ("lookups", "brokers", "loads", "bundles", "ownership")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the sample log as `make demo` does."""
    output = tmp_path_factory.mktemp("demo") / "sample"

    assert main(["generate", "--output", str(output)]) == 0
    return output


def _flags(sample: Path) -> list[str]:
    return [word for name in _INPUTS for word in ("--set", f"inputs.{name}={sample / name}")]


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_the_comparison_in_the_readme_is_that_of_the_demo(
    sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The answer, how sure it is, and the next step."""
    code = main(["evaluate", _CONFIG, "--output", str(tmp_path / "report"), *_flags(sample)])
    captured = capsys.readouterr()
    printed = captured.out.replace(str(tmp_path / "report"), "report").splitlines()

    assert code == 0, captured.err
    shown = block(_README, "<!-- compared by tests/test_readme.py -->").splitlines()
    assert shown == [line for line in printed if line in shown]
