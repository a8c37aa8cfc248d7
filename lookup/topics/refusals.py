"""What every part of this room refuses in texts and numbers, and how its sentences repeat what was given."""

from __future__ import annotations

import unicodedata

from lookup.errors import ArgumentError

__all__ = ["forbidden_character", "quoted", "refuse_below"]

#: Characters of a text that a sentence repeats.
_LONGEST = 80
#: Control characters, halves of surrogate pairs (no UTF-8), separators of lines and paragraphs.
_FORBIDDEN_CATEGORIES = ("Cc", "Cs", "Zl", "Zp")


def quoted(text: str) -> str:
    """Return a text as a sentence repeats it: in quotation marks, its end left out where it is long."""
    return repr(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}...")


def forbidden_character(text: str, separators: str = "") -> str | None:
    """Return the first character that no name, key or value may have, or that is one of these separators."""
    # Most texts are plain: one look at the whole, which finds nothing forbidden, spares a look at each character.
    if text.isprintable() and not any(separator in text for separator in separators):
        return None
    return next((c for c in text if c in separators or unicodedata.category(c) in _FORBIDDEN_CATEGORIES), None)


def refuse_below(least: int, **values: int) -> None:
    """Refuse the first value, by its name, that is less than it must be.

    Raises:
        ArgumentError: naming it.
    """
    for name, value in values.items():
        if value < least:
            raise ArgumentError(f"{name} is {value}, and must be {least} or more")
