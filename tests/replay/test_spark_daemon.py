"""Workers of this machine's Spark are forked from a process that has loaded what they need, from bytecode."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from lookup.replay.spark_daemon import without_archives

_WORKERS = """
import json, sys
from lookup.replay.session import start_context

def look(item):
    import sys
    import pyspark
    return pyspark.__file__, "lookup.replay.tasks" in sys.modules, item

context = start_context("local[2]")
look.__module__ = "__main__"
print(json.dumps(context.parallelize([1, 2], 2).map(look).collect()))
"""


def test_only_archives_beside_an_installed_package_are_left_out(tmp_path: Path) -> None:
    """A Spark that was unpacked by itself has no package but the one in its archive."""
    archive, other = str(tmp_path / "python" / "lib" / "pyspark.zip"), "/site-packages"

    assert without_archives([archive, other], str(tmp_path)) == [archive, other]
    assert without_archives([archive, other], None) == [archive, other]
    (tmp_path / "__init__.py").touch()
    assert without_archives([archive, other], str(tmp_path)) == [other]


@pytest.mark.spark
def test_workers_have_their_modules_from_the_start() -> None:
    """A task finds the replay loaded, and pyspark as it is installed here."""
    done = subprocess.run([sys.executable, "-c", _WORKERS], capture_output=True, text=True, timeout=300, check=False)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[pyspark.__file__, True, item] for item in (1, 2)]
