"""The file in docs/airflow.md does in Airflow what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lookup.cli import main

pytestmark = pytest.mark.cluster

_ROOT = Path(__file__).parents[1]
_SETTINGS = """
[evaluation]
incumbent = "{incumbent}"
default_bundles = 16
balance_s = 300

[inputs]
lookups = "log/lookups"
brokers = "log/brokers"
ownership = "log/ownership"

[verdict]
block_s = 300
primary = ["match_ratio:rack"]

[[policies]]
name = "stock"
selector = "least-resource-usage"

[[policies]]
name = "rack"
scorers = ["property-match"]
selector = "best"
"""


@pytest.fixture(scope="module")
def airflow() -> str:
    """Return the command of Airflow; skip if it cannot be had."""
    got = subprocess.run([_ROOT / "scripts" / "ensure-airflow.sh"], capture_output=True, text=True, check=False)
    if got.returncode != 0:
        pytest.skip(got.stderr.strip())
    return got.stdout.strip()


@pytest.mark.parametrize(("incumbent", "code"), [("stock", 0), ("rack", 1)])
def test_task_ends_as_the_verdict_says(airflow: str, tmp_path: Path, incumbent: str, code: int) -> None:
    """A candidate that is worse fails the task, and the one behind it does not run."""
    dags, share = tmp_path / "dags", tmp_path / "share"
    dags.mkdir()
    page = (_ROOT / "docs" / "airflow.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    here = block.replace("/opt/lookup/bin", str(Path(sys.executable).parent)).replace("/share", str(share))
    (dags / "placement.py").write_text(here)
    assert (
        main(["generate", "--output", str(share / "log"), "--lookups", "10000", "--clusters", "1", "--hours", "2"]) == 0
    )
    (share / "evaluation.toml").write_text(_SETTINGS.format(incumbent=incumbent))
    variables = os.environ | {
        "AIRFLOW_HOME": str(tmp_path / "home"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }
    subprocess.run([airflow, "db", "migrate"], env=variables, capture_output=True, check=True)

    done = subprocess.run(
        [airflow, "dags", "test", "placement", "2026-01-04"], env=variables, capture_output=True, text=True, check=False
    )

    said = done.stdout + done.stderr
    assert done.returncode == code, said
    assert (share / "runs" / "2026-01-04" / "summary.json").exists()
    assert ("exit code 3" in said) == (code == 1), said
    assert ("no candidate is worse: " in said) == (code == 0), said
