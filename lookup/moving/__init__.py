"""Moves in a live cluster: what a cluster is like now (`reading.py`), and the moves to make now (`plan.py`)."""

__all__: list[str] = []
