"""Intervals of ownership: from the changes a load manager made to the rows of OWNERS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lookup.engine.booking import OwnerChange
from lookup.model.broker import Roster

__all__ = ["OwnerInterval", "OwnerIntervals"]


@dataclass(slots=True)
class OwnerInterval:
    """One broker owned one bundle in [from_us, to_us); `to_us` is None while it does."""

    bundle: str
    broker: str
    from_us: int
    to_us: int | None = None
    #: why it ended: "forced", "shed", "admin" or "split"
    ended_by: str | None = None


class OwnerIntervals:
    """Collects the intervals of one replay."""

    def __init__(self, roster: Roster) -> None:
        self.all: list[OwnerInterval] = []
        self._roster = roster
        self._open: dict[str, OwnerInterval] = {}

    def note(self, change: OwnerChange) -> None:
        """Begin or end an interval."""
        if change.broker is None:
            self._end(change.bundle, change.ts_us, change.cause)
        else:
            self._begin(change.bundle, self._roster[change.broker].id, change.ts_us)

    def split(self, parent: str, children: Sequence[str], ts_us: int) -> None:
        """End the parent's interval; its owner goes on with the children."""
        held = self._end(parent, ts_us, "split")
        for child in children if held is not None else ():
            self._begin(child, held.broker if held else "", ts_us)

    def _begin(self, bundle: str, broker: str, ts_us: int) -> None:
        self._open[bundle] = OwnerInterval(bundle, broker, ts_us)
        self.all.append(self._open[bundle])

    def _end(self, bundle: str, ts_us: int, ended_by: str) -> OwnerInterval | None:
        held = self._open.pop(bundle, None)
        if held is not None:
            held.to_us, held.ended_by = ts_us, ended_by
        return held
