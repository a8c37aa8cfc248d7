"""Write `report.html`: a run as one page."""

from __future__ import annotations

from lookup.model.quoting import quantity
from lookup.model.time import moment_at
from lookup.report.document import sections
from lookup.report.figures import Run
from lookup.report.html import html_page
from lookup.report.sentences import ranked

__all__ = ["html_report"]


def html_report(run: Run, *, folder: str | None = None) -> str:
    """Write the whole page."""
    inputs, period = run.results.inputs, ""
    if inputs.first_us is not None and inputs.last_us is not None:
        begin, end = moment_at(inputs.first_us), moment_at(inputs.last_us)
        until = f"{end:{'%H:%M' if begin.date() == end.date() else '%Y-%m-%d %H:%M'}}"
        period = f"{begin:%Y-%m-%d %H:%M} to {until} UTC"
    replayed = "a log" if inputs.lookups is None else quantity(inputs.lookups, "lookup")
    return html_page(
        sections(run.results, folder or run.path, run),
        title="Placement policies compared",
        period=period,
        version=run.manifest["versions"]["pulsar-lookup"],
        incumbent=run.results.incumbent,
        candidates=ranked(run.results),
        replayed=f"{replayed}, {quantity(len(run.results.seeds), 'seed')}",
        clusters=run.results.clusters,
        source="`summary.json` beside it, or counted from the tables there",
    )
