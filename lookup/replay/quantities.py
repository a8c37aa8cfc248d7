"""Numbers of things in sentences."""

from __future__ import annotations

__all__ = ["quantity"]


def quantity(count: int, one: str, several: str | None = None) -> str:
    """Write how many there are of something: `1 file`, `2,000 files`.

    Args:
        several: the plural, where it is not formed by an `s`.
    """
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"
