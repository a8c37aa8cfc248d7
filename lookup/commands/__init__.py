"""The commands of `lookup`, one file each; what they share stands in `options`, `streams` and `selection`.

Modules that a command line is parsed with import neither Spark nor Arrow; what needs them is imported where it is run.
"""

from __future__ import annotations

__all__: list[str] = []
