"""Areas of topic lists."""

from __future__ import annotations

from typing import Any

import pytest

from tests.vectors.files import outcome

_A, _B = "persistent://t/n/a-partition-0", "persistent://t/n/b"


@pytest.mark.parametrize(
    ("area", "given", "expected"),
    [
        ("topics.filter", {"topics": [_B, _A], "pattern": "t/n/."}, {"topics": [_B, _A]}),
        ("topics.filter_system", {"topics": [_A, "persistent://t/n/__change_events"]}, {"topics": [_A]}),
        ("topics.hash", {"topics": []}, {"hash": "00000000"}),
    ],
)
def test_other_examples_pass(area: str, given: dict[str, Any], expected: dict[str, Any]) -> None:
    """The areas hold for examples that are in no file."""
    assert outcome(area, given, expected).ending == "passed"


def test_the_order_of_a_filtered_list_counts() -> None:
    """Names come out in the order they went in."""
    given = {"topics": [_B, _A], "pattern": ".*"}

    assert outcome("topics.filter", given, {"topics": [_A, _B]}).ending == "failed"


def test_an_unknown_key_is_not_understood() -> None:
    """An input that says more than the area knows is told apart from a failure."""
    assert outcome("topics.hash", {"topics": [], "mode": "all"}, {"hash": "00000000"}).ending == "not understood"
