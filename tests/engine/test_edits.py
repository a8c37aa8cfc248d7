"""What has to change for another end of a cycle, as the engine itself confirms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.engine.edits import edits_that_change
from lookup.engine.policy import Policy
from lookup_policies.score_selectors import Best
from lookup_policies.threshold import Threshold
from lookup_policies.transfer import Transfer


def _with_shedder(shedder: Any) -> Policy:
    return Policy(name="p", selector=Best(), shedder=shedder)


@given(st.floats(0.001, 1.0), st.floats(0.0, 0.999))
def test_a_limit_is_found_from_either_side(before: float, limit: float) -> None:
    """What flips at a limit is changed to just beyond it, within a hundredth, and by no setting that has no part."""

    def is_below(policy: Policy) -> bool:
        return policy.shedder.threshold < limit  # type: ignore[union-attr]

    policy = _with_shedder(Threshold(threshold=before))
    found = edits_that_change(policy, lambda changed: is_below(changed) != is_below(policy))

    assert all(edit.setting == "shedder.threshold" for edits in found for edit in edits)
    for (edit,) in found:
        changed = replace(policy, shedder=Threshold(threshold=float(edit.after)))
        assert is_below(changed) != is_below(policy)
        assert abs(edit.after - limit) <= 0.02 * max(limit, abs(before - limit)) + 1e-3
    # A limit of almost 0 lies below the last value that is tried; any other is found.
    assert found or limit < 1e-3 or before < limit


@given(st.integers(0, 12), st.integers(0, 12))
def test_a_count_changes_by_no_more_than_it_must(before: int, limit: int) -> None:
    """The least other count that is enough is found."""
    policy = _with_shedder(Transfer(hit_count=before))
    found = edits_that_change(policy, lambda changed: (changed.shedder.hit_count >= limit) != (before >= limit))  # type: ignore[union-attr]

    if before >= limit and limit == 0:
        assert not found
    else:
        (edit,) = found[0]
        assert edit.after == (limit - 1 if before >= limit else limit)


def test_a_count_that_hides_another_condition_is_changed_with_it() -> None:
    """If no setting alone is enough, a count at its least and another one are; with Pulsar's keys."""
    policy = _with_shedder(Transfer(hit_count=3, target_std=0.25))
    found = edits_that_change(
        policy,
        lambda changed: changed.shedder.hit_count == 0 and changed.shedder.target_std <= 0.2,  # type: ignore[union-attr]
    )

    first, second = found[0]
    assert (first.setting, first.after) == ("shedder.hit_count", 0)
    assert (second.setting, second.key) == ("shedder.target_std", "loadBalancerBrokerLoadTargetStd")
    assert second.after == pytest.approx(0.2, rel=0.02)


def test_switches_and_the_grace_period_are_settings_too() -> None:
    """A switch is turned, and seconds are counted; bounds of a parameter are kept."""
    policy = _with_shedder(Threshold())
    (switch,) = edits_that_change(policy, lambda changed: bool(changed.shedder.lower_boundary))[0]  # type: ignore[union-attr]
    (grace,) = edits_that_change(policy, lambda changed: changed.grace_us < 600_000_000)[0]

    assert (switch.setting, switch.before, switch.after, switch.cost) == ("shedder.lower_boundary", False, True, 1.0)
    assert (grace.setting, grace.before, grace.after) == ("grace_s", 1800, 599)
    # A share of the past of more than 1 cannot be set.
    assert not edits_that_change(policy, lambda changed: changed.shedder.history > 1.0)  # type: ignore[union-attr]
