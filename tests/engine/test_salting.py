"""The salt probe: parts that separate equal brokers by their names are caught unless they mix the salt in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup.engine.policy import Policy
from lookup.engine.salting import probe_requests, unsalted_parts
from lookup.model import Broker, Candidates, ClusterView, LookupRequest
from lookup.model.topology import Topology
from lookup.testing import broker
from lookup_policies import FILTERS, SCORERS, SELECTORS
from lookup_policies.hashing import Rendezvous
from lookup_policies.round_robin import RoundRobin
from lookup_policies.score_selectors import Best, Random, Softmax
from lookup_policies.scorers import Headroom
from lookup_policies.wrappers import Explore, Fallback
from tests.engine.hashing import FirstName, HashFilter, HashScorer, HashSelector, HashWrapper, unit
from tests.engine.parts import Keep, Odds, Score, policy, raising

BROKERS = [broker(f"b{number}:8080", rack="abc"[number % 3], zone="z1") for number in range(6)]
REQUESTS = probe_requests([f"t/n{number}/0x00000000_0xffffffff" for number in range(20)], [{"rack": "a"}, {}])


def _unsalted(*parts: Any, brokers: Sequence[Broker] = BROKERS, **changes: Any) -> tuple[str, ...]:
    asked = policy(*parts, **changes)
    return unsalted_parts([asked], REQUESTS, brokers, Topology()).get(asked.name, ())


@pytest.mark.parametrize(
    ("parts", "names"),
    [
        ([HashSelector()], ("hash-selector",)),
        ([HashScorer(), Best()], ("hash-scorer",)),
        ([HashScorer(), Softmax()], ("hash-scorer",)),
        ([HashFilter(), Random()], ("hash-filter",)),
        ([Explore(child=HashSelector())], ("hash-selector",)),
        ([Fallback((Best(min_score=0.5), HashSelector()))], ("hash-selector",)),
        ([Fallback((Rendezvous(), Explore(child=HashSelector())))], ("hash-selector",)),
        ([HashWrapper(Rendezvous())], ("hash-wrapper",)),
        ([HashWrapper(HashSelector())], ("hash-wrapper", "hash-selector")),
        ([HashFilter(), HashScorer(), HashSelector()], ("hash-filter", "hash-scorer", "hash-selector")),
        ([FirstName()], ("first-name",)),
        ([HashFilter(), RoundRobin()], ("hash-filter",)),
    ],
    ids=repr,
)
def test_parts_that_ignore_the_salt_are_named(parts: list[Any], names: tuple[str, ...]) -> None:
    """A hash is seen under dice, in wrappers and beside others."""
    assert _unsalted(*parts) == names


@pytest.mark.parametrize(
    "parts",
    [
        [HashSelector(is_salted=True)],
        [HashScorer(is_salted=True), Softmax()],
        [HashFilter(is_salted=True), Random()],
        [Explore(child=HashSelector(is_salted=True))],
        [Random()],
        [Headroom(), Best()],
        [Fallback((Best(min_score=0.5), RoundRobin()))],
        [Keep(ids=("b1:8080",)), Score({"b2:8080": 1.0}), Odds({"b3:8080": 1.0})],
        [Odds(answer=raising(KeyError("gone")))],
        [Odds(answer=raising(SystemExit(7)))],
        [Odds(answer=lambda brokers: [1.0])],
    ],
    ids=lambda parts: "-".join(part.name for part in parts),
)
def test_other_parts_are_not_named(parts: list[Any]) -> None:
    """Salted hashes, dice, load, turns, brokers named in parameters, and whatever raises or breaks its protocol."""
    assert _unsalted(*parts) == ()


@pytest.mark.parametrize("part", [*FILTERS, *SCORERS, *SELECTORS], ids=lambda part: part.name)
def test_no_built_in_part_ignores_the_salt(part: Any) -> None:
    """Of the parts that come with the framework none places by an unsalted hash."""
    assert _unsalted(part()) == ()


@dataclass(frozen=True)
class _InTheRack:
    """Choose by hash among the brokers of the client's rack, by the address they publish; all others equally."""

    name: ClassVar[str] = "in-the-rack"
    reads: ClassVar[frozenset[str]] = frozenset({"bundle", "properties.rack"})

    def odds(self, request: LookupRequest, brokers: Candidates, scores: Any, view: ClusterView) -> list[float]:
        """Return 1 for one broker of the rack; all alike if the client names none, or no broker is there."""
        rack = request.property_of("rack")
        hashes = [
            unit(request.bundle, str(one.lookup_data.pulsar_service_url)) * (one.property_of("rack") == rack)
            for one in brokers
        ]
        return [float(rack is None or number == max(hashes)) for number in hashes]


@pytest.mark.parametrize("rack", ["a", "z"])
def test_clients_ask_for_the_labels_of_each_kind_of_broker(rack: str) -> None:
    """A hash that is used for some labels only is seen, though no client of the log sends these."""
    others = [broker(f"b{number}:8080", capacity=float(number)) for number in range(20)]

    assert _unsalted(_InTheRack(), brokers=[*others, broker("last:8080", rack=rack)]) == ("in-the-rack",)


@dataclass(frozen=True)
class _BelowTheTop:
    """Choose by hash as soon as scores are below 1, otherwise any."""

    name: ClassVar[str] = "below-the-top"
    reads: ClassVar[frozenset[str]] = frozenset({"bundle"})

    def odds(self, request: LookupRequest, brokers: Candidates, scores: Any, view: ClusterView) -> list[float]:
        """Follow an unsalted hash where the scorers have said something."""
        return HashSelector().odds(request, brokers, scores, view) if max(scores) < 1.0 else [1.0] * len(brokers)


def test_parts_that_hash_only_together_are_the_selectors_fault() -> None:
    """A part that shows nothing alone is seen in the policy as a whole."""
    assert _unsalted(Headroom(unreported=0.5), _BelowTheTop()) == ("below-the-top",)
    assert _unsalted(_BelowTheTop()) == ()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text("abc/", min_size=1, max_size=5), max_size=5), st.integers(0, 5))
def test_few_bundles_and_brokers_are_enough(bundles: list[str], count: int) -> None:
    """One bundle and one broker show a hash, and that it is salted; without any broker nothing can be said."""
    requests = probe_requests([f"t/n/{name}" for name in bundles], [])

    def named(part: Any) -> tuple[str, ...]:
        asked = policy(part)
        return unsalted_parts([asked], requests, BROKERS[:count], Topology()).get(asked.name, ())

    assert named(HashSelector(is_salted=True)) == named(Rendezvous(key="tenant")) == ()
    assert named(HashSelector()) == (("hash-selector",) if count else ())


def test_policies_are_told_apart() -> None:
    """Each is named with its own parts: those that differ in a parameter, and those that cannot be hashed."""
    salted, unsalted = HashSelector(is_salted=True), HashSelector()
    policies = [
        Policy("a", salted),
        Policy("b", unsalted),
        Policy("c", salted),
        Policy("d", unsalted, filters=(Keep(),)),
    ]

    assert unsalted_parts(policies, REQUESTS, BROKERS, Topology()) == {"b": ("hash-selector",), "d": ("hash-selector",)}
