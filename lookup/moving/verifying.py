"""Hold a plan that was carried out to account: what it predicted beside what is measured, and how often that was so."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from lookup.errors import InputError
from lookup.model.quoting import listed, quantity
from lookup.model.time import US_PER_S, parse_iso, time_text, to_us
from lookup.moving.balance import Balance
from lookup.moving.journal import Journal
from lookup.moving.plan import EarlierPredictions, MovePlan
from lookup.moving.state import ClusterState

__all__ = [
    "PREDICTIONS", "BrokerMeasured", "FigureMeasured", "PlanMeasured", "earlier_predictions", "keep_prediction",
    "measured_from_us", "plan_measured",
]  # fmt: skip

#: File of all verified predictions, beside their journals.
PREDICTIONS = "predictions.jsonl"
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
    """A figure after a plan."""

    before: float
    predicted: float
    #: None: the plan has no interval
    low: float | None
    high: float | None
    measured: float

    @property
    def is_inside(self) -> bool | None:
        """Return whether it was measured in its interval, None without one."""
        if self.low is None or self.high is None:
            return None
        return self.low <= self.measured <= self.high


@dataclass(frozen=True)
class PlanMeasured:
    """A plan beside what came of it."""

    plan: MovePlan
    #: from when on reports count, and when it was measured, µs
    from_us: int
    at_us: int
    brokers: tuple[BrokerMeasured, ...]
    figures: Mapping[str, FigureMeasured]
    #: by client property, which share of load is near its clients; not judged, as it has no interval
    near: Mapping[str, FigureMeasured]
    #: numbers of the steps that were not made as planned
    unmade: tuple[int, ...]

    @property
    def is_right(self) -> bool | None:
        """Return whether all figures are in their intervals.

        None: that cannot be said, because some have none, or the steps that were made are not those of the plan.
        """
        inside = [figure.is_inside for figure in self.figures.values()]
        return None if self.unmade or None in inside or not inside else all(inside)

    @property
    def verdict(self) -> str:
        """Return the answer in a sentence."""
        if self.unmade:
            steps = f"{quantity(len(self.unmade), 'step')} of {len(self.plan.steps)}"
            return f"not judged: {steps} were not made as planned, and the prediction is of all"
        if self.is_right is None:
            return f"not judged: the plan has {self.plan.covers}"
        wrong = [name for name, figure in self.figures.items() if not figure.is_inside]
        if not wrong:
            return "the prediction was right: every figure was measured in its interval"
        return f"the prediction was wrong: {listed(wrong)} {'is' if len(wrong) == 1 else 'are'} outside"

    def document(self) -> dict[str, object]:
        """Return it as JSON has it."""
        figures = {name: asdict(of) | {"inside": of.is_inside} for name, of in self.figures.items()}
        return {
            "cluster": self.plan.cluster,
            "made": time_text(to_us(self.plan.made)),
            "from": time_text(self.from_us),
            "at": time_text(self.at_us),
            "right": self.is_right,
            "verdict": self.verdict,
            "figures": figures,
            "near": {key: asdict(of) for key, of in self.near.items()},
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
    now, near = balance.figures(), state.near({})
    return PlanMeasured(
        plan=plan,
        from_us=from_us,
        at_us=state.rows.at_us,
        brokers=tuple(BrokerMeasured(one.id, one.load, one.load_after, measured.get(one.id)) for one in plan.brokers),
        figures={
            name: FigureMeasured(plan.before[name], of.value, of.low, of.high, now[name])
            for name, of in plan.after.items()
            if name in now
        },
        near={
            key: FigureMeasured(of.before, of.after, None, None, near[key])
            for key, of in plan.near.items()
            if key in near
        },
        unmade=tuple(step.number for step in plan.steps if journal.there.get(step.number, {}).get("event") != "moved"),
    )


def keep_prediction(folder: Path, verified: PlanMeasured) -> tuple[int, int]:
    """Add a plan that could be judged to the file of predictions; return how many were right, and of how many.

    A plan that is verified again counts once, as it was measured last.
    """
    path = folder / PREDICTIONS
    if verified.is_right is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(verified.document()) + "\n")
    right = _judged([path], verified.plan.cluster)
    return sum(right.values()), len(right)


def earlier_predictions(folder: Path, plan: MovePlan) -> EarlierPredictions | None:
    """Return how the predictions of earlier plans of the cluster have done, None if none was judged.

    Args:
        folder: where the plan is to be written; predictions that are kept in it count, and those in folders beside it,
            since each plan that is carried out has a folder of its own.
    """
    folder = folder.absolute()
    files = {folder / PREDICTIONS, *folder.parent.glob(f"*/{PREDICTIONS}")}
    judged = _judged(sorted(files), plan.cluster)
    right = [is_right for made, is_right in judged.items() if made != time_text(to_us(plan.made))]
    return EarlierPredictions(wrong=right.count(False), of=len(right)) if right else None


def _judged(files: Iterable[Path], cluster: str) -> dict[str, bool]:
    """Return whether each verified plan of a cluster was right, by when it was made."""
    right: dict[str, bool] = {}
    for path in files:
        # A folder beside the plan's may be somebody else's.
        with suppress(OSError, UnicodeDecodeError):
            for line in path.read_text(encoding="utf-8").splitlines():
                # What was cut off by a crash, or written by somebody else, is no prediction.
                with suppress(ValueError, KeyError, TypeError):
                    entry = json.loads(line)
                    if entry["cluster"] == cluster:
                        right[str(entry["made"])] = bool(entry["right"])
    return right
