"""One cycle of a shedder: which bundles may be taken from their owners, and whether a cycle takes place at all.

What holds for every shedder is decided here; hit counts and cool-downs are a shedder's own, kept in its memory. How a
cycle runs is in `cycles.py`.

Source: `docs/pulsar/load-managers.md`.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any

from lookup.engine.cycles import FAILED, Books, CycleReport, Turn
from lookup.engine.facets import request_facet
from lookup.engine.hand_overs import InFlight, never
from lookup.engine.policy import Instant, Policy
from lookup.errors import ContractError, PolicyError
from lookup.hooks.raised import raised
from lookup.model.broker import Candidates
from lookup.model.decision import CycleLabel, CycleOutcome, CycleReason, Probe, Proposal, Reason, Ruling, Unload
from lookup.model.names import is_system_bundle
from lookup.model.request import LookupOptions, LookupRequest, request_of
from lookup.model.view import ClusterView

__all__ = ["FAILED_CYCLE", "ask_shedder", "run_sheds"]

#: Pulsar: with so few brokers available no cycle takes place.
_TOO_FEW = 1
#: The report of a cycle before which the registered brokers could not be read: it fails, and decides nothing.
FAILED_CYCLE: CycleReport[Unload] = CycleReport(FAILED, (), {})
_IDLE_CYCLE: CycleReport[Unload] = CycleReport(CycleOutcome(CycleLabel.SKIP, CycleReason.NO_BROKERS), (), {})


def run_sheds(
    policy: Policy,
    instant: Instant,
    memory: MutableMapping[str, Any],
    carry_out: Callable[[Unload], None],
    *,
    in_flight: InFlight = never,
    shown: ClusterView | None = None,
) -> CycleReport[Unload]:
    """Let a policy's shedder propose until it ends, and carry out what is accepted.

    With at most one registered broker it is not asked at all: nothing could go anywhere.

    Args:
        in_flight: which bundles are being handed over, and so cannot move.
        shown: the instant's view with load in the shedder's unit, by default as it is.

    Raises:
        PolicyError: where the shedder raises and `on_error` is stop.
        ContractError: where it yields something else than a proposal or ends without an outcome.
    """
    if len(instant.offered) <= _TOO_FEW:
        return _IDLE_CYCLE
    return ask_shedder(policy, instant, memory, carry_out, in_flight=in_flight, shown=shown)


def ask_shedder(
    policy: Policy,
    instant: Instant,
    memory: MutableMapping[str, Any],
    carry_out: Callable[[Unload], None],
    *,
    in_flight: InFlight = never,
    shown: ClusterView | None = None,
) -> CycleReport[Unload]:
    """Let a policy's shedder propose however few brokers there are; otherwise like `run_sheds`.

    Pulsar's shedders can be asked so too; that a cycle needs two brokers is a rule of what schedules them.

    Raises:
        PolicyError: where the shedder raises and `on_error` is stop.
        ContractError: where it yields something else than a proposal or ends without an outcome.
    """
    shedder = policy.shedder
    if shedder is None:
        raise ContractError(f"policy {policy.name!r} has no shedder")
    books = Books(_UnloadJudge(policy, instant, in_flight), carry_out)

    def answer(proposal: Proposal) -> Ruling:
        """Rule on what the shedder yields; a probe is judged, but not booked."""
        unload = proposal.unload if isinstance(proposal, Probe) else proposal
        if not isinstance(unload, Unload):
            raise ContractError(f"shedder {shedder.name!r} proposed {proposal!r}, not an Unload or a Probe")
        return books.ruling(unload, is_probe=unload is not proposal)

    return books.report(Turn("shedder", shedder, policy, instant, memory, shown).outcome(answer))


class _UnloadJudge:
    """Says which bundles may be taken from their owners, by the books of this moment."""

    def __init__(self, policy: Policy, instant: Instant, in_flight: InFlight) -> None:
        # Pulsar: a filter that fails makes the bundle not transferable; so a failure always raises here, and is caught.
        self._policy = policy.unforgiving
        self._instant, self._in_flight = instant, in_flight
        self._moved: set[str] = set()
        #: bundles for which the shedder has found a destination that the filters admit
        self._placeable: set[str] = set()

    def objection(self, unload: Unload) -> Reason | None:
        """Return the first rule an unload breaks; None where it breaks none."""
        view = self._instant.view
        source = view.brokers.number(unload.source)
        if is_system_bundle(unload.bundle):
            return Reason.SYSTEM_NAMESPACE
        # A bundle moved in this cycle has a new owner or none, so this rule comes before the one on ownership.
        if unload.bundle in self._moved:
            return Reason.MOVED_THIS_CYCLE
        # What is released to nobody in particular has no owner either.
        if self._in_flight(unload.bundle) is not None:
            return Reason.IN_FLIGHT
        if source is None or view.ownership.owner(unload.bundle) != source:
            return Reason.NOT_OWNER
        if not unload.in_exchange and self._is_recent(unload.bundle):
            return Reason.GRACE_PERIOD
        if unload.destination is None:
            return self._objection_to_leaving(unload.bundle, source)
        return self._objection_to(unload, unload.destination)

    def book(self, unload: Unload) -> None:
        """Note that an accepted unload takes place, so that its bundle stays put for the rest of the cycle."""
        self._moved.add(unload.bundle)

    def _is_recent(self, bundle: str) -> bool:
        # Pulsar forgets an unload that is older than the period, so at its very end the bundle is still spared.
        unloaded_us = self._instant.view.unloaded.get(bundle)
        return unloaded_us is not None and self._instant.view.now_us - unloaded_us <= self._policy.grace_us

    def _objection_to(self, unload: Unload, destination: str) -> Reason | None:
        view = self._instant.view
        number = view.brokers.number(destination)
        if number is None or not view.registered[number] or destination == unload.source:
            return Reason.NOT_REGISTERED
        if not self._admits(unload.bundle, number):
            return Reason.DESTINATION_FILTERED
        self._placeable.add(unload.bundle)
        return None

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

    def _objection_to_leaving(self, bundle: str, source: int) -> Reason | None:
        """Ask the filters that have an opinion whether a bundle may leave its owner for nobody knows whom.

        Not asked where the shedder has already found a broker that all filters admit.
        """
        if bundle in self._placeable:
            return None
        request, policy, brokers = request_of(None, bundle, LookupOptions()), self._policy, self._instant.offered
        last = max((n for n, part in enumerate(policy.filters) if hasattr(part, "should_unload")), default=-1)
        for place, part in enumerate(policy.filters[: last + 1]):
            try:
                if hasattr(part, "should_unload") and not self._lets_go(place, request, source, brokers):
                    return part.reason
                brokers = brokers.subset(policy.admitted(place, request, brokers, self._instant))
            except ContractError:
                raise
            except PolicyError:
                return part.reason
        return None

    def _lets_go(self, place: int, request: LookupRequest, source: int, brokers: Candidates) -> bool:
        part: Any = self._policy.filters[place]
        cut, view = request_facet(part.name, self._policy.part_reads[place])(request), self._instant.views[place]
        try:
            return bool(part.should_unload(cut, view.brokers[source], brokers, view))
        except (ContractError, KeyboardInterrupt):
            raise
        except BaseException as error:  # a third party's code may raise anything
            raise PolicyError(f"filter {part.name!r} raised {raised(error)}") from error
