"""Replay a log on Spark. Code and order the rows of canonical tables, walk over ticks, and write decisions."""

__all__: list[str] = []
