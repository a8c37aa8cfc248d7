"""Read selectors from text, such as `env=prod,tier in (a,b),team`.

Source: PIP-451 (AND of equalities). `in` and `exists` are extensions of this project.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lookup.errors import ArgumentError
from lookup.model.catalog import Equals, Exists, In, Selector, Term
from lookup.model.quoting import forbidden_character, shown, unseen
from lookup.topics.catalog.pairs import LABEL_KEY_SIGNS, LABEL_SIGNS, MAX_LENGTH, MAX_PAIRS

__all__ = ["MAX_SELECTOR_LENGTH", "parse"]

#: Characters of a selector, for as many conditions as a topic may have labels, each with the longest key and value.
MAX_SELECTOR_LENGTH = MAX_PAIRS * 2 * (MAX_LENGTH + 1)

#: Stripped from both ends of a word. Any other white space there is refused, as it is in a label.
_BLANK = " "
# There is one blank before `in`, since any number of them would be tried from each, the square of their length.
_OPENED = re.compile(r" in *\(")
_FORM = "a condition is key=value, key in (a,b) or key; there are no others"


def parse(text: str) -> Selector:
    """Read a selector, in which `:` means `=`.

    Raises:
        ArgumentError: with the first condition that cannot be read, for a text without conditions, or for too long a
            text.

    Example:
        >>> parse("env=prod, tier in (b, a), team")
        (Equals(key='env', value='prod'), In(key='tier', values=('a', 'b')), Exists(key='team'))
    """
    if len(text) > MAX_SELECTOR_LENGTH:
        raise ArgumentError(f"the selector has {len(text):,} characters, at most {MAX_SELECTOR_LENGTH:,} are permitted")
    if not text.strip(_BLANK):
        raise ArgumentError(f"the selector is empty; {_FORM}")
    terms = tuple(dict.fromkeys(_parse_term(piece) for piece in _split_pieces(text)))
    if len(terms) > MAX_PAIRS:
        raise ArgumentError(f"the selector has {len(terms)} conditions, at most {MAX_PAIRS} are permitted")
    return terms


def _split_pieces(text: str) -> Iterator[str]:
    start, opened = 0, _OPENED.search(text)
    while start <= len(text):
        # Searched once per list, not per comma, so that a text of commas does not take its length squared.
        if opened is not None and opened.start() < start:
            opened = _OPENED.search(text, start)
        comma = text.find(",", start)
        if opened is not None and (comma < 0 or opened.start() < comma):
            closed = text.find(")", opened.end())
            if closed < 0:
                raise ArgumentError(f"{shown(text[opened.start() :].strip(_BLANK))} is not closed: {_FORM}")
            comma = text.find(",", closed)
        end = len(text) if comma < 0 else comma
        yield text[start:end]
        start = end + 1


def _parse_term(piece: str) -> Term:
    opened = _OPENED.search(piece)
    if opened is not None:
        values, closed, rest = piece[opened.end() :].partition(")")
        if not closed or rest.strip(_BLANK):
            raise ArgumentError(f"{shown(piece)} is no condition: {_FORM}")
        chosen = {_check_word(value, piece, LABEL_SIGNS) for value in values.split(",")}
        # Sorted and each once, so that equal conditions are equal however they were written.
        return In(_check_word(piece[: opened.start()], piece, LABEL_KEY_SIGNS), tuple(sorted(chosen)))
    separator = re.search("[=:]", piece)
    if separator is None:
        return Exists(_check_word(piece, piece, LABEL_KEY_SIGNS))
    key = _check_word(piece[: separator.start()], piece, LABEL_KEY_SIGNS)
    return Equals(key, _check_word(piece[separator.end() :], piece, LABEL_SIGNS))


def _check_word(text: str, piece: str, signs: str) -> str:
    """Check a key or value that a label may have, since any other would silently select nothing."""
    word = text.strip(_BLANK)
    if not word or len(word) > MAX_LENGTH or unseen(word) or forbidden_character(word, signs) is not None:
        raise ArgumentError(f"{shown(piece.strip(_BLANK))} is no condition: {_FORM}")
    return word
