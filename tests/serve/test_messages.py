"""Fields of requests that are not recorded."""

from __future__ import annotations

import pytest

from lookup.serve.messages import recorded_client, recorded_properties


@pytest.mark.parametrize(
    ("masked", "recorded"),
    [
        ((), {"rack": "a", "email": "x@y"}),
        (("properties.email",), {"rack": "a", "email": "masked"}),
        (("properties",), {"rack": "masked", "email": "masked"}),
        (("client", "properties.mail"), {"rack": "a", "email": "x@y"}),
    ],
)
def test_masked_properties_keep_their_keys(masked: tuple[str, ...], recorded: dict[str, str]) -> None:
    """Of a masked property only its presence is recorded, and of no other the value is hidden."""
    assert recorded_properties({"rack": "a", "email": "x@y"}, masked) == recorded


def test_masked_client_is_hidden() -> None:
    """A client that is masked is recorded as masked, one that is absent as absent."""
    masked = ("client",)

    assert (recorded_client("10.0.0.9:4000", masked), recorded_client(None, masked)) == ("masked", None)
    assert recorded_client("10.0.0.9:4000", ()) == "10.0.0.9:4000"
