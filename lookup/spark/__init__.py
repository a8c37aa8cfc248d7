"""Start Spark, choose between it and this process, and make sure that the workers of a cluster can do what they get."""

__all__: list[str] = []
