"""Draw the page at `/` of a decision server: how it stands, its shadow and its latest decisions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from lookup.model.quoting import quantity
from lookup.model.time import US_PER_S, moment_at
from lookup.report.blocks import Block, Bullets, Cell, Definitions, Paragraph, Section, Table
from lookup.report.html import html_page
from lookup.serve.overview import Overview

__all__ = ["html_overview"]

#: Characters of a topic or of properties in a table: a client may send thousands.
_LONGEST = 200


def html_overview(overview: Overview) -> str:
    """Write the page: still, so that it needs no script, and of the same form as `report.html`."""
    content = [
        Section("answer", "How it stands", list(_standing(overview))),
        Section("shadow", "In shadow", list(_shadow(overview))),
        Section("decisions", "Latest decisions", list(_decisions(overview))),
    ]
    return html_page(
        content,
        is_still=True,
        title="Decision server",
        period=_moment(overview.now_us),
        version=overview.version,
        clusters=[overview.cluster],
        source="`/metrics`",
    )


def _standing(overview: Overview) -> Iterator[Block]:
    policy = "Lookups are recorded, no policy decides" if overview.policy is None else f"`{overview.policy}` decides"
    yield Paragraph(f"{policy}; {'failing' if overview.problems else 'healthy'}", "lead")
    if overview.problems:
        yield Bullets(overview.problems)
    own = f"pulsar-lookup {overview.version}"
    plugins = [f"{name} {version}" for name, version in overview.plugins.items() if version != own]
    served_s = (overview.now_us - overview.started_us) / US_PER_S
    lost = f", {overview.lost:,} lost" if overview.lost else ""
    facts = [
        ("Policies", f"with all parameters `{overview.settings}`, a document in `settings` of the record"),
        ("Versions", ", ".join([own, *plugins])),
        ("Since", f"{_moment(overview.started_us)}, {_span(served_s)}"),
        ("Record", f"{quantity(overview.recorded, 'lookup')}; {quantity(overview.pending, 'row')} wait{lost}"),
    ]
    if overview.owners is not None:
        bundles, lag_s = overview.owners
        facts.append(("Owners", f"of {quantity(bundles, 'bundle')}; the latest change took {lag_s:.3g} s to get here"))
    yield Definitions(facts)


def _shadow(overview: Overview) -> Iterator[Block]:
    if not overview.agreement:
        yield Paragraph("No policy has been asked in shadow.")
        return
    rows = [
        (policy, f"{same:,}", f"{other:,}", f"{same / (same + other):.1%}")
        for policy, (same, other) in overview.agreement.items()
    ]
    heads = ("policy", "same broker", "another", "agreement")
    yield Table(heads, rows, "agreement", "Answers since the start")


def _decisions(overview: Overview) -> Iterator[Block]:
    if not overview.decisions:
        yield Paragraph("None since the start.")
        return
    rows = [
        (
            f"{moment_at(decision.ts_us):%m-%d %H:%M:%S}",
            Cell(_short(decision.topic), _short(_json(decision.properties))),
            "declined" if decision.broker is None else Cell(decision.broker, f"odds {decision.propensity:.3g}"),
            decision.asked,
            decision.name,
        )
        for decision in overview.decisions
    ]
    heads = ("at, UTC", "topic and properties", "named", "asked by", "decision")
    yield Table(heads, rows, "latest", "The latest first", texts=range(len(heads)))
    yield Paragraph("`/explain/` and the name of a decision takes it apart.", "note")


def _json(properties: Mapping[str, str]) -> str:
    return json.dumps(dict(properties), ensure_ascii=False) if properties else ""


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _moment(us: int) -> str:
    return f"{moment_at(us):%Y-%m-%d %H:%M:%S} UTC"


def _span(seconds: float) -> str:
    """Write a span of time in its two largest units."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    units = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    first = next((place for place, (count, _) in enumerate(units) if count), len(units) - 1)
    return " ".join(f"{count} {unit}" for count, unit in units[first : first + 2])
