"""The process that Spark's Python workers of this machine are forked from, with the modules of a replay loaded before.

Spark starts it in place of `pyspark.daemon`. It puts `pyspark.zip` first on the path, whose modules have no bytecode
and are compiled anew at every start, for some 0.6 s; the installed package beside it is the same and has its own.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["without_archives"]


def without_archives(path: list[str], spark_home: str | None) -> list[str]:
    """Return a module path without Spark's own archives if Spark is the installed package itself."""
    if spark_home is None or not (Path(spark_home) / "__init__.py").exists():
        return path
    archives = Path(spark_home) / "python" / "lib"
    return [entry for entry in path if Path(entry).parent != archives]


if __name__ == "__main__":
    sys.path[:] = without_archives(sys.path, os.environ.get("SPARK_HOME"))

    from pyspark import daemon

    # What tasks name; loaded once, before workers are forked.
    import lookup.replay.shares
    import lookup.replay.tasks  # noqa: F401

    daemon.manager()
