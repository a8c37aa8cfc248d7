"""Compare two finished evaluations."""

from __future__ import annotations

import os

from lookup.api.arguments import require_path
from lookup.api.results import Evaluation
from lookup.report.compare import Difference, compare_runs
from lookup.report.figures import read_run

__all__ = ["diff"]


def diff(first: str | os.PathLike[str] | Evaluation, second: str | os.PathLike[str] | Evaluation) -> Difference:
    """Compare two finished evaluations: settings that differ, and figures of the policies that both have.

    Args:
        first: folder or URI that `evaluate` has written, or what it has returned.
        second: another one; changes are from the first to this one.

    Raises:
        InputError: if one is none, or one of another version.
    """
    before, after = (
        read_run(given.folder if isinstance(given, Evaluation) else require_path(name, given))
        for name, given in (("first", first), ("second", second))
    )
    return compare_runs(before, after)
