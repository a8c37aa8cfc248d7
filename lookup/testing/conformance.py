"""The conformance kit, which checks the guarantees of every part of a policy with one decorator.

    @parametrize_with_policies([SameRack(), SameRack(elsewhere=0.2)])
    def test_conformance(policy, check):
        check(policy)

A check receives a policy and raises `AssertionError`, or the engine's own error, with a sentence that names the part
and mostly its world. Checks run in the worlds of `worlds.py` or given ones. Only this module needs pytest.
"""

from __future__ import annotations

import copy
import json
import pickle
import tomllib
from collections.abc import Callable, Generator, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isclose
from typing import Any, ClassVar

import numpy as np
import pytest

from lookup.engine.answers import checked_mask, checked_odds, checked_reads, checked_scores, exhaust_generator
from lookup.engine.ballots import Ballot
from lookup.engine.build import PartBuilder, part_table
from lookup.engine.cycles import CycleReport
from lookup.engine.explain import explain
from lookup.engine.plugins import registry_of
from lookup.engine.policy import Instant, Policy, WeightedScorer
from lookup.engine.salting import probe_requests, unsalted_parts
from lookup.errors import InputError, ReadsError
from lookup.hooks.protocols import Filter, Scorer, Selector, Shedder, SplitAlgorithm, Splitter
from lookup.model import (
    Candidates,
    ClusterView,
    CycleLabel,
    CycleOutcome,
    CycleReason,
    LookupRequest,
    NamespaceBundle,
    Reason,
    Ruling,
    Split,
    Topology,
    Unanswered,
)
from lookup.model.quoting import toml_text
from lookup.settings.policy import PartSpec
from lookup.testing.asking import (
    all_parts,
    answer_of,
    ballot_in,
    classes_of,
    kind_of,
    manager_in,
    offered_in,
    proposals_in,
    worlds_of,
    writable,
    written_out,
)
from lookup.testing.clusters import engine_request
from lookup.testing.worlds import WORLDS, World, changed_elsewhere, labelled_for

__all__ = [
    "CHECKS", "check_admitted_at_the_door", "check_answers_are_sound", "check_deciding_changes_nothing",
    "check_empty_cluster_is_declined", "check_idle_filters_admit_all", "check_limits_are_wide", "check_memory_is_json",
    "check_nobody_is_preferred_without_properties", "check_only_offered_brokers", "check_order_does_not_matter",
    "check_reads_are_honest", "check_rejections_are_explained", "check_repr_rebuilds", "check_salt_is_mixed_in",
    "check_same_answer_twice", "check_shedding_repeats", "check_splits_are_sound", "check_splitting_repeats",
    "check_survives_pickle", "check_toml_round_trip", "parametrize_with_policies", "policy_of",
]  # fmt: skip

#: More than the hits in a row after which Pulsar splits (3).
_CYCLES = 6
#: Sums in another order differ in their last bits.
_CLOSE = 1e-9

Check = Callable[..., None]
_SOUND: Mapping[str, Callable[[str, Any, Candidates], Any]] = {
    "filters": checked_mask,
    "scorers": checked_scores,
    "selectors": checked_odds,
}


@dataclass(frozen=True)
class _Anybody:
    """A selector of any candidate, which completes a policy around a single filter, scorer or shedder under test."""

    name: ClassVar[str] = "conformance-anybody"
    reads: ClassVar[frozenset[str]] = frozenset()

    def odds(self, request: LookupRequest, brokers: Candidates, scores: Any, view: ClusterView) -> list[float]:
        return [1.0] * len(brokers)


def policy_of(part: Any) -> Policy:
    """Build a policy around a part alone. A policy is returned as it is.

    Raises:
        TypeError: if it is no policy and follows no protocol of a part.
    """
    if isinstance(part, Policy):
        return part
    if isinstance(part, Filter):
        return Policy(repr(part), _Anybody(), filters=(part,))
    if isinstance(part, Scorer):
        return Policy(repr(part), _Anybody(), scorers=(WeightedScorer(part),))
    if isinstance(part, Selector):
        return Policy(repr(part), part)
    if isinstance(part, SplitAlgorithm):
        return Policy(repr(part), _Anybody(), splitter=_SplitsEverything(part))
    # A splitter has everything that a shedder has, and also an algorithm.
    if isinstance(part, Splitter):
        return Policy(repr(part), _Anybody(), splitter=part)
    if isinstance(part, Shedder):
        return Policy(repr(part), _Anybody(), shedder=part)
    raise TypeError(f"{part!r} is no policy and has none of the methods admit, score, odds, propose and boundaries")


def parametrize_with_policies(policies: Iterable[Any], *, worlds: Sequence[World] = WORLDS) -> pytest.MarkDecorator:
    """Run a test that takes `policy` and `check` with every check for every policy.

    Args:
        policies: policies, or parts, which are checked alone.
        worlds: the clusters and requests of the checks, by default those of the kit.
    """
    return pytest.mark.parametrize(
        ("policy", "check"),
        [
            pytest.param(policy, partial(check, worlds=worlds), id=f"{policy.name}-{check.__name__}")
            for policy in map(policy_of, policies)
            for check in CHECKS
        ],
    )


def check_admitted_at_the_door(policy: Policy, worlds: Sequence[World] = WORLDS) -> None:
    """Check that a hook may register the classes, and that no unknown field is read."""
    del worlds
    registry_of(classes_of(policy))
    for part in all_parts(policy):
        checked_reads(part)


def check_empty_cluster_is_declined(policy: Policy, worlds: Sequence[World] = WORLDS) -> None:
    """Check that no part is called and no broker chosen if no broker is registered."""
    for world in worlds:
        away = np.zeros(len(world.view.brokers), dtype=np.bool_)
        manager = manager_in(policy, World(world.name, replace(world.view, registered=away), world.request))
        answer = manager.assign(world.request.topic, world.request.bundle)
        ballot, _ = manager.decide(world.request)

        assert isinstance(answer, Unanswered), f"{policy.name} chose {answer} in an empty cluster"
        assert not manager.take_decisions(), f"{policy.name} was asked about an empty cluster"
        assert ballot.declined is Reason.NO_CANDIDATES, f"{policy.name} declined an empty cluster as {ballot.declined}"


def check_answers_are_sound(policy: Policy, worlds: Sequence[World] = WORLDS) -> None:
    """Check lengths and numbers, which are booleans of filters, scores in [0, 1], odds finite and at least 0."""
    for world in worlds_of(policy, worlds):
        for part in policy.parts:
            answer = answer_of(part, world)
            checked = next(check for kind, check in _SOUND.items() if kind_of(part) == kind)
            checked(part.name, answer, offered_in(world))


def check_nobody_is_preferred_without_properties(policy: Policy, worlds: Sequence[World] = WORLDS) -> None:
    """Check that a scorer that reads only properties scores all brokers alike if the request has none."""
    scorers = [term.scorer for term in policy.scorers if _check_reads_only(term.scorer)]
    for world in worlds_of(policy, worlds):
        bare = World(world.name, world.view, engine_request())
        for scorer in scorers:
            scores = answer_of(scorer, bare)

            assert len(set(scores)) == 1, f"{scorer!r} scores {list(scores)} without any property: {world.name}"


def check_only_offered_brokers(policy: Policy, worlds: Sequence[World] = WORLDS) -> None:
    """Check that odds add up to 1 over brokers that were offered, and that one of these is assigned."""
    for world in worlds_of(policy, worlds):
        instant = Instant(policy, world.view)
        ballot = policy.ballot(world.request, instant)
        decided = manager_in(policy, world).select(world.request, 0)

        assert set(ballot.odds) <= set(instant.offered.ids), f"{policy.name} chose beyond its offer: {world.name}"
        assert not ballot.odds or abs(sum(ballot.odds.values()) - 1.0) < _CLOSE, f"{ballot.odds}: {world.name}"
        assert decided is None or decided.broker in (None, *instant.offered.ids), f"{decided}: {world.name}"


def check_order_does_not_matter(policy: Policy, worlds: Sequence[World] = WORLDS) -> None:
    """Check that odds depend on brokers and not on their order, unless a part has `order_sensitive = True`."""
    if any(getattr(part, "order_sensitive", False) for part in policy.parts):
        return
    for world in worlds_of(policy, worlds):
        expected = ballot_in(policy, world)
        index = offered_in(world).index
        for order in (index[::-1], np.roll(index, 1)):
            instant = Instant(policy, world.view)
            instant.offered = Candidates(world.view.brokers, order)
            ballot = policy.ballot(world.request, instant)

            assert _compare_ballots(ballot, expected), (
                f"{policy.name}: {_describe_ballot(ballot)}, not {_describe_ballot(expected)}: {world.name}"
            )


def check_same_answer_twice(policy: Policy, worlds: Sequence[World] = WORLDS) -> None:
    """Check that equal settings give equal behaviour, for the policy again, and for a copy of it."""
    for world in worlds_of(policy, worlds):
        first = ballot_in(policy, world)

        assert ballot_in(policy, world) == first, f"{policy.name} answered otherwise the second time: {world.name}"
        assert ballot_in(copy.deepcopy(policy), world) == first, f"a copy of {policy.name} differs: {world.name}"


def check_deciding_changes_nothing(policy: Policy, worlds: Sequence[World] = WORLDS) -> None:
    """Check that deciding leaves request, view and memory as they were, although these can be written to."""
    for world in worlds_of(policy, worlds):
        mine = writable(world)
        for part in policy.parts:
            answer_of(part, mine)

        assert written_out(mine) == written_out(world), f"{policy.name} changed what it was handed: {world.name}"


def check_reads_are_honest(policy: Policy, worlds: Sequence[World] = WORLDS) -> None:
    """Check that fields that are not declared in `reads` are neither touched nor make a difference."""
    for world in worlds_of(policy, worlds):
        try:
            policy.ballot(world.request, Instant(policy, world.view))
        except ReadsError as error:
            raise AssertionError(f"{error}: {world.name}") from error
        for part, reads in zip(policy.parts, policy.part_reads, strict=True):
            for field, changed in changed_elsewhere(reads, world):
                before, after = answer_of(part, world), answer_of(part, changed)

                assert np.array_equal(before, after), f"{part!r} depends on {field}, which it does not declare"


def check_salt_is_mixed_in(policy: Policy, worlds: Sequence[World] = WORLDS) -> None:
    """Check that no filter, scorer or selector separates equal brokers by their names, alike under every salt.

    `order_sensitive = True` exempts a part from this as well. A part that uses the places of brokers in a list does not
    hash anything, and other names would only exchange equal brokers.
    """
    labelled = [labelled_for(policy, world) for world in worlds]
    requests = probe_requests(
        [world.request.bundle for world in labelled], [world.request.properties for world in labelled]
    )
    brokers = [broker for world in labelled for broker in world.view.brokers]
    names = unsalted_parts([policy], requests, brokers, Topology()).get(policy.name, ())

    assert not names, (
        f"{policy.name}: {', '.join(map(repr, names))} separates equal brokers by their names, alike under every salt; "
        "mix view.salt into what is hashed, or give equal brokers equal odds"
    )


def check_survives_pickle(policy: Policy, worlds: Sequence[World] = WORLDS) -> None:
    """Check that a pickled and restored policy is equal and behaves as before, as on Spark's workers."""
    policy.ballot(worlds[0].request, Instant(policy, worlds[0].view))
    revived = pickle.loads(pickle.dumps(policy))

    assert revived == policy, f"{policy.name} came back from pickle as {revived}"
    for world in worlds_of(policy, worlds):
        assert ballot_in(revived, world) == ballot_in(policy, world), (
            f"{policy.name} differs after pickle: {world.name}"
        )


def check_repr_rebuilds(policy: Policy, worlds: Sequence[World] = WORLDS) -> None:
    """Check that the evaluated `repr` of a part is the part."""
    del worlds
    names = {type(part).__name__: type(part) for part in all_parts(policy)}
    for part in all_parts(policy):
        assert eval(repr(part), dict(names)) == part, f"{part!r} is not rebuilt by what it prints"


def check_toml_round_trip(policy: Policy, worlds: Sequence[World] = WORLDS) -> None:
    """Check that a part written as TOML and built again is equal."""
    del worlds
    builder = PartBuilder(registry_of(classes_of(policy)))
    for part in all_parts(policy):
        text = f"part = {toml_text(part_table(part))}"
        built = builder.part(str(kind_of(part)), PartSpec.model_validate(tomllib.loads(text)["part"]), part.name)

        assert not builder.problems, f"{text} is refused: {'; '.join(builder.problems)}"
        assert built == part, f"{text} builds {built!r}, not {part!r}"


def check_memory_is_json(policy: Policy, worlds: Sequence[World] = WORLDS) -> None:
    """Check that only assignments change memory, and that its content survives JSON."""
    for world in worlds:
        labelled = labelled_for(policy, world)
        manager = manager_in(policy, labelled)
        manager.decide(labelled.request)

        assert not manager.memory, f"{policy.name} remembered a question nobody assigned: {world.name}"
        manager.select(labelled.request, 0)
        manager.shed()
        manager.split_bundles()
        assert json.loads(json.dumps(manager.memory)) == manager.memory, f"{policy.name} remembers {manager.memory}"


def check_rejections_are_explained(policy: Policy, worlds: Sequence[World] = WORLDS) -> None:
    """Check that a filter with `detail` has a sentence for every broker it rejects."""
    for world in worlds_of(policy, worlds):
        explanation = explain(policy, world.request, world.view)
        for vote in explanation.votes:
            detail = vote.detail

            assert detail is None or detail.strip(), f"{policy.name} says {detail!r} about {vote.broker}: {world.name}"
            assert "its detail raised" not in str(detail), f"{policy.name} {detail} about {vote.broker}: {world.name}"


def check_idle_filters_admit_all(policy: Policy, worlds: Sequence[World] = WORLDS) -> None:
    """Check that a filter keeps every broker where its `is_idle` is true of the rules of namespaces."""
    for part in (part for part in policy.filters if hasattr(part, "is_idle")):
        for world in (world for world in worlds_of(policy, worlds) if part.is_idle(world.view.namespaces)):
            brokers = offered_in(world)
            if len(brokers):
                admitted = checked_mask(
                    part.name, exhaust_generator(part.admit(world.request, brokers, world.view)), brokers
                )
                lost = brokers.subset(~admitted).ids

                assert not lost, f"{part!r} rejects {lost[0]}, although its is_idle is true: {world.name}"


def check_limits_are_wide(policy: Policy, worlds: Sequence[World] = WORLDS) -> None:
    """Check that a filter with `may_admit` never admits a broker of which that is false, whichever others there are."""
    for part in (part for part in policy.filters if hasattr(part, "may_admit")):
        for world in worlds_of(policy, worlds):
            everyone, offered = Candidates(world.view.brokers, np.arange(len(world.view.brokers))), offered_in(world)
            limits = checked_mask(
                part.name, exhaust_generator(part.may_admit(world.request, everyone, world.view)), everyone
            )
            for index in (offered.index, *offered.index[:, None]):
                brokers = Candidates(world.view.brokers, index)
                admitted = checked_mask(
                    part.name, exhaust_generator(part.admit(world.request, brokers, world.view)), brokers
                )
                beyond = brokers.subset(admitted & ~limits[index]).ids

                assert not beyond, f"{part!r} admits {beyond[0]}, which its may_admit rules out: {world.name}"


# Parts that propose in cycles, which are shedders, splitters and split algorithms


@dataclass(frozen=True)
class _SplitsEverything:
    """A splitter around a split algorithm that is checked alone. It splits every bundle that the algorithm cuts."""

    name: ClassVar[str] = "conformance-everything"
    reads: ClassVar[frozenset[str]] = frozenset({"view.load", "view.ownership"})

    algorithm: SplitAlgorithm

    def propose(self, view: ClusterView, memory: MutableMapping[str, Any]) -> Generator[Split, Ruling, CycleOutcome]:
        for bundle in view.load.traffic.stats:
            owner, topics = view.ownership.owner(bundle), view.load.traffic.topics_of(bundle)
            try:
                cuts = tuple(self.algorithm.boundaries(NamespaceBundle.parse(bundle), topics, None))
            except InputError:
                continue
            if owner is not None and cuts:
                yield Split(bundle, view.brokers[owner].id, cuts)
        return CycleOutcome(CycleLabel.SUCCESS, CycleReason.ADMIN)


def check_shedding_repeats(policy: Policy, worlds: Sequence[World] = WORLDS) -> None:
    """Check that a cycle of the shedder ends, and depends only on its arguments and declared reads."""
    if policy.shedder is not None:
        _check_cycles_repeat(policy.shedder, lambda world: manager_in(policy, world).shed(), worlds)


def check_splitting_repeats(policy: Policy, worlds: Sequence[World] = WORLDS) -> None:
    """Check that a cycle of the splitter ends, and depends only on its arguments and declared reads."""
    if policy.splitter is not None:
        _check_cycles_repeat(policy.splitter, lambda world: _run_splits(policy, world), worlds)


def check_splits_are_sound(policy: Policy, worlds: Sequence[World] = WORLDS) -> None:
    """Check that the proposals of a splitter are possible, with owned bundles, each once, cut inside, ascending."""
    for world in worlds if policy.splitter is not None else ():
        for report in _run_splits(policy, world):
            assert not report.rejected, (
                f"{policy.name} proposed splits refused as {dict(report.rejected)}: {world.name}"
            )


def _check_cycles_repeat(part: Shedder | Splitter, run: Callable[[World], Any], worlds: Sequence[World]) -> None:
    reads = checked_reads(part)
    for world in worlds:
        first, second = run(world), run(world)
        assert first == second, f"{part!r} led to {second}, not {first}: {world.name}"
        expected = proposals_in(part, world)
        for field, changed in changed_elsewhere(reads, world):
            assert proposals_in(part, changed) == expected, f"{part!r} depends on {field}, which it does not declare"


def _run_splits(policy: Policy, world: World) -> list[CycleReport[Split]]:
    # Several cycles, so that hit counts reach their threshold.
    manager = manager_in(policy, world)
    reports = (manager.split_bundles() for _ in range(_CYCLES))
    return [report for report in reports if report is not None]


#: Every check, in the order of this file.
CHECKS: tuple[Check, ...] = tuple(check for name, check in [*globals().items()] if name.startswith("check_"))


def _check_reads_only(part: Any) -> bool:
    reads = checked_reads(part)
    return bool(reads) and all(name.startswith("properties") for name in reads)


def _compare_ballots(ballot: Ballot, expected: Ballot) -> bool:
    if (ballot.declined, ballot.ties, ballot.rejected) != (expected.declined, expected.ties, expected.rejected):
        return False
    return ballot.odds.keys() == expected.odds.keys() and all(
        isclose(ballot.odds[broker], expected.odds[broker], rel_tol=_CLOSE) for broker in ballot.odds
    )


def _describe_ballot(ballot: Ballot) -> str:
    return f"{dict(ballot.odds) or ballot.declined}, rejected {dict(ballot.rejected)}"
