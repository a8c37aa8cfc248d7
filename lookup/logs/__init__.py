"""Logs: the canonical tables, the readers and the generator that fill them, and how files are written as a whole."""

from __future__ import annotations

__all__: list[str] = []
