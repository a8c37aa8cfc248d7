"""A second choice, as Pulsar's modular manager makes it: fewer filters where the first choice is none, or overloaded.

Only the arithmetic of odds is here; who is asked is `policy.py`'s business.

Source: ModularLoadManagerImpl.selectBroker (apache/pulsar at 009a9bf2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ballot import Ballot, Kept
from lookup.hooks.parameters import Conf, Ge
from lookup.model.load import weighted_usage
from lookup.model.view import ClusterView

__all__ = ["SecondChoice"]

#: Every resource counts in full but memory, which Pulsar leaves out.
_WEIGHTS = (1.0, 0.0, 1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class SecondChoice:
    """Whom a policy asks about instead: all whom its first few filters keep.

    It is made where the filters leave nobody, where one of them fails and `on_error = "skip"` lets the policy go on,
    and as far as the first choice falls on a broker above a usage. Scorers and selector stay the same.
    """

    name: ClassVar[str] = "second_choice"

    #: how many of the policy's filters still count, from the first
    filters: Annotated[int, Ge(0)] = 0
    #: usage above which a broker is not taken at the first choice, as a ratio of its capacity; of its fullest resource,
    #: memory left out, as measured
    overloaded: Annotated[float, Ge(0), Conf("loadBalancerBrokerOverloadedThresholdPercentage", scale=0.01)] = 0.85

    def made(
        self, kept: Kept, view: ClusterView, first_among: Callable[[Kept], Ballot], second: Callable[[], Ballot]
    ) -> Ballot:
        """Return the odds after the second choice; those of the first where it is somebody who is not overloaded.

        Args:
            kept: whom all filters keep.
            first_among: asks about these.
            second: asks about those the first few filters keep; where nobody is chosen there, the first choice stands.
        """
        first = second() if kept.is_unsure or not len(kept.brokers) else first_among(kept)
        usage = _usage(view)
        full = [number for number in first.numbers if usage[number] > self.overloaded]
        if not full:
            return first
        other = second()
        return first if other.declined is not None else _mixed(first, other, frozenset(full))


def _usage(view: ClusterView) -> NDArray[np.float64]:
    if view.load.resources is not None:
        return weighted_usage(view.load.resources, _WEIGHTS)
    return view.load.usage if view.load.max_usage is None else view.load.max_usage


def _mixed(first: Ballot, other: Ballot, full: frozenset[int]) -> Ballot:
    """Return the first odds with those of overloaded brokers handed on to the second choice."""
    kept = dict(zip(first.numbers, first.odds.items(), strict=True))
    if len(full) == len(kept):
        return other
    given = dict(zip(other.numbers, other.odds.items(), strict=True))
    share = sum(odds for number, (_, odds) in kept.items() if number in full)
    found: dict[int, tuple[str, float]] = {}
    for number in sorted(kept.keys() - full | given.keys()):
        name = kept[number][0] if number in kept else given[number][0]
        own = 0.0 if number in full or number not in kept else kept[number][1]
        found[number] = name, own + share * (given[number][1] if number in given else 0.0)
    odds = dict(found.values())
    return replace(other, numbers=tuple(found), cumulative=tuple(accumulate(odds.values())), odds=odds)
