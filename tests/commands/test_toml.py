"""Written TOML reads back to the same values."""

from __future__ import annotations

import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lookup.commands.toml import to_toml

# Surrogates have no UTF-8; everything else may stand in a TOML text.
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_PLAIN = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | _TEXTS
_VALUES = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=6,
)


def _without_none(values: Any) -> Any:
    if isinstance(values, dict):
        return {key: _without_none(value) for key, value in values.items() if value is not None}
    return values


@given(st.dictionaries(_TEXTS, _VALUES | st.dictionaries(_TEXTS, _PLAIN, max_size=3), max_size=4))
def test_any_table_reads_back(values: dict[str, Any]) -> None:
    """Keys and texts of any characters, nested lists and tables survive; None is left out."""
    assert tomllib.loads(to_toml(values)) == _without_none(values)


def test_comments_stand_behind_their_values() -> None:
    """A comment is asked for by the place of the value."""
    written = to_toml({"run": {"seed": 1}}, lambda loc: ".".join(map(str, loc)))

    assert written == "[run]\nseed = 1  # run.seed\n"
