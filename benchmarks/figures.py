"""The figures of the benchmark: name, value, what they are held to, and how they are printed and kept in the docs."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil

__all__ = ["Figure", "as_markdown", "replace_block"]

_BEGIN, _END = "<!-- bench: begin -->", "<!-- bench: end -->"


@dataclass(frozen=True)
class Figure:
    """One line of the table."""

    what: str
    value: float
    unit: str
    #: the most, or with `least` the least, it may be; None: for information
    bound: float | None = None
    least: bool = False
    note: str = ""

    @property
    def is_met(self) -> bool:
        """Tell whether the figure keeps its bound."""
        if self.bound is None:
            return True
        return self.value >= self.bound if self.least else self.value <= self.bound

    def row(self) -> str:
        """Return the figure as a row of the table of the docs, and its note."""
        return f"{self.brief_row()} {self.note}".rstrip()

    def brief_row(self) -> str:
        """Return the figure as a row of the table of the docs."""
        held = "" if self.bound is None else f"{'≥' if self.least else '≤'} {self.bound:g}{_spaced(self.unit)}"
        state = "" if self.is_met else ", **not kept**"
        return f"| {self.what} | {_number(self.value)}{_spaced(self.unit)} | {held}{state} |"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"


def _spaced(unit: str) -> str:
    return f" {unit}" if unit else ""


def as_markdown(figures: Sequence[Figure]) -> str:
    """Return the figures that have a bound as a table below the machine's name."""
    load = os.getloadavg()[0]
    packages = ", ".join(f"{name} {version(name)}" for name in ("pyspark", "numpy", "pyarrow"))
    measured = f"Measured {datetime.now(UTC):%Y-%m-%d} at commit {_commit()}, load average {load:.1f} at the end"
    lines = [
        f"{measured}: {_machine()}, {packages}.",
        "",
        "| figure | measured | bound |",
        "| --- | --- | --- |",
        *(figure.brief_row() for figure in figures if figure.bound is not None),
    ]
    return "\n".join(lines)


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _machine() -> str:
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    processor = names[0].partition(":")[2].strip() if names else platform.machine()
    memory = psutil.virtual_memory().total / 2**30
    return f"{os.cpu_count()} cores ({processor}), {memory:.0f} GiB, Python {platform.python_version()}"


def replace_block(page: Path, text: str) -> None:
    """Put a text between the page's two marks.

    Raises:
        SystemExit: where the page has no marks.
    """
    before, begin, rest = page.read_text().partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise SystemExit(f"{page} has no lines {_BEGIN} and {_END} to write between")
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")
