"""Read scenarios, which are a cluster, a load over time, events, policies and assertions about them.

A scenario file is TOML. `lookup.simulation.loop` runs scenarios.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from lookup.errors import InvalidNameError, SettingsError
from lookup.model.names import NamespaceName
from lookup.model.quoting import suggestion
from lookup.settings.base import (
    Above0,
    Count,
    Number,
    Positive,
    Ratio,
    Share,
    Strict,
    Truth,
    Whole,
    fill_number,
    is_numbered,
    refuse,
)
from lookup.settings.files import anchor_paths, parsed_toml, read_text
from lookup.settings.policy import PolicySpec
from lookup.settings.problems import place, problems_of

__all__ = [
    "Assertion", "BrokerGroup", "FigureName", "NamespaceLoad", "Scenario", "ScenarioEvent", "ScenarioFile",
    "checked_scenario", "read_scenario",
]  # fmt: skip

#: More brokers or bundles than any cluster has are a slip of the pen, and would fill the memory.
_Many = Annotated[int, Field(strict=True, ge=1, le=100_000)]

FigureName = Literal[
    "balance",
    "usage_max",
    "usage_peak",
    "overloaded",
    "idle",
    "thrash",
    "last_move",
    "last_unload",
    "moves",
    "cycle_moves",
    "unloads",
    "moved_load",
    "splits",
    "unowned",
    "matched",
]


class BrokerGroup(Strict):
    """Brokers that differ by number alone."""

    id: str = Field(min_length=1)
    """Id, in which `{n}` is the number, from 1."""
    count: _Many = 1
    """Number of brokers."""
    capacity: Above0
    """MiB per second at usage 1.0."""
    busy: Ratio = 0.0
    """Usage by other processes on the machine, which no bundle brings or takes along."""
    properties: Mapping[str, str] = {}
    """Published lookup properties with the prefix, like `"lookup.rack" = "a"`."""
    present: Truth = True
    """Whether they are registered from the start. Otherwise they join with an event."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        has_number = self.count == 1 or is_numbered(self.id)
        refuse([] if has_number else [f"id: {self.id!r} is one name for {self.count} brokers; put {{n}} into it"])
        return self

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all."""
        return tuple(fill_number(self.id, number) for number in range(1, self.count + 1))


class NamespaceLoad(Strict):
    """A namespace, its topics, and their load over time."""

    name: str
    """Tenant and namespace."""
    bundles: _Many = 16
    """Bundles at the start, of equal range."""
    topics: Annotated[int, Field(strict=True, ge=1, le=1_000_000)] = 16
    """Topics, spread evenly over the hashes."""
    load: Share
    """MiB per second, in and out together, of all topics."""
    skew: Share = 0.0
    """Exponent of Zipf's law for the differences of topics, 0 for equal topics."""
    jitter: Ratio = 0.0
    """Relative random deviation of a topic's load in every minute."""
    wave: Ratio = 0.0
    """Relative amplitude of the wave of load."""
    period: Positive = 1440
    """Minutes of one swing."""
    message_bytes: Above0 = 1024.0
    """Size of a message."""
    clients: Count = 2
    """Producers and consumers of a topic, each."""

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        try:
            return str(NamespaceName.parse(name))
        except InvalidNameError as error:
            raise ValueError(str(error)) from None


class ScenarioEvent(Strict):
    """Something that happens at the start of a minute."""

    at: Count
    """The minute."""
    leave: tuple[str, ...] = ()
    """Brokers that leave. Their bundles lose their owner."""
    join: tuple[str, ...] = ()
    """Brokers that come, or come back, empty."""
    namespace: str | None = None
    """Namespaces whose load changes, by default all."""
    topics: tuple[Count, ...] = ()
    """Numbers of the topics whose load changes, from 0, by default all."""
    factor: Share | None = None
    """Factor of their initial load from now on."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems = []
        if self.factor is None and (self.namespace is not None or self.topics):
            problems.append("factor: the event names a load but not how much it changes")
        elif self.factor is None and not (self.leave or self.join):
            problems.append("nothing happens: give leave, join or factor")
        refuse(problems)
        return self


class Assertion(Strict):
    """Limits of a figure of a policy's trend."""

    figure: FigureName
    """Name of the figure, see the page on scenarios."""
    policy: str | None = None
    """Name of the policy, by default every one that is not in `unlike`."""
    unlike: tuple[str, ...] = ()
    """Policies for which it must not be true, since an assertion that holds for all does not distinguish any."""
    because: str | None = None
    """Source of the limits, which is printed if the assertion fails."""
    at_most: Number | None = None
    """The figure may be this or less."""
    at_least: Number | None = None
    """The figure may be this or more."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems = []
        if self.at_most is None and self.at_least is None:
            problems.append("should have at_most or at_least")
        elif self.at_most is not None and self.at_least is not None and self.at_least > self.at_most:
            problems.append(f"at_least: {self.at_least:g} is more than at_most, {self.at_most:g}; no figure is both")
        if self.policy is not None and self.policy in self.unlike:
            problems.append(f"unlike: {self.policy!r} is the policy the assertion is about; name others")
        refuse(problems)
        return self


class Scenario(Strict):
    """A cluster, a load over time, events, policies, and assertions about them."""

    about: str
    """Purpose of the scenario, in a sentence or two."""
    minutes: _Many
    """Length of the run."""
    seed: Whole = 1
    """Seed of random draws and jitter."""
    every: Positive = 10
    """Minutes between the rows of the trend."""
    window: Positive = 10
    """Minutes at the end over which balance and the highest usage are averaged."""
    reports: Literal["fresh", "published"] = "fresh"
    """Load of a broker in the view of others, either its figures of this minute, or its last report by the policy's
    cadence."""
    history: Ratio = 0.0
    """Weight of the past in the usage brokers report, per minute or, if they publish, per five seconds (Pulsar:
    loadBalancerHistoryResourcePercentage)."""
    properties: Mapping[str, str] = {}
    """Lookup properties that every client sends."""
    owners: Mapping[str, Count] = {}
    """Initial number of bundles of each broker, in the order of bundles' names. The rest is placed by lookups."""
    brokers: tuple[BrokerGroup, ...] = Field(min_length=1)
    """The cluster."""
    namespaces: tuple[NamespaceLoad, ...] = Field(min_length=1)
    """The load."""
    events: tuple[ScenarioEvent, ...] = ()
    """Changes of load and registry."""
    policies: tuple[PolicySpec, ...] = Field(min_length=1)
    """Each runs the whole scenario by itself."""
    assertions: tuple[Assertion, ...] = ()
    """Claims about the figures of the whole run."""

    @property
    def broker_ids(self) -> tuple[str, ...]:
        """The ids of all brokers that ever take part."""
        return tuple(name for group in self.brokers for name in group.ids)

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems = [*self._find_wrong_names(), *self._find_wrong_events()]
        problems += [
            f"policies[{index}].bundles: {policy.bundles} of policy {policy.name!r} have no effect. In a scenario "
            "`namespaces` gives their number"
            for index, policy in enumerate(self.policies)
            if policy.bundles is not None
        ]
        if self.window > self.minutes:
            problems.append(f"window: {self.window} minutes are more than the scenario has, {self.minutes}")
        if not self.properties and any(assertion.figure == "matched" for assertion in self.assertions):
            problems.append("assertions: matched needs clients that send properties; give the scenario `properties`")
        # The registry can be followed only if every name in it is known.
        refuse(problems or list(self._find_wrong_registry()))
        return self

    def _find_wrong_names(self) -> Iterator[str]:
        lists = {
            "brokers": self.broker_ids,
            "namespaces": [entry.name for entry in self.namespaces],
            "policies": [entry.name for entry in self.policies],
        }
        for table, names in lists.items():
            for name, count in sorted(Counter(names).items()):
                if count > 1:
                    yield f"{table}: {name!r} occurs more than once"
        # A dict, for many brokers may be named.
        brokers, policies = dict.fromkeys(self.broker_ids), [entry.name for entry in self.policies]
        named = [("owners", broker) for broker in self.owners]
        named += [("events", broker) for event in self.events for broker in (*event.leave, *event.join)]
        for table, broker in named:
            if broker not in brokers:
                yield f"{table}: there is no broker {broker!r}; {suggestion(broker, list(brokers))}"
        for assertion in self.assertions:
            for policy in (*filter(None, [assertion.policy]), *assertion.unlike):
                if policy not in policies:
                    yield f"assertions: there is no policy {policy!r}; {suggestion(policy, policies)}"

    def _find_wrong_events(self) -> Iterator[str]:
        """Yield a sentence for every event that names an unknown namespace or topic, or comes after the end."""
        topics = {entry.name: entry.topics for entry in self.namespaces}
        for event in self.events:
            if event.namespace is not None and event.namespace not in topics:
                yield f"events: there is no namespace {event.namespace!r}; {suggestion(event.namespace, list(topics))}"
                continue
            # An event without namespace is about all of them, so its topics must exist in the smallest.
            name = event.namespace or min(topics, key=lambda name: topics[name])
            if event.topics and max(event.topics) >= topics[name]:
                last = topics[name] - 1
                yield f"events: minute {event.at} names topic {max(event.topics)}, the last one of {name!r} is {last}"
        for event in self.events:
            if event.at >= self.minutes:
                yield f"events: minute {event.at} does not come, the last one is {self.minutes - 1}"

    def _find_wrong_registry(self) -> Iterator[str]:
        bundles, owned = sum(entry.bundles for entry in self.namespaces), sum(self.owners.values())
        if owned > bundles:
            yield f"owners: {owned} bundles are owned, but there are only {bundles}"
        away = {name for group in self.brokers if not group.present for name in group.ids}
        for broker in sorted(away & set(self.owners)):
            yield f"owners: {broker!r} is not present at the start, so it cannot own bundles"
        present = set(self.broker_ids) - away
        for event in sorted(self.events, key=lambda event: event.at):
            for broker in event.leave:
                if broker not in present:
                    yield f"events: minute {event.at}: {broker!r} cannot leave, it is not there"
            # An event's brokers leave before others join, as in the loop, so a broker may do both.
            present -= set(event.leave)
            for broker in event.join:
                if broker in present:
                    yield f"events: minute {event.at}: {broker!r} cannot join, it is there"
            present |= set(event.join)


@dataclass(frozen=True)
class ScenarioFile:
    """A scenario, and the path of its file."""

    path: Path
    scenario: Scenario


def read_scenario(path: Path) -> ScenarioFile:
    """Read a scenario file. Paths in it are relative to it.

    Raises:
        SettingsError: with all mistakes, each with its place.
    """
    written = anchor_paths(parsed_toml(read_text(path), path), path.parent)
    return ScenarioFile(path, checked_scenario(written, str(path)))


def checked_scenario(written: Mapping[str, object], name: str) -> Scenario:
    """Build the scenario from a file's content, or from a mapping of a program.

    Args:
        name: name of the mapping in error messages.

    Raises:
        SettingsError: with all mistakes, each with its place.
    """
    try:
        return Scenario.model_validate(written)
    except ValidationError as error:
        raise SettingsError(
            [f"{name}: {place(loc, sentence)}" for loc, sentence in problems_of(error, Scenario)]
        ) from None
