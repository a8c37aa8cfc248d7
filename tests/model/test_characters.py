"""Characters that names may not have."""

from __future__ import annotations

import pytest

from lookup.model.characters import BREAKING, forbidden_character, unseen


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a b", None),
        ("é", None),
        (" a", "begins or ends with a blank"),
        ("a\u00a0", "begins or ends with a blank"),
        ("a\u200bb", r"has the character '\u200b', which nobody sees"),
        ("a\ud800", r"has the character '\ud800', which nobody sees"),
    ],
)
def test_what_nobody_sees_is_named(text: str, says: str | None) -> None:
    """A character without a shape, half of a pair, or a blank at an end; blanks inside are seen."""
    assert unseen(text) == says


def test_separators_are_forbidden_like_what_breaks_a_list() -> None:
    """The first of them is returned; a character without width breaks nothing."""
    assert forbidden_character("a,b\n", ",") == ","
    assert forbidden_character("a\u200bb", categories=BREAKING) is None
