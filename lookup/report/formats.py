"""The forms in which a command prints a comparison: `table`, `json` or `markdown`."""

from __future__ import annotations

from typing import Literal

from rich.console import Console

from lookup.report.markdown import markdown_report
from lookup.report.table import print_report
from lookup.score.scoring import Scored
from lookup.score.summary import summary, to_json

__all__ = ["Format", "show"]

Format = Literal["table", "json", "markdown"]


def show(scored: Scored, form: Format, console: Console) -> None:
    """Print a comparison; JSON and Markdown go to the console's file as they are, without colours or wrapping."""
    if form == "table":
        print_report(scored, console)
        return
    console.file.write(to_json(summary(scored)) if form == "json" else markdown_report(scored))
    console.file.flush()
