"""Compare two finished evaluations, and hold what differs as DataFrames."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from lookup.api.arguments import require_path
from lookup.api.outputs import as_html, data_frame
from lookup.api.results import Evaluation
from lookup.model.quoting import quantity
from lookup.report.compare import Change, Difference, compare_runs, difference_markdown, sentences
from lookup.report.figures import read_run

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ComparedRuns", "diff"]

_FIGURES = [*(field.name for field in fields(Change) if field.name != "half"), "delta", "low", "high", "mark"]


@dataclass(frozen=True, eq=False, repr=False)
class ComparedRuns:
    """What differs between two finished evaluations."""

    difference: Difference

    @property
    def settings(self) -> pd.DataFrame:
        """Return the settings that differ, by key path; values as JSON, a dash for a key that a run does not have."""
        rows = (dict(zip(("setting", "first", "second"), row, strict=True)) for row in self.difference.settings)
        return data_frame(rows, ["setting", "first", "second"])

    @property
    def figures(self) -> pd.DataFrame:
        """Return every figure of the policies that both have, `delta` is second - first, with its 95 % interval.

        `better` is the metric's direction; `mark` is ▲ for better, ▼ for worse, ? if the interval holds no change, = if
        one replay is both; `unlike` says why the figures cannot be compared, and there is then no delta.
        """
        return data_frame(map(_row, self.difference.changes), _FIGURES)

    @property
    def changed(self) -> pd.DataFrame:
        """Return the figures that are not the same, as in `figures`."""
        return data_frame(map(_row, self.difference.changed), _FIGURES)

    @property
    def sentences(self) -> list[str]:
        """Return what is to be known above the tables: how much differs, and what cannot be compared."""
        return sentences(self.difference)

    @property
    def report(self) -> str:
        """Return the difference as Markdown, for a comment on a change."""
        return difference_markdown(self.difference)

    def document(self) -> dict[str, Any]:
        """Return all of it as JSON has it; None for what is not known."""
        return self.difference.document()

    def __repr__(self) -> str:
        """Return the two runs, and how many settings and figures differ."""
        found = self.difference
        settings, figures = quantity(len(found.settings), "setting"), quantity(len(found.changed), "figure")
        return f"<Difference of {found.first} and {found.second}: {settings}, {figures}>"

    def _repr_html_(self) -> str:
        """Return the figures that changed, for a notebook."""
        return as_html(" ".join(self.sentences), self.changed)


def diff(first: str | os.PathLike[str] | Evaluation, second: str | os.PathLike[str] | Evaluation) -> ComparedRuns:
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
    return ComparedRuns(compare_runs(before, after))


def _row(change: Change) -> dict[str, Any]:
    row = asdict(change)
    del row["half"]
    delta = change.delta
    return row | {"delta": delta, "low": delta - change.half, "high": delta + change.half, "mark": change.mark}
