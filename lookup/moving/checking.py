"""Hold a plan against the cluster as it is now: which steps can still be made, and what they would bring."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from lookup.errors import InputError
from lookup.model.bundles import NamespaceBundle
from lookup.model.time import time_text
from lookup.moving.balance import Balance, Move
from lookup.moving.plan import LOAD_DRIFT, MovePlan, Step, near_name
from lookup.moving.state import ClusterState

__all__ = ["PlanToday", "StepToday", "plan_today"]

Standing: TypeAlias = Literal["ready", "done", "drifted"]


@dataclass(frozen=True, slots=True)
class StepToday:
    """A step, and what has become of its bundle since."""

    step: Step
    #: `ready`: as planned; `done`: the bundle is where the step wants it; `drifted`: something else has changed
    standing: Standing
    #: what has changed; None if nothing has
    why: str | None
    #: bytes per second now; None: it is on no list of top bundles
    load: float | None


@dataclass(frozen=True)
class PlanToday:
    """A plan beside the cluster as it is."""

    plan: MovePlan
    #: when it was looked at, µs
    at_us: int
    steps: tuple[StepToday, ...]
    #: figures now, and after the steps that are ready; with shares of load near clients if lookups were read
    now: Mapping[str, float]
    after: Mapping[str, float]
    #: what was missing when the cluster was read, a sentence each
    missing: tuple[str, ...]

    @property
    def counts(self) -> dict[Standing, int]:
        """Return how many steps there are of each standing."""
        found = Counter(step.standing for step in self.steps)
        return {"ready": found["ready"], "done": found["done"], "drifted": found["drifted"]}

    @property
    def planned(self) -> dict[str, float]:
        """Return the figures after the plan as it was made."""
        near = {near_name(key): of.after for key, of in self.plan.near.items()}
        return {**self.plan.after, **near}

    def document(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        names = {"number", "bundle", "source", "destination"}
        steps = [
            {**of.step.model_dump(include=names), "standing": of.standing, "why": of.why, "load": of.load}
            for of in self.steps
        ]
        return {
            "at": time_text(self.at_us),
            "counts": self.counts,
            "steps": steps,
            "now": dict(self.now),
            "after": dict(self.after),
            "planned": self.planned,
            "missing": list(self.missing),
        }


def plan_today(plan: MovePlan, state: ClusterState) -> PlanToday:
    """Hold a plan against a cluster, or raise InputError if it is of another one."""
    view = state.view
    if plan.cluster != view.cluster:
        raise InputError(f"the plan is of cluster {plan.cluster!r}, and this is {view.cluster!r}")
    steps = tuple(_step_today(step, state) for step in plan.steps)
    balance = Balance(state, plan.limits.drain)
    now, moved = balance.figures() | state.outside({}) | _near(state, {}), dict[str, int]()
    for of in steps:
        if of.standing == "ready":
            source, destination = view.brokers.number(of.step.source), view.brokers.number(of.step.destination)
            assert source is not None
            assert destination is not None
            balance.move([Move(of.step.bundle, source, destination, of.load or 0.0, of.step.reason)])
            moved[of.step.bundle] = destination
    after = balance.figures() | state.outside(moved) | _near(state, moved)
    return PlanToday(plan, state.rows.at_us, steps, now, after, state.missing)


def _near(state: ClusterState, moved: Mapping[str, int]) -> dict[str, float]:
    return {near_name(key): share for key, share in state.near(moved).items()}


def _step_today(step: Step, state: ClusterState) -> StepToday:
    owned, load = state.owners.get(step.bundle), state.loads.get(step.bundle)
    why: str | None = None
    standing: Standing = "drifted"
    if owned is None:
        why = "it was split" if _is_split(step.bundle, state) else "no broker owns it any more"
    elif owned.broker == step.destination:
        standing = "done"
    elif owned.broker != step.source:
        why = f"{owned.broker} owns it now"
    elif state.epoch_of(owned.broker) != step.fingerprint.epoch:
        why = f"{owned.broker} has started again"
    elif state.view.brokers.number(step.destination) is None:
        why = f"{step.destination} is not registered any more"
    elif step.weight is not None and load is not None and abs(load - step.weight) > LOAD_DRIFT * step.weight:
        why = f"its load is {load:,.0f} B/s, planned with {step.weight:,.0f}"
    else:
        standing = "ready"
    return StepToday(step, standing, why, load)


def _is_split(bundle: str, state: ClusterState) -> bool:
    """Return whether bundles with owners lie within a bundle that has none."""
    whole = NamespaceBundle.parse(bundle)
    others = (NamespaceBundle.parse(name) for name in state.owners if name.startswith(f"{whole.namespace}/"))
    return any(whole.range.lower <= other.range.lower and other.range.upper <= whole.range.upper for other in others)
