"""Patterns of topic names, hashes of lists against values computed elsewhere, and a missing extra."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence

import pytest
import re2
from hypothesis import example, given
from hypothesis import strategies as st

from lookup.errors import PatternError
from lookup.topics.listing import TopicsPattern, topics_hash

_NAMES = [
    f"{domain}://public/default/{local}"
    for domain in ("persistent", "non-persistent")
    for local in ("orders", "orders-partition-0", "orders-eu", "a.b", "日本")
]


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        (".*", _NAMES),
        ("persistent://.*", _NAMES),
        ("public/default/orders", [_NAMES[0], _NAMES[1], _NAMES[5], _NAMES[6]]),
        ("^persistent://public/default/orders$", [_NAMES[0], _NAMES[1], _NAMES[5], _NAMES[6]]),
        ("non-persistent://public/default/orders-eu", [_NAMES[2], _NAMES[7]]),
        ("orders", []),
        ("public/default/order", []),
        ("public/default/..", [_NAMES[4], _NAMES[9]]),
        ("public/default/a.b", [_NAMES[3], _NAMES[8]]),
        ("public/default/orders-partition-0", []),
    ],
)
def test_a_pattern_matches_whole_names_without_scheme_and_partition(pattern: str, wanted: list[str]) -> None:
    """Both domains are matched by what follows the scheme; names come out unchanged and in order."""
    assert TopicsPattern(pattern).filter(_NAMES) == wanted
    assert [name for name in _NAMES if TopicsPattern(pattern).matches(name)] == wanted


def test_another_scheme_is_refused() -> None:
    """The sentence names it and the schemes there are."""
    with pytest.raises(PatternError, match="'topic://' is not a scheme of topics"):
        TopicsPattern("topic://a/b/.*")


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("a/(?=b)", "operator: (?=; RE2"),
        (r"(a)\1", "escape sequence: \\1; RE2"),
        ("a*+", "operator: *+; RE2"),
        ("(a", "missing ): (a"),
    ],
)
def test_what_cannot_be_compiled_is_named(pattern: str, said: str) -> None:
    """The sentence holds the pattern and the construct."""
    with pytest.raises(PatternError) as refused:
        TopicsPattern(pattern)

    assert said in str(refused.value)
    assert repr(pattern) in str(refused.value)


def test_half_a_surrogate_pair_is_refused() -> None:
    """No name can hold one, and RE2 could not read it."""
    with pytest.raises(PatternError, match="holds half a surrogate pair"):
        TopicsPattern("\ud801")


def test_a_pattern_that_explodes_elsewhere_ends() -> None:
    """Nested repetition over a long name that almost fits: who tries one split of it after the other never ends."""
    pattern, name = TopicsPattern("public/default/(a+)+b"), f"persistent://public/default/{'a' * 5_000}"

    assert not pattern.matches(name)


@given(st.text("ab/.", min_size=1, max_size=8))
def test_an_escaped_name_matches_itself_alone(local: str) -> None:
    """Matching is whole-string matching, by the rules of regular expressions."""
    pattern = TopicsPattern(re.escape(f"t/n/{local}"))

    assert pattern.matches(f"persistent://t/n/{local}")
    assert not pattern.matches(f"persistent://t/n/{local}x")


_HERE = "persistent://public/default/"


@pytest.mark.parametrize(
    ("locals_", "wanted"),
    [([], "00000000"), (["a"], "e4a876e3"), (["b", "a"], "c7559e98"), (["t-partition-0", "t-partition-1"], "102fd9b3")],
)
def test_known_lists_have_their_known_hash(locals_: Sequence[str], wanted: str) -> None:
    """The hash is CRC32C over the sorted names, its bytes from the lowest up."""
    assert topics_hash(f"{_HERE}{name}" for name in locals_) == wanted


def _reference(names: Sequence[str]) -> str:
    """Compute the hash bit by bit, from the definition of CRC32C."""
    register = 0xFFFFFFFF
    for byte in ",".join(sorted(names, key=lambda name: name.encode("utf-16-be"))).encode():
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return (register ^ 0xFFFFFFFF).to_bytes(4, "little").hex()


@example(["\uffee", "\U00010437"])
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), unique=True, max_size=6))
def test_any_list_has_the_hash_of_the_definition(names: list[str]) -> None:
    """Order is that of UTF-16, where characters beyond U+FFFF come before U+E000; the checksum is CRC32C."""
    assert topics_hash(names) == _reference(names)


def test_half_a_surrogate_pair_is_hashed_like_a_question_mark() -> None:
    """Java writes it so; nothing is raised."""
    assert topics_hash(["\ud801"]) == topics_hash(["?"])


_SCRIPT = """
import sys
sys.modules[{package!r}] = None
from lookup.errors import SettingsError
from lookup.topics.listing import topics_hash
from lookup.topics.listing import TopicsPattern
try:
    {call}
except SettingsError as error:
    sys.exit(str(error))
"""


@pytest.mark.parametrize(
    ("package", "call", "said"),
    [
        ("google_crc32c", "topics_hash([])", "needs google_crc32c: "),
        ("re2", "TopicsPattern('a')", "needs re2: install it with pip install 'pulsar-lookup[topics]'"),
    ],
)
def test_a_missing_package_is_named_when_it_is_needed(package: str, call: str, said: str) -> None:
    """The modules import without the extra; only what needs it says what to install."""
    script = _SCRIPT.format(package=package, call=call)

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)

    assert (done.returncode, said in done.stderr) == (1, True), done.stderr


@given(st.text("aB0_/-.*\\", max_size=6).map(lambda text: f"{text}.*"), st.text("aB0_/-.*\\\né", max_size=8))
@example("t/n/a.*", "t/n/a\nb")
@example(".*", "\n")
def test_a_beginning_is_matched_as_re2_matches_it(pattern: str, bare: str) -> None:
    """The commonest patterns take a shorter way to the same answer; `.*` by itself matches every name."""
    expected = pattern == ".*" or re2.fullmatch(pattern, bare) is not None if _compiles(pattern) else None

    assert expected is None or TopicsPattern(pattern).matches(f"persistent://{bare}") == expected


def _compiles(pattern: str) -> bool:
    try:
        TopicsPattern(pattern)
    except PatternError:
        return False
    return True
