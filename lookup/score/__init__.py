"""What a replay is worth: metrics, intervals, verdicts and fidelity."""

from __future__ import annotations

__all__: list[str] = []
