"""The page about Pulsar's keys is what the code says, and what goes by a key is found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lookup.engine.plugins import Registry, load_plugins
from scripts.parity import KEYS, REASONS, implementations, parity_page

_PAGE = Path(__file__).parents[2] / "docs" / "pulsar-parity.md"


@pytest.fixture(scope="module")
def registry() -> Registry:
    """Return the parts that come with the framework."""
    return load_plugins()


def test_the_page_is_what_the_generator_prints(registry: Registry) -> None:
    """`python scripts/parity.py docs/pulsar-parity.md` writes it anew."""
    page = _PAGE.read_text(encoding="utf-8")

    assert page == parity_page(registry, page)


def test_every_key_has_a_row(registry: Registry) -> None:
    """Nothing is left open: something goes by a key, or there is a reason."""
    page = parity_page(registry, "")

    assert [key for key in KEYS if not re.search(rf"^\| (?:`\w+`, )*`{key}`[ ,]", page, re.M)] == []


def test_no_reason_is_given_for_a_key_that_something_goes_by(registry: Registry) -> None:
    """A reason that has become wrong is taken out of the table."""
    assert implementations(registry).keys() & REASONS.keys() == set()
    assert set(KEYS) >= REASONS.keys()


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("loadBalancerBrokerMaxTopics", "filter `max-topics`: `max_topics`"),
        ("loadManagerClassName", "`BrokerProfile.load_manager_class_name` in `lookup.settings.broker`"),
        ("loadManagerClassName", "read by `lookup.settings.broker_conf`"),
        ("lookupPropertyPrefix", "`published_properties(prefix)` in `lookup.model.broker`"),
        ("lookupPropertyPrefix", "`Broker.property_prefix` in `lookup.model.broker`"),
    ],
)
def test_places_of_every_kind_are_found(registry: Registry, key: str, place: str) -> None:
    """Parameters, fields, names that are read, arguments."""
    assert place in implementations(registry)[key]


def test_an_example_is_no_implementation(registry: Registry) -> None:
    """A key named as an example, like loadBalancerBrokerMaxTopics in a docstring, is not counted."""
    places = implementations(registry)["loadBalancerBrokerMaxTopics"]

    assert [place for place in places if "BrokerProfile" in place] == []
