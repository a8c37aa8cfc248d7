"""Rules of the decision server."""

from __future__ import annotations

import pytest

from lookup.settings.serving import ServingSection


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
