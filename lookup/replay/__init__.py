"""Replay a log on Spark, from canonical tables to decisions.

It codes and orders the rows, walks over the ticks, and writes the results.
"""

__all__: list[str] = []
