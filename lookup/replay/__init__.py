"""From canonical tables to decisions on Spark: codes and orders a log, walks its ticks, writes what was decided."""

__all__: list[str] = []
