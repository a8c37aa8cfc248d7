"""Name what an evaluation leaves in its output, and what its page needs; loads without any extra."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from lookup.api.arguments import Say

__all__ = ["OUTPUTS", "PAGE", "PAGE_PACKAGE", "can_draw", "write_page"]

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


def write_page(write: Callable[[str, bytes], object], name: str, draw: Callable[[], str], warn: Say) -> None:
    """Draw a page of results and write it, if what draws it is installed.

    A page that cannot be drawn is a warning: hours of replays are behind the results, and they are complete without it.
    """
    if not can_draw():
        return
    try:
        page = draw().encode()
    except Exception as error:  # noqa: BLE001  any fault of a chart; a page can be drawn again
        warn(f"{name} could not be drawn, all other results are complete: {type(error).__name__}: {error}")
    else:
        write(name, page)
