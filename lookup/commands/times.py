"""Instants as people read them; inside they are integers, µs since the Unix epoch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import overload

__all__ = ["time_text"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@overload
def time_text(us: int) -> str: ...
@overload
def time_text(us: None) -> None: ...
def time_text(us: int | None) -> str | None:
    """Write an instant as `2026-01-01T12:00:00Z`; None stays None."""
    if us is None:
        return None
    return (_EPOCH + timedelta(microseconds=us)).isoformat().replace("+00:00", "Z")
