"""Characters that names may not have: what breaks a list of names, and what nobody sees."""

from __future__ import annotations

import unicodedata

__all__ = ["BREAKING", "HIDDEN", "forbidden_character", "unseen"]

#: Categories of what breaks a list of names: control characters, halves of surrogate pairs (no UTF-8), separators of
#: lines and paragraphs.
BREAKING = ("Cc", "Cs", "Zl", "Zp")
#: The same, and of what nobody sees: a blank without width, a mark that turns the letters behind it round.
HIDDEN = (*BREAKING, "Cf")


def forbidden_character(text: str, separators: str = "", categories: tuple[str, ...] = HIDDEN) -> str | None:
    """Return the first character of a text that is of one of these categories, or one of these separators."""
    # Most texts are plain: one look at the whole, which finds nothing forbidden, spares a look at each character.
    if text.isprintable() and not any(separator in text for separator in separators):
        return None
    return next((c for c in text if c in separators or unicodedata.category(c) in categories), None)


def unseen(text: str) -> str | None:
    """Return what of a text nobody sees, as the end of a sentence; None where all of it is seen."""
    wrong = forbidden_character(text)
    if wrong is not None:
        return f"has the character {wrong!r}, which nobody sees"
    return None if text == text.strip() else "begins or ends with a blank"
