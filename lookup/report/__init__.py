"""What people read: tables, Markdown and JSON of a scored replay."""

from __future__ import annotations

__all__: list[str] = []
