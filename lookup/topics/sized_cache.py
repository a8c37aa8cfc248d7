"""Keep values that may be asked for again, up to a size in all."""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

__all__ = ["SizedCache"]

_Value = TypeVar("_Value")


class SizedCache(Generic[_Value]):
    """Values by key; those that were not asked for longest go first, the newest never. Any number of threads use it."""

    def __init__(self) -> None:
        #: the value asked for last is the last one
        self._values: dict[Hashable, tuple[_Value, int]] = {}
        self._size = 0
        self._lock = Lock()

    def get(self, key: Hashable) -> _Value | None:
        """Return the value of a key, None if there is none."""
        with self._lock:
            entry = self._values.pop(key, None)
            if entry is None:
                return None
            self._values[key] = entry
            return entry[0]

    def put(self, key: Hashable, value: _Value, size: int, *, room: int) -> None:
        """Keep a value, at the cost of others if the sizes of all together exceed the room."""
        with self._lock:
            self._size += size - self._values.pop(key, (None, 0))[1]
            self._values[key] = value, size
            while self._size > room and len(self._values) > 1:
                self._size -= self._values.pop(next(iter(self._values)))[1]
