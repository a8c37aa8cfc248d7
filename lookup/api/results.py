"""Hold a finished evaluation for a program or a notebook, with its folder, figures and page, and compare two."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, fields
from html import escape
from typing import TYPE_CHECKING, Any

from pyarrow import fs as arrow_fs

from lookup.api.arguments import require_path
from lookup.api.frames import read_frame
from lookup.api.outputs import OUTPUTS, PAGE_PACKAGE, can_draw, data_frame
from lookup.errors import SettingsError
from lookup.logs.outputs import draft
from lookup.logs.schema import CELLS, CYCLES, DECISIONS, FLOWS, OWNERS, QUARANTINE
from lookup.logs.sources import locate
from lookup.model.quoting import quantity
from lookup.replay.outcome import Finding
from lookup.report.compare import Difference, compare_runs
from lookup.report.document import figure_table, first_figures
from lookup.report.figures import Results, read_run
from lookup.report.markdown import markdown_report
from lookup.report.numbers import NOTHING
from lookup.report.sentences import answer, conclusion, legend
from lookup.score.figures import figures_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Evaluation", "diff", "open_run"]


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """A finished evaluation."""

    #: of its results
    folder: str
    #: its figures with their verdicts, and the other contents of reports
    results: Results

    @property
    def exit_code(self) -> int:
        """The exit code, 3 if a primary metric is worse, 4 if a guard or required decision is open, else 0."""
        return self.results.exit_code

    @property
    def answer(self) -> str:
        """The recommendation to switch, to keep the incumbent, or that this log cannot decide, with the reason."""
        return answer(self.results).sentence

    @property
    def conclusion(self) -> str:
        """The reason for the exit code, and the number of undecided primary comparisons, if any."""
        return conclusion(self.results)

    @property
    def figures(self) -> pd.DataFrame:
        """The table FIGURES, as in `metrics.parquet`, with the interval and verdict of every figure.

        Rows of one `scope` add up to the whole demand, as in `figures[figures.scope == "all clusters"]`.
        """
        frame: pd.DataFrame = figures_table(self.results.figures).to_pandas()
        return frame

    @property
    def decisions(self) -> pd.DataFrame:
        """The table DECISIONS with every decision and its odds, which may be large."""
        return read_frame(self.folder, "decisions", DECISIONS)

    @property
    def owners(self) -> pd.DataFrame:
        """The table OWNERS with the owner of each bundle over time, which may be large."""
        return read_frame(self.folder, "owners", OWNERS)

    @property
    def cycles(self) -> pd.DataFrame:
        """The table CYCLES with the outcome of each cycle of a shedder."""
        return read_frame(self.folder, "cycles", CYCLES)

    @property
    def cells(self) -> pd.DataFrame:
        """The table CELLS with the weight that each broker served in each balance cell."""
        return read_frame(self.folder, "cells", CELLS)

    @property
    def flows(self) -> pd.DataFrame:
        """The table FLOWS with the weight between places of clients and of brokers."""
        return read_frame(self.folder, "flows", FLOWS)

    @property
    def quarantine(self) -> pd.DataFrame:
        """The rows of all inputs that could not be used, each with its reason."""
        return read_frame(self.folder, "quarantine", QUARANTINE)

    @property
    def findings(self) -> pd.DataFrame:
        """The settings without effect on the log, each with kind, count, evidence and remedy."""
        findings = self.results.inputs.findings or ()
        return data_frame(map(asdict, findings), [field.name for field in fields(Finding)])

    @property
    def manifest(self) -> dict[str, Any]:
        """The contents of `manifest.json`, such as versions, times, settings with sources, and input fingerprints."""
        return dict(read_run(self.folder).manifest)

    def document(self) -> dict[str, Any]:
        """Return `summary.json`, with all figures and verdicts, the inputs, and cautions about both."""
        return dict(read_run(self.folder).summary)

    @property
    def report(self) -> str:
        """The report as Markdown."""
        return markdown_report(self.results)

    def page(self) -> str:
        """Render the report as one HTML page with all charts.

        Raises:
            SettingsError: if its drawing code is not installed.
        """
        if not can_draw():
            raise SettingsError(f"the page needs {PAGE_PACKAGE}: install it with pip install 'pulsar-lookup[report]'")
        from lookup.report.page import html_report

        return html_report(read_run(self.folder))

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
        """Show the policies, the size of the replay, and the conclusion, in a few lines at most."""
        sizes = [quantity(len(self.results.clusters), "cluster")]
        if self.results.inputs.lookups is not None:
            sizes.append(quantity(self.results.inputs.lookups, "lookup"))
        policies = ", ".join([f"{self.results.incumbent} (incumbent)", *self.results.candidates])
        return f"<Evaluation of {policies}; {', '.join(sizes)}: {self.conclusion}>"

    def _repr_html_(self) -> str:
        table = figure_table(self.results, first_figures(self.results))
        head = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
        rows = "".join(
            f"<tr><th>{escape(name.text)}</th><td>{escape(unit.text)}</td>"
            + "".join(f'<td title="{escape(cell.detail or NOTHING)}">{escape(cell.text)}</td>' for cell in cells)
            + "</tr>"
            for name, unit, *cells in table.cells
        )
        return (
            f"<p><strong>{escape(self.answer)}</strong></p><p>{escape(self.conclusion)}</p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table><p>{escape(legend())}</p>"
        )


def open_run(run: str | os.PathLike[str]) -> Evaluation:
    """Open a finished evaluation, whose figures and tables are read from its folder.

    Args:
        run: folder or URI that `evaluate` has written.

    Raises:
        InputError: if it is not an evaluation, or is of another version.
    """
    require_path("run", run)
    return Evaluation(os.fspath(run), read_run(os.fspath(run)).results)


def diff(first: str | os.PathLike[str] | Evaluation, second: str | os.PathLike[str] | Evaluation) -> Difference:
    """Compare two finished evaluations by different settings and by figures of the policies in both.

    Args:
        first: folder or URI that `evaluate` has written, or the object it has returned.
        second: another one. Changes are from the first to this one.

    Raises:
        InputError: if one is not an evaluation, or is of another version.
    """
    before, after = (
        read_run(run.folder if isinstance(run, Evaluation) else require_path(name, run))
        for name, run in (("first", first), ("second", second))
    )
    return compare_runs(before, after)
