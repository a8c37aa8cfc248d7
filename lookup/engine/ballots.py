"""Compute odds from answers of scorers and selectors, mix in a second choice, and draw decisions from them.

Draws depend only on the seed, the cluster, the bundle and its number of draws. So a draw does not depend on
how the log is partitioned, and two policies get the same random numbers.

Source of the second choice: ModularLoadManagerImpl.selectBroker (apache/pulsar at 009a9bf2).
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lookup.hooks.protocols import Conf, Ge
from lookup.model import Candidates, ClusterView, Decision, Reason, Roster

__all__ = ["Ballot", "Decided", "Draws", "Kept", "SecondChoice", "roll", "tally"]

#: Scores this close to the best are tied.
_TIED = 1e-9
#: Odds are divided by the greatest above this, so that no sum of them overflows.
_HUGE = 1e290


class Kept(NamedTuple):
    """The brokers that some filters have kept, and a count of the rejected ones."""

    brokers: Candidates
    #: rejected brokers by reason
    rejected: Mapping[Reason, int]
    #: a filter failed, and the policy went on without its answer
    is_unsure: bool = False
    #: a filter failed, and the policy declines for that
    is_closed: bool = False


@dataclass(frozen=True, slots=True)
class Ballot:
    """A policy's answer to one decision key at one instant, which is a distribution over brokers or a reason."""

    #: brokers with odds above 0, ascending by number, empty if the policy declined
    numbers: tuple[int, ...] = ()
    cumulative: tuple[float, ...] = ()
    #: normalised odds by broker id
    odds: Mapping[str, float] = field(default_factory=dict)
    rejected: Mapping[Reason, int] = field(default_factory=dict)
    declined: Reason | None = None
    margin: float | None = None
    ties: int = 0
    #: the brokers that the filters left, only if a part observes that
    offers: tuple[Candidates, ...] = field(default=(), compare=False, repr=False)

    def after(self, rejected: Mapping[Reason, int]) -> Ballot:
        """Add the rejections of the earlier filters to the ballot."""
        # Written out, since this runs for every decision and `dataclasses.replace` takes four times as long.
        return Ballot(
            self.numbers, self.cumulative, self.odds, rejected, self.declined, self.margin, self.ties, self.offers
        )

    def pick(self, rolled: float) -> int:
        """Find the number of the broker that a draw in [0, 1] selects."""
        # The last sum may fall short of 1.0 by rounding, and a draw beyond it selects the last broker.
        return self.numbers[min(bisect_right(self.cumulative, rolled), len(self.numbers) - 1)]

    def decision(self, policy: str, bundle: str, fingerprint: str, broker: str | None = None) -> Decision:
        """Build the decision about a bundle, either for a broker with odds or for none."""
        return Decision(
            policy=policy,
            bundle=bundle,
            broker=broker,
            declined=self.declined,
            propensity=None if broker is None else self.odds[broker],
            odds=self.odds,
            rejected=self.rejected,
            margin=self.margin,
            ties=self.ties,
            fingerprint=fingerprint,
        )


def tally(brokers: Candidates, scores: NDArray[np.float64], odds: NDArray[np.float64], *, are_scored: bool) -> Ballot:
    """Make a ballot of the answers of scorers and selector, arrays of shape (n_candidates,).

    Args:
        are_scored: whether the policy has scorers. Without scorers there is no margin and all brokers are tied.
    """
    # Called for every decision. For so few numbers the methods `max` and `sum` cost more than their arithmetic.
    peak = float(odds[odds.argmax()])
    if peak == 0.0:
        return Ballot(declined=Reason.NO_ODDS)
    if peak > _HUGE:
        odds = odds / peak
    margin, ties = None, len(scores)
    if are_scored:
        # Sums of the same scores in another order differ in their last bits, so such brokers count as equal.
        best = float(scores[scores.argmax()])
        tied = scores >= best - _TIED
        ties = int(np.count_nonzero(tied))
        margin = None if ties == len(scores) else best - float(np.maximum.reduce(scores[~tied]))
    shares = odds / np.add.reduce(odds)
    (positions,) = shares.nonzero()
    probabilities: list[float] = shares[positions].tolist()
    return Ballot(
        numbers=tuple(brokers.index[positions].tolist()),
        cumulative=tuple(accumulate(probabilities)),
        odds=dict(zip(brokers.ids_at(positions), probabilities, strict=True)),
        margin=margin,
        ties=ties,
    )


#: Placeholder for the ballot before the first.
_NOT_ASKED = Ballot()


@dataclass(frozen=True, slots=True)
class SecondChoice:
    """The alternative brokers of a policy, which are all that its first few filters keep.

    They are used if the filters leave no broker, if one fails and `on_error = "skip"` lets the policy continue, and for
    the share of the first choice that falls on a broker above a usage limit. Scorers and selector stay the same.
    """

    name: ClassVar[str] = "second_choice"

    #: how many of the policy's filters still count, from the first
    filters: Annotated[int, Ge(0)] = 0
    #: greatest measured usage of a first choice, ratio of capacity of its fullest resource by the policy's weights
    overloaded: Annotated[float, Ge(0), Conf("loadBalancerBrokerOverloadedThresholdPercentage", scale=0.01)] = 0.85

    def choose(
        self, kept: Kept, view: ClusterView, first_among: Callable[[Kept], Ballot], second: Callable[[Ballot], Ballot]
    ) -> Ballot:
        """Compute the odds after the second choice, or keep the first odds if none of their brokers is overloaded.

        Args:
            kept: the brokers that all filters keep.
            first_among: computes a ballot among these.
            second: computes one, after another, among those of the first few filters. If empty, the first one remains.
        """
        first = second(_NOT_ASKED) if kept.is_unsure or not len(kept.brokers) else first_among(kept)
        usage = view.load.weighted
        full = [number for number in first.numbers if usage[number] > self.overloaded]
        if not full:
            return first
        other = second(first)
        # A failure that closes the policy closes it here as well, although the first choice had its odds.
        if other.declined is Reason.POLICY_ERROR:
            return other
        return first if other.declined is not None else _mix(first, other, frozenset(full))


def _mix(first: Ballot, other: Ballot, full: frozenset[int]) -> Ballot:
    chosen = dict(zip(first.numbers, first.odds.items(), strict=True))
    if len(full) == len(chosen):
        # Whichever broker comes first is passed over, so both offers were made.
        return replace(other, offers=(*first.offers, *other.offers))
    added = dict(zip(other.numbers, other.odds.items(), strict=True))
    share = sum(odds for number, (_, odds) in chosen.items() if number in full)
    mixed: dict[int, tuple[str, float]] = {}
    # Ascending by number, as in every ballot, so that a roll means the same broker whichever choice it comes from.
    for number in sorted(chosen.keys() - full | added.keys()):
        name = chosen[number][0] if number in chosen else added[number][0]
        odds_kept = 0.0 if number in full or number not in chosen else chosen[number][1]
        mixed[number] = name, odds_kept + share * (added[number][1] if number in added else 0.0)
    odds = dict(mixed.values())
    return replace(other, numbers=tuple(mixed), cumulative=tuple(accumulate(odds.values())), odds=odds)


_STEPS = float(1 << 64)


def roll(seed: int, cluster: str, bundle: str, rolls: int) -> float:
    """Compute a random number in [0, 1).

    Args:
        rolls: number of earlier draws for this bundle.
    """
    digest = hashlib.blake2b(f"{seed}\x1f{cluster}\x1f{bundle}\x1f{rolls}".encode()).digest()
    # The division may round up to 1.0 for the last 2**10 values. The caller takes the last candidate then.
    return int.from_bytes(digest[:8], "big") / _STEPS


@dataclass(slots=True)
class Decided:
    """A decision with its time and the number of requests it answered, since declined ones are not decided twice."""

    ts_us: int
    decision: Decision
    count: int = 1


class Draws:
    """Draws of decisions from ballots. Draws of a bundle are counted, so that each has its own random number.

    A ballot with at most one broker does not need a random number and does not increase the count.
    """

    def __init__(self, policy: str, cluster: str, seed: int) -> None:
        self._policy, self._cluster, self._seed = policy, cluster, seed
        self._rolls: dict[str, int] = {}

    def rolls(self, bundle: str) -> int:
        """Return the number of draws for a bundle."""
        return self._rolls.get(bundle, 0)

    def decision(self, bundle: str, ballot: Ballot, roster: Roster, fingerprint: str) -> Decision:
        """Draw an owner for a bundle and record how it came about."""
        broker: str | None = None
        if len(ballot.numbers) == 1:
            broker = roster[ballot.numbers[0]].id
        elif ballot.numbers:
            rolls = self.rolls(bundle)
            self._rolls[bundle] = rolls + 1
            broker = roster[ballot.pick(roll(self._seed, self._cluster, bundle, rolls))].id
        return ballot.decision(self._policy, bundle, fingerprint, broker)
