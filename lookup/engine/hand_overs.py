"""Bundles that are being handed over: through which states each goes, until when, and who gives it up.

A hand-over is laid out as a whole when it begins and looked at with the time of whoever asks, so nothing has to happen
when a state ends. Who is answered meanwhile is what the book of owners says: the broker that is to own the bundle from
the start of its hand-over on, the one that splits it, or nobody. Only the loss of a broker that takes part ends a
hand-over early; whoever keeps the books sees to that.

    what happens              states, each as long as the others   then
    an owner was chosen       Assigning                            Owned
    a transfer                Releasing, Assigning                 Owned
    an unload to nobody       Releasing                            Free
    a split                   Splitting                            its children are Owned

Source: ServiceUnitState (`docs/pulsar/load-managers.md`); `docs/decisions/hand-over.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from lookup.engine.service_unit import ServiceUnitState
from lookup.errors import StateError

__all__ = [
    "ASSIGNMENT",
    "AT_ONCE",
    "RELEASE",
    "SPLIT",
    "TRANSFER",
    "Course",
    "HandOver",
    "HandOvers",
    "InFlight",
    "Phase",
    "never",
]

_S = ServiceUnitState

#: The states of a hand-over in their order.
Course: TypeAlias = tuple[ServiceUnitState, ...]
#: Says which state a bundle in flight is in now; None: it is in none.
InFlight: TypeAlias = Callable[[str], ServiceUnitState | None]

AT_ONCE: Course = ()
ASSIGNMENT: Course = (_S.ASSIGNING,)
TRANSFER: Course = (_S.RELEASING, _S.ASSIGNING)
RELEASE: Course = (_S.RELEASING,)
SPLIT: Course = (_S.SPLITTING,)


def never(bundle: str) -> None:
    """Say of no bundle that it is in flight: an `InFlight` of managers that hand over at once."""


class Phase(NamedTuple):
    """One state of a hand-over, in [from_us, until_us)."""

    state: ServiceUnitState
    from_us: int
    until_us: int


@dataclass(frozen=True, slots=True)
class HandOver:
    """A bundle on its way, through one phase or several without gaps."""

    phases: tuple[Phase, ...]
    #: number of the broker that gives the bundle up or splits it; None where nobody does
    source: int | None = None

    @property
    def until_us(self) -> int:
        """Return when all is settled."""
        return self.phases[-1].until_us

    def state(self, now_us: int) -> ServiceUnitState | None:
        """Return the state at an instant no earlier than the beginning; None once all is settled."""
        return next((phase.state for phase in self.phases if now_us < phase.until_us), None)


class HandOvers:
    """The last hand-over of every bundle.

    Args:
        duration_us: how long each state lasts; 0: there are no hand-overs, everything happens at once.
    """

    def __init__(self, duration_us: int = 0) -> None:
        self._duration_us = duration_us
        self._last: dict[str, HandOver] = {}

    def begin(self, bundle: str, course: Course, now_us: int, source: int | None) -> HandOver | None:
        """Hand a bundle over; None where that takes no time."""
        self._last.pop(bundle, None)
        if not course or not self._duration_us:
            return None
        starts = [now_us + place * self._duration_us for place in range(len(course))]
        phases = (Phase(state, start, start + self._duration_us) for state, start in zip(course, starts, strict=True))
        begun = self._last[bundle] = HandOver(tuple(phases), source)
        return begun

    def end(self, bundle: str, now_us: int) -> HandOver | None:
        """End a bundle's hand-over before its time and return it; None where there is none at that instant."""
        ended = self._last.pop(bundle, None)
        return ended if ended is not None and now_us < ended.until_us else None

    def state(self, bundle: str, now_us: int) -> ServiceUnitState | None:
        """Return the state of a bundle in flight, None where it is in none."""
        held = self._last.get(bundle)
        return None if held is None else held.state(now_us)

    def require_settled(self, bundle: str, now_us: int, deed: str) -> None:
        """Refuse what cannot be done to a bundle in flight; the conflict rule of the channel would reject it.

        Raises:
            StateError: naming the bundle, its state and what was to be done: "unloaded".
        """
        state = self.state(bundle, now_us)
        if state is not None:
            raise StateError(f"bundle {bundle} is {state}, and cannot be {deed} before that has ended")

    def given_up_by(self, broker: int, now_us: int) -> list[str]:
        """Return the bundles in flight that a broker gives up or splits."""
        return [bundle for bundle, held in self._last.items() if held.source == broker and now_us < held.until_us]
