"""One cycle of a shedder: it proposes, the engine judges each proposal at once and books what it accepts.

Rules for editing this file: a proposal is judged against the books as they are at that moment, so an accepted unload
changes what is said to the next; loads are never recomputed inside a cycle.

What holds for every shedder is decided here: which bundles may move, and whether a cycle takes place at all. Hit counts
and cool-downs are a shedder's own, kept in its memory.

Source: `design/architecture.md` section 3 (the engine judges); `facts/loadmanager.md` sections 9.1, 9.4, 9.5.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, MutableMapping
from dataclasses import dataclass, replace
from typing import Any

from lookup.engine.answers import checked_reads
from lookup.engine.facets import view_facet
from lookup.engine.policy import Instant, Policy
from lookup.errors import ContractError, PolicyError
from lookup.hooks.protocols import Shedder
from lookup.model.decision import CycleLabel, CycleOutcome, CycleReason, Probe, Proposal, Reason, Ruling, Unload
from lookup.model.names import is_system_namespace
from lookup.model.request import LookupOptions, request_of

__all__ = ["FAILED_CYCLE", "CycleReport", "Judge", "ask_shedder", "run_cycle"]

_ACCEPTED = Ruling(accepted=True)
#: Pulsar: with so few brokers available no cycle takes place.
_TOO_FEW = 1


@dataclass(frozen=True)
class CycleReport:
    """What came of one cycle."""

    outcome: CycleOutcome
    accepted: tuple[Unload, ...]
    #: how often each reason was given, to proposals and probes alike
    rejected: Mapping[Reason, int]


#: The report of a cycle before which the registered brokers could not be read: it fails, and decides nothing.
FAILED_CYCLE = CycleReport(CycleOutcome(CycleLabel.FAILURE, CycleReason.UNKNOWN), (), {})
_IDLE_CYCLE = CycleReport(CycleOutcome(CycleLabel.SKIP, CycleReason.NO_BROKERS), (), {})


class Judge:
    """Says whether an unload may take place, by the books of this moment."""

    def __init__(self, policy: Policy, instant: Instant, *, grace_us: int) -> None:
        # Pulsar: a filter that fails makes the bundle not transferable; so a failure always raises here, and is caught.
        self._policy = replace(policy, on_error="stop")
        self._instant = instant
        self._grace_us = grace_us
        self._moved: set[str] = set()

    def ruling(self, unload: Unload) -> Ruling:
        """Judge one unload; the first rule it breaks is the reason."""
        reason = self._objection(unload)
        return _ACCEPTED if reason is None else Ruling(accepted=False, reason=reason)

    def book(self, unload: Unload) -> None:
        """Note that an accepted unload took place, so that its bundle stays put for the rest of the cycle."""
        self._moved.add(unload.bundle)

    def _objection(self, unload: Unload) -> Reason | None:
        view = self._instant.view
        source = view.brokers.number(unload.source)
        if is_system_namespace(unload.bundle.rpartition("/")[0]):
            return Reason.SYSTEM_NAMESPACE
        # A bundle moved in this cycle has a new owner or none, so this rule comes before the one on ownership.
        if unload.bundle in self._moved:
            return Reason.MOVED_THIS_CYCLE
        if source is None or view.ownership.owner(unload.bundle) != source:
            return Reason.NOT_OWNER
        if not unload.in_exchange and self._is_recent(unload.bundle):
            return Reason.GRACE_PERIOD
        return None if unload.destination is None else self._objection_to(unload, unload.destination)

    def _is_recent(self, bundle: str) -> bool:
        # Pulsar forgets an unload that is older than the period, so at its very end the bundle is still spared.
        unloaded_us = self._instant.view.unloaded.get(bundle)
        return unloaded_us is not None and self._instant.view.now_us - unloaded_us <= self._grace_us

    def _objection_to(self, unload: Unload, destination: str) -> Reason | None:
        view = self._instant.view
        number = view.brokers.number(destination)
        if number is None or not view.registered[number] or destination == unload.source:
            return Reason.NOT_REGISTERED
        return None if self._admits(unload.bundle, number) else Reason.DESTINATION_FILTERED

    def _admits(self, bundle: str, number: int) -> bool:
        request = request_of(None, bundle, LookupOptions())
        brokers = self._instant.offered
        try:
            for place in range(len(self._policy.filters)):
                brokers = brokers.subset(self._policy.admitted(place, request, brokers, self._instant))
                if number not in brokers.index:
                    return False
        except ContractError:
            raise
        except PolicyError:
            return False
        return True


def run_cycle(
    policy: Policy,
    instant: Instant,
    memory: MutableMapping[str, Any],
    judge: Judge,
    carry_out: Callable[[Unload], None],
) -> CycleReport:
    """Let a policy's shedder propose until it ends, and carry out what the judge accepts.

    With at most one registered broker it is not asked at all: nothing could go anywhere.

    Raises:
        PolicyError: where the shedder raises and `on_error` is stop.
        ContractError: where it yields something else than a proposal or ends without an outcome.
    """
    if len(instant.offered) <= _TOO_FEW:
        return _IDLE_CYCLE
    return ask_shedder(policy, instant, memory, judge, carry_out)


def ask_shedder(
    policy: Policy,
    instant: Instant,
    memory: MutableMapping[str, Any],
    judge: Judge,
    carry_out: Callable[[Unload], None],
) -> CycleReport:
    """Let a policy's shedder propose however few brokers there are; otherwise like `run_cycle`.

    Pulsar's shedders can be asked so too; that a cycle needs two brokers is a rule of what schedules them.

    Raises:
        PolicyError: where the shedder raises and `on_error` is stop.
        ContractError: where it yields something else than a proposal or ends without an outcome.
    """
    shedder = policy.shedder
    if shedder is None:
        raise ContractError(f"policy {policy.name!r} has no shedder")
    accepted: list[Unload] = []
    rejected: dict[Reason, int] = {}

    def answer(proposal: Proposal) -> Ruling:
        """Rule on what the shedder yields, and carry out what is accepted."""
        unload = proposal.unload if isinstance(proposal, Probe) else proposal
        if not isinstance(unload, Unload):
            raise ContractError(f"shedder {shedder.name!r} proposed {proposal!r}, not an Unload or a Probe")
        ruling = judge.ruling(unload)
        if ruling.reason is not None:
            rejected[ruling.reason] = rejected.get(ruling.reason, 0) + 1
        elif unload is proposal:
            judge.book(unload)
            carry_out(unload)
            accepted.append(unload)
        return ruling

    outcome = _outcome(policy, shedder, instant, memory, answer)
    if not isinstance(outcome, CycleOutcome):
        raise ContractError(f"shedder {shedder.name!r} ended with {outcome!r}, not a CycleOutcome")
    return CycleReport(outcome, tuple(accepted), rejected)


def _outcome(
    policy: Policy,
    shedder: Shedder,
    instant: Instant,
    memory: MutableMapping[str, Any],
    answer: Callable[[Proposal], Ruling],
) -> CycleOutcome:
    view = view_facet(shedder.name, checked_reads(shedder), instant.view, memory)
    try:
        return _drained(shedder.propose(view, memory), answer)
    except (ContractError, KeyboardInterrupt):
        raise
    except BaseException as error:  # a third party's code may raise anything; on_error decides
        message = f"policy {policy.name!r}: shedder {shedder.name!r} raised {type(error).__name__}: {error}"
        if policy.on_error == "stop":
            raise PolicyError(message) from error
        instant.failures.note(message)
        return CycleOutcome(CycleLabel.FAILURE, CycleReason.UNKNOWN)


def _drained(cycle: Generator[Proposal, Ruling, CycleOutcome], answer: Callable[[Proposal], Ruling]) -> CycleOutcome:
    try:
        proposal = next(cycle)
        while True:
            proposal = cycle.send(answer(proposal))
    except StopIteration as ended:
        outcome: CycleOutcome = ended.value
        return outcome
