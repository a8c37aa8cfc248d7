"""Write `report.html`: a run as one page."""

from __future__ import annotations

from lookup.model.quoting import quantity
from lookup.model.time import moment_at
from lookup.report.cards import who_is_alike
from lookup.report.folder import Run
from lookup.report.html import html_page
from lookup.report.sections import sections
from lookup.score.scoring import Scored

__all__ = ["html_report"]


def html_report(run: Run, *, folder: str | None = None) -> str:
    """Write the whole page."""
    return html_page(
        sections(run, folder),
        title="Placement policies compared",
        period=_period(run.scored),
        version=run.manifest["versions"]["pulsar-lookup"],
        incumbent=run.scored.incumbent,
        candidates=run.scored.candidates,
        alike=who_is_alike(run.scored),
        replayed=_replayed(run.scored),
        clusters=run.scored.clusters,
        source="`summary.json` beside it, or counted from the tables there",
    )


def _replayed(scored: Scored) -> str:
    evaluation, lookups = scored.plan.evaluation, scored.inputs.lookups
    what = "a log" if lookups is None else quantity(lookups, "lookup")
    return f"{what}, {quantity(len(evaluation.drawn), 'seed')}"


def _period(scored: Scored) -> str:
    """Return from when to when the log was; nothing if that is not known."""
    first, last = scored.inputs.first_us, scored.inputs.last_us
    if first is None or last is None:
        return ""
    begin, end = moment_at(first), moment_at(last)
    return f"{begin:%Y-%m-%d %H:%M} to {end:{'%H:%M' if begin.date() == end.date() else '%Y-%m-%d %H:%M'}} UTC"
