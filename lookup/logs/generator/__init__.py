"""The parts of the log generator: settings, world, timeline, traffic, owners, load reports and the Parquet writers.

The one entry is `lookup.logs.generate`; everything here is numpy and pyarrow, no Spark.
"""

from __future__ import annotations

__all__: list[str] = []
