"""The state of all owners: its name, what policies see of it, and how it is repeated from its changes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lookup.engine.owners import OwnerChange, Owners

_BUNDLES = st.sampled_from(
    [f"t/n{space}/0x0000000{bundle}_0x0000000{bundle + 1}" for space in (1, 2) for bundle in (0, 1)]
)
_CHANGES = st.lists(st.tuples(_BUNDLES, st.sampled_from(["a:1", "b:1", "c:1", None])), max_size=20)
_IDS = ("a:1", "b:1")


def applied(changes: list[tuple[str, str | None]], owners: Owners | None = None) -> Owners:
    """Apply changes to owners, by default to none."""
    owners = Owners("run") if owners is None else owners
    for change in changes:
        owners.apply(*change)
    return owners


def state(owners: Owners) -> dict[str, str]:
    """Return the owners that brokers of the roster are."""
    return {bundle: _IDS[number] for bundle, number in owners.seen_by(_IDS)}


@given(_CHANGES, _CHANGES)
def test_policies_see_every_change(before: list[tuple[str, str | None]], after: list[tuple[str, str | None]]) -> None:
    """What was handed out follows later changes; brokers that the roster lacks own nothing."""
    owners = applied(before)
    seen = owners.seen_by(_IDS)

    applied(after, owners)

    expected = {bundle: broker for bundle, broker in dict(before + after).items() if broker in _IDS}
    assert {bundle: _IDS[number] for bundle, number in seen} == expected
    assert seen.bundles().tolist() == [[*expected.values()].count(broker) for broker in _IDS]


@given(_CHANGES)
def test_digest_names_the_owners_alone(changes: list[tuple[str, str | None]]) -> None:
    """However the owners came about, equal ones have an equal digest, and others another."""
    direct = applied([*{bundle: broker for bundle, broker in dict(changes).items() if broker}.items()])
    digest = applied(changes).reference.rpartition(".")[2]

    assert digest == direct.reference.rpartition(".")[2]
    assert digest != applied([("t/n3/0x00000000_0xffffffff", "a:1")], direct).reference.rpartition(".")[2]


@given(_CHANGES, _CHANGES)
def test_new_series_leads_to_the_same_owners(
    before: list[tuple[str, str | None]], after: list[tuple[str, str | None]]
) -> None:
    """The changes that a series begins with, and those that follow, give the present owners, without a gap."""
    owners = applied(before)
    series = [*owners.begin_series(), *[owners.apply(*change) for change in after]]

    again = applied([(change.bundle, change.broker) for change in series])

    assert [change.number for change in series] == [*range(1, len(series) + 1)]
    assert {change.series for change in series} <= {"run-2"}
    assert state(again) == state(owners)
    assert again.reference.partition(".")[2] == owners.reference.partition(".")[2]


@given(before=_CHANGES, after=_CHANGES, begins=st.booleans())
def test_earlier_state_is_taken_back(
    before: list[tuple[str, str | None]], after: list[tuple[str, str | None]], *, begins: bool
) -> None:
    """The owners of an earlier reference are found, also across the beginning of a series."""
    owners = applied(before)
    reference, then = owners.reference, state(owners)
    if begins:
        list(owners.begin_series())
    applied(after, owners)

    earlier = owners.at(reference, _IDS)

    assert earlier is not None
    assert {bundle: _IDS[number] for bundle, number in earlier} == then


def test_state_of_long_ago_is_not_kept() -> None:
    """Ten thousand changes can be taken back, of more there is no trace; a series is long after ten times as many."""
    owners = Owners("run")
    reference = owners.reference
    changes = [owners.apply("t/n/0x00000000_0xffffffff", "ab"[turn % 2]) for turn in range(10_001)]

    assert owners.at(reference, _IDS) is None
    assert changes[-1] == OwnerChange("run-1", 10_001, "t/n/0x00000000_0xffffffff", "a")
    assert not owners.is_long
    applied([("t/n/0x00000000_0xffffffff", "a")] * 90_000, owners)
    assert owners.is_long
