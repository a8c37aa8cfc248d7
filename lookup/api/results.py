"""Hold a finished evaluation for a program or a notebook: its folder, its figures as tables, its page."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, fields
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pyarrow import fs as arrow_fs

from lookup.api.arguments import require_path
from lookup.api.files import OUTPUTS, PAGE_PACKAGES
from lookup.api.frames import read_frame
from lookup.api.outputs import data_frame
from lookup.errors import SettingsError
from lookup.logs.outputs import draft
from lookup.logs.schema import CELLS, CYCLES, DECISIONS, FLOWS, OWNERS, QUARANTINE
from lookup.logs.sources import locate
from lookup.model.quoting import quantity, suggestion
from lookup.replay.outcome import Finding
from lookup.report.cards import sentences
from lookup.report.comparison import NOTHING
from lookup.report.document import figure_table
from lookup.report.folder import read_run
from lookup.report.markdown import markdown_report
from lookup.report.wording import conclusion, legend
from lookup.score.scoring import Fidelity, Scored
from lookup.score.summary import METRICS, metric_rows, summary
from lookup.score.verdict import Winner

if TYPE_CHECKING:
    import pandas as pd

    from lookup.report.drawing import Drawing

__all__ = ["Evaluation", "open_run"]


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
        return data_frame(metric_rows(self.scored), METRICS.names)

    @property
    def verdicts(self) -> pd.DataFrame:
        """Return the verdict of every comparison with the incumbent; columns as in `summary.json`."""
        return data_frame(summary(self.scored)["verdicts"])

    @property
    def decisions(self) -> pd.DataFrame:
        """Return every decision with its odds: the table DECISIONS, which may be large."""
        return read_frame(self.folder, "decisions", DECISIONS)

    @property
    def owners(self) -> pd.DataFrame:
        """Return who owned which bundle, from when to when: the table OWNERS, which may be large."""
        return read_frame(self.folder, "owners", OWNERS)

    @property
    def cycles(self) -> pd.DataFrame:
        """Return how each cycle of a shedder ended: the table CYCLES."""
        return read_frame(self.folder, "cycles", CYCLES)

    @property
    def cells(self) -> pd.DataFrame:
        """Return the weight that each broker served in each balance cell: the table CELLS."""
        return read_frame(self.folder, "cells", CELLS)

    @property
    def flows(self) -> pd.DataFrame:
        """Return the weight between places of clients and of brokers: the table FLOWS."""
        return read_frame(self.folder, "flows", FLOWS)

    @property
    def quarantine(self) -> pd.DataFrame:
        """Return the rows of all inputs that could not be used, each with its reason."""
        return read_frame(self.folder, "quarantine", QUARANTINE)

    @property
    def findings(self) -> pd.DataFrame:
        """Return what in the settings had no effect on the log: what, how often, evidence and remedy."""
        findings = self.scored.inputs.findings or ()
        return data_frame(map(asdict, findings), [field.name for field in fields(Finding)])

    @property
    def winners(self) -> pd.DataFrame:
        """Return the advantage that luck gives the best of several candidates in a figure; as in `summary.json`."""
        return data_frame(summary(self.scored)["winners"], [field.name for field in fields(Winner)])

    @property
    def fidelity(self) -> pd.DataFrame:
        """Return the logged figures beside those of the incumbent replayed over the log; as in `summary.json`."""
        return data_frame(summary(self.scored)["fidelity"], [field.name for field in fields(Fidelity)])

    @property
    def manifest(self) -> dict[str, Any]:
        """Return `manifest.json`: the settings with their sources, fingerprints of the inputs, versions and times."""
        return dict(read_run(self.folder).manifest)

    def document(self) -> dict[str, Any]:
        """Return `summary.json`: all figures and verdicts, what was read, and what is to be known of both."""
        return dict(read_run(self.folder).summary)

    @property
    def report(self) -> str:
        """Return the report as Markdown."""
        return markdown_report(self.scored)

    def page(self) -> str:
        """Return the report as one HTML page with all charts.

        Raises:
            SettingsError: if what draws it is not installed.
        """
        require_page_packages("the page needs")
        from lookup.report.page import html_report

        return html_report(read_run(self.folder))

    @property
    def charts(self) -> dict[str, Drawing]:
        """Return the charts of the page by name, as Altair charts: `trade`, `delta`, `load`, `moves` and so on."""
        require_page_packages("charts need")
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
        require_page_packages("charts need")
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


def open_run(run: str | os.PathLike[str]) -> Evaluation:
    """Return a finished evaluation: its figures, tables and charts, read out of its folder.

    Args:
        run: folder or URI that `evaluate` has written.

    Raises:
        InputError: if it is none, or one of another version.
    """
    require_path("run", run)
    return Evaluation(os.fspath(run), read_run(os.fspath(run)).scored)


def require_page_packages(what: str) -> None:
    """Refuse to draw without the packages that draw.

    Raises:
        SettingsError: naming the first that is missing.
    """
    missing = [package for package in PAGE_PACKAGES if find_spec(package) is None]
    if missing:
        raise SettingsError(f"{what} {missing[0]}: install it with pip install 'pulsar-lookup[report]'")
