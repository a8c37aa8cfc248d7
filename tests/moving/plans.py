"""Plans of given moves, as `lookup plan` would write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from lookup.model.time import moment_at
from lookup.moving.plan import Fingerprint, MovePlan, PlannedBroker, Step, plan_bytes

__all__ = ["plan_of_moves", "written"]


def plan_of_moves(
    moves: Iterable[tuple[str, str, str, int]], brokers: Sequence[str], cluster: str = "east", **fields: object
) -> MovePlan:
    """Return a plan of moves: bundle, from, to, and since when `from` owns it, µs."""
    steps = [
        Step(
            number=number,
            bundle=bundle,
            source=source,
            destination=destination,
            weight=1e6,
            reason="overloaded",
            fingerprint=Fingerprint(since=moment_at(since_us), epoch=1),
            imbalance=1.1,
        )
        for number, (bundle, source, destination, since_us) in enumerate(moves, 1)
    ]
    known: Mapping[str, object] = {
        "cluster": cluster,
        "made": moment_at(1_795_000_000_000_000),
        "policy": {"policy": "rebalance"},
        "brokers": tuple(
            PlannedBroker(id=broker, web_url=f"http://{broker}", load=1e6, load_after=1e6) for broker in brokers
        ),
        "steps": tuple(steps),
        "figures": ({"metric": "imbalance", "value": 1.1, "unit": "ratio", "better": "down", "before": 1.5},),
    }
    return MovePlan.model_validate({**known, **fields})


def written(plan: MovePlan, folder: Path) -> Path:
    """Write a plan into a folder, and return its path."""
    path = folder / "plan.json"
    path.write_bytes(plan_bytes(plan))
    return path
