"""Numbers of things in sentences."""

from __future__ import annotations

import pytest

from lookup.replay.quantities import quantity


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 policies"), (1, "1 policy"), (2, "2 policies"), (1000, "1,000 policies")]
)
def test_one_is_singular(count: int, text: str) -> None:
    """Only a single thing is told in the singular; thousands are grouped."""
    assert quantity(count, "policy", "policies") == text


def test_most_plurals_have_an_s() -> None:
    """The plural need not be given."""
    assert [quantity(count, "file") for count in (1, 2)] == ["1 file", "2 files"]
