"""Intervals of ownership: from the changes a load manager made to the rows of OWNERS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lookup.engine.channel.service_unit import ServiceUnitState
from lookup.engine.ownership import HandOver, OwnerChange
from lookup.model.broker import Roster

__all__ = ["OwnerInterval", "OwnerIntervals"]

_OWNED = str(ServiceUnitState.OWNED)
#: Why the state of a hand-over ended whose time was up.
_SETTLED = "settled"


@dataclass(slots=True)
class OwnerInterval:
    """One broker owned one bundle in [from_us, to_us), or was to; `to_us` is None where that outlasts the log."""

    bundle: str
    #: None while the bundle is released to nobody in particular
    broker: str | None
    from_us: int
    to_us: int | None = None
    #: why it ended: "forced", "shed", "admin", "split", or "settled" where a hand-over went on
    ended_by: str | None = None
    state: str = _OWNED


class OwnerIntervals:
    """Collects the intervals of one replay.

    Those of a hand-over are written down when it begins, as they will be unless a broker is lost meanwhile.
    """

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._all: list[OwnerInterval] = []
        #: the intervals of each bundle's last hand-over and, where it has an owner, the one after them
        self._open: dict[str, tuple[OwnerInterval, ...]] = {}

    def rows(self, end_us: int) -> list[OwnerInterval]:
        """Return the intervals of a log that ends before an instant, in the order in which they were written down."""
        found = [held for held in self._all if held.from_us < end_us and not _is_void(held)]
        for held in found:
            if held.state != _OWNED and held.to_us is not None and held.to_us >= end_us:
                held.to_us = held.ended_by = None
        return found

    def note(self, change: OwnerChange) -> None:
        """Begin or end intervals."""
        if change.broker is None:
            self._end(change.bundle, change.ts_us, change.cause)
        broker = None if change.broker is None else self._roster[change.broker].id
        passed = _passed(change.bundle, broker, change.hand_over)
        if broker is not None:
            start_us = passed[-1].to_us if passed else change.ts_us
            passed.append(OwnerInterval(change.bundle, broker, change.ts_us if start_us is None else start_us))
        if passed:
            self._begin(change.bundle, passed)

    def split(self, parent: str, children: Sequence[str], ts_us: int, hand_over: HandOver | None = None) -> None:
        """End the parent's interval; its owner goes on with the children, after what they go through first."""
        held = self._end(parent, ts_us, "split")
        broker = held[-1].broker if held else None
        if broker is None:
            return
        # The parent is split as one: the loss of its owner, which is the children's, ends that for all of them.
        passed = _passed(parent, broker, hand_over)
        self._all += passed
        for child in children:
            after = OwnerInterval(child, broker, ts_us if hand_over is None else hand_over.until_us)
            self._all.append(after)
            self._open[child] = (*passed, after)

    def _begin(self, bundle: str, held: Sequence[OwnerInterval]) -> None:
        self._open[bundle] = tuple(held)
        self._all += held

    def _end(self, bundle: str, ts_us: int, ended_by: str) -> tuple[OwnerInterval, ...]:
        """End what holds at an instant, and make void what was to come after."""
        ended = self._open.pop(bundle, ())
        for held in ended:
            if held.from_us > ts_us:
                held.to_us = held.from_us - 1
            elif held.to_us is None or held.to_us > ts_us:
                held.to_us, held.ended_by = ts_us, ended_by
        return ended


def _passed(bundle: str, broker: str | None, hand_over: HandOver | None) -> list[OwnerInterval]:
    """Return the intervals of a hand-over."""
    return [
        OwnerInterval(bundle, broker, from_us, until_us, _SETTLED, str(state))
        for state, from_us, until_us in (() if hand_over is None else hand_over.phases)
    ]


def _is_void(held: OwnerInterval) -> bool:
    # An interval that ends before it begins never came about.
    return held.to_us is not None and held.to_us < held.from_us
