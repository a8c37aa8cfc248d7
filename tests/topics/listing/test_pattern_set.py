"""Many patterns at once: every name finds those that match it one by one, whatever was added and removed before."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup.errors import PatternError
from lookup.topics.listing import TopicsPattern, pattern_set
from lookup.topics.listing.pattern_set import PatternSet
from tests.topics.shelf import topic

_NAMESPACE = "t/n"
#: Few letters, so that literals meet names; signs of every kind that RE2 gives a meaning.
_PIECES = (
    "a", "b", "ab", "ba", "t/n/", "-", "/", "é", ".", ".*", ".+", "a*", "b?", "a+?", "b??", "\\.", "\\-", "\\d", "\\w*",
    "\\Qa.b\\E", "\\x61", "[ab]", "[^a]", "[]a]", "[a|]", "(a|b)", "(?:ab)?", "(?i)", "(?i:A)", "(?s)", "|", "^", "$",
    "a{2}", "b{0}", "ab{0,2}", "{", "(?P<x>a)", "\\A", "\\z", "\\b", "\\pL", "1", "12",
)  # fmt: skip
_TEXT = st.lists(st.sampled_from(_PIECES), max_size=7).map("".join)
_PATTERN = st.sampled_from(["", "", "t/n/", ".*", "persistent://t/n/", "^"]).flatmap(
    lambda start: _TEXT.map(lambda text: start + text)
)
_LOCAL = st.text("ab-./é1A2\n", min_size=1, max_size=8)
_NAME = st.builds(
    lambda local, domain, suffix: topic(local, domain=domain) + suffix,
    _LOCAL,
    st.sampled_from(["persistent", "non-persistent"]),
    st.sampled_from(["", "-partition-0", "-partition-01"]),
)


def _usable(text: str) -> bool:
    try:
        TopicsPattern(text)
    except PatternError:
        return False
    return True


_USABLE = _PATTERN.filter(_usable)


def _one_by_one(texts: set[str], name: str) -> list[str]:
    return sorted(text for text in texts if TopicsPattern(text).matches(name))


@settings(max_examples=500, deadline=None)
@given(st.lists(_USABLE, max_size=40), st.lists(st.integers(0, 39), max_size=20), st.lists(_NAME, max_size=8))
@pytest.mark.parametrize(("sharing", "loose", "largest"), [(16, 32, 1024), (1, 1, 4), (0, 2, 8), (2, 1, 1)])
def test_a_name_finds_the_patterns_that_match_it_one_by_one(
    sharing: int, loose: int, largest: int, added: list[str], removed: list[int], names: list[str]
) -> None:
    """With bounds of every size: patterns filed by literals, waiting and compiled, and sets that are merged."""
    with pytest.MonkeyPatch.context() as patch:
        for bound, value in (("_SHARING", sharing), ("_LOOSE", loose), ("_SET", largest)):
            patch.setattr(pattern_set, bound, value)
        patterns, texts = PatternSet(_NAMESPACE), set[str]()
        for number, text in enumerate(added):
            patterns.add(text)
            texts.add(text)
            if number in removed:
                patterns.remove(text)
                texts.discard(text)
        for number in removed:
            if number < len(added):
                patterns.remove(added[number])
                texts.discard(added[number])

        assert len(patterns) == len(texts)
        for name in names:
            assert sorted(patterns.matching(name)) == _one_by_one(texts, name)


@pytest.mark.parametrize(
    "form", ["t/n/orders-{}-.*", ".*-{}-eu", ".*o.*-{}-.*", "t/n/[a-z]+-{}-eu", "(?i)T/N/O.*-{}-EU"]
)
def test_one_of_many_patterns_of_a_kind_is_found(form: str) -> None:
    """Patterns with a literal at the beginning, at the end, in between, and with none that can be seen."""
    texts = {form.format(number) for number in range(500)}
    patterns = PatternSet(_NAMESPACE, texts)
    assert patterns.matching(topic("orders-77-eu")) == [form.format(77)]

    for number in range(400):
        patterns.remove(form.format(number))

    assert patterns.matching(topic("orders-77-eu")) == []
    assert patterns.matching(topic("orders-477-eu")) == [form.format(477)]


def test_each_pattern_is_found_once() -> None:
    """Though literals are longer than the name, stand in it twice, or stand in it beside others."""
    starts = PatternSet(_NAMESPACE, ["t/n/ab", "t/n/abab-.*", "t/n/ababab-.*"])
    pieces = PatternSet(_NAMESPACE, [".*ab.*", ".*b-c.*", ".*-cd.*", ".*x.*"])

    assert starts.matching(topic("ab")) == ["t/n/ab"]
    assert sorted(pieces.matching(topic("abab-cd"))) == [".*-cd.*", ".*ab.*", ".*b-c.*"]


def test_patterns_that_take_too_much_memory_together_are_asked_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether RE2 cannot compile them or runs out of memory when it matches, no name is lost."""
    texts = [f"t/n/[ab]{{1,{number}}}[bc].*" for number in range(1, 200)]
    name = topic("ababab" * 10)
    expected = _one_by_one(set(texts), name)
    assert expected
    for memory in (1 << 10, 1 << 16, 1 << 18, 1 << 20, 1 << 22):
        monkeypatch.setattr("lookup.topics.listing.topic_list._SET_MEMORY", memory)

        assert sorted(PatternSet(_NAMESPACE, texts).matching(name)) == expected


def test_a_pattern_that_cannot_be_used_is_refused() -> None:
    """And nothing is kept of it."""
    patterns = PatternSet(_NAMESPACE)
    with pytest.raises(PatternError, match="lookahead"):
        patterns.add("t/n/(?=a)")

    assert (len(patterns), patterns.matching(topic("a"))) == (0, [])
