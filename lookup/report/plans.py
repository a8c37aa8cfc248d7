"""Show a plan of moves as tables of its gains and costs, its steps, brokers, and forbidden moves."""

from __future__ import annotations

from lookup.model.quoting import join_names, quantity
from lookup.moving.plan import MovePlan
from lookup.report.blocks import Table
from lookup.report.numbers import NOTHING, number_text

__all__ = ["brokers_table", "figures_table", "plan_notes", "refused_table", "steps_table"]


def figures_table(plan: MovePlan) -> Table:
    """Build the table of figures before and after."""
    rows = [(of.label, number_text(of.before), number_text(of.value)) for of in plan.figures]
    heads = ("figure", "before", "after")
    return Table(heads, rows, "figures", "Expected effect of the plan")


def plan_notes(plan: MovePlan) -> list[str]:
    """List the facts that a reader should know about a plan, a sentence each."""
    notes = [plan.why]
    worse = [step.number for step in plan.steps if step.worse]
    if worse:
        steps = ", ".join(map(str, worse[:10]))
        notes.append(f"balance is worse than at the start after {quantity(len(worse), 'step')}: {steps}")
    elif plan.steps:
        notes.append("balance never gets worse on the way")
    if near := [of.label for of in plan.figures if of.metric == "near"]:
        notes.append(
            f"{join_names(near)}: share of load on brokers with the properties that its clients sent in the day before"
        )
    return [*notes, *plan.missing]


def steps_table(plan: MovePlan) -> Table:
    """Build the table of moves in their order."""
    heads = ("step", "bundle", "from", "to", "MB/s", "why", "topics", "producers", "consumers", "imbalance")
    rows = [
        (
            str(step.number),
            step.bundle,
            step.source,
            step.destination,
            _format_megabytes(step.weight),
            step.reason,
            *(
                NOTHING if count is None else f"{count:,}"
                for count in (step.costs.topics, step.costs.producers, step.costs.consumers)
            ),
            f"{number_text(step.imbalance)}{' (worse)' if step.worse else ''}",
        )
        for step in plan.steps
    ]
    return Table(heads, rows, "steps", "The moves, in their order", texts=(1, 2, 3, 5))


def brokers_table(plan: MovePlan) -> Table:
    """Build the table of each broker's load before and after."""
    sources, destinations = ([getattr(step, end) for step in plan.steps] for end in ("source", "destination"))
    rows = [
        (
            broker.id,
            _format_megabytes(broker.load),
            _format_megabytes(broker.load_after),
            f"{broker.bundles:,}",
            f"{broker.bundles - sources.count(broker.id) + destinations.count(broker.id):,}",
            "drained" if broker.id in plan.limits.drain else "",
        )
        for broker in plan.brokers
    ]
    heads = ("broker", "MB/s before", "MB/s after", "bundles before", "bundles after", "")
    return Table(heads, rows, "brokers", "Brokers before and after the plan", texts=(0, 5))


def refused_table(plan: MovePlan) -> Table:
    """Build the table of wanted moves that are not permitted."""
    rows = [(move.bundle, move.source, move.destination or "anywhere", move.reason) for move in plan.refused]
    heads = ("bundle", "from", "to", "refused because of")
    return Table(heads, rows, "refused", "Moves that may not be made", texts=(0, 1, 2, 3))


def _format_megabytes(load: float | None) -> str:
    return NOTHING if load is None else number_text(load / 1e6)
