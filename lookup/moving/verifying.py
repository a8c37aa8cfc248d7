"""Hold a plan that was carried out to account: the figures that it predicted beside those that are measured."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from lookup.errors import InputError
from lookup.model.quoting import listed
from lookup.model.time import US_PER_S, parse_iso, time_text, to_us
from lookup.moving.balance import Balance
from lookup.moving.journal import Journal
from lookup.moving.plan import MovePlan, PlannedFigure
from lookup.moving.state import ClusterState

__all__ = [
    "BrokerMeasured", "FigureMeasured", "PlanMeasured", "measured_from_us", "plan_measured",
]  # fmt: skip

#: µs after a move during which reports may have rates of before it: brokers compute these once a minute.
_RATES_US = 60 * US_PER_S


@dataclass(frozen=True, slots=True)
class BrokerMeasured:
    """A broker; loads are bytes per second, None if they are not known."""

    broker: str
    before: float | None
    predicted: float | None
    measured: float | None


@dataclass(frozen=True, slots=True)
class FigureMeasured:
    """A figure of a plan, and what it is afterwards."""

    planned: PlannedFigure
    measured: float


@dataclass(frozen=True)
class PlanMeasured:
    """A plan beside what came of it."""

    plan: MovePlan
    #: from when on reports count, and when it was measured, µs
    from_us: int
    at_us: int
    brokers: tuple[BrokerMeasured, ...]
    #: `near` only if lookups were read for the plan and are now
    figures: tuple[FigureMeasured, ...]
    #: numbers of the steps that were not made as planned
    unmade: tuple[int, ...]

    def document(self) -> dict[str, object]:
        """Return it as JSON has it."""
        return {
            "cluster": self.plan.cluster,
            "made": time_text(to_us(self.plan.made)),
            "from": time_text(self.from_us),
            "at": time_text(self.at_us),
            "figures": [of.planned.model_dump(mode="json") | {"measured": of.measured} for of in self.figures],
            "brokers": [asdict(broker) for broker in self.brokers],
            "unmade": list(self.unmade),
        }


def measured_from_us(journal: Journal) -> int:
    """Return from when on reports have what a plan has brought, µs since the Unix epoch.

    Raises:
        InputError: if none has, or the plan was taken back.
    """
    if journal.moved_at is None:
        raise InputError(f"{journal.path}: no bundle has moved yet, so there is nothing to verify; see `lookup apply`")
    if journal.back:
        raise InputError(f"{journal.path}: the plan was taken back, so what it predicted cannot be measured")
    return parse_iso(journal.moved_at) + _RATES_US


def plan_measured(journal: Journal, state: ClusterState) -> PlanMeasured:
    """Hold a plan against a cluster after it.

    Raises:
        InputError: if it is another cluster, or a broker has not reported its load since the last bundle moved.
    """
    plan, from_us, view = journal.plan, measured_from_us(journal), state.view
    assert plan is not None
    if plan.cluster != view.cluster:
        raise InputError(f"the plan is of cluster {plan.cluster!r}, and this is {view.cluster!r}")
    reported = state.reported_us()
    late = [broker for broker in view.brokers.ids if reported.get(broker, 0) < from_us]
    if late:
        raise InputError(
            f"{listed(late)} reported no load since {time_text(from_us)}, a minute after the last move; wait for the "
            "next report, which a quiet broker sends every 15 minutes"
        )
    balance = Balance(state, plan.limits.drain)
    measured = dict(zip(view.brokers.ids, balance.loads.tolist(), strict=True))
    now = balance.figures() | state.figures({})
    return PlanMeasured(
        plan=plan,
        from_us=from_us,
        at_us=state.rows.at_us,
        brokers=tuple(BrokerMeasured(one.id, one.load, one.load_after, measured.get(one.id)) for one in plan.brokers),
        figures=tuple(
            FigureMeasured(planned, now[of]) for planned in plan.figures if (of := (planned.metric, planned.key)) in now
        ),
        unmade=tuple(step.number for step in plan.steps if journal.there.get(step.number, {}).get("event") != "moved"),
    )
