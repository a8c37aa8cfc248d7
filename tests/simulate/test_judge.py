"""What becomes of assertions."""

from __future__ import annotations

from typing import Any

from lookup.simulate import Finding, findings
from tests.simulate.scenarios import scenario, trends

#: One broker goes, and under both policies its three bundles move.
_CHANGES: dict[str, Any] = {
    "events": [{"at": 3, "leave": ["b1"]}],
    "policies": [{"name": name, "selector": "round-robin"} for name in ("stays", "turns")],
}


def _judged(**assertion: Any) -> list[Finding]:
    """Judge one assertion of two policies that both make three moves."""
    changes = _CHANGES | {"assertions": [{"figure": "moves", **assertion}]}
    return list(findings(scenario(**changes), trends(**changes)))


def test_without_policy_it_is_about_all() -> None:
    """Each gets a finding of its own."""
    found = _judged(at_most=3)

    assert [(one.policy, one.holds, one.wanted) for one in found] == [
        ("stays", True, "moves at most 3"),
        ("turns", True, "moves at most 3"),
    ]


def test_what_is_true_of_the_unlike_too_does_not_hold() -> None:
    """Both make three moves, so that says nothing about the one."""
    found = _judged(policy="stays", at_most=3, unlike=["turns"])

    assert [(one.policy, one.holds) for one in found] == [("stays", True), ("turns", False)]
    assert found[1].wanted == "moves not at most 3"
    assert found[1].failure == "policy 'turns': moves is 3 and should not be at most 3"


def test_the_unlike_are_not_among_all() -> None:
    """An assertion without policy leaves them out, and wants the contrary of them."""
    found = _judged(at_most=2, unlike=["turns"])

    assert [(one.policy, one.holds) for one in found] == [("stays", False), ("turns", True)]


def test_a_failure_says_why_it_should_be_otherwise() -> None:
    """With the limits and the reason as written."""
    (found,) = _judged(policy="stays", at_least=4, at_most=5, because="four bundles go")

    assert found.failure == (
        "policy 'stays': moves is 3 and should be at least 4 and at most 5, because four bundles go"
    )
