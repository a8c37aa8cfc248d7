"""What keeps a policy out of shared ownership."""

from __future__ import annotations

from lookup.engine.build import build_policies
from lookup.engine.plugins import load_plugins
from lookup.engine.policy import shared_problems
from lookup.settings import PolicySpec

_REFUSED = "policy 'p' cannot be replayed under ownership = \"shared\": it "


def problems(**parts: object) -> list[str]:
    """Return what is wrong with a policy."""
    spec = PolicySpec.model_validate({"name": "p", "selector": "best", **parts})
    return shared_problems(build_policies(load_plugins(), [spec]))


def test_a_policy_without_state_is_welcome() -> None:
    """Properties, load and dice need no owner."""
    assert problems(filters=["max-topics"], scorers=["property-match", "headroom"], selector="random") == []


def test_the_parts_that_need_owners_are_named() -> None:
    """Filters as well as scorers."""
    found = problems(filters=["isolation", "anti-affinity"], scorers=["fewest-bundles"])

    assert found == [_REFUSED + "reads view.ownership (anti-affinity, fewest-bundles), and nobody owns anything"]


def test_all_reasons_are_told() -> None:
    """A shedder and memory are reasons of their own."""
    assert problems(selector="round-robin", shedder="threshold") == [
        _REFUSED + "has a shedder, 'threshold', and no bundle has an owner to be taken from",
        _REFUSED + "keeps memory between decisions, whose order is not defined",
    ]
