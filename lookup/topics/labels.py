"""What labels and properties may be: their limits, checked before anything is stored.

Source of the limits: issue 4; separators are those of the texts in PIP-451 and PIP-452.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Mapping

from lookup.errors import ArgumentError
from lookup.settings.problems import suggestion

__all__ = [
    "MAX_LENGTH",
    "MAX_PAIRS",
    "Pairs",
    "checked_keys",
    "checked_pairs",
    "refuse_characters",
    "refuse_other_keys",
    "refuse_too_many",
]

#: Characters of a key or a value.
MAX_LENGTH = 256
#: Labels of one topic, and properties of one topic.
MAX_PAIRS = 64

#: Labels or properties as they may be given.
Pairs = Mapping[str, str] | Iterable[tuple[str, str]]

_SEPARATORS = ",=:"
#: Control characters, halves of surrogate pairs (no UTF-8), separators of lines and paragraphs.
_FORBIDDEN_CATEGORIES = ("Cc", "Cs", "Zl", "Zp")


def checked_pairs(pairs: Pairs, what: str) -> dict[str, str]:
    """Return pairs as a dictionary.

    Args:
        what: "label" or "property", as it stands in the sentence.

    Raises:
        ArgumentError: for the first key or value that may not be stored, and for more than `MAX_PAIRS`.
    """
    checked = dict(pairs)
    refuse_too_many(checked, what)
    for key, value in checked.items():
        _check_text(key, f"the key of a {what}")
        _check_text(value, f"the value of the {what} {_short(key)}", may_be_empty=what == "property")
    return checked


def refuse_too_many(pairs: Mapping[str, str], what: str) -> None:
    """Refuse more labels or properties than a topic may have."""
    if len(pairs) > MAX_PAIRS:
        raise ArgumentError(f"a topic may have at most {MAX_PAIRS} keys of a {what}, this makes {len(pairs)}")


def refuse_other_keys(labels: Mapping[str, str], allowed: Collection[str] | None) -> None:
    """Refuse labels whose key is not among the allowed ones; None allows every key."""
    for key in labels:
        if allowed is not None and key not in allowed:
            raise ArgumentError(
                f"the label {key!r} is not among allowed_label_keys; {suggestion(key, sorted(allowed))}"
            )


def checked_keys(keys: Iterable[str], *, everything: bool, what: str) -> Collection[str] | None:
    """Return the keys to remove, None for all of them.

    Args:
        what: "labels" or "properties", as it stands in the sentence.

    Raises:
        ArgumentError: where neither keys nor everything is named, or both.
    """
    named = frozenset(keys)
    if bool(named) == everything:
        raise ArgumentError(f"say which {what} to remove: some keys, or everything, one of the two")
    return None if everything else named


def refuse_characters(topic: str) -> None:
    """Refuse the name of a topic with characters that no list of topics can carry."""
    wrong = _forbidden(topic)
    if wrong is not None:
        raise ArgumentError(f"topic {_short(topic)} has the character {wrong!r}, which no name may have")


def _check_text(text: str, what: str, *, may_be_empty: bool = False) -> None:
    if not isinstance(text, str):
        raise ArgumentError(f"{what} is {text!r}, it must be a text")
    if len(text) > MAX_LENGTH:
        raise ArgumentError(f"{what} has {len(text):,} characters, at most {MAX_LENGTH} are permitted: {_short(text)}")
    if not text and not may_be_empty:
        raise ArgumentError(f"{what} is empty")
    if text != text.strip():
        raise ArgumentError(f"{what} is {_short(text)}, it must not begin or end with a blank")
    wrong = _forbidden(text, _SEPARATORS)
    if wrong is not None:
        raise ArgumentError(f"{what} is {_short(text)}, it must not have the character {wrong!r}")


def _forbidden(text: str, separators: str = "") -> str | None:
    # Most texts are plain: one look at the whole spares a look at each character.
    if text.isascii() and text.isprintable() and not any(separator in text for separator in separators):
        return None
    return next((c for c in text if c in separators or unicodedata.category(c) in _FORBIDDEN_CATEGORIES), None)


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:77]}...")
