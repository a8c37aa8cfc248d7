"""Start Spark, choose between it and this process, and check that the workers of a cluster can run their tasks."""

__all__: list[str] = []
