"""What every part of this room refuses in numbers."""

from __future__ import annotations

from lookup.errors import ArgumentError

__all__ = ["refuse_below"]


def refuse_below(least: int, **values: int) -> None:
    """Refuse the first value, by its name, that is less than it must be.

    Raises:
        ArgumentError: naming it.
    """
    for name, value in values.items():
        if value < least:
            raise ArgumentError(f"{name} is {value}, and must be {least} or more")
