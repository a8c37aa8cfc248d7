"""Selectors as text, and what they find over several namespaces."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lookup.errors import ArgumentError
from lookup.model.catalog import Equals, Exists, In, Selector
from lookup.topics.catalog.pairs import LABEL_RULES, checked_pairs
from lookup.topics.listing.selectors import MAX_SELECTOR_LENGTH, parse

_WORDS = st.text("abcins-", min_size=1, max_size=5)
_VALUES = st.text("ab in", min_size=1, max_size=6).filter(lambda text: text == text.strip())
_TERMS = st.one_of(
    st.builds(Equals, _WORDS, _VALUES),
    st.builds(In, _WORDS, st.sets(_VALUES, min_size=1, max_size=3).map(lambda values: tuple(sorted(values)))),
    st.builds(Exists, _WORDS),
)


@given(st.lists(_TERMS, min_size=1, max_size=4, unique=True).map(tuple))
def test_a_selector_reads_back_as_it_is_written(selector: Selector) -> None:
    """Conditions are written as they are read."""
    assert parse(",".join(map(str, selector))) == selector


@pytest.mark.parametrize(
    ("text", "selector"),
    [
        ("env=prod", (Equals("env", "prod"),)),
        (" env : prod , team ", (Equals("env", "prod"), Exists("team"))),
        ("tier in (b,a),env=prod", (In("tier", ("a", "b")), Equals("env", "prod"))),
        ("tier in( a )", (In("tier", ("a",)),)),
        ("in=1,in", (Equals("in", "1"), Exists("in"))),
        ("env=prod,env=prod", (Equals("env", "prod"),)),
    ],
)
def test_selectors_are_read(text: str, selector: Selector) -> None:
    """Conditions are separated by commas outside of lists; blanks around words do not count."""
    assert parse(text) == selector


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the selector is empty; a condition is"),
        ("  ", "the selector is empty"),
        ("env=prod,", "'' is no condition"),
        ("env=", "'env=' is no condition"),
        ("=prod", "'=prod' is no condition"),
        ("env=a=b", "'env=a=b' is no condition"),
        ("tier in (a,b", "is not closed"),
        ("tier in ()", "'tier in ()' is no condition"),
        ("tier in (a,,b)", "'tier in (a,,b)' is no condition"),
        ("tier in (a) b", "'tier in (a) b'"),
        ("two words", "'two words' is no condition"),
        ("not(env)", "'not(env)' is no condition"),
        ("env!=prod", "'env!=prod' is no condition"),
        ("!env", "'!env' is no condition"),
        ("env<>prod", "'env<>prod' is no condition"),
        ("size>=3", "'size>=3' is no condition"),
        ("env==prod", "'env==prod' is no condition"),
        ("env notin (a)", "'env notin (a)' is no condition"),
        ("env not in (a)", "'env not in (a)'"),
        ("env=a\x00", "is no condition"),
        ("env=a\t", r"'env=a\t' is no condition"),
        ("env=a\u00a0", r"'env=a\xa0' is no condition"),
        ("\x85env", r"'\x85env' is no condition"),
        ("env=a\u200bb", r"'env=a\u200bb' is no condition"),
        ("tier in\n(a)", r"'tier in\n(a)' is no condition"),
        ("\u3000", r"'\u3000' is no condition"),
        ("k" * 257, "is no condition"),
        ("a" * (MAX_SELECTOR_LENGTH + 1), "32,897 characters, at most 32,896"),
        (",".join(f"k{number}" for number in range(65)), "65 conditions, at most 64"),
        (" in (" * 6_000, "is not closed"),
        (" " * 32_000 + "x y", "'x y' is no condition"),
        ("," * 32_000, "'' is no condition"),
        ("a," * 16_000 + "b in (c", "is not closed"),
    ],
)
def test_what_is_no_selector_is_a_sentence(text: str, sentence: str) -> None:
    """The first condition that is none is named, in a few words however long it is."""
    with pytest.raises(ArgumentError) as caught:
        parse(text)

    assert sentence in str(caught.value)
    assert len(str(caught.value)) < 200


@given(st.text("ab in()!<>=:\u00a0日", max_size=5), st.text("ab in()!<>=:\u200d\u00a0é", max_size=5))
@example("my key", "v")
@example("tier", "gold(1)")
@example("a\u00a0b", "é\u00a0日 a")
@example("a", "é\u200d日")
def test_every_label_that_a_topic_may_have_can_be_asked_for(key: str, value: str) -> None:
    """A label that is not refused when it is set is found by each of the conditions."""
    try:
        checked_pairs({key: value}, LABEL_RULES)
    except ArgumentError:
        return

    assert parse(f"{key}={value}") == (Equals(key, value),)
    assert parse(f"{key} in ({value}),{key}") == (In(key, (value,)), Exists(key))
