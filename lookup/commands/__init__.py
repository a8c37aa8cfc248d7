"""Implement the commands of `lookup`, one file each, and flags, output and failures that they share.

Modules that a command line is parsed with import neither Spark nor Arrow, which are an extra and take seconds to load.
So `evaluate` and `ingest` declare their flags in one file and do their work in another (`evaluation`, `ingestion`),
which they import when they run.
"""

__all__: list[str] = []
