"""Report a scored replay: tables, Markdown and JSON."""

from __future__ import annotations

__all__: list[str] = []
