"""Write `report.html`, a run as one page without network access, with a policy that permits only its own parts.

The page contains its own script and style sheet, and Vega's scripts, each with its hash in the policy.
Specifications and numbers are in it as data, which browsers do not run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from lookup.model.quoting import one_line, quantity
from lookup.model.time import moment_at
from lookup.report.blocks import Section, charts_of
from lookup.report.document import sections
from lookup.report.figures import Run
from lookup.report.sentences import rank_candidates

__all__ = ["html_report"]

_ASSETS = files("lookup.report") / "assets"
#: In the order of their dependencies, with the page's own last.
_SCRIPTS = ("vega/vega.min.js", "vega/vega-lite.min.js", "vega/vega-embed.min.js", "page.js")
_CODE = re.compile(r"`([^`]+)`")


def html_report(run: Run, *, folder: str | None = None) -> str:
    """Write the whole page."""
    # A map next to a script is not in the page.
    scripts = [Markup(_read_asset(name).partition("//# sourceMappingURL")[0].rstrip()) for name in _SCRIPTS]
    style = Markup(_read_asset("page.css"))
    hashes = " ".join(f"'{_compute_hash(script)}'" for script in scripts)
    # Nothing is loaded, and nothing runs that is not named by its hash.
    sources = f"default-src 'none'; script-src {hashes}; style-src '{_compute_hash(style)}'"
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Invisible characters, and characters that reverse a text, are escaped. Markup stays.
        finalize=lambda value: one_line(value) if type(value) is str else value,
    )
    environment.filters |= {
        # Names between backticks are code.
        "prose": lambda text: Markup(_CODE.sub(r"<code>\1</code>", str(escape(one_line(text))))),
        "kind": lambda block: type(block).__name__,
    }
    content = sections(run.results, folder or run.path, run)
    inputs = run.results.inputs
    replayed = "a log" if inputs.lookups is None else quantity(inputs.lookups, "lookup")
    return environment.from_string(_read_asset("page.html.jinja")).render(
        sections=content,
        scripts=scripts,
        style=style,
        data=_write_data(content),
        policy=f"{sources}; base-uri 'none'; form-action 'none'",
        period=_format_period(inputs.first_us, inputs.last_us),
        version=run.manifest["versions"]["pulsar-lookup"],
        incumbent=run.results.incumbent,
        candidates=rank_candidates(run.results),
        replayed=f"{replayed}, {quantity(len(run.results.seeds), 'seed')}",
        clusters=run.results.clusters,
    )


def _format_period(first_us: int | None, last_us: int | None) -> str:
    if first_us is None or last_us is None:
        return ""
    begin, end = moment_at(first_us), moment_at(last_us)
    until = f"{end:{'%H:%M' if begin.date() == end.date() else '%Y-%m-%d %H:%M'}}"
    return f"{begin:%Y-%m-%d %H:%M} to {until} UTC"


def _compute_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _write_data(content: Iterable[Section]) -> Markup:
    """Write the data of charts as JSON that no text in it can end, since `<` is escaped."""
    charts = [chart.data for chart in charts_of(content)]
    text = json.dumps(charts, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Invisible characters are drawn as escapes, and so is a backslash that JSON does not remove.
    printable = text if text.isprintable() else "".join(c if c.isprintable() else f"\\{repr(c)[1:-1]}" for c in text)
    return Markup(printable.replace("<", "\\u003c"))


def _read_asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")
