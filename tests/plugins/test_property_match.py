"""The scorer `property-match`."""

from __future__ import annotations

import pytest

from lookup.hooks import reads_of
from lookup.model import LookupRequest
from lookup.testing import broker, candidates, cluster, engine_request, request
from lookup_policies.property_match import PropertyMatch
from tests.plugins.worlds import scored

VIEW = cluster(broker("a1", rack="a", zone="x"), broker("a2", rack="a"), broker("b1", rack="b", zone="x"), "bare")


def test_equal_values_match() -> None:
    """The client's value under the key meets the broker's under the prefixed key."""
    asked = request(properties={"rack": "a"})

    assert scored(PropertyMatch(), asked, VIEW) == {"a1": 1.0, "a2": 1.0, "b1": 0.0, "bare": 0.0}


@pytest.mark.parametrize("asked", [request(), request(properties={"zone": "x"}), engine_request()])
def test_a_client_without_the_property_prefers_nobody(asked: LookupRequest) -> None:
    """Every broker gets `unasked`, labelled or not."""
    assert set(scored(PropertyMatch(unasked=0.25), asked, VIEW).values()) == {0.25}


def test_a_broker_without_the_label_gets_its_own_score() -> None:
    """One-sided labels score `unlabelled`."""
    asked = request(properties={"rack": "a"})

    assert scored(PropertyMatch(unlabelled=0.4), asked, VIEW)["bare"] == 0.4


def test_values_are_compared_as_they_are() -> None:
    """Case counts, and an empty value is a value."""
    view = cluster(broker("b1", rack="A"), broker("b2", rack=""))

    assert scored(PropertyMatch(), request(properties={"rack": "a"}), view) == {"b1": 0.0, "b2": 0.0}
    assert scored(PropertyMatch(), request(properties={"rack": ""}), view) == {"b1": 0.0, "b2": 1.0}


def test_several_keys_are_weighed() -> None:
    """The score is the weighted mean over the keys, each with its own rule for what is missing."""
    asked = request(properties={"rack": "a", "zone": "x"})
    part = PropertyMatch(keys={"rack": 3.0, "zone": 1.0})

    assert scored(part, asked, VIEW) == {"a1": 1.0, "a2": 0.75, "b1": 0.25, "bare": 0.0}


def test_the_order_of_keys_makes_no_difference() -> None:
    """Equal parts score equally to the last bit."""
    view = cluster(broker("b1", a="1", b="1", c="1", d="2"))
    asked = request(properties=dict.fromkeys("abcd", "1"))
    weights = {"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.1}
    parts = PropertyMatch(keys=weights), PropertyMatch(keys=dict(reversed(weights.items())))
    forwards, backwards = (part.score(asked, candidates(view), view).tolist() for part in parts)

    assert parts[0] == parts[1]
    assert forwards == backwards


def test_only_compared_properties_are_read() -> None:
    """The decision key holds the keys and nothing else."""
    assert reads_of(PropertyMatch(key="zone")) == {"properties.zone"}
    assert reads_of(PropertyMatch(keys={"rack": 1.0, "zone": 1.0})) == {"properties.rack", "properties.zone"}


def test_both_forms_at_once_are_refused() -> None:
    """A key beside keys would be ignored in silence."""
    with pytest.raises(ValueError, match="property-match has both key = 'zone' and keys; leave one of them out"):
        PropertyMatch(key="zone", keys={"rack": 1.0})
