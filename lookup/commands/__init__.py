"""Implement the commands of `lookup`, and their common flags, output and failures.

A file holds one command, or several related ones (`topics`, `topic_pairs`). Only the files of the requested
command are imported, or all of them for the help. Spark and Arrow are an extra and take seconds to load, so
functions that need them import them when they run. Only `sessions`, which starts Spark, imports it at its
head, and `workers` imports `sessions` if a command needs Spark.
"""

__all__: list[str] = []
