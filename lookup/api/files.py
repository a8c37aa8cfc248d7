"""Name what an evaluation leaves in its output, and what its page needs; loads without any extra."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from lookup.api.arguments import Say

__all__ = ["OUTPUTS", "PAGE", "PAGE_PACKAGES", "write_page"]

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


def write_page(write: Callable[[str, bytes], object], name: str, draw: Callable[[], str], warn: Say) -> None:
    """Draw a page of results and write it, if the packages that draw it are installed.

    A page that cannot be drawn is a warning: hours of replays are behind the results, and they are complete without it.
    """
    if not all(map(find_spec, PAGE_PACKAGES)):
        return
    try:
        page = draw().encode()
    except Exception as error:  # noqa: BLE001  any fault of a chart; a page can be drawn again
        warn(f"{name} could not be drawn, all other results are complete: {type(error).__name__}: {error}")
    else:
        write(name, page)
