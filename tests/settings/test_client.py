"""Client profiles as written."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from lookup.settings import ClientEntry


@pytest.mark.parametrize(
    ("match", "sentence"),
    [
        ({}, 'should say either cidr = "10.1.0.0/16" or client = "glob"'),
        ({"cidr": "10.0.0.0/8", "client": "*"}, 'should say either cidr = "10.1.0.0/16" or client = "glob"'),
        ({"cidr": "10.1.2.3/16"}, "cidr: should be a network like 10.1.0.0/16: 10.1.2.3/16 has host bits set"),
        ({"cidr": "rack-a"}, "cidr: should be a network like 10.1.0.0/16: 'rack-a' does not appear to be"),
    ],
)
def test_a_match_is_a_network_or_a_glob(match: dict[str, Any], sentence: str) -> None:
    """Exactly one of the two is given, and a network is written as one."""
    with pytest.raises(ValidationError) as caught:
        ClientEntry.model_validate({"match": match, "properties": {"rack": "a"}})

    assert caught.value.errors()[0]["msg"].removeprefix("Value error, ").startswith(sentence)


def test_an_entry_labels_something() -> None:
    """An entry without properties would hide the ones behind it and do nothing."""
    with pytest.raises(ValidationError):
        ClientEntry.model_validate({"match": {"client": "*"}, "properties": {}})
