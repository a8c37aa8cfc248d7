"""Scenarios as written: a cluster, a load over time, events, policies and what is asserted of them.

A scenario file is TOML, a line `----`, and below it what running it prints, word for word. How a scenario runs is the
business of `loop.py`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, ValidationError, model_validator

from lookup.errors import SettingsError
from lookup.settings.base import Above0, Count, Number, Positive, Ratio, Share, Strict, Truth, Whole, numbered, refuse
from lookup.settings.policy import PolicySpec
from lookup.settings.problems import place, problems_of, suggestion

__all__ = [
    "Assertion",
    "BrokerGroup",
    "Event",
    "FigureName",
    "NamespaceLoad",
    "Scenario",
    "ScenarioFile",
    "read_scenario",
]

#: What stands between a scenario and what it prints.
_RULE = "----"

FigureName = Literal[
    "balance", "usage_max", "thrash", "last_move", "moves", "sheds", "moved_load", "splits", "unowned", "matched"
]


class BrokerGroup(Strict):
    """Brokers that differ by number alone."""

    id: str
    """Id; `{n}` stands for the number, from 1."""
    count: Positive = 1
    """How many."""
    capacity: Above0
    """MiB per second at usage 1.0."""
    properties: Mapping[str, str] = {}
    """What they publish, with the prefix: `"lookup.rack" = "a"`."""
    present: Truth = True
    """Whether they are registered from the start; else an event lets them join."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the ids of all."""
        return tuple(numbered(self.id, number) for number in range(1, self.count + 1))


class NamespaceLoad(Strict):
    """A namespace, its topics, and what they carry over time."""

    name: str
    """Tenant and namespace."""
    bundles: Positive = 16
    """Bundles at the start, of equal range."""
    topics: Positive = 16
    """Topics, spread evenly over the hashes."""
    load: Share
    """MiB per second, in and out together, of all topics."""
    skew: Share = 0.0
    """Exponent of Zipf's law by which topics differ; 0: all alike."""
    jitter: Ratio = 0.0
    """By what share a topic's load is off at random in every minute."""
    wave: Ratio = 0.0
    """By what share the load swings up and down."""
    period: Positive = 1440
    """Minutes of one swing."""
    message_bytes: Above0 = 1024.0
    """Size of a message."""
    clients: Count = 2
    """Producers and consumers of a topic, each."""


class Event(Strict):
    """Something that happens at the start of a minute."""

    at: Count
    """The minute."""
    leave: tuple[str, ...] = ()
    """Brokers that go; their bundles lose their owner."""
    join: tuple[str, ...] = ()
    """Brokers that come, or come back, empty."""
    namespace: str | None = None
    """Whose load changes; absent: of all namespaces."""
    topics: tuple[Count, ...] = ()
    """Numbers of the topics whose load changes, from 0; none: all."""
    factor: Share | None = None
    """By what their load at the start is multiplied from now on."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems = []
        if self.factor is None and (self.namespace is not None or self.topics):
            problems.append("factor: the event says whose load changes but not by how much")
        elif self.factor is None and not (self.leave or self.join):
            problems.append("nothing happens: give leave, join or factor")
        refuse(problems)
        return self


class Assertion(Strict):
    """What a figure of a policy's trend should be."""

    figure: FigureName
    """Which figure; see the page on scenarios."""
    policy: str | None = None
    """Of which policy; absent: of every one."""
    at_most: Number | None = None
    """The figure may be this or less."""
    at_least: Number | None = None
    """The figure may be this or more."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse(["should have at_most or at_least"] * (self.at_most is None and self.at_least is None))
        return self


class Scenario(Strict):
    """A cluster, a load over time, events, policies, and what is asserted of them."""

    about: str
    """What the scenario shows, in a sentence or two."""
    minutes: Positive
    """How long it runs."""
    seed: Whole = 1
    """Of dice and jitter."""
    every: Positive = 10
    """Minutes between the rows of the trend."""
    window: Positive = 10
    """Minutes at the end over which balance and the highest usage are averaged."""
    history: Ratio = 0.0
    """Weight of the past in the usage brokers report, per minute (Pulsar: loadBalancerHistoryResourcePercentage)."""
    properties: Mapping[str, str] = {}
    """What every client sends with its lookups."""
    owners: Mapping[str, Count] = {}
    """How many bundles each broker owns at the start, in the order of bundles' names; the rest is looked up."""
    brokers: tuple[BrokerGroup, ...] = Field(min_length=1)
    """The cluster."""
    namespaces: tuple[NamespaceLoad, ...] = Field(min_length=1)
    """The load."""
    events: tuple[Event, ...] = ()
    """What happens."""
    policies: tuple[PolicySpec, ...] = Field(min_length=1)
    """Each runs the whole scenario by itself."""
    assertions: tuple[Assertion, ...] = ()
    """What should be true in the end."""

    @property
    def broker_ids(self) -> tuple[str, ...]:
        """Return the ids of all brokers that ever take part."""
        return tuple(name for group in self.brokers for name in group.ids)

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse([*self._repeated(), *self._unknown(), *self._late()])
        return self

    def _repeated(self) -> Iterator[str]:
        lists = {
            "brokers": self.broker_ids,
            "namespaces": [entry.name for entry in self.namespaces],
            "policies": [entry.name for entry in self.policies],
        }
        for table, names in lists.items():
            for name in sorted({name for name in names if list(names).count(name) > 1}):
                yield f"{table}: {name!r} occurs more than once"

    def _unknown(self) -> Iterator[str]:
        brokers, policies = self.broker_ids, [entry.name for entry in self.policies]
        topics = {entry.name: entry.topics for entry in self.namespaces}
        for broker in (*self.owners, *(name for event in self.events for name in (*event.leave, *event.join))):
            if broker not in brokers:
                yield f"there is no broker {broker!r}; {suggestion(broker, brokers)}"
        for assertion in self.assertions:
            if assertion.policy is not None and assertion.policy not in policies:
                yield f"assertions: there is no policy {assertion.policy!r}; {suggestion(assertion.policy, policies)}"
        for event in self.events:
            if event.namespace is not None and event.namespace not in topics:
                yield f"events: there is no namespace {event.namespace!r}; {suggestion(event.namespace, list(topics))}"
            elif event.topics and max(event.topics) >= topics.get(event.namespace or "", min(topics.values())):
                yield f"events: minute {event.at} names topic {max(event.topics)}, which a namespace does not have"

    def _late(self) -> Iterator[str]:
        for event in self.events:
            if event.at >= self.minutes:
                yield f"events: minute {event.at} does not come, the scenario has {self.minutes} minutes"
        if self.window > self.minutes:
            yield f"window: {self.window} minutes are more than the scenario has, {self.minutes}"


@dataclass(frozen=True)
class ScenarioFile:
    """A scenario, where it stands, and what running it should print."""

    path: Path
    scenario: Scenario
    #: the text above the rule, as written
    head: str
    #: what it should print; empty where nothing was ever written
    expected: str

    def rewritten(self, printed: str) -> str:
        """Return the file's text with other expectations."""
        return f"{self.head.rstrip()}\n{_RULE}\n{printed}\n"


def read_scenario(path: Path) -> ScenarioFile:
    """Read a scenario file.

    Raises:
        SettingsError: with all mistakes, each with its place.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise SettingsError(f"{path} is no UTF-8 text") from None
    head, _, expected = f"{text}\n".partition(f"\n{_RULE}\n")
    try:
        return ScenarioFile(path, Scenario.model_validate(tomllib.loads(head)), head, expected.rstrip("\n"))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path} is no TOML: {error}") from None
    except ValidationError as error:
        raise SettingsError([f"{path}: {place(loc, said)}" for loc, said in problems_of(error, Scenario)]) from None
