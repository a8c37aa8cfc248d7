"""Waiting for what processes do."""

from __future__ import annotations

import pytest

from tests import processes
from tests.processes import awaited


@pytest.mark.parametrize(("what", "named"), [("three rows", "three rows"), ("", "awaited(lambda: seen, what")])
def test_what_never_comes_is_named_with_what_was_seen(monkeypatch: pytest.MonkeyPatch, what: str, named: str) -> None:
    """Waiting ends with what was looked for, by its name or its source, and with what was there instead."""
    monkeypatch.setattr(processes, "PATIENCE_S", 0.1)
    seen = ["one row"]

    with pytest.raises(AssertionError) as vain:
        awaited(lambda: seen, what, enough=lambda rows: len(rows) == 3)

    assert str(vain.value).startswith(f"waited 0 s in vain for {named}")
    assert str(vain.value).endswith("last seen: ['one row']")


def test_what_is_enough_is_returned() -> None:
    """Looking goes on until enough is seen, and what was seen then is returned."""
    counts = iter(range(10))

    assert awaited(lambda: next(counts), enough=lambda count: count > 3) == 4
