"""Name what an evaluation leaves in its output, and what its page needs; loads without any extra."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

__all__ = ["OUTPUTS", "PAGE", "PAGE_PACKAGES", "draw_page"]

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


def draw_page(name: str, draw: Callable[[], str], warn: Callable[[str], None]) -> bytes | None:
    """Draw a page of results that are written; None if what draws it is not installed.

    A page that cannot be drawn is a warning: the results are worth more than their picture.
    """
    if not all(map(find_spec, PAGE_PACKAGES)):
        return None
    try:
        return draw().encode()
    except Exception as error:  # noqa: BLE001  whatever a chart fails of
        warn(f"{name} could not be drawn, all other results are complete: {type(error).__name__}: {error}")
        return None
