"""Rules of the decision server."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from lookup.settings.serving import ServingFile, ServingSection


@pytest.mark.parametrize(
    ("bind", "token", "is_open"),
    [
        *((bind, None, True) for bind in ("0.0.0.0", "::", "10.0.0.7")),
        *((bind, None, False) for bind in ("127.0.0.1", "::1", "localhost", "127.8.0.1")),
        ("0.0.0.0", "token", False),
    ],
)
def test_an_open_door_is_a_warning(bind: str, token: str | None, is_open: bool) -> None:
    """A server that other machines reach, without a token."""
    section = ServingSection(cluster="c", record="r", bind=bind, token_file=token)

    assert [sentence.partition(":")[0] for sentence in section.warnings] == (["serving.bind"] if is_open else [])


def test_a_served_policy_has_the_bundles_of_the_cluster() -> None:
    """A number of its own would have no effect, and is refused."""
    served = {"serving": {"cluster": "c", "record": "r", "active": "p"}}

    with pytest.raises(ValidationError, match=r"policies.*8 have no effect"):
        ServingFile.model_validate({**served, "policies": [{"name": "p", "selector": "best", "bundles": 8}]})
