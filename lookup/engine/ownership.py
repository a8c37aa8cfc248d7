"""Keep owners: which broker owns which bundle, the states through which bundles change hands, and why they did.

All states of a hand-over are planned when it begins, and the caller's time says which of them holds, so nothing has to
happen when a state ends. Lookups meanwhile get the owner in the book: from the start of a hand-over on the broker that
is to own the bundle, the one that splits it, or none. Only the loss of a broker that takes part ends a hand-over
early, by `OwnerBook.take`.

    what happens              states, each as long as the others   then
    an owner was chosen       Assigning                            Owned
    a transfer                Releasing, Assigning                 Owned
    an unload                 Releasing                            Free
    a split                   Splitting                            its children are Owned

The manager decides when owners change, and keeps memory. Owners are numbers of the present roster, as
policies need them; what outlives a roster (changes, hand-overs, the past of a bundle) names brokers by id.

Source: ServiceUnitState (`docs/pulsar/load-managers.md`); `docs/decisions/hand-over.md`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lookup.engine.service_unit import ServiceUnitState
from lookup.errors import StateError
from lookup.model.decision import CycleReason

__all__ = [
    "ASSIGNMENT",
    "AT_ONCE",
    "CAUSE_WORDS",
    "EVENT_WORDS",
    "RELEASE",
    "SPLIT",
    "TRANSFER",
    "Cause",
    "Course",
    "HandOver",
    "HandOvers",
    "InFlight",
    "OwnerBook",
    "Ownership",
    "OwnershipChange",
    "Phase",
    "never",
]  # fmt: skip

_S = ServiceUnitState

#: The states of a hand-over in their order.
Course: TypeAlias = tuple[ServiceUnitState, ...]
#: Returns the state of a bundle in flight, None if the bundle is not in flight.
InFlight: TypeAlias = Callable[[str], ServiceUnitState | None]

AT_ONCE: Course = ()
ASSIGNMENT: Course = (_S.ASSIGNING,)
TRANSFER: Course = (_S.RELEASING, _S.ASSIGNING)
RELEASE: Course = (_S.RELEASING,)
SPLIT: Course = (_S.SPLITTING,)


def never(bundle: str) -> None:
    """Return None for any bundle: the `InFlight` of managers that hand over at once."""


class Phase(NamedTuple):
    """One state of a hand-over, in [from_us, until_us)."""

    state: ServiceUnitState
    from_us: int
    until_us: int


@dataclass(frozen=True, slots=True)
class HandOver:
    """A bundle on its way, through one phase or several without gaps."""

    phases: tuple[Phase, ...]
    #: id of the broker that gives the bundle up or splits it; None if no broker does
    source: str | None = None

    @property
    def until_us(self) -> int:
        """Return the instant from which on all is settled, µs."""
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

    def begin(self, bundle: str, course: Course, now_us: int, source: str | None) -> HandOver | None:
        """Begin to hand a bundle over; None if that takes no time."""
        # A bundle has one hand-over at a time: a new one replaces the last.
        self._last.pop(bundle, None)
        if not course or not self._duration_us:
            return None
        starts = [now_us + step * self._duration_us for step in range(len(course))]
        phases = (Phase(state, start, start + self._duration_us) for state, start in zip(course, starts, strict=True))
        begun = self._last[bundle] = HandOver(tuple(phases), source)
        return begun

    def end(self, bundle: str, now_us: int) -> HandOver | None:
        """End a bundle's hand-over before its time and return it; None if there is none at that instant."""
        ended = self._last.pop(bundle, None)
        return ended if ended is not None and now_us < ended.until_us else None

    def state(self, bundle: str, now_us: int) -> ServiceUnitState | None:
        """Return the state of a bundle in flight, None if it is not in flight."""
        last = self._last.get(bundle)
        return None if last is None else last.state(now_us)

    def require_settled(self, bundle: str, now_us: int, deed: str) -> None:
        """Refuse to change a bundle in flight; the conflict rule of the channel would reject the change.

        Raises:
            StateError: naming the bundle, its state and the change: "unloaded".
        """
        state = self.state(bundle, now_us)
        if state is not None:
            raise StateError(f"bundle {bundle} is {state}, and cannot be {deed} before that has ended")

    def given_up_by(self, broker: str, now_us: int) -> list[str]:
        """Return the bundles in flight that a broker gives up or splits."""
        return [bundle for bundle, last in self._last.items() if last.source == broker and now_us < last.until_us]


Counts = NDArray[np.int64]
#: Namespaces below which a sweep is not worth a pass; beyond, one follows each doubling, so that it costs a constant.
_FEWEST = 256


class Ownership:
    """Owners by bundle name, as numbers of the cluster's roster; an `OwnershipView` for policies.

    The arrays handed out are read-only and follow every change at once, until the tick or the registry epoch ends.

    Args:
        ids: of all brokers of the roster, by number.
    """

    def __init__(self, ids: Sequence[str]) -> None:
        self.ids = tuple(ids)
        self._owners: dict[str, int] = {}
        self._counts, self._shown_counts = self._no_bundles_shown()
        self._by_namespace: defaultdict[str, Counts] = defaultdict(self._no_bundles)
        self._sweep_above = _FEWEST

    def _no_bundles(self) -> Counts:
        return np.zeros(len(self.ids), dtype=np.int64)

    def _no_bundles_shown(self) -> tuple[Counts, Counts]:
        # Every cycle and most decisions ask: one view of the counts serves them all.
        counts = self._no_bundles()
        return counts, _read_only(counts)

    def __len__(self) -> int:
        return len(self._owners)

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(self._owners.items())

    def owner(self, bundle: str) -> int | None:
        """Return the number of the bundle's owner, None if it has none."""
        return self._owners.get(bundle)

    def bundles(self) -> Counts:
        """Return how many bundles each broker owns, shape (n_brokers,)."""
        return self._shown_counts

    def bundles_in(self, namespace: str) -> Counts:
        """Return how many bundles of one namespace each broker owns, shape (n_brokers,)."""
        return _read_only(self._by_namespace[namespace])

    def bundles_of(self, broker: int) -> list[str]:
        """Return the bundles of one broker, sorted by name."""
        return sorted(bundle for bundle, owner in self._owners.items() if owner == broker)

    def give(self, bundle: str, broker: int) -> None:
        """Make a broker the owner of a bundle, and take it from the owner it had."""
        self.take(bundle)
        self._owners[bundle] = broker
        self._count(bundle, broker, 1)

    def take(self, bundle: str) -> int | None:
        """Leave a bundle without owner and return the one it had."""
        broker = self._owners.pop(bundle, None)
        if broker is not None:
            self._count(bundle, broker, -1)
        return broker

    def renumber(self, ids: Sequence[str]) -> None:
        """Go over to the numbers of another roster; every broker that owns a bundle must be in it."""
        numbers = {name: number for number, name in enumerate(ids)}
        moved = [(bundle, numbers[self.ids[owner]]) for bundle, owner in self._owners.items()]
        self.ids = tuple(ids)
        self._owners, (self._counts, self._shown_counts) = dict(moved), self._no_bundles_shown()
        self._by_namespace.clear()
        for bundle, owner in moved:
            self._count(bundle, owner, 1)

    def sweep(self) -> None:
        """Forget the counts of namespaces without owned bundles, once namespaces are many."""
        if len(self._by_namespace) > self._sweep_above:
            for namespace in [name for name, counts in self._by_namespace.items() if not counts.any()]:
                del self._by_namespace[namespace]
            self._sweep_above = 2 * len(self._by_namespace) + _FEWEST

    def _count(self, bundle: str, broker: int, step: int) -> None:
        # Filters ask for these counts in every decision; counting owners anew would cost a pass over all bundles.
        self._counts[broker] += step
        self._by_namespace[bundle.rpartition("/")[0]][broker] += step


def _read_only(counts: Counts) -> Counts:
    view = counts.view()
    view.flags.writeable = False
    return view


#: Why a bundle lost its last owner; `first`: it had none.
Cause = Literal["first", "forced", "shed", "admin", "split"]
#: Words for the causes of moves, in the order of reports, and for one and several events of those that are no policy's.
CAUSE_WORDS: Mapping[str, str] = {
    "forced": "broker lost",
    "shed": "unloaded by the shedder",
    "admin": "unloaded by an administrator",
    "split": "split",
}
EVENT_WORDS: Mapping[str, tuple[str, str]] = {
    "forced": ("broker was lost", "brokers were lost"),
    "admin": ("bundle was unloaded by an administrator", "bundles were unloaded by an administrator"),
    "split": ("bundle was split", "bundles were split"),
}


class OwnershipChange(NamedTuple):
    """A bundle got an owner or lost it (`broker` is None).

    If the source of a bundle is lost while it releases the bundle to no broker in particular, the change says that the
    release ends: the bundle had no owner any more.
    """

    ts_us: int
    bundle: str
    #: id of the last owner, None if it never had one
    source: str | None
    #: id of the owner
    broker: str | None
    #: why the bundle lost its last owner
    cause: Cause
    #: a policy's odds made this owner
    decided: bool = False
    #: the states the bundle goes through first; None if there are none, or they take no time
    hand_over: HandOver | None = None
    #: why a shedder took the bundle away, if it distinguishes its unloads
    reason: CycleReason | None = None


class _Past(NamedTuple):
    """A bundle's last owner, and why the bundle left it."""

    #: its id, None if there was none
    owner: str | None
    cause: Cause


_NO_PAST = _Past(None, "first")


class OwnerBook:
    """Changes owners and records each change; a new owner is booked with the last one and why that lost the bundle.

    Changes are kept until they are taken: a book that nobody reads grows.

    Args:
        handover_us: how long each state of a hand-over lasts.
    """

    def __init__(self, ownership: Ownership, *, handover_us: int = 0) -> None:
        self.hand_overs = HandOvers(handover_us)
        self._ownership = ownership
        self._past: dict[str, _Past] = {}
        self._changes: list[OwnershipChange] = []

    def give(self, bundle: str, number: int, ts_us: int, *, decided: bool = False, course: Course = AT_ONCE) -> None:
        """Make a broker the owner of a bundle.

        Args:
            decided: a policy's odds made it the owner.
            course: the states the bundle goes through first; its last owner gives it up if that begins with a release.
        """
        source, cause = self._past.get(bundle, _NO_PAST)
        # A course that begins with Assigning has no broker that gives up: the last owner may be long gone.
        self._ownership.give(bundle, number)
        hand_over = self.hand_overs.begin(bundle, course, ts_us, source if len(course) > 1 else None)
        broker = self._ownership.ids[number]
        self._changes.append(OwnershipChange(ts_us, bundle, source, broker, cause, decided, hand_over))

    def take(
        self, bundle: str, cause: Cause, ts_us: int, *, course: Course = AT_ONCE, reason: CycleReason | None = None
    ) -> bool:
        """Take a bundle from its owner; false if it has none.

        Args:
            course: the states the bundle goes through before it is free.
            reason: why its shedder takes it, if that distinguishes its unloads.
        """
        number, ended = self._ownership.take(bundle), self.hand_overs.end(bundle, ts_us)
        if number is None:
            # A release that was under way has lost its source: no broker goes on closing topics.
            if ended is not None:
                self._changes.append(OwnershipChange(ts_us, bundle, ended.source, None, cause))
            return False
        owner = self._ownership.ids[number]
        self._past[bundle] = _Past(owner, cause)
        hand_over = self.hand_overs.begin(bundle, course, ts_us, owner)
        self._changes.append(OwnershipChange(ts_us, bundle, owner, None, cause, hand_over=hand_over, reason=reason))
        return True

    def orphans_of(self, broker: str, now_us: int) -> set[str]:
        """Return the bundles a lost broker leaves: those it owns or is to own, and those in flight that it gives up."""
        owned = self._ownership.bundles_of(self._ownership.ids.index(broker))
        return {*owned, *self.hand_overs.given_up_by(broker, now_us)}

    def split(self, bundle: str, children: Sequence[str], ts_us: int) -> HandOver | None:
        """Replace a bundle by its children, which keep its owner and its past; no owner changes by that.

        Returns:
            The states the children go through until they are owned as such; None if that takes no time.
        """
        number, past, split = self._ownership.take(bundle), self._past.pop(bundle, None), None
        # Children inherit the past as well, so that the first of them to lose its owner is booked like the parent.
        for child in children:
            if past is not None:
                self._past[child] = past
            if number is not None:
                self._ownership.give(child, number)
                split = self.hand_overs.begin(child, SPLIT, ts_us, self._ownership.ids[number])
        return split

    def take_changes(self) -> list[OwnershipChange]:
        """Return the changes since the last call."""
        taken, self._changes = self._changes, []
        return taken
