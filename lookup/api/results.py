"""Hold a finished evaluation for a program or a notebook: its folder, its figures as tables, its page."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from pyarrow import fs as arrow_fs

from lookup.api.files import OUTPUTS, PAGE_PACKAGES
from lookup.errors import SettingsError
from lookup.logs.outputs import draft
from lookup.logs.sources import locate
from lookup.model.quoting import quantity, suggestion
from lookup.report.cards import sentences
from lookup.report.comparison import NOTHING
from lookup.report.document import figure_table
from lookup.report.folder import read_run
from lookup.report.markdown import markdown_report
from lookup.report.wording import conclusion, legend
from lookup.score.scoring import Scored
from lookup.score.summary import METRICS, metric_rows, summary

if TYPE_CHECKING:
    # A command does not load it: 0.3 s.
    import pandas as pd

    from lookup.report.drawing import Drawing

__all__ = ["Evaluation"]


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """A finished evaluation."""

    #: of its results
    folder: str
    #: all figures and verdicts, as the reports have them
    scored: Scored

    @property
    def exit_code(self) -> int:
        """Return 0; 3 if a candidate is worse on a primary metric; 4 if a guard, or a required decision, is open."""
        return self.scored.exit_code

    @property
    def conclusion(self) -> str:
        """Return the sentence behind the exit code, and how many primary comparisons are undecided, if any."""
        return conclusion(self.scored)

    @property
    def metrics(self) -> pd.DataFrame:
        """Return every figure with its interval; columns as in `metrics.parquet`, NaN where there is none."""
        return _frame(metric_rows(self.scored), METRICS.names)

    @property
    def verdicts(self) -> pd.DataFrame:
        """Return the verdict of every comparison with the incumbent; columns as in `summary.json`."""
        return _frame(summary(self.scored)["verdicts"])

    @property
    def decisions(self) -> pd.DataFrame:
        """Return every decision with its odds: the table DECISIONS, which may be large."""
        return self._table("decisions")

    @property
    def owners(self) -> pd.DataFrame:
        """Return who owned which bundle, from when to when: the table OWNERS, which may be large."""
        return self._table("owners")

    @property
    def report(self) -> str:
        """Return the report as Markdown."""
        return markdown_report(self.scored)

    def page(self) -> str:
        """Return the report as one HTML page with all charts.

        Raises:
            SettingsError: if what draws it is not installed.
        """
        _require_page_packages("the page needs")
        from lookup.report.page import html_report

        return html_report(read_run(self.folder))

    @property
    def charts(self) -> dict[str, Drawing]:
        """Return the charts of the page by name, as Altair charts: `trade`, `delta`, `load`, `moves` and so on.

        Raises:
            SettingsError: if what draws them is not installed.
        """
        _require_page_packages("charts need")
        from lookup.report.drawing import draw, drawable

        run = read_run(self.folder)
        return {name: draw(run, chart) for name, chart in drawable(run).items()}

    def chart(self, name: str, *, policy: str | None = None, cluster: str | None = None) -> Drawing:
        """Return one chart of the page, an Altair chart.

        Args:
            name: of the chart, as in `charts`.
            policy: drawn beside the incumbent in a chart over time and in a matrix; default: the first candidate.
            cluster: the same; default: the first.

        Raises:
            SettingsError: if there is no such chart, policy or cluster, or if what draws it is not installed.
        """
        _require_page_packages("charts need")
        from lookup.report.drawing import draw, drawable

        run = read_run(self.folder)
        charts = drawable(run)
        if name not in charts:
            raise SettingsError(f"name: the run has no chart {name!r}; {suggestion(name, list(charts))}")
        return draw(run, charts[name], policy=policy, cluster=cluster)

    def write(self, output: str | os.PathLike[str], *, force: bool = False) -> None:
        """Copy all results into a folder.

        Args:
            output: must not exist or be empty.
            force: replace earlier results there.

        Raises:
            InputError: if the output cannot be written.
        """
        with draft(os.fspath(output), OUTPUTS, force=force) as target:
            (here, folder), (there, copy) = locate(self.folder), locate(target.path)
            arrow_fs.copy_files(folder, copy, here, there)

    def __repr__(self) -> str:
        """Return the policies, how much was replayed, and the conclusion, in a few lines at most."""
        sizes = [quantity(len(self.scored.clusters), "cluster")]
        if self.scored.inputs.lookups is not None:
            sizes.append(quantity(self.scored.inputs.lookups, "lookup"))
        policies = ", ".join([f"{self.scored.incumbent} (incumbent)", *self.scored.candidates])
        return f"<Evaluation of {policies}; {', '.join(sizes)}: {self.conclusion}>"

    def _repr_html_(self) -> str:
        """Return the comparison as a table, for a notebook."""
        table = figure_table(self.scored)
        head = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
        rows = "".join(
            f"<tr><th>{escape(name.text)}</th><td>{escape(unit.text)}</td>"
            + "".join(f'<td title="{escape(cell.detail or NOTHING)}">{escape(cell.text)}</td>' for cell in cells)
            + "</tr>"
            for name, unit, *cells in table.cells
        )
        return (
            "".join(f"<p>{escape(text)}</p>" for text in sentences(self.scored))
            + f"<p><strong>{escape(self.conclusion)}</strong></p>"
            + f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table><p>{escape(legend())}</p>"
        )

    def _table(self, name: str) -> pd.DataFrame:
        system, folder = locate(self.folder)
        table: pd.DataFrame = pq.read_table(f"{folder}/{name}", filesystem=system, partitioning=None).to_pandas()
        return table


def _frame(rows: Sequence[Mapping[str, object]], columns: list[str] | None = None) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=columns)


def _require_page_packages(what: str) -> None:
    missing = [package for package in PAGE_PACKAGES if find_spec(package) is None]
    if missing:
        raise SettingsError(f"{what} {missing[0]}: install it with pip install 'pulsar-lookup[report]'")
