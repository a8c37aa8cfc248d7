"""A dictionary that remembers so many entries."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lookup.model.recent import Recent


@given(st.lists(st.integers(0, 9), max_size=40), st.integers(1, 5))
def test_the_entries_written_last_are_kept(keys: list[int], most: int) -> None:
    """Whatever is written, those that are left are the last different keys, each with its last value."""
    kept: Recent[int, int] = Recent(most)
    for place, key in enumerate(keys):
        kept.put(key, place)

    last = {key: place for place, key in enumerate(keys)}
    assert dict(kept) == dict(sorted(last.items(), key=lambda entry: entry[1])[-most:])
