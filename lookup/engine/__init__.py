"""What runs policies: the registry of parts, decisions, ownership, shedding."""

from __future__ import annotations

__all__: list[str] = []
