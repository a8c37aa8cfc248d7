"""Name what an evaluation leaves in its output, and what its page needs; loads without any extra."""

from __future__ import annotations

__all__ = ["OUTPUTS", "PAGE", "PAGE_PACKAGES"]

#: The page's file beside `summary.json`.
PAGE = "report.html"
#: Packages that draw it and, in a notebook, its charts; of the extra `report`.
PAGE_PACKAGES = ("altair", "jinja2")
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
