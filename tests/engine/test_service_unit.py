"""Service units: states, valid transitions, the record and its JSON, versions."""

from __future__ import annotations

import json

import pytest

from lookup.engine.service_unit import ServiceUnitStateData
from lookup.errors import ArgumentError, InputError


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("state", None, "state is None, .*: Init, Free"),
        ("state", "Lost", "state is 'Lost', "),
        ("dstBroker", 1, "dstBroker is 1, not a text"),
        ("force", "no", "force is 'no', "),
        ("versionId", 2**63, "versionId.* 64 bits"),
        ("versionId", -(2**63) - 1, "versionId.* 64 bits"),
        ("splitServiceUnitToDestBroker", [], r"splitServiceUnitToDestBroker is \[\], not an object"),
        ("splitServiceUnitToDestBroker", {"a": 1}, "splitServiceUnitToDestBroker.a is 1, not a text"),
    ],
)
def test_wrong_json_is_refused_by_key(key: str, value: object, sentence: str) -> None:
    """What Pulsar would not have written is named with its key."""
    record = {"state": "Owned", "dstBroker": "b1", key: value}

    with pytest.raises((ArgumentError, InputError), match=sentence):
        ServiceUnitStateData.from_json(json.dumps(record))
