"""Canonical tables of logs, the readers and the generator that fill them, and the atomic writing of files."""

__all__: list[str] = []
