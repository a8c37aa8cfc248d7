"""Find the smallest change of a setting after which a cycle of a shedder ends in another way.

Every number and every switch among the parameters of the shedder is tried, and the policy's grace period; each change
is put to the shedder itself by the caller, who knows the instant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_type_hints

from lookup.engine.build import parameters_of
from lookup.engine.ledger import MICRO
from lookup.engine.policy import Policy
from lookup.hooks.protocols import Conf, Ge, Le

__all__ = ["SettingEdit", "edits_that_change"]

#: Steps away from a value, as shares of it; a value of 0 is left by powers of ten.
_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 1.0)
_FACTORS = (1.5, 2.0, 4.0, 9.0, 99.0, 999.0, 1e6)
_FROM_ZERO = tuple(10.0**power for power in range(-3, 10))
#: Halvings between the last value that changes nothing and the first that does.
_HALVINGS = 12
#: Changes of two settings that are returned.
_MOST_PAIRS = 3

Number = float | int


@dataclass(frozen=True, slots=True)
class SettingEdit:
    """Another value of one setting of a policy."""

    #: as in the policy's table, `shedder.threshold` or `grace_s`
    setting: str
    before: Number
    after: Number
    #: key of Pulsar's `broker.conf` that fills the parameter; None if there is none
    key: str | None
    #: how much is changed, as a share of the value; 1.0 for a switch
    cost: float

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

    def applied(self, policy: Policy, value: Number) -> Policy:
        """Return the policy with another value."""
        if self.name == "grace_s":
            return replace(policy, grace_us=int(value) * MICRO)
        parameter, shedder = self.name.removeprefix("shedder."), policy.shedder
        return replace(policy, shedder=replace(shedder, **{parameter: value}))  # type: ignore[type-var]  # a frozen dataclass

    def edit(self, value: Number) -> SettingEdit:
        """Return the change to another value."""
        is_share = not isinstance(self.value, bool) and self.value
        cost = abs(value - self.value) / abs(self.value) if is_share else 1.0
        return SettingEdit(self.name, self.value, value, self.key, cost)

    def lines(self) -> Iterator[list[Number]]:
        """Yield values to try, each list away from the present one: down, and up."""
        value = self.value
        if isinstance(value, bool):
            yield [not value]
            return
        down = [value * (1.0 - share) for share in _SHARES]
        up = [value * (1.0 + share) for share in (*_SHARES, *_FACTORS)] if value else list(_FROM_ZERO)
        for line in (down, up):
            if isinstance(value, int):
                line = [value - 1, *map(math.floor, line)] if line is down else [value + 1, *map(math.ceil, line)]
            within = [entry for entry in dict.fromkeys(line) if self.low <= entry <= self.high and entry != value]
            yield sorted(within, key=lambda entry: abs(entry - value))


def edits_that_change(policy: Policy, is_other: Callable[[Policy], bool]) -> list[tuple[SettingEdit, ...]]:
    """Return the smallest change of each setting after which a cycle ends as wanted, the smallest first.

    If no single setting does it, pairs are tried of which one is a count at its least value: a condition that has to
    hold several times in a row hides all others.

    Args:
        policy: one with a shedder.
        is_other: whether the cycle of a changed policy ends as wanted; the policy's own does not.
    """
    settings = list(_settings_of(policy))
    single = [edit for setting in settings if (edit := _smallest(setting, policy, is_other)) is not None]
    if single:
        return [(edit,) for edit in sorted(single, key=lambda edit: edit.cost)]
    pairs: list[tuple[SettingEdit, ...]] = []
    for first in settings:
        least = max(first.low, 0)
        if isinstance(first.value, bool) or not isinstance(first.value, int) or first.value == least:
            continue
        changed = first.applied(policy, int(least))
        for second in settings:
            edit = None if second.name == first.name else _smallest(second, changed, is_other)
            if edit is not None:
                pairs.append((first.edit(int(least)), edit))
    return sorted(pairs, key=lambda pair: sum(edit.cost for edit in pair))[:_MOST_PAIRS]


def _smallest(setting: _Setting, policy: Policy, is_other: Callable[[Policy], bool]) -> SettingEdit | None:
    """Return the smallest change of one setting that is enough, None if none of those that are tried is."""

    def is_enough(value: Number) -> bool:
        """Return whether the cycle ends as wanted with a value."""
        return is_other(setting.applied(policy, value))

    enough = []
    for line in setting.lines():
        before: Number = setting.value
        for value in line:
            if is_enough(value):
                enough.append(_narrowed(before, value, is_enough))
                break
            before = value
    edits = map(setting.edit, enough)
    return min(edits, key=lambda edit: edit.cost, default=None)


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
    return next((entry for entry in short if _is_between(before, entry, value) and is_enough(entry)), value)


def _is_between(before: Number, entry: Number, value: Number) -> bool:
    """Return whether a rounded value is no farther from the one that is not enough than a hundredth more."""
    return abs(entry - before) <= abs(value - before) + abs(value) / 100 and entry != before


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
