"""Implement the commands of `lookup`, and the flags, output and failures that they share.

A file holds a command, or a few about the same things (`topics`, `topic_pairs`). Only those of the command asked for
are imported, all of them for the help; and Spark and Arrow are an extra and take seconds to load: what needs them is
imported by the functions that run. Only `sessions`, which starts Spark for them, imports it at its head; `workers` asks
for it if a command needs Spark.
"""

__all__: list[str] = []
