"""A plug-in with a shedder that moves whatever it may: replays with it see every kind of move."""

from __future__ import annotations

from collections.abc import Generator, MutableMapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lookup.hooks import Shedder, hookimpl
from lookup.model import ClusterView, CycleLabel, CycleOutcome, CycleReason, Ruling, Unload

__all__ = ["Restless", "lookup_register_shedders"]


@dataclass(frozen=True)
class Restless:
    """Hand the bundles of every broker to the next one, each so-manieth to nobody in particular."""

    name: ClassVar[str] = "restless"
    reads: ClassVar[frozenset[str]] = frozenset({"view.load"})

    every: int = 3

    def propose(self, view: ClusterView, memory: MutableMapping[str, Any]) -> Generator[Unload, Ruling, CycleOutcome]:
        """Propose all bundles that have a load."""
        numbers = np.flatnonzero(view.registered).tolist()
        accepted = 0
        for number, after in zip(numbers, [*numbers[1:], *numbers[:1]], strict=True):
            for entry in view.load.top_bundles[number]:
                destination = None if accepted % self.every == 0 else view.brokers[after].id
                ruling = yield Unload(entry.bundle, view.brokers[number].id, destination)
                accepted += ruling.accepted
        label = CycleLabel.SUCCESS if accepted else CycleLabel.SKIP
        return CycleOutcome(label, CycleReason.OVERLOADED if accepted else CycleReason.NO_BUNDLES)


@hookimpl
def lookup_register_shedders() -> tuple[type[Shedder], ...]:
    """Return the shedder."""
    return (Restless,)
