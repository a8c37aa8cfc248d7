"""Serve decisions to the brokers of a live cluster over HTTP, record them, and verify a record by deciding again."""

__all__: list[str] = []
