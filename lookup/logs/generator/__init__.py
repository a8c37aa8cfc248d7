"""The log generator, which uses numpy and pyarrow, not Spark.

Its modules are settings, world, traffic, owners, load reports, and `generate`, which writes the tables.
"""

__all__: list[str] = []
