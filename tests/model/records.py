"""JSON of every kind, at large and under the keys of Pulsar's records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

from hypothesis import strategies as st

from lookup.errors import InputError

_Read = TypeVar("_Read")

_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(10**400)

#: Any JSON, NaN and infinities as Python writes them.
JSON = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


def records(*kinds: type) -> st.SearchStrategy[dict[str, Any]]:
    """Draw objects that have some of the keys of such records, with any values below them."""
    names = {name for kind in kinds for name in (entry.name for entry in fields(kind))}
    keys = st.sampled_from([*sorted(map(_camel, names)), "brokerHttpUrl"])
    return st.dictionaries(keys, JSON | st.dictionaries(keys, JSON, max_size=3), max_size=4)


def either(read: Callable[[str], _Read], text: str) -> _Read | None:
    """Return what is read, None where an `InputError` refuses it; anything else goes through."""
    try:
        return read(text)
    except InputError:
        return None


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join("EMA" if part == "ema" else part.capitalize() for part in rest)
