"""Name what an evaluation leaves in its output, and what its page needs; loads without any extra."""

from __future__ import annotations

from importlib.util import find_spec

__all__ = ["OUTPUTS", "PAGE", "PAGE_PACKAGE", "can_draw"]

#: The page's file beside `summary.json`.
PAGE = "report.html"
#: Draws it; of the extra `report`.
PAGE_PACKAGE = "jinja2"
#: Everything an evaluation leaves in its output.
OUTPUTS = (
    "summary.json",
    "metrics.parquet",
    "decisions",
    "owners",
    "cycles",
    "cells",
    "flows",
    "quarantine",
    "manifest.json",
    "report.md",
    PAGE,
)


def can_draw() -> bool:
    """Return whether what draws a page is installed."""
    return find_spec(PAGE_PACKAGE) is not None
