"""Write `report.html`: a run as one page that needs no network, under a policy that lets nothing in but its own parts.

The page's own script and style sheet, and Vega's scripts, stand in it whole, each named by its hash in the policy;
specifications and numbers stand in it as data, which no browser runs.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from lookup.model.quoting import one_line, quantity
from lookup.model.time import moment_at
from lookup.report.blocks import Section, charts_of
from lookup.report.cards import who_is_alike
from lookup.report.folder import Run
from lookup.report.sections import sections
from lookup.score.scoring import Scored

__all__ = ["html_page", "html_report"]

_ASSETS = files("lookup.report") / "assets"
#: In the order in which they need each other; the page's own comes last.
_SCRIPTS = ("vega/vega.min.js", "vega/vega-lite.min.js", "vega/vega-embed.min.js", "page.js")
_CODE = re.compile(r"`([^`]+)`")


def html_report(run: Run, *, folder: str | None = None) -> str:
    """Write the whole page.

    Args:
        folder: where the run will be, for commands; default: where it is.
    """
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


def html_page(content: Sequence[Section], **facts: str | Sequence[str]) -> str:
    """Write sections as a page of its own.

    Args:
        facts: what stands around the sections, by its name in the template.
    """
    # A map that lies beside a script is not in the page.
    scripts = [Markup(_text(name).partition("//# sourceMappingURL")[0].rstrip()) for name in _SCRIPTS]
    style = Markup(_text("page.css"))
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_visible
    )
    environment.filters |= {"prose": _prose, "kind": lambda block: type(block).__name__}
    return environment.from_string(_text("page.html.jinja")).render(
        sections=content,
        scripts=scripts,
        style=style,
        data=_data(content),
        policy=_policy(scripts, style),
        **facts,
    )


def _policy(scripts: Iterable[str], style: str) -> str:
    """Return the content-security policy: nothing is loaded, and nothing runs that is not named by its hash."""
    hashes = " ".join(f"'{_hash(script)}'" for script in scripts)
    return f"default-src 'none'; script-src {hashes}; style-src '{_hash(style)}'; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _data(content: Iterable[Section]) -> Markup:
    """Return what charts are drawn from as JSON that no text in it can end: `<` is escaped."""
    charts = [chart.data for chart in charts_of(content)]
    text = json.dumps(charts, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # What nobody sees is drawn as an escape, and so has a backslash that JSON does not take away.
    seen = text if text.isprintable() else "".join(c if c.isprintable() else f"\\{repr(c)[1:-1]}" for c in text)
    return Markup(seen.replace("<", "\\u003c"))


def _prose(text: str) -> Markup:
    """Escape a sentence, and set names between backticks as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(one_line(text)))))


def _visible(value: object) -> object:
    """Write characters that nobody sees, and those that turn a text round, as escapes; what is markup stays."""
    return one_line(value) if type(value) is str else value


def _text(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _replayed(scored: Scored) -> str:
    """Return how much was replayed, and how often."""
    evaluation, lookups = scored.plan.evaluation, scored.inputs.lookups
    what = "a log" if lookups is None else quantity(lookups, "lookup")
    times = quantity(len(evaluation.drawn), "seed")
    return f"{what}, {times}{', without owners' if evaluation.ownership == 'shared' else ''}"


def _period(scored: Scored) -> str:
    """Return from when to when the log was; nothing if that is not known."""
    first, last = scored.inputs.first_us, scored.inputs.last_us
    if first is None or last is None:
        return ""
    begin, end = moment_at(first), moment_at(last)
    return f"{begin:%Y-%m-%d %H:%M} to {end:{'%H:%M' if begin.date() == end.date() else '%Y-%m-%d %H:%M'}} UTC"
