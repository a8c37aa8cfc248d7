"""Parts by name, as vectors ask them."""

from __future__ import annotations

import pytest

from lookup.errors import SettingsError
from tests.vectors.parts import configured_part, named_part

_KEY = "loadBalancerBrokerMaxTopics"


def test_a_part_is_filled_by_hand_or_by_keys_of_a_broker_conf() -> None:
    """Either way it is the same part."""
    assert configured_part("filters", "max-topics", {_KEY: 7}) == named_part("filters", "max-topics", max_topics=7)


def test_a_value_that_is_none_of_its_parameter_is_a_sentence() -> None:
    """It is not left to the part to fail."""
    with pytest.raises(SettingsError, match="max_topics"):
        configured_part("filters", "max-topics", {_KEY: "many"})
