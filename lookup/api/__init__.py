"""Functions for programs and notebooks, also used by the commands, from settings and a log to results.

`from lookup import evaluate` has the same functions. They are here so that the package itself loads without Spark.
"""

__all__: list[str] = []
