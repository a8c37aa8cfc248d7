"""A split cycle: proposals, rulings, and what is booked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import pytest

from lookup.engine.manager import LoadManager
from lookup.errors import ContractError
from lookup.model import Split
from lookup.testing import cluster
from tests.engine.parts import DONE, Keep, Odds, Proposing, manager, owner_of, policy

B1, B2 = "public/default/0x00000000_0x80000000", "public/default/0x80000000_0xffffffff"
VIEW = cluster("b1", "b2")


class Splitting(Proposing):
    """A splitter that makes the given proposals; it needs no algorithm to do so."""

    name: ClassVar[str] = "splitting"
    algorithm: ClassVar[Any] = None


def _at_work(*proposals: Any, on_error: Any = "stop", **changes: Any) -> LoadManager:
    splitter = Splitting(proposals, **changes)
    made = manager(policy(Odds(), splitter=splitter, on_error=on_error), VIEW)
    made.restore({B1: "b1", B2: "b2"})
    made.take_changes()
    return made


def _rulings(made: LoadManager) -> Any:
    made.split_bundles()
    return made.memory["splitting"]["rulings"]


@pytest.mark.parametrize(
    ("proposal", "reason"),
    [
        (Split(B1, "b1", (1,)), None),
        (Split(B1, "b1", (1, 2, 0x7FFFFFFF)), None),
        (Split(B1, "b2", (1,)), "not-owner"),
        (Split(B1, "nobody", (1,)), "not-owner"),
        (Split("public/default/unowned", "b1", (1,)), "not-owner"),
        (Split(B1, "b1", ()), "bad-boundary"),
        (Split(B1, "b1", (0,)), "bad-boundary"),
        (Split(B1, "b1", (0x80000000,)), "bad-boundary"),
        (Split(B1, "b1", (5, 5)), "bad-boundary"),
        (Split(B1, "b1", (6, 5)), "bad-boundary"),
    ],
)
def test_each_rule_of_the_judge(proposal: Split, reason: str | None) -> None:
    """A split is accepted, or refused by the first rule it breaks."""
    assert _rulings(_at_work(proposal)) == [reason]


def test_a_bundle_whose_name_is_none_cannot_be_cut() -> None:
    """A name without a range has no inside."""
    made = _at_work(Split("odd", "b1", (1,)))
    made.restore({"odd": "b1"})

    assert _rulings(made) == ["bad-boundary"]


def test_children_take_the_place_of_their_parent() -> None:
    """They belong to its owner, and no owner changes by that."""
    made = _at_work(Split(B1, "b1", (0x10, 0x20)))
    report = made.split_bundles()
    children = [f"public/default/0x{low:08x}_0x{high:08x}" for low, high in ((0, 16), (16, 32), (32, 2**31))]

    assert report is not None
    assert (report.outcome, [list(split.children) for split in report.accepted]) == (DONE, [children])
    assert [owner_of(made, child) == "b1" for child in children] == [True] * 3
    assert made.ownership.owner(B1) is None
    assert made.take_changes() == []


def test_children_may_be_unloaded_at_once() -> None:
    """They have no owner until somebody asks, and what they left is remembered."""
    made = _at_work(Split(B1, "b1", (0x10,)))
    made.policy = replace(made.policy, unload_children=True)
    report = made.split_bundles()

    assert report is not None
    children = report.accepted[0].children
    assert [made.ownership.owner(child) for child in children] == [None, None]
    assert [(change.bundle, change.source, change.broker, change.cause) for change in made.take_changes()] == [
        (child, "b1", None, "split") for child in children
    ]


def test_children_stay_if_only_their_owner_may_have_them() -> None:
    """Clients would reconnect to the broker they left."""
    made = _at_work(Split(B1, "b1", (0x10,)))
    made.policy = replace(made.policy, unload_children=True, filters=(Keep(("b1",)),))
    made.split_bundles()

    assert made.take_changes() == []


def test_a_bundle_is_split_once_in_a_cycle() -> None:
    """A child may be split again at once, its parent may not."""
    child = "public/default/0x00000000_0x00000010"
    made = _at_work(Split(B1, "b1", (16,)), Split(B1, "b1", (16,)), Split(child, "b1", (8,)))

    assert _rulings(made) == [None, "split-this-cycle", None]


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (_at_work("b1"), "splitter 'splitting' proposed 'b1'"),
        (_at_work(outcome=None), "splitter 'splitting' ended with None"),
    ],
)
def test_a_splitter_that_breaks_its_protocol_ends_the_run(made: LoadManager, sentence: str) -> None:
    """Something else than a split, or no outcome."""
    with pytest.raises(ContractError, match=sentence):
        made.split_bundles()
