"""A shedding cycle: proposals, the judge's rulings, and what is booked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest

from lookup.engine.cycles import Unloading, run_sheds
from lookup.engine.manager import LoadManager
from lookup.engine.policy import Instant, Policy
from lookup.errors import ContractError, PolicyError
from lookup.model import BundleLoad, Candidates, CycleLabel, CycleOutcome, CycleReason, Load, Probe, Reason, Unload
from lookup.testing import cluster
from lookup_policies.broker_filters import EvenDistribution
from tests.engine.parts import DONE, Keep, Odds, Proposing, manager, owner_of, policy, raising

GRACE_US = Policy.grace_us
B1, B2 = "public/default/0x00000000_0x80000000", "public/default/0x80000000_0xffffffff"
_EXCHANGED = Unload(B1, "b2", "b3", in_exchange=True)
SYSTEM = "pulsar/system/0x00000000_0xffffffff"
VIEW = cluster("b1", "b2", "b3", "gone", registered=("b1", "b2", "b3"))


def _at_work(*proposals: Any, filters: tuple[Any, ...] = (), **changes: Any) -> LoadManager:
    shedder = Proposing(proposals, **{key: changes.pop(key) for key in ("outcome", "error") if key in changes})
    parts = (changes.pop("selector", Odds()), *filters)
    made = manager(policy(shedder, *parts, **changes), VIEW)
    made.begin_tick(GRACE_US * 10)
    made.restore({B1: "b1", B2: "b2", SYSTEM: "b1"})
    made.take_changes()
    return made


def _rulings(made: LoadManager) -> Any:
    made.shed()
    return made.memory["proposing"]["rulings"]


@pytest.mark.parametrize(
    ("proposal", "reason"),
    [
        (Unload(B1, "b1"), None),
        (Unload(B1, "b1", "b2"), None),
        (Unload(B1, "b2"), "not-owner"),
        (Unload(B1, "nobody"), "not-owner"),
        (Unload("public/default/0x0_0x1", "b1"), "not-owner"),
        (Unload(SYSTEM, "b1"), "system-namespace"),
        (Unload("pulsar/b1:8080/0x00000000_0xffffffff", "b1"), "system-namespace"),
        (Unload(B1, "b1", "gone"), "not-registered"),
        (Unload(B1, "b1", "nobody"), "not-registered"),
        (Unload(B1, "b1", "b1"), "not-registered"),
    ],
)
def test_each_rule_of_the_judge(proposal: Unload, reason: str | None) -> None:
    """An unload is accepted, or refused by the first rule it breaks; a probe is judged alike."""
    assert _rulings(_at_work(proposal)) == [reason]
    assert _rulings(_at_work(Probe(proposal))) == [reason]


@pytest.mark.parametrize(
    ("later_us", "reason"), [(1, "grace-period"), (GRACE_US, "grace-period"), (GRACE_US + 1, None)]
)
def test_an_unloaded_bundle_is_left_in_peace(later_us: int, reason: str | None) -> None:
    """Up to the end of the grace period it is not shed again, after it it is."""
    made = _at_work(Unload(B1, "b1", "b2"))
    made.shed()
    made.policy = replace(made.policy, shedder=Proposing((Unload(B1, "b2"),)))
    made.begin_tick(GRACE_US * 10 + later_us)

    assert _rulings(made) == [reason]


def test_what_goes_in_exchange_may_go_within_the_grace_period() -> None:
    """The one rule it is spared; all others hold for it."""
    made = _at_work(Unload(B1, "b1", "b2"))
    made.shed()
    made.policy = replace(made.policy, shedder=Proposing((Unload(B1, "b1", in_exchange=True), _EXCHANGED, _EXCHANGED)))
    made.begin_tick(GRACE_US * 10 + 1)

    assert _rulings(made) == ["not-owner", None, "moved-this-cycle"]


@pytest.mark.parametrize("registered", [(), ("b1",)])
def test_a_cycle_needs_two_brokers_but_a_shedder_can_be_asked_without(registered: tuple[str, ...]) -> None:
    """That it is not worth while is said before it is asked, as in Pulsar by what schedules it."""
    shedding, view = policy(Proposing(()), Odds()), cluster("b1", "b2", registered=registered)
    report = manager(shedding, view).shed()

    assert report is not None
    assert report.outcome.reason is CycleReason.NO_BROKERS
    assert run_sheds(shedding, Instant(shedding, view), {}, Unloading(print)).outcome == DONE


def test_an_admins_unload_does_not_start_the_grace_period() -> None:
    """Only what the shedder unloaded is spared."""
    made = _at_work(Unload(B1, "b2"))
    made.unload(B1)
    made.restore({B1: "b2"})

    assert _rulings(made) == [None]


def test_filters_judge_the_destination() -> None:
    """A destination the policy would not choose is refused; the request has no topic, client or properties."""
    seen: list[Any] = []

    class Watching(Keep):
        name: ClassVar[str] = "watching"

        def admit(self, request: Any, brokers: Candidates, view: Any) -> list[bool]:
            seen.append((request.bundle, request.namespace, request.topic, request.client, dict(request.properties)))
            return [broker.id != "b2" for broker in brokers]

    watching = Watching(reads=frozenset({"bundle", "namespace", "topic", "client", "properties"}))
    made = _at_work(Unload(B1, "b1", "b2"), Unload(B1, "b1", "b3"), filters=(watching,))

    assert _rulings(made) == ["destination-filtered", None]
    assert seen[0] == (B1, "public/default", None, None, {})


@pytest.mark.parametrize("on_error", ["skip", "fail-closed"])
def test_a_shedder_that_raises_keeps_what_was_accepted(on_error: str) -> None:
    """The cycle failed, the unload before took place, the failure is counted."""
    made = _at_work(Unload(B1, "b1"), error=KeyError("gone"), on_error=on_error)
    report = made.shed()

    assert report is not None
    assert report.outcome == CycleOutcome(CycleLabel.FAILURE, CycleReason.UNKNOWN)
    assert report.accepted == (Unload(B1, "b1"),)
    assert "shedder 'proposing' raised KeyError: 'gone'" in str(made.failures.first)


class _Holding(Keep):
    """A filter that keeps everybody and lets no bundle go; notes whom it was asked about."""

    def admit(self, request: Any, brokers: Candidates, view: Any) -> Any:
        return [True] * len(brokers)

    def should_unload(self, request: Any, owner: Any, brokers: Candidates, view: Any) -> bool:
        if self.answer is not None:
            return bool(self.answer(brokers))
        return owner.id not in self.ids


_FIRST: dict[str, Any] = {"destination_first": True}
_AWAY, _TO_B2, _PINNED = Unload(B1, "b1"), Unload(B1, "b1", "b2"), "pulsar/b1:8080/0x00000000_0xffffffff"
_FAILING = Keep(answer=raising(KeyError("x")))
_GROUP = _Holding(("b1", "b2"), reason=Reason.ANTI_AFFINITY)
_ONE_OF_GROUP = _Holding(("b1",), reason=Reason.ANTI_AFFINITY)


@pytest.mark.parametrize(
    ("proposals", "changes", "expected"),
    [
        # Whatever `on_error` says about decisions, a destination nobody could check is refused.
        *(
            ((_TO_B2,), {"filters": (_FAILING,), "on_error": on_error}, ["destination-filtered"])
            for on_error in ("stop", "skip", "fail-closed")
        ),
        # An unload without destination is refused for the reason of the filter that holds the bundle.
        ((_AWAY, Unload(B2, "b2")), {"filters": (_ONE_OF_GROUP,)}, ["anti-affinity", None]),
        ((_AWAY,), {"filters": (_Holding(answer=raising(KeyError("x"))),)}, ["filtered"]),
        ((_AWAY,), {"filters": (_FAILING, _Holding(("b2",)))}, ["filtered"]),
        # Who has found a destination is not held up: the filters were asked about that one.
        ((Probe(_TO_B2), _AWAY, Unload(B2, "b2", "b3")), {"filters": (_GROUP,)}, [None, None, None]),
        # The modular manager unloads system namespaces too, but not what belongs to one broker.
        ((Unload(SYSTEM, "b1", "b2"), Unload(_PINNED, "b1")), _FIRST, [None, "system-namespace"]),
    ],
)
def test_filters_and_managers_rule_too(
    proposals: tuple[Any, ...], changes: dict[str, Any], expected: list[str | None]
) -> None:
    """Each proposal is accepted, or refused for a reason."""
    assert _rulings(_at_work(*proposals, **changes)) == expected


def test_who_holds_a_bundle_is_asked_about_those_the_filters_before_keep() -> None:
    """Filters behind it do not narrow them."""
    seen: list[tuple[str, ...]] = []
    holding = _Holding(answer=lambda brokers: bool(seen.append(brokers.ids)) or True)
    filters = (Keep(("b1", "b3")), holding, Keep(("b3",)))

    assert _rulings(_at_work(Unload(B1, "b1"), filters=filters)) == [None]
    assert seen == [("b1", "b3")]


def test_a_policy_without_shedder_sheds_nothing() -> None:
    """There is no report."""
    assert manager(policy(Odds()), VIEW).shed() is None


def test_a_bundle_goes_where_the_policy_would_have_it() -> None:
    """With `destination_first` the odds name its new owner before it is unloaded."""
    made = _at_work(Unload(B1, "b1"), **_FIRST, selector=Odds({"b3": 1.0}))
    report = made.shed()
    gained = made.take_changes()[-1]

    assert report is not None
    assert report.accepted == (Unload(B1, "b1", "b3"),)
    assert (gained.source, gained.broker, gained.cause, gained.decided) == ("b1", "b3", "shed", True)


def test_a_bundle_whose_owner_is_chosen_again_stays() -> None:
    """Nothing changes, no grace period begins, and the cycle is no success; Pulsar does not tell the shedder."""
    made = _at_work(Unload(B1, "b1"), **_FIRST, selector=Odds({"b1": 1.0}))

    for _ in range(2):
        report = made.shed()
        assert report is not None
        assert (report.accepted, report.rejected) == ((), {Reason.OWNER_CHOSEN: 1})
        assert (report.outcome.label, report.outcome.reason) == (CycleLabel.SKIP, CycleReason.NO_BUNDLES)
    assert _rulings(made) == [None]
    assert owner_of(made, B1) == "b1"
    assert made.take_changes() == []


def test_a_shedder_is_told_of_what_it_can_foresee() -> None:
    """Bundles of others, moved ones and those within the grace period are refused as ever."""
    made = _at_work(Unload(B1, "b1"), Unload(B1, "b1"), Unload(B2, "b1"), **_FIRST, selector=Odds({"b3": 1.0}))

    assert _rulings(made) == [None, "moved-this-cycle", "not-owner"]
    # Until the next report the leader takes the bundle for its old owner's.
    made.policy = replace(made.policy, shedder=Proposing((Unload(B1, "b1"),)))
    assert _rulings(made) == ["grace-period"]


def test_what_a_modular_cycle_moves_counts_with_its_old_owner_until_the_next_report() -> None:
    """A bundle that is looked up meanwhile goes to the broker with the fewest bundles by what the leader knows."""
    for is_reported, goes_to in ((False, "b3"), (True, "b1")):
        made = _at_work(Unload(B1, "b1"), **_FIRST, filters=(EvenDistribution(),))
        made.shed()
        if is_reported:
            made.set_load(Load.unknown(4))
        made.assign(None, "public/default/0x1_0x2")

        assert (owner_of(made, B1), owner_of(made, "public/default/0x1_0x2")) == ("b3", goes_to)


@pytest.mark.parametrize(("changes", "owner"), [({}, "b2"), (_FIRST, "b1")])
def test_what_a_shedder_named_before_it_failed_stays_only_in_a_modular_cycle(changes: Any, owner: str) -> None:
    """Pulsar's modular manager has its whole list first; others have moved the bundle by then."""
    made = _at_work(Unload(B1, "b1", "b2"), error=KeyError("x"), on_error="skip", **changes)
    report = made.shed()

    assert report is not None
    assert report.outcome.label is CycleLabel.FAILURE
    assert owner_of(made, B1) == owner


@pytest.mark.parametrize(
    ("parts", "reason"), [({"filters": (Keep(()),)}, Reason.NO_CANDIDATES), ({"selector": Odds({})}, Reason.NO_ODDS)]
)
def test_a_bundle_without_destination_stays(parts: Any, reason: Reason) -> None:
    """It is refused for what the policy declines for."""
    made = _at_work(Unload(B1, "b1"), **_FIRST, **parts)
    report = made.shed()

    assert report is not None
    assert report.rejected == {reason: 1}
    assert owner_of(made, B1) == "b1"


def test_a_destination_the_shedder_names_is_not_chosen_anew() -> None:
    """The odds are not asked."""
    made = _at_work(Unload(B1, "b1", "b2"), **_FIRST, selector=Odds({"b3": 1.0}))
    made.shed()

    assert owner_of(made, B1) == "b2"


def test_cycles_keep_to_the_interval() -> None:
    """Half an hour after the first tick, and half an hour after that; under a minute there is one in every tick."""
    made, each = _at_work(Unload(B1, "b1")), _at_work(Unload(B1, "b1"))
    made.policy = replace(made.policy, shedding_interval_us=30 * 60_000_000)
    cycles: dict[str, list[int]] = {"rare": [], "each": []}
    for minute in range(61):
        for name, one in (("rare", made), ("each", each)):
            one.begin_tick(GRACE_US * 10 + minute * 60_000_000)
            if one.shed() is not None:
                cycles[name].append(minute)

    assert cycles == {"rare": [30, 60], "each": [*range(61)]}


def test_each_cycle_rolls_anew() -> None:
    """A bundle that stays this time may go the next, each as often as the odds say."""
    made = _at_work(Unload(B1, "b1"), **_FIRST, selector=Odds({"b1": 3.0, "b2": 1.0}))
    stays = 0
    while owner_of(made, B1) == "b1":
        stays += 1
        made.shed()

    assert 1 < stays < 30


def test_a_choice_that_fails_stops_the_run_by_its_own_sentence() -> None:
    """The part that failed is named, not the shedder whose cycle it was."""
    made = _at_work(Unload(B1, "b1"), **_FIRST, selector=Odds(answer=raising(KeyError("gone"))))

    with pytest.raises(PolicyError, match=r"part 'odds' raised KeyError"):
        made.shed()


_EXCLUDED = frozenset({"public/default"})


def test_bundles_of_excluded_namespaces_stay() -> None:
    """They are refused, and a shedder does not see them: the extensible manager's brokers do not report them."""
    seen: list[list[str]] = []

    class Looking(Proposing):
        def propose(self, view: Any, memory: Any) -> Any:
            seen.append([entry.bundle for entries in view.load.top_bundles for entry in entries])
            return super().propose(view, memory)

    other = "t/n/0x00000000_0xffffffff"
    made = _at_work(Unload(B1, "b1"), excluded_namespaces=_EXCLUDED)
    made.policy = replace(made.policy, shedder=Looking(made.policy.shedder.proposals))  # type: ignore[union-attr]
    usage = np.zeros(4)
    bundles = [[BundleLoad(B1, 1.0), BundleLoad(other, 2.0)], [BundleLoad(B2, 1.0)], [], []]
    made.set_load(Load(usage, usage, np.zeros(4, np.int64), bundles))

    assert _rulings(made) == ["excluded-namespace"]
    assert owner_of(made, B1) == "b1"
    assert seen == [[other]]


def test_shedders_of_the_modular_manager_see_bundles_of_excluded_namespaces() -> None:
    """They name them, and are not told that they stay."""
    made = _at_work(Unload(B1, "b1"), **_FIRST, excluded_namespaces=_EXCLUDED, selector=Odds({"b2": 1.0}))
    report = made.shed()

    assert report is not None
    assert report.rejected == {Reason.EXCLUDED_NAMESPACE: 1}
    assert _rulings(made) == [None]
    assert owner_of(made, B1) == "b1"


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (_at_work("b1"), "shedder 'proposing' proposed 'b1'"),
        (_at_work(Probe("b1")), "not an Unload or a Probe"),  # type: ignore[arg-type]  # the fault
        (_at_work(outcome=None), "shedder 'proposing' ended with None"),
    ],
)
def test_a_shedder_that_breaks_its_protocol_ends_the_run(made: LoadManager, sentence: str) -> None:
    """Something else than a proposal, or no outcome."""
    with pytest.raises(ContractError, match=sentence):
        made.shed()
