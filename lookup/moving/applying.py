"""Carry out the steps of a plan one by one. Check each, request it, and wait for the new owner in the state topic.

    check ──> requested ──> moved        the destination owns the bundle
      │           ├───────> elsewhere    another broker does
      │           └───────> failed       refused, or not known in time, and no further step begins
      └─────> skipped                    the bundle is not where the plan has it

Nothing is forced. The REST API does not have conditional requests, so each bundle is checked right before its request,
and changes by others in between are reported. The way back consists of the same steps.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from threading import Event, Thread
from typing import Any
from urllib.parse import quote, urlencode

from lookup.collect.sources import AdminRefusedError, AdminRest, reason_of
from lookup.errors import InputError
from lookup.model.time import time_text, to_us
from lookup.moving.guards import Guard, stopped_by
from lookup.moving.journal import FINAL, Journal
from lookup.moving.shedding import refusal
from lookup.moving.state import Owned
from lookup.moving.watching import OwnerWatch

__all__ = ["Applied", "Mover", "Outcome", "Pace", "TransferStep", "moves_back", "moves_there", "obstacle"]

#: Seconds that a request may take, since brokers give up an unload after 60.
_REQUEST_S = 65.0
#: Seconds from a request until the bundle has an owner.
_STEP_S = 120.0
#: Seconds after which a request that left no trace was not carried out.
_TRACELESS_S = 5.0
#: Seconds within which the record of another process's move arrives, if that move is why a request was refused.
_REFUSED_S = 1.0
#: Seconds between two checks of the guards while no step begins, and between two reads of the state topic.
_GUARD_S, _LOOK_S = 5.0, 0.1


@dataclass(frozen=True)
class Pace:
    """The pace of the steps."""

    #: seconds from the end, and from the beginning, of one step to the beginning of another
    interval_s: float = 30.0
    #: steps under way at once
    in_flight: int = 1
    #: maximum number of steps, None for all
    max_moves: int | None = None


@dataclass(frozen=True)
class Outcome:
    """The outcome of a step, or its expected outcome now."""

    step: int
    bundle: str
    source: str
    destination: str
    #: `moved`, `elsewhere`, `skipped` or `failed`, as in the journal
    event: str
    #: one sentence, empty if there is nothing to report
    reason: str = ""


@dataclass(frozen=True)
class TransferStep:
    """A step that may be made."""

    number: int
    bundle: str
    source: str
    destination: str
    #: time since which the source owns the bundle, µs, None if it may own it again
    since_us: int | None
    is_back: bool = False
    #: the entry of the request, if one was made and its outcome is not known
    requested: dict[str, Any] | None = None

    @property
    def place(self) -> dict[str, Any]:
        """The fields of the step in entries of the journal."""
        return {"step": self.number, "bundle": self.bundle} | ({"back": True} if self.is_back else {})

    def end_with(self, event: str, reason: str = "") -> Outcome:
        """Build the step's outcome."""
        return Outcome(self.number, self.bundle, self.source, self.destination, event, reason)

    def __str__(self) -> str:
        way = " back" if self.is_back else ""
        return f"step {self.number}{way}: {self.bundle} from {self.source} to {self.destination}"


@dataclass
class Applied:
    """The result of an apply, or of a dry run."""

    cluster: str
    journal: str
    outcomes: list[Outcome] = field(default_factory=list)
    #: unfinished steps, including failed ones
    left: int = 0
    #: steps that earlier runs ended otherwise than planned
    earlier: int = 0
    #: why no further step was begun, None if all or as many as requested were begun
    stopped: str | None = None
    #: whether a signal ended it
    is_interrupted: bool = False
    #: nothing was changed
    is_dry: bool = False
    #: the checks before each step
    checks: tuple[str, ...] = ()

    def steps(self, *events: str) -> list[int]:
        """List the numbers of the steps that ended with some events."""
        return [outcome.step for outcome in self.outcomes if outcome.event in events]

    @property
    def is_whole(self) -> bool:
        """Whether every step was made that was to be made, by this run and those before it."""
        return self.stopped is None and not self.earlier and not self.steps("elsewhere", "skipped", "failed")


def moves_there(journal: Journal) -> list[TransferStep]:
    """List the unfinished steps of the plan, by its journal."""
    assert journal.plan is not None
    moves = []
    for step in journal.plan.steps:
        entry = journal.there.get(step.number)
        if entry is None or entry["event"] not in FINAL:
            since_us = to_us(step.fingerprint.since)
            moves.append(TransferStep(step.number, step.bundle, step.source, step.destination, since_us, False, entry))
    return moves


def moves_back(journal: Journal) -> list[TransferStep]:
    """List the steps back to the original owners, the last one first, including steps of unknown outcome."""
    assert journal.plan is not None
    moves = []
    for step in reversed(journal.plan.steps):
        there, back = journal.there.get(step.number), journal.back.get(step.number)
        if there is None or there["event"] == "skipped" or (back is not None and back["event"] in FINAL):
            continue
        owner = there.get("owner", step.destination)
        # A step of the way there that was not seen to end may still be under way.
        unknown = back or (None if there["event"] in FINAL else there)
        moves.append(TransferStep(step.number, step.bundle, owner, step.source, None, True, unknown))
    return moves


def obstacle(move: TransferStep, watch: OwnerWatch, registered: Iterable[str]) -> str | None:
    """Explain why a step cannot be made, None if the bundle is where the plan has it."""
    now = watch.owner(move.bundle)
    if now is None:
        if move.bundle in watch.split:
            return "the bundle was split"
        return "the bundle has no owner: it is unloaded, or on its way from one broker to another"
    if now.broker == move.destination:
        return f"{move.destination} owns the bundle already"
    if now.broker != move.source:
        return f"{now.broker} owns the bundle, not {move.source}: somebody else has moved it"
    # A record may know of a later time than the topic, whose records are stamped by several brokers' clocks.
    if move.since_us is not None and now.since_us > move.since_us:
        return (
            f"{move.source} owns the bundle since {time_text(now.since_us)}, not since {time_text(move.since_us)}: "
            "somebody else has moved it and it came back"
        )
    if move.destination not in registered:
        return f"{move.destination} is not registered"
    return None


class _Request(Thread):
    def __init__(self, rest: AdminRest, move: TransferStep) -> None:
        super().__init__(name=f"unload-{move.number}", daemon=True)
        namespace, _, bounds = move.bundle.rpartition("/")
        self._rest = rest
        path = quote(f"namespaces/{namespace}/{bounds}/unload")
        self._path = f"{path}?{urlencode({'destinationBroker': move.destination})}"
        #: None if there is none so far
        self.error: Exception | None = None

    def run(self) -> None:
        """Send it, and keep the error if there is one."""
        try:
            self._rest.send("PUT", self._path, within_s=_REQUEST_S)
        except (OSError, ValueError) as error:
            self.error = error


@dataclass
class _Going:
    move: TransferStep
    #: owner at the time of the request
    before: Owned
    #: how often the bundle had been given up by then
    releases: int
    #: None if an earlier process sent it, or may have
    request: _Request | None
    #: of the monotonic clock
    began: float

    @property
    def age_s(self) -> float:
        return time.monotonic() - self.began


@dataclass
class Mover:
    """A worker that makes moves until there are no more, or a guard or signal stops it."""

    rest: AdminRest
    watch: OwnerWatch
    guards: Sequence[Guard]
    #: a step that has begun
    journal: Journal
    pace: Pace
    #: ends it after the steps under way
    stop: Event
    #: takes a sentence about each step
    say: Callable[[str], None]
    _waiting: deque[TransferStep] = field(default_factory=deque)
    _going: list[_Going] = field(default_factory=list)
    _begun: int = 0
    #: of the monotonic clock
    _next_at: float = 0.0
    _guards_at: float = 0.0

    def __post_init__(self) -> None:
        assert self.journal.plan is not None
        self._cluster = self.journal.plan.cluster
        self._done = Applied(self._cluster, str(self.journal.path))

    def run(self, moves: Iterable[TransferStep]) -> Applied:
        """Make moves, and return their outcomes.

        Raises:
            InputError: if the token may not unload, and then no further step was begun.
            StateError: if the journal cannot be written. The step in progress is in it as requested.
        """
        self._waiting.extend(moves)
        while True:
            self.watch.look(_LOOK_S)
            for going in [*self._going]:
                self._check_step(going)
            if self.stop.is_set() and self._done.stopped is None:
                self._done.is_interrupted = True
                self._stop_run("asked to end")
            is_enough = self.pace.max_moves is not None and self._begun >= self.pace.max_moves
            is_over = not self._waiting or is_enough or self._done.stopped is not None
            if is_over and not self._going:
                self._done.left += len(self._waiting)
                return self._done
            if not is_over:
                self._begin_when_due()

    def _begin_when_due(self) -> None:
        """Check the guards if it is time, and begin the next step if it is due."""
        now = time.monotonic()
        is_time = len(self._going) < self.pace.in_flight and now >= self._next_at
        if is_time or now >= self._guards_at:
            self._guards_at = now + _GUARD_S
            reason = stopped_by(self.guards)
            if reason is not None:
                self._stop_run(reason)
            elif is_time:
                self._begin_step(self._waiting.popleft())

    def _stop_run(self, reason: str) -> None:
        self._done.stopped = reason
        self.journal.write("stopped", reason=reason)

    def _begin_step(self, move: TransferStep) -> None:
        """Request a step, unless the bundle is not where the plan has it."""
        if move.requested is not None:
            before = Owned(move.requested["from"], move.requested["since_us"])
            self._going.append(_Going(move, before, 0, None, time.monotonic()))
            return
        try:
            registered = self.rest.brokers(self._cluster)
        except (OSError, ValueError) as error:
            self._waiting.appendleft(move)
            self._stop_run(f"the admin REST cannot be asked for brokers: {reason_of(error)}")
            return
        # This is read as late as possible, since later changes by others are overridden.
        self.watch.look()
        owner, reason = self.watch.owner(move.bundle), obstacle(move, self.watch, registered)
        if reason is not None or owner is None:
            is_back_already = move.is_back and owner is not None and owner.broker == move.destination
            self._close_step(move, "moved" if is_back_already else "skipped", str(reason))
            return
        self.journal.write("requested", **move.place, **_request_fields(move, owner))
        request = _Request(self.rest, move)
        request.start()
        self._going.append(_Going(move, owner, self.watch.releases[move.bundle], request, time.monotonic()))
        self._begun += 1
        self._next_at = time.monotonic() + self.pace.interval_s

    def _check_step(self, going: _Going) -> None:
        move, owner = going.move, self.watch.owner(going.move.bundle)
        is_changed = owner is not None and owner != going.before
        if going.request is None and (is_changed or (owner == going.before and going.age_s > _TRACELESS_S)):
            self._resume_step(going, owner if is_changed else None)
        elif is_changed and owner is not None:
            self._record_arrival(going, owner)
        elif owner is None and move.bundle in self.watch.split:
            self._close_step(move, "skipped", "the bundle was split meanwhile", going)
        elif going.request is not None and going.request.error is not None and owner is not None:
            self._record_refusal(going, going.request.error)
        elif going.age_s > _STEP_S:
            state = "has no owner" if owner is None else f"is still owned by {owner.broker}"
            self._record_failure(going, f"{move}: {_STEP_S:g} s after the request the bundle {state}")

    def _resume_step(self, going: _Going, owner: Owned | None) -> None:
        requested = going.move.requested or {}
        if owner is not None and bool(requested.get("back")) == going.move.is_back:
            self._record_arrival(going, owner)
            return
        # The step was not carried out, or it was a step in the other direction, whatever its outcome.
        self._going.remove(going)
        self._waiting.appendleft(replace(going.move, requested=None))

    def _record_arrival(self, going: _Going, owner: Owned) -> None:
        is_ours = going.request is not None
        others = is_ours and self.watch.releases[going.move.bundle] - going.releases > 1
        if owner.broker == going.move.destination:
            self._close_step(going.move, "moved", "somebody else unloaded it as well" if others else "", going)
        elif others or not is_ours:
            # The way back does not undo this, since another process may have moved it there.
            self._close_step(
                going.move, "skipped", f"{owner.broker} owns the bundle: somebody else has moved it", going
            )
        else:
            self._close_step(going.move, "elsewhere", f"{owner.broker} owns the bundle now", going, owner=owner.broker)

    def _record_refusal(self, going: _Going, error: Exception) -> None:
        """End a step whose request failed while nothing was seen to happen."""
        is_refusal = isinstance(error, AdminRefusedError)
        # The refusal may be due to an earlier change by another process whose record has not arrived yet.
        if going.age_s < (_REFUSED_S if is_refusal else _TRACELESS_S):
            return
        sentence = f"{going.move}: {refusal(error)}"
        self._record_failure(going, sentence)
        if isinstance(error, AdminRefusedError) and error.status in (401, 403):
            raise InputError(sentence)

    def _record_failure(self, going: _Going, sentence: str) -> None:
        self._going.remove(going)
        self._done.left += 1
        self._done.outcomes.append(going.move.end_with("failed", sentence))
        self.journal.write("failed", **going.move.place, **_request_fields(going.move, going.before), reason=sentence)
        if self._done.stopped is None:
            self._stop_run(sentence)

    def _close_step(
        self, move: TransferStep, event: str, reason: str, going: _Going | None = None, **values: str
    ) -> None:
        if going is not None:
            self._going.remove(going)
            # The pace counts from the end of a move as well, not only from its beginning.
            self._next_at = max(self._next_at, time.monotonic() + self.pace.interval_s)
        self.journal.write(event, **move.place, **values, **({"reason": reason} if reason else {}))
        self._done.outcomes.append(move.end_with(event, reason))
        self.say(f"{move}: {event}{f', {reason}' if reason else ''}")


def _request_fields(move: TransferStep, before: Owned) -> dict[str, Any]:
    return {"from": before.broker, "to": move.destination, "since_us": before.since_us}
