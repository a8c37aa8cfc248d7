"""Find the smallest change after which a policy prefers another broker, or a cycle of its shedder ends in another way.

Of a decision, changes of a property, a load or a weight are tried, which follow from what the policy declares to read;
of a cycle, every number and every switch among the shedder's parameters, and the policy's grace period. Each change is
put to the policy itself: what is returned is what the engine would decide, not a guess about the parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter
from typing import Any, Literal, get_type_hints

from lookup.engine.build import parameters_of
from lookup.engine.ledger import MICRO
from lookup.engine.policy import Instant, Policy
from lookup.errors import PolicyError
from lookup.hooks.protocols import Conf, Ge, Le
from lookup.model import Broker, ClusterView, LookupRequest, Roster
from lookup.model.topology import LEVELS

__all__ = ["Change", "Edit", "SettingEdit", "changes", "cheapest", "cost_of", "edits_that_change", "smallest_changes"]

Number = float | int
Kind = Literal["client property", "broker property", "load", "weight"]
#: A property is changed or not; a load of 1.0, and a weight that is left out, are changed as much as a property.
_PROPERTY = 1.0
#: Loads and weights are tried in so many steps from 0 to 1, or to twice what a weight is.
_STEPS = 100
#: Odds this close are equal.
_CLOSE = 1e-9
#: Of a setting: steps away from a value, as shares of it; a value of 0 is left by powers of ten.
_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 1.0)
_FACTORS = (1.5, 2.0, 4.0, 9.0, 99.0, 999.0, 1e6)
_FROM_ZERO = tuple(10.0**power for power in range(-3, 10))
#: Halvings between the last value that changes nothing and the first that does.
_HALVINGS = 12
#: Changes of two settings that are returned.
_MOST_PAIRS = 3


def cheapest(
    changes: Iterable[tuple[Any, ...]],
    is_enough: Callable[[tuple[Any, ...]], bool],
    subject_of: Callable[[Any], Hashable],
) -> list[tuple[Any, ...]]:
    """Return the cheapest change of each subject that is enough, the cheapest first.

    Several edits are no answer if a cheaper one with the subject of one of them is.

    Args:
        changes: all that are tried, tuples of edits with a `cost`; of equally cheap ones the first is tried first.
        subject_of: returns what an edit changes.
    """
    found: dict[tuple[Hashable, ...], tuple[Any, ...]] = {}
    for change in sorted(changes, key=cost_of):
        subjects = tuple(map(subject_of, change))
        if subjects not in found and not any((subject,) in found for subject in subjects) and is_enough(change):
            found[subjects] = change
    return list(found.values())


def cost_of(change: Iterable[Any]) -> float:
    """Return how much is changed, in all edits together."""
    return float(sum(edit.cost for edit in change))


@dataclass(frozen=True)
class Edit:
    """One change of a scene: of the request, of the brokers and their load, or of the policy."""

    kind: Kind
    #: the property's key, the broker whose property or load changes, the scorer and its place among the scorers
    key: str | None
    broker: str | None
    place: int | None
    #: None: absent, or no report
    before: str | float | None
    after: str | float | None
    #: how much is changed, 1.0 for a property
    cost: float

    def applied(
        self, policy: Policy, request: LookupRequest, view: ClusterView
    ) -> tuple[Policy, LookupRequest, ClusterView]:
        """Return the scene after the change."""
        if self.kind == "client property":
            kept = {key: value for key, value in request.properties.items() if key != self.key}
            given = {} if self.after is None else {str(self.key): str(self.after)}
            return policy, replace(request, properties={**kept, **given}), view
        if self.kind == "broker property":
            roster = [_labelled(b, str(self.key), str(self.after)) if b.id == self.broker else b for b in view.brokers]
            return policy, request, replace(view, brokers=Roster(roster))
        if self.kind == "load":
            return policy, request, _loaded(view, str(self.broker), float(self.after or 0.0))
        scorers = tuple(
            replace(term, weight=float(self.after or 0.0)) if place == self.place else term
            for place, term in enumerate(policy.scorers)
        )
        return replace(policy, scorers=scorers), request, view

    def document(self) -> dict[str, object]:
        """Return the change as JSON has it."""
        names = ("kind", "key", "broker", "before", "after", "cost")
        return {name: getattr(self, name) for name in names}


#: One edit, or two that are made together.
Change = tuple[Edit, ...]


def smallest_changes(policy: Policy, request: LookupRequest, view: ClusterView, broker: str) -> list[Change]:
    """Return the cheapest change of each kind after which a policy prefers a broker, the cheapest first.

    Returns:
        Empty if the broker is preferred as it is, or none of the changes that are tried makes it so.

    Raises:
        PolicyError: if the policy cannot decide the request as it is.
    """

    def prefers(policy: Policy, request: LookupRequest, view: ClusterView) -> bool:
        odds = policy.ballot(request, Instant(policy, view)).odds
        others = max((share for other, share in odds.items() if other != broker), default=0.0)
        return odds.get(broker, 0.0) > others + _CLOSE

    def is_enough(change: Change) -> bool:
        scene = policy, request, view
        for edit in change:
            scene = edit.applied(*scene)
        try:
            return prefers(*scene)
        except PolicyError:
            # A part need not stand a scene that nobody has asked it about.
            return False

    if prefers(policy, request, view):
        return []
    return cheapest(changes(policy, request, view, broker), is_enough, attrgetter("kind", "broker"))


def changes(policy: Policy, request: LookupRequest, view: ClusterView, broker: str) -> Iterator[Change]:
    """Yield every change that is tried, in no order of cost: single edits, and a property with the broker's load."""
    target = view.brokers[number] if (number := view.brokers.number(broker)) is not None else Broker(broker)
    properties = list(_of_properties(policy, request, view, target))
    loads = list(_of_load(broker, view)) if "view.load" in policy.reads else []
    odds = policy.ballot(request, Instant(policy, view)).odds
    rivals = sorted((other for other in odds if other != broker), key=lambda other: (-odds[other], other))
    of_rival = _of_load(rivals[0], view) if rivals and "view.load" in policy.reads else ()
    for edit in (*properties, *loads, *of_rival, *_of_weights(policy)):
        yield (edit,)
    for one in properties:
        for other in loads:
            yield (one, other)


def _of_properties(policy: Policy, request: LookupRequest, view: ClusterView, target: Broker) -> Iterator[Edit]:
    keys = {name.partition(".")[2] for name in policy.reads if name.startswith("properties.")}
    if "properties" in policy.reads:
        # All are read: those that either side has can make a difference.
        published = {key.removeprefix(b.property_prefix) for b in view.brokers for key in b.lookup_data.properties}
        keys |= {*request.properties, *published}
    for key in sorted(keys):
        wanted = request.property_of(key)
        labels = sorted({str(label) for label in view.brokers.labels(key).tolist() if label is not None})
        for value in (*labels, None):
            if value != wanted:
                yield Edit("client property", key, None, None, wanted, value, _PROPERTY)
        if wanted is not None and wanted != target.property_of(key):
            yield Edit("broker property", key, target.id, None, target.property_of(key), wanted, _PROPERTY)


def _of_weights(policy: Policy) -> Iterator[Edit]:
    for place, term in enumerate(policy.scorers):
        for after in _steps(2.0 * term.weight):
            # The engine has no weight of 0: a scorer that counts for nothing is left out in the settings.
            if after not in (0.0, term.weight):
                cost = abs(after - term.weight) / term.weight
                yield Edit("weight", term.scorer.name, None, place, term.weight, after, cost)


def _of_load(broker: str, view: ClusterView) -> Iterator[Edit]:
    number = view.brokers.number(broker)
    used = math.nan if number is None else float(view.load.usage[number])
    known = None if math.isnan(used) else used
    for after in _steps(1.0):
        # Of a broker that has not reported, half is taken to be its load, as parts do by default.
        cost = abs(after - (0.5 if known is None else known))
        if after != known:
            yield Edit("load", None, broker, None, known, after, cost)


def _steps(most: float) -> Iterable[float]:
    return (most * step / _STEPS for step in range(_STEPS + 1))


def _labelled(broker: Broker, key: str, value: str) -> Broker:
    """Return a broker that publishes a label; its place follows if it was that of its label."""
    properties = {**broker.lookup_data.properties, broker.property_prefix + key: value}
    changed = replace(broker, lookup_data=replace(broker.lookup_data, properties=properties))
    follows = key in LEVELS and getattr(broker.location, key) == broker.property_of(key)
    return replace(changed, location=replace(broker.location, **{key: value})) if follows else changed


def _loaded(view: ClusterView, broker: str, usage: float) -> ClusterView:
    """Return a view in which one broker has another usage, and as much throughput as belongs to it."""
    number, load = view.brokers.number(broker), view.load
    usage_of, throughput = load.usage.copy(), load.throughput.copy()
    usage_of[number], throughput[number] = usage, usage * view.capacity[number]
    changed: dict[str, Any] = {"usage": usage_of, "throughput": throughput}
    for name, factor in (("max_usage", 1.0), ("weighted_usage", 1.0), ("resources", 100.0)):
        figures = getattr(load, name)
        if figures is not None:
            changed[name] = figures.copy()
            changed[name][number] = factor * usage
    return replace(view, load=replace(load, **changed).read_only())


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
    subject = attrgetter("setting")
    found = cheapest(((edit,) for edit in edits), is_enough, subject)
    if found:
        return sorted(map(narrowed, found), key=cost_of)
    return sorted(map(narrowed, cheapest(pairs, is_enough, subject)), key=cost_of)[:_MOST_PAIRS]


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
