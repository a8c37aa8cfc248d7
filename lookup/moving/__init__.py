"""Moves in a live cluster, from its current state (`reading.py`) to the moves to make now (`plan.py`)."""

__all__: list[str] = []
