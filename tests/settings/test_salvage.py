"""What is right beside what is wrong."""

from __future__ import annotations

import pytest

from lookup.settings import EvaluationSection, PolicySpec
from lookup.settings.salvage import named_policies, right_values, sound_tables

_BEST = {"name": "a", "selector": "best"}


def test_right_values_have_their_types_and_defaults() -> None:
    """What is right is read, what is absent has its default, what is wrong is left out."""
    found = right_values(EvaluationSection, {"incumbent": "x", "seeds": [7], "tick_s": "60"}, {"tick_s"})

    assert (found["incumbent"], found["seeds"], found["session_s"]) == ("x", (7,), 60)
    assert "tick_s" not in found


def test_a_table_that_is_wrong_as_a_whole_has_right_keys() -> None:
    """Keys that do not go together are still keys; what is no table has none."""
    values = {"evaluation": {"incumbent": "x", "session_s": 90}, "verdict": 3}
    found = sound_tables(values, {("evaluation",), ("verdict",)})

    assert found["evaluation"].session_s == 90
    assert "verdict" not in found


@pytest.mark.parametrize(
    ("policies", "wrong", "names"),
    [
        ([_BEST, {}], {("policies", 1, "name"), ("policies", 1, "selector")}, ["a"]),
        ([3, _BEST], {("policies", 0)}, ["a"]),
        ([_BEST, PolicySpec.model_validate({**_BEST, "name": "b"})], set(), ["a", "b"]),
        ([], {("policies",)}, []),
    ],
)
def test_right_policies_stay(policies: list[object], wrong: set[tuple[str | int, ...]], names: list[str]) -> None:
    """Policies are right or wrong one by one, as tables and as read from files."""
    assert [policy.name for policy in sound_tables({"policies": policies}, wrong)["policies"]] == names


@pytest.mark.parametrize("written", [None, [], {}, [_BEST, 3], [_BEST, {"name": 3}], [{"selector": "best"}]])
def test_names_are_known_of_all_policies_or_of_none(written: object) -> None:
    """A name that cannot be read might be any."""
    assert named_policies(written) is None


def test_a_wrong_policy_has_a_name() -> None:
    """Whatever else is wrong with it."""
    policies = named_policies([{"name": "x", "selector": 3}, PolicySpec.model_validate(_BEST)])

    assert [policy.name for policy in policies or ()] == ["x", "a"]
