"""What a program or a notebook calls, and the commands call as well: from settings and a log to results.

`from lookup import evaluate` has the same functions; they are here so that the package itself loads without Spark.
"""

__all__: list[str] = []
