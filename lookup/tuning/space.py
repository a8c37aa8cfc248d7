"""Turn spaces of settings into policies, with points spread over a whole space, and points near a good one.

A point has a coordinate in [0, 1] for each varied setting. Points are spread by the sequence of Sobol,
which is not random, so the same space gives the same candidates.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, product
from typing import TYPE_CHECKING, Any

import numpy as np
from annotated_types import Ge, Le

from lookup.engine.build import build_policies, hints_of
from lookup.engine.plugins import Registry
from lookup.engine.policy import Policy
from lookup.errors import SettingsError
from lookup.hooks import Conf
from lookup.model.quoting import shown, suggestion
from lookup.settings.broker_conf import CHOOSING_KEYS
from lookup.settings.policy import PolicySpec, is_path
from lookup.settings.pulsar_keys import BUNDLES_KEY, LOAD_MANAGER_KEYS
from lookup.settings.releases import DEFAULT_RELEASE, RELEASES
from lookup.settings.tuning import RangeEntry, SpaceEntry

if TYPE_CHECKING:
    from scipy.stats import qmc

__all__ = ["Axis", "Point", "Space", "build_space", "near", "spread"]

#: Least number of values of a range. Numbers have only as many digits as it needs, since pasted text should be short.
_VALUES = 25
#: How far around a good point the next ones lie, as a share of each axis, in the first round and in each further one.
_REACH, _CLOSER = 0.25, 0.5
#: Kinds of parts by the key of a policy that holds them.
_KINDS = {"filters": "filters", "scorers": "scorers", "selector": "selectors", "shedder": "shedders"}
#: Keys of how many bundles a namespace begins with, of a policy and of a `broker.conf`.
_BUNDLES = ("bundles", BUNDLES_KEY)
#: Settings that any policy may have, with any parts.
_OF_ANY = frozenset({*PolicySpec.model_fields, *CHOOSING_KEYS, *LOAD_MANAGER_KEYS})
#: Combinations of choices in which an axis is looked at, to see whether it does anything.
_COMBINATIONS = 64
#: As a power of two, the greatest ratio of drawn points to candidates.
_SPARE = 3


@dataclass(frozen=True)
class Axis:
    """A setting that is varied."""

    key: str
    #: the values, if they are listed
    choices: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 1.0
    is_log: bool = False
    is_whole: bool = False

    def value(self, coordinate: float) -> Any:
        """Compute the value at a coordinate in [0, 1], a number with few digits."""
        if self.choices:
            return self.choices[min(int(coordinate * len(self.choices)), len(self.choices) - 1)]
        if self.is_log:
            exact = self.low * (self.high / self.low) ** coordinate
        else:
            exact = self.low + (self.high - self.low) * coordinate
        if self.is_whole:
            return round(exact)
        # Three, and more where a range is narrow and far from 0.
        far = max(abs(self.low), abs(self.high)) / (self.high - self.low)
        digits = 1 + math.ceil(math.log10(_VALUES * max(far, 1.0)))
        return min(max(float(f"{exact:.{digits}g}"), self.low), self.high)


@dataclass(frozen=True)
class Point:
    """The difference between a candidate and the policy it comes from."""

    space: str
    #: coordinates, shape (n_axes,), empty for a point outside the search
    coordinates: tuple[float, ...]
    #: by key, only the differences from the unchanged policy
    changes: Mapping[str, Any]

    @property
    def identity(self) -> str:
        """The key that is equal for points that make the same policy."""
        return f"{self.space} {sorted(self.changes.items(), key=lambda change: change[0])!r}"

    def without(self, *keys: str) -> Point:
        """Copy the point with some settings unchanged from the policy."""
        return replace(self, changes={name: value for name, value in self.changes.items() if name not in keys})


@dataclass(frozen=True)
class Space:
    """Settings of a policy that are varied together."""

    name: str
    base: PolicySpec
    #: values that all points have
    fixed: Mapping[str, Any]
    axes: tuple[Axis, ...]
    #: values that hold for the policy and are written elsewhere than in it
    implied: Mapping[str, Any] = field(default_factory=dict)

    @property
    def of_bundles(self) -> tuple[str, ...]:
        """The keys that give namespaces other bundles than the policy does."""
        varied = {axis.key for axis in self.axes}
        return tuple(
            key for key in _BUNDLES if key in varied or (key in self.fixed and self.fixed[key] != self.before(key))
        )

    @cached_property
    def size(self) -> float:
        """The number of combinations of values, infinite if a number is varied."""
        return math.prod(len(axis.choices) or math.inf for axis in self.axes)

    def point(self, coordinates: Sequence[float]) -> Point:
        """Build the point at some coordinates, each in [0, 1]."""
        varied = {axis.key: axis.value(at) for axis, at in zip(self.axes, coordinates, strict=True)}
        return Point(self.name, tuple(map(float, coordinates)), self._compute_changes(varied))

    def defaults(self) -> Point | None:
        """Build the point with Pulsar's own values, None if a setting has none."""
        keys = [axis.key for axis in self.axes]
        values = RELEASES[self.base.release].defaults
        if not all(key in values for key in keys):
            return None
        return Point(self.name, (), self._compute_changes({key: values[key] for key in keys}))

    def today(self, axis: Axis) -> Any:
        """Find the value of a point without a change of it, None if it is not written."""
        return self._find_value(self._start, axis.key)

    def before(self, key: str) -> Any:
        """Find the value in the unchanged policy, None if it is not written."""
        return self._find_value(self.base, key)

    def _find_value(self, spec: PolicySpec, key: str) -> Any:
        value = spec.value_at(key)
        return self.implied.get(key) if value is None else value

    def policy(self, point: Point, name: str) -> PolicySpec:
        """Build the policy of a point.

        Raises:
            SettingsError: for wrong values.
        """
        return self.base.with_changes(name, point.changes)

    @cached_property
    def _start(self) -> PolicySpec:
        return self.base.with_changes(self.base.name, self.fixed) if self.fixed else self.base

    def _compute_changes(self, varied: Mapping[str, Any]) -> dict[str, Any]:
        fixed = {key: value for key, value in self.fixed.items() if self.before(key) != value}
        return fixed | {key: value for key, value in varied.items() if self._find_value(self._start, key) != value}


def _build_sobol(space: Space) -> qmc.Sobol:
    from scipy.stats import qmc  # noqa: PLC0415  takes half a second, in which spaces are checked

    return qmc.Sobol(len(space.axes), scramble=False)


def spread(space: Space, count: int) -> Iterator[Point]:
    """Yield points all over a space, at most so many, each policy once, or all points if there are no more."""
    sobol = _build_sobol(space)
    # A power of two has the balance that makes the sequence better than random points, and the first point is a corner.
    # With few values, several points make the same policy, and this number misses none of up to 200 combinations.
    sequence = sobol.random_base2(math.ceil(math.log2(count + 1)) + _SPARE)[1:]
    yield from islice(_drop_duplicates(space.point(row.tolist()) for row in sequence), count)


def near(space: Space, points: Sequence[Point], count: int, *, turn: int) -> Iterator[Point]:
    """Yield points around good ones, the best first, as many around each. They are closer in each further turn."""
    reach = _REACH * _CLOSER**turn
    numeric = np.array([not axis.choices for axis in space.axes])
    steps = _build_sobol(space).fast_forward(1 + turn * count).random(count)
    centres = np.array([points[number % len(points)].coordinates for number in range(count)])
    moved = np.clip(centres + numeric * reach * (2.0 * steps - 1.0), 0.0, 1.0)
    yield from _drop_duplicates(space.point(row.tolist()) for row in moved)


def _drop_duplicates(points: Iterable[Point]) -> Iterator[Point]:
    identities = set[str]()
    for point in points:
        if point.identity not in identities:
            identities.add(point.identity)
            yield point


def build_space(entry: SpaceEntry, base: PolicySpec, registry: Registry, *, bundles: int) -> Space:
    """Build a space that can be searched.

    Raises:
        SettingsError: for missing or forbidden ends, and settings that nothing reads, with all mistakes together.
    """
    where = f"space {shown(entry.name)}"
    allowed = _list_allowed(base.with_changes(base.name, entry.set), registry)
    axes, problems = [], []
    for key, values in entry.vary.items():
        if not isinstance(values, RangeEntry):
            axes.append(Axis(key, tuple(values)))
            continue
        limits = allowed.get(key, _Allowed())
        low = limits.low if values.low is None else values.low
        high = limits.high if values.high is None else values.high
        if low is None or high is None:
            missing = "low and high" if low is high else "low" if low is None else "high"
            problems.append(f"{where}: vary.{key}: no part sets an end there that may be tried; give {missing}")
        elif problem := values.problem(low, high):
            problems.append(f"{where}: vary.{key}: {problem}; a missing end is the part's own")
        else:
            written = [end for end in (values.low, values.high) if end is not None]
            # The type of an end that is the part's own determines whether the values between are integers.
            is_whole = (len(written) == 2 or limits.is_whole) and all(isinstance(end, int) for end in written)
            axes.append(Axis(key, (), low, high, is_log=values.scale == "log", is_whole=is_whole))
    problems += [
        f"{where}: {table}.name: is what reports call the policy, and changes nothing; leave it out"
        for table, keys in (("set", entry.set), ("vary", entry.vary))
        if "name" in keys
    ]
    # Both keys are one setting.
    implied = dict.fromkeys(_BUNDLES, base.bundles or bundles)
    space = Space(entry.name, base, entry.set, tuple(axes), implied)
    if not problems:
        problems = [f"{where}: {problem}" for problem in _find_problems(space, allowed, registry)]
    if problems:
        raise SettingsError(problems)
    return space


@dataclass(frozen=True)
class _Allowed:
    """The range of a parameter that a part allows, with None for a missing or excluded end."""

    low: float | None = None
    high: float | None = None
    is_whole: bool = False


def _list_allowed(base: PolicySpec, registry: Registry) -> dict[str, _Allowed]:
    allowed = {
        "grace_s": _Allowed(0, None, is_whole=True),
        "shedding_interval_s": _Allowed(1, None, is_whole=True),
        **dict.fromkeys(_BUNDLES, _Allowed(is_whole=True)),
    }
    for holder, kind in _KINDS.items():
        parts = getattr(base, holder)
        of_kind = parts if isinstance(parts, tuple) else () if parts is None else (parts,)
        for number, part in enumerate(of_kind):
            path = f"{holder}[{number}]" if isinstance(parts, tuple) else holder
            for name, hint in hints_of(registry.find(kind, part.use)).items():
                marks = getattr(hint, "__metadata__", ())
                ends: dict[str, Any] = {}
                for mark in marks:
                    if isinstance(mark, Ge):
                        ends["low"] = mark.ge
                    elif isinstance(mark, Le):
                        ends["high"] = mark.le
                allowed[f"{path}.{name}"] = _Allowed(**ends, is_whole=getattr(hint, "__origin__", hint) is int)
                for mark in marks:
                    if isinstance(mark, Conf):
                        scaled: dict[str, Any] = {end: value / mark.scale for end, value in ends.items()}
                        # Whole percent are a share of the part.
                        if isinstance(RELEASES[DEFAULT_RELEASE].defaults.get(mark.key), int):
                            scaled["is_whole"] = True
                        allowed[mark.key] = replace(allowed[f"{path}.{name}"], **scaled)
    return allowed


def _find_problems(space: Space, keys: Mapping[str, Any], registry: Registry) -> Iterator[str]:
    of = f"policy {shown(space.base.name)}"
    idle, wrong = {axis.key for axis in space.axes}, dict[str, None]()
    for middle in islice(
        product(*(_list_places(axis) if axis.choices else (0.5,) for axis in space.axes)), _COMBINATIONS
    ):
        for number, axis in enumerate(space.axes):
            policies: list[Policy] = []
            for place in _list_places(axis):
                point = space.point([*middle[:number], place, *middle[number + 1 :]])
                try:
                    # Under the name of the policy, so that only its behaviour can differ.
                    policies += build_policies(registry, [space.policy(point, space.base.name)])
                except SettingsError as error:
                    wrong |= dict.fromkeys(error.problems)
            if any(policy != policies[0] for policy in policies):
                idle.discard(axis.key)
    yield from wrong
    if not wrong:
        yield from (
            f"set.{key}: no part of {of} reads it; {suggestion(key, sorted({*keys, *LOAD_MANAGER_KEYS}))}"
            for key in space.fixed
            if not (key in keys or key.partition(".")[0] in _OF_ANY or is_path(key))
        )
        for key in sorted(idle):
            if key in keys or is_path(key):
                yield f"vary.{key}: {of} is the same with all its values; give others, or remove the other key of it"
            else:
                yield f"vary.{key}: no part of {of} reads it; {suggestion(key, sorted(keys))}"


def _list_places(axis: Axis) -> list[float]:
    count = len(axis.choices)
    return [(number + 0.5) / count for number in range(count)] or [0.0, 1.0]
