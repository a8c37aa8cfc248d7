"""The hash of topic lists, against values computed elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lookup.topics.hashing import topics_hash

_HERE = "persistent://public/default/"


@pytest.mark.parametrize(
    ("locals_", "wanted"),
    [
        ([], "00000000"),
        (["a"], "e4a876e3"),
        (["b", "a"], "c7559e98"),
        (["t-partition-0", "t-partition-1"], "102fd9b3"),
    ],
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


@given(st.permutations([f"{_HERE}{name}" for name in ("a", "b", "é", "\uffee", "\U00010437")]))
def test_the_order_of_the_list_does_not_count(names: list[str]) -> None:
    """A list is hashed as the set it is."""
    assert topics_hash(names) == topics_hash(sorted(names))


def test_half_a_surrogate_pair_is_hashed_like_a_question_mark() -> None:
    """Java writes it so; nothing is raised."""
    assert topics_hash(["\ud801"]) == topics_hash(["?"])
