"""Texts of keys and values."""

from __future__ import annotations

import re

import pytest
from hypothesis import strategies as st

from lookup.errors import ArgumentError
from lookup.topics.catalog.pairs import LABEL_RULES, PROPERTY_RULES, PairRules, checked_pairs, parse_each

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", {}),
        ("k=v", {"k": "v"}),
        ("k:v", {"k": "v"}),
        ("k1=v1, k2:v2", {"k1": "v1", "k2": "v2"}),
        ("  k = v  ", {"k": "v"}),
        ("k\t=v\x1c", {"k\t": "v\x1c"}),
        ("\u00a0k=v\x85", {"\u00a0k": "v\x85"}),
        ("k=", {"k": ""}),
        ("k=a,k=b", {"k": "b"}),
        ("url=http://h", {"url": "http://h"}),
    ],
)
def test_pairs_are_read_in_both_forms(text: str, wanted: dict[str, str]) -> None:
    """The first `=` or `:` ends a key; of a key given twice the last value counts; only plain blanks are left aside."""
    assert dict(parse_each(text)) == wanted


@pytest.mark.parametrize("text", ["k", "=v", ":v", "k=v,", ",", "k1=v1,k2"])
def test_a_piece_that_is_no_pair_is_refused(text: str) -> None:
    """The sentence says what would be right."""
    with pytest.raises(ArgumentError, match="key=value or key:value"):
        dict(parse_each(text))


@pytest.mark.parametrize("mark", ["\t", "\x1c", "\x85", "\u200b", "\u202e", "\u2028", "\u2029", "\ufeff", "\u00ad"])
@pytest.mark.parametrize("place", ["{}ab", "a{}b", "ab{}"])
@pytest.mark.parametrize("rules", [LABEL_RULES, PROPERTY_RULES], ids=["label", "property"])
def test_what_nobody_sees_is_no_part_of_a_key_or_value(mark: str, place: str, rules: PairRules) -> None:
    """Two texts that look alike are alike; the mark is written so that it is seen."""
    text = place.format(mark)
    for pairs in ({text: "v"}, {"k": text}):
        with pytest.raises(ArgumentError, match=rf"{rules.word}.*{re.escape(repr(text)[1:-1])}") as refused:
            checked_pairs(pairs, rules)
        assert str(refused.value).isprintable()
