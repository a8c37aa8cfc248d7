"""Bytes of logs that are no UTF-8."""

from __future__ import annotations

from lookup.logs.decoding import unquoted


def test_names_in_percent_encoding_that_differ_stay_apart() -> None:
    """Letters of Latin-1 are no UTF-8, and were all one character."""
    assert [unquoted(text) for text in ("K%F6ln", "K%E4ln", "K%C3%B6ln", "a%2Fb")] == ["Köln", "Käln", "Köln", "a/b"]
