"""The log generator: settings, world, timeline, traffic, owners, load reports, and `generate`, which writes the tables.

All of it is numpy and pyarrow, no Spark.
"""

__all__: list[str] = []
