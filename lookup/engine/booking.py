"""What a load manager books: decisions drawn from ballots, owners and why they changed, counters.

Who decides, when, and what else follows from it is the manager's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from lookup.engine.ballot import Ballot
from lookup.engine.dice import roll
from lookup.engine.hand_overs import AT_ONCE, SPLIT, Course, HandOver, HandOvers
from lookup.engine.ownership import Ownership
from lookup.model.broker import Roster
from lookup.model.decision import Decision

__all__ = ["Cause", "Counters", "Decided", "Draws", "OwnerBook", "OwnerChange"]

#: Why a bundle lost its last owner; `first`: it never had one.
Cause = Literal["first", "forced", "shed", "admin", "split"]


@dataclass
class Counters:
    """Pulsar's assignment counters: selections made, lookups of owned bundles, selections that failed."""

    success: int = 0
    skip: int = 0
    failure: int = 0


@dataclass
class Decided:
    """A decision, when it was taken, and how many requests it answered: declined ones are not decided twice."""

    ts_us: int
    decision: Decision
    count: int = 1


class OwnerChange(NamedTuple):
    """A bundle got an owner or lost it (`broker` is None).

    Where nobody owns a bundle that is being released and its source is lost, it loses what it had no more: its release
    ends.
    """

    ts_us: int
    bundle: str
    #: number of the last owner, None where it never had one
    source: int | None
    broker: int | None
    #: why the bundle lost its last owner
    cause: Cause
    #: a policy's odds made this owner
    decided: bool = False
    #: what the bundle goes through first; None: nothing, or it takes no time
    hand_over: HandOver | None = None


class Draws:
    """Draws decisions from ballots; the rolls of a bundle are counted, so that no two of its draws are one.

    A ballot of one broker or none needs no dice and leaves the count alone.
    """

    def __init__(self, policy: str, cluster: str, seed: int) -> None:
        self._policy, self._cluster, self._seed = policy, cluster, seed
        self._rolls: dict[str, int] = {}

    def decision(self, bundle: str, ballot: Ballot, roster: Roster, fingerprint: str) -> Decision:
        """Draw an owner for a bundle and say how it came about."""
        broker: str | None = None
        if len(ballot.numbers) == 1:
            broker = roster[ballot.numbers[0]].id
        elif ballot.numbers:
            rolls = self._rolls.get(bundle, 0)
            self._rolls[bundle] = rolls + 1
            broker = roster[ballot.pick(roll(self._seed, self._cluster, bundle, rolls))].id
        return Decision(
            policy=self._policy,
            bundle=bundle,
            broker=broker,
            declined=ballot.declined,
            propensity=None if broker is None else ballot.odds[broker],
            odds=ballot.odds,
            rejected=ballot.rejected,
            margin=ballot.margin,
            ties=ballot.ties,
            fingerprint=fingerprint,
        )


class _Past(NamedTuple):
    """What is remembered of a bundle's last owner."""

    owner: int | None
    cause: Cause


_NO_PAST = _Past(None, "first")


class OwnerBook:
    """Changes owners and keeps what changed; a bundle's new owner is booked with its last one and why that lost it.

    Args:
        handover_us: how long each state of a hand-over lasts.
    """

    def __init__(self, ownership: Ownership, *, handover_us: int = 0) -> None:
        self.hand_overs = HandOvers(handover_us)
        self._ownership = ownership
        self._past: dict[str, _Past] = {}
        self._changes: list[OwnerChange] = []

    def give(self, bundle: str, number: int, ts_us: int, *, decided: bool, course: Course = AT_ONCE) -> None:
        """Make a broker the owner of a bundle.

        Args:
            course: what the bundle goes through first; its last owner gives it up if that begins with a release.
        """
        source, cause = self._past.get(bundle, _NO_PAST)
        self._ownership.give(bundle, number)
        hand_over = self.hand_overs.begin(bundle, course, ts_us, source if len(course) > 1 else None)
        self._changes.append(OwnerChange(ts_us, bundle, source, number, cause, decided, hand_over))

    def take(self, bundle: str, cause: Cause, ts_us: int, *, course: Course = AT_ONCE) -> bool:
        """Take a bundle from its owner; false where it has none.

        Args:
            course: what the bundle goes through before it is nobody's.
        """
        owner, ended = self._ownership.take(bundle), self.hand_overs.end(bundle, ts_us)
        if owner is None:
            if ended is not None:
                self._changes.append(OwnerChange(ts_us, bundle, ended.source, None, cause))
            return False
        self._past[bundle] = _Past(owner, cause)
        hand_over = self.hand_overs.begin(bundle, course, ts_us, owner)
        self._changes.append(OwnerChange(ts_us, bundle, owner, None, cause, hand_over=hand_over))
        return True

    def orphans_of(self, broker: int, now_us: int) -> set[str]:
        """Return the bundles a lost broker leaves: those it owns or is to own, and those in flight that it gives up."""
        return {*self._ownership.bundles_of(broker), *self.hand_overs.given_up_by(broker, now_us)}

    def split(self, bundle: str, children: Sequence[str], ts_us: int) -> HandOver | None:
        """Replace a bundle by its children, which keep its owner and its past; no owner changes by that.

        Returns:
            What the children go through until they are owned as such; None where that takes no time.
        """
        owner, past, split = self._ownership.owner(bundle), self._past.pop(bundle, None), None
        if owner is not None:
            self._ownership.take(bundle)
        for child in children:
            if past is not None:
                self._past[child] = past
            if owner is not None:
                self._ownership.give(child, owner)
                split = self.hand_overs.begin(child, SPLIT, ts_us, owner)
        return split

    def take_changes(self) -> list[OwnerChange]:
        """Return the changes since the last call."""
        taken, self._changes = self._changes, []
        return taken
