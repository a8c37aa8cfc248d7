"""The built-in log readers, one file each; they enter by the hook that anybody's reader enters by."""

from __future__ import annotations

from lookup.hooks import LogReader, hookimpl
from lookup.replay.readers.delimited import DelimitedReader

__all__ = ["DelimitedReader", "lookup_register_log_readers"]


@hookimpl
def lookup_register_log_readers() -> tuple[type[LogReader], ...]:
    """Register the readers of this package."""
    return (DelimitedReader,)
