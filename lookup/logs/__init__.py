"""Logs: the canonical tables, the readers and the generator that fill them, and how files are written as a whole."""

__all__: list[str] = []
