"""Carry out a plan of moves, roll it back, and restore shedding after a kill, for `lookup apply`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Queue
from threading import Event

from lookup.collect.collector import Endpoints, asked_name, reading
from lookup.collect.observing import Record
from lookup.collect.sources import AdminRest, reason_of
from lookup.errors import Argument, InputError
from lookup.moving.applying import Applied, Mover, Pace, moves_back, moves_there, obstacle
from lookup.moving.guards import Tolerances, guards_of, stopped_by
from lookup.moving.journal import Journal, read_journal
from lookup.moving.plan import MovePlan, plan_bytes, plan_file, read_plan
from lookup.moving.shedding import frozen_shedding, put_back
from lookup.moving.watching import OwnerWatch

__all__ = ["How", "apply", "journal_of", "recover", "rollback"]

#: Seconds until the state topic has to be read to its end.
_OWNERS_S = 60.0


def _open_reader(endpoints: Endpoints, cluster: str) -> AbstractContextManager[Queue[Record]]:
    """Open a reader of only the load manager's topics, since the registry comes from the admin REST."""
    return reading(endpoints, None, cluster)


@dataclass(frozen=True)
class How:
    """How steps are made."""

    pace: Pace = Pace()
    tolerances: Tolerances = Tolerances()
    #: keep Pulsar's own shedder still meanwhile
    freeze_shedding: bool = False
    #: set from another thread, or by a signal, and ends it after the current step
    stop: Event = field(default_factory=Event)
    #: takes a sentence about each step
    say: Callable[[str], None] = print
    #: reads the owners of bundles. A program that follows them already has a source of its own
    read: Callable[[Endpoints, str], AbstractContextManager[Queue[Record]]] = _open_reader


def journal_of(plan: str | Path) -> str:
    """Find the default path of a plan's journal."""
    return f"{plan_file(plan)}.journal"


def apply(
    plan: str | Path,
    endpoints: Endpoints,
    *,
    yes: bool = False,
    journal: str | Path | None = None,
    how: How | None = None,
) -> Applied:
    """Carry out the remaining steps of a plan, or describe them.

    Args:
        plan: path of a `plan.json`, or of its folder.
        endpoints: `admin` and `service_url` must be given.
        yes: whether bundles are unloaded. Otherwise everything is checked and nothing is changed.
        journal: path, by default that of the plan with the suffix `.journal`.

    Raises:
        InputError: if plan, journal or cluster do not match, owners cannot be read, or the token may not unload.
        StateError: if shedding cannot be switched on again.
    """
    content, path = read_plan(plan), Path(journal or journal_of(plan))
    if path.exists() and path.stat().st_size:
        before = read_journal(path)
        if before.plan is None or plan_bytes(before.plan) != plan_bytes(content):
            raise InputError(f"{path} is the journal of another plan than {plan}; ", Argument("journal"), " names one")
        if before.back:
            raise InputError(f"{path} shows that the plan was rolled back; make another with `lookup plan`")
    return _carry_out(path, content, endpoints, how or How(), yes=yes, is_back=False)


def rollback(journal: str | Path, endpoints: Endpoints, *, yes: bool = False, how: How | None = None) -> Applied:
    """Give bundles back to their initial owners if these are alive. Arguments and errors are those of `apply`."""
    content = read_journal(journal).plan
    assert content is not None
    return _carry_out(Path(journal), content, endpoints, how or How(), yes=yes, is_back=True)


def recover(journal: str | Path, endpoints: Endpoints, say: Callable[[str], None] = print) -> bool:
    """Restore shedding if a killed `apply` has left it off. Return whether it had.

    Raises:
        InputError: if the journal is invalid, or of another cluster.
        StateError: if it cannot be restored.
    """
    content = read_journal(journal).plan
    assert content is not None
    with Journal(journal) as opened:
        return put_back(_open_admin(content, endpoints, "admin"), opened, say)


def _carry_out(path: Path, plan: MovePlan, endpoints: Endpoints, mode: How, *, yes: bool, is_back: bool) -> Applied:
    rest = _open_admin(plan, endpoints, "admin", "service_url")
    with ExitStack() as stack:
        if yes:
            journal = stack.enter_context(Journal(path))
            # An earlier process may have been killed.
            put_back(rest, journal, mode.say)
        else:
            journal = read_journal(path) if path.exists() else Journal(path)
        watch = OwnerWatch(plan.cluster, stack.enter_context(mode.read(endpoints, plan.cluster)))
        watch.settle(_OWNERS_S)
        registered = _list_registered(rest, plan.cluster)
        if yes and journal.is_new:
            journal.begin(plan)
        journal.plan = plan
        # The way back is for when a broker is lost as well.
        brokers = [broker.id for broker in plan.brokers if not is_back or broker.id in registered]
        guards = guards_of(mode.tolerances, endpoints, rest, watch, brokers, plan)
        moves = moves_back(journal) if is_back else moves_there(journal)
        ended = (journal.back if is_back else journal.there).values()
        earlier = sum(entry["event"] in ("elsewhere", "skipped") for entry in ended)
        if not yes:
            reasons = [(move, obstacle(move, watch, registered)) for move in moves]
            outcomes = [
                move.end_with("moved" if reason is None else "skipped", reason or "") for move, reason in reasons
            ]
            checks = ("the bundle has the owner of the plan, since then", *map(str, guards))
            return Applied(
                plan.cluster, str(path), outcomes, len(moves), earlier, stopped_by(guards), is_dry=True, checks=checks
            )
        if mode.freeze_shedding:
            stack.enter_context(frozen_shedding(rest, journal, mode.say))
        return replace(Mover(rest, watch, guards, journal, mode.pace, mode.stop, mode.say).run(moves), earlier=earlier)


def _list_registered(rest: AdminRest, cluster: str) -> list[str]:
    try:
        return rest.brokers(cluster)
    except (OSError, ValueError) as error:
        problem = f" cannot be asked for the brokers of cluster {cluster}: {reason_of(error)}"
        raise InputError(Argument("admin"), problem) from None


def _open_admin(plan: MovePlan, endpoints: Endpoints, *needed: str) -> AdminRest:
    for name in needed:
        if getattr(endpoints, name) is None:
            raise InputError(Argument(name), " must be given")
    assert endpoints.admin is not None
    rest = AdminRest(endpoints.admin, endpoints.credentials)
    name = endpoints.cluster or asked_name(rest)
    if name != plan.cluster:
        raise InputError(f"the plan is of cluster {plan.cluster!r}, and ", Argument("admin"), f" leads to {name!r}")
    return rest
