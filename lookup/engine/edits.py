"""Find the smallest change after which a cycle of a policy's shedder ends in another way.

Every number and every switch among the shedder's parameters is tried, and the policy's grace period. Each change is put
to the policy itself: what is returned is what the engine would decide, not a guess about the parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, get_type_hints

from lookup.engine.build import parameters_of
from lookup.engine.ledger import MICRO
from lookup.engine.policy import Policy
from lookup.hooks.protocols import Conf, Ge, Le

__all__ = ["SettingEdit", "edits_that_change"]

Number = float | int
#: Steps away from a value, as shares of it; a value of 0 is left by powers of ten.
_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 1.0)
_FACTORS = (1.5, 2.0, 4.0, 9.0, 99.0, 999.0, 1e6)
_FROM_ZERO = tuple(10.0**power for power in range(-3, 10))
#: Halvings between the last value that changes nothing and the first that does.
_HALVINGS = 12
#: Changes of two settings that are returned.
_MOST_PAIRS = 3


@dataclass(frozen=True, slots=True)
class SettingEdit:
    """Another value of one setting of a policy."""

    #: as in the policy's table, `shedder.threshold` or `grace_s`
    setting: str
    before: Number
    after: Number
    #: key of Pulsar's `broker.conf` that fills the parameter; None if there is none
    key: str | None
    #: the value nearer to `before` that is tried ahead of this one
    nearer: Number

    @property
    def cost(self) -> float:
        """Return how much is changed, as a share of the value; 1.0 for a switch."""
        is_share = not isinstance(self.before, bool) and self.before
        return abs(self.after - self.before) / abs(self.before) if is_share else 1.0

    def applied(self, policy: Policy) -> Policy:
        """Return the policy with the other value."""
        if self.setting == "grace_s":
            return replace(policy, grace_us=int(self.after) * MICRO)
        shedder = replace(policy.shedder, **{self.setting.removeprefix("shedder."): self.after})  # type: ignore[type-var]  # a frozen dataclass
        return replace(policy, shedder=shedder)

    def document(self) -> dict[str, object]:
        """Return the change as JSON has it."""
        return {name: getattr(self, name) for name in ("setting", "before", "after", "key", "cost")}


@dataclass(frozen=True, slots=True)
class _Setting:
    """A setting that can be changed, and the values it may have."""

    name: str
    value: Number
    low: float
    high: float
    key: str | None

    def edits(self) -> Iterator[SettingEdit]:
        """Yield the changes that are tried: down, away from the present value, and up."""
        value = self.value
        down, up = [value * (1.0 - share) for share in _SHARES], list[Number](_FROM_ZERO)
        if value:
            up = [value * (1.0 + share) for share in (*_SHARES, *_FACTORS)]
        if isinstance(value, bool):
            down, up = [not value], []
        elif isinstance(value, int):
            down, up = [value - 1, *map(math.floor, down)], [value + 1, *map(math.ceil, up)]
        for line in (down, up):
            within = {entry for entry in line if self.low <= entry <= self.high and entry != value}
            for nearer, after in pairwise([value, *sorted(within, key=lambda entry: abs(entry - value))]):
                yield SettingEdit(self.name, value, after, self.key, nearer)

    def least(self) -> Iterator[SettingEdit]:
        """Yield the change to the least value, if the setting is a count and above it."""
        least = max(self.low, 0)
        if isinstance(self.value, int) and not isinstance(self.value, bool) and self.value != least:
            yield SettingEdit(self.name, self.value, int(least), self.key, self.value)


def edits_that_change(policy: Policy, is_other: Callable[[Policy], bool]) -> list[tuple[SettingEdit, ...]]:
    """Return the smallest change of each setting after which a cycle ends as wanted, the smallest first.

    If no single setting does it, pairs are tried of which one is a count at its least value: a condition that has to
    hold several times in a row hides all others.

    Args:
        policy: one with a shedder.
        is_other: whether the cycle of a changed policy ends as wanted; the policy's own does not.
    """

    def is_enough(change: Sequence[SettingEdit]) -> bool:
        changed = policy
        for edit in change:
            changed = edit.applied(changed)
        return is_other(changed)

    def narrowed(change: Sequence[SettingEdit]) -> tuple[SettingEdit, ...]:
        *others, last = change
        value = _narrowed(last.nearer, last.after, lambda value: is_enough([*others, replace(last, after=value)]))
        return (*others, replace(last, after=value))

    settings = list(_settings_of(policy))
    edits = [edit for setting in settings for edit in setting.edits()]
    least = [edit for setting in settings for edit in setting.least()]
    pairs = ((first, edit) for first in least for edit in edits if edit.setting != first.setting)
    found = _cheapest(((edit,) for edit in edits), is_enough)
    if found:
        return sorted(map(narrowed, found), key=_cost_of)
    return sorted(map(narrowed, _cheapest(pairs, is_enough)), key=_cost_of)[:_MOST_PAIRS]


def _cheapest(
    changes: Iterable[tuple[SettingEdit, ...]], is_enough: Callable[[Sequence[SettingEdit]], bool]
) -> list[tuple[SettingEdit, ...]]:
    """Return the cheapest change of each setting, or pair of settings, that is enough, the cheapest first."""
    found: dict[tuple[str, ...], tuple[SettingEdit, ...]] = {}
    for change in sorted(changes, key=_cost_of):
        settings = tuple(edit.setting for edit in change)
        # Two edits are no answer if a cheaper one of the same setting is.
        if settings not in found and not any((setting,) in found for setting in settings) and is_enough(change):
            found[settings] = change
    return list(found.values())


def _cost_of(change: Iterable[SettingEdit]) -> float:
    return sum(edit.cost for edit in change)


def _narrowed(before: Number, value: Number, is_enough: Callable[[Number], bool]) -> Number:
    """Return a value between one that is not enough and one that is, nearer to the first, and short if possible."""
    if isinstance(value, bool):
        return value
    for _ in range(_HALVINGS):
        middle = (before + value) / 2
        if isinstance(value, int):
            middle = math.floor(middle) if value < before else math.ceil(middle)
            if middle in (before, value):
                return value
        before, value = (before, middle) if is_enough(middle) else (middle, value)
    if isinstance(value, int):
        return value
    short = (float(f"{value:.{digits}g}") for digits in range(1, 7))
    # No farther from the one that is not enough than a hundredth more.
    most = abs(value - before) + abs(value) / 100
    return next((entry for entry in short if 0 < abs(entry - before) <= most and is_enough(entry)), value)


def _settings_of(policy: Policy) -> Iterator[_Setting]:
    """Yield what can be changed: numbers and switches of the shedder, and the grace period."""
    shedder: Any = policy.shedder
    hints = get_type_hints(type(shedder), include_extras=True)
    for parameter in parameters_of(type(shedder)):
        value = getattr(shedder, parameter.name)
        if not isinstance(value, int | float) or not math.isfinite(value):
            continue
        marks: Sequence[Any] = getattr(hints[parameter.name], "__metadata__", ())
        low: Any = next((mark.ge for mark in marks if isinstance(mark, Ge)), -math.inf)
        high: Any = next((mark.le for mark in marks if isinstance(mark, Le)), math.inf)
        key = next((mark.key for mark in marks if isinstance(mark, Conf)), None)
        yield _Setting(f"shedder.{parameter.name}", value, low, high, key)
    yield _Setting("grace_s", policy.grace_us // MICRO, 0, math.inf, "loadBalancerSheddingGracePeriodMinutes")
