"""From logs to decisions on Spark: coding and ordering the log, walking its ticks, writing what was decided."""

from __future__ import annotations

__all__: list[str] = []
