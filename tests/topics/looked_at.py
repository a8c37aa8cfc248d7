"""Texts that note when they are looked at, to count how many a step of some work looks at."""

from __future__ import annotations

from typing import ClassVar

from lookup.topics.listing.steps import Steps

__all__ = ["LookedAt", "most_in_a_step"]


class LookedAt(str):
    """A text that notes each comparison, hash and search of it."""

    __slots__ = ()

    #: those that were looked at since it was emptied
    looked: ClassVar[set[int]] = set()

    def _note(self) -> None:
        self.looked.add(id(self))

    def __lt__(self, other: str) -> bool:
        self._note()
        return str.__lt__(self, other)

    def __eq__(self, other: object) -> bool:
        self._note()
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        self._note()
        return str.__hash__(self)

    def __contains__(self, piece: object) -> bool:
        self._note()
        return str.__contains__(self, piece)  # type: ignore[operator]  # what is no text is an error of its caller

    def startswith(self, *prefix: object) -> bool:
        """Note the look."""
        self._note()
        return str.startswith(self, *prefix)  # type: ignore[arg-type]  # the same


def most_in_a_step(steps: Steps[object]) -> int:
    """Do all steps, and return how many texts the step that looked at most of them looked at."""
    most = 0
    is_over = False
    while not is_over:
        LookedAt.looked.clear()
        is_over = next(steps, _END) is _END
        most = max(most, len(LookedAt.looked))
    return most


_END = object()
