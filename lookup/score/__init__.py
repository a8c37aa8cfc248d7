"""Score replays: metrics, intervals, verdicts and fidelity."""

from __future__ import annotations

__all__: list[str] = []
