"""Repeat what users wrote in sentences: escaped, of bounded length, and beside the name that was probably meant.

No byte of a file may control a terminal, so every text of a user's is escaped here before it is put into a sentence.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from itertools import islice
from reprlib import Repr
from typing import Any

__all__ = [
    "BREAKING",
    "HIDDEN",
    "closest",
    "forbidden_character",
    "join_names",
    "json_text",
    "one_line",
    "printable",
    "printed_line",
    "quantity",
    "shown",
    "suggestion",
    "toml_key",
    "toml_text",
    "unseen",
]  # fmt: skip

#: Categories of what breaks a list of names: control characters, halves of surrogate pairs (no UTF-8), separators of
#: lines and paragraphs.
BREAKING = ("Cc", "Cs", "Zl", "Zp")
#: The same, and invisible characters: a blank without width, a mark that turns the letters behind it round.
HIDDEN = (*BREAKING, "Cf")

#: What a text in JSON may have to escape: nothing of ASCII but DEL, and the ends of its own lines.
_PERHAPS_HIDDEN = re.compile(r"[^ -~\n]")

#: A key of TOML without quotation marks.
_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")

#: Characters of a text, or of another value written out, that a sentence repeats.
_LONGEST = 80
#: Names of a list that a sentence repeats.
_MOST_NAMES = 12
#: Names among which the one that was meant is looked for.
_MOST_COMPARED = 2_000
#: Repeats other values than texts: a few entries, two levels deep.
_SHORT = Repr()
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxother, _SHORT.maxlong = 2, _LONGEST, _LONGEST, _LONGEST


def shown(value: object) -> str:
    r"""Return a value as a sentence repeats it: a text in quotation marks, and what is long without its end.

    Example:
        >>> print(shown("w\x1b[31mhen"), shown(7))
        'w\x1b[31mhen' 7
    """
    if isinstance(value, str):
        # Cut before it is escaped: a later cut might end inside an escape, or keep nothing but escapes.
        return repr(value if len(value) <= _LONGEST else f"{value[: _LONGEST - 3]}...")
    text = _SHORT.repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def join_names(names: Iterable[str]) -> str:
    """Return names with commas between them, those that are not plain words quoted, and how many are left out."""
    given = list(names)
    quoted = []
    for name in islice(given, _MOST_NAMES):
        # A comma or a blank at an end would be read as the list's own.
        is_plain = 0 < len(name) <= _LONGEST and name.isprintable() and "," not in name and name == name.strip()
        quoted.append(name if is_plain else shown(name))
    rest = len(given) - len(quoted)
    return ", ".join(quoted) + (f" and {rest:,} more" if rest else "")


def closest(wrong: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the known name that is most like a wrong one, None if none is at least `cutoff` like it (a ratio).

    Of thousands of names none is suggested: each wrong name is compared with all of them, a second for 80,000.
    """
    names = list(known)
    return (
        next(iter(get_close_matches(wrong, names, n=1, cutoff=cutoff)), None) if len(names) <= _MOST_COMPARED else None
    )


def suggestion(wrong: str, known: Iterable[str], *, nothing: str = "there are none") -> str:
    """Return the clause of an error that says which name was probably meant, else which there are.

    Args:
        nothing: the clause if no name is known at all.
    """
    names = sorted(known)
    meant = closest(wrong, names)
    if meant is not None:
        return f"did you mean {shown(meant)}?"
    return f"known: {', '.join(names)}" if names else nothing


def printable(text: str) -> str:
    r"""Return a text whose control characters are written as escapes; line ends and tabs stay.

    Example:
        >>> print(printable("a\x1b[31mb"))
        a\x1b[31mb
    """
    return _escape(text, "\n\t")


def one_line(text: str) -> str:
    """Return a text whose control characters, ends of lines among them, are written as escapes."""
    return _escape(text, "")


def printed_line(text: str) -> str:
    """Return a text as a line that is printed: nothing in it ends it, rules a terminal or orders a CI about."""
    line = one_line(text)
    # To GitHub's runners a line that begins so is a command.
    return f" {line}" if line.lstrip().startswith("::") else line


def json_text(value: Any, *, indent: int | None = None) -> str:
    r"""Write a value as JSON in which whatever nobody sees is an escape, for programs the same value.

    Example:
        >>> print(json_text({"a": "é\u202e"}))
        {"a": "é\u202e"}
    """
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    return _PERHAPS_HIDDEN.sub(lambda found: found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1], text)


def toml_key(key: str) -> str:
    """Write a key as TOML, with quotation marks if it needs them."""
    return key if _BARE.match(key) else toml_text(key)


def toml_text(value: object) -> str:
    """Write a value as TOML, tables inline and without None; whatever nobody sees in a text is an escape."""
    match value:
        case _ if hasattr(value, "isoformat"):
            return str(value.isoformat()).replace("+00:00", "Z")
        case Mapping():
            inside = [f"{toml_key(key)} = {toml_text(entry)}" for key, entry in value.items() if entry is not None]
            return f"{{ {', '.join(inside)} }}" if inside else "{}"
        case list() | tuple():
            return f"[{', '.join(map(toml_text, value))}]"
        case float():
            return repr(value)
    text = json.dumps(value, ensure_ascii=False)

    # TOML's basic strings are JSON's, but for characters beyond 16 bits, of which JSON makes two.
    def escape_match(found: re.Match[str]) -> str:
        char, code = found[0], ord(found[0])
        return char if char.isprintable() else f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"

    return _PERHAPS_HIDDEN.sub(escape_match, text)


def quantity(count: int, singular: str, plural: str | None = None) -> str:
    """Write how many there are of something: `1 file`, `2,000 files`.

    Args:
        plural: if it is not the singular with an `s`.
    """
    return f"{count:,} {singular if count == 1 else plural or f'{singular}s'}"


def _escape(text: str, kept: str) -> str:
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in kept else repr(char)[1:-1] for char in text)


def forbidden_character(text: str, separators: str = "", categories: tuple[str, ...] = HIDDEN) -> str | None:
    """Return the first character of a text that is of one of these categories, or one of these separators."""
    # Most texts are plain: one test of the whole spares a test of each character.
    if text.isprintable() and not any(separator in text for separator in separators):
        return None
    return next((c for c in text if c in separators or unicodedata.category(c) in categories), None)


def unseen(text: str) -> str | None:
    """Return the end of a sentence that says what is invisible in a text; None if nothing is."""
    wrong = forbidden_character(text)
    if wrong is not None:
        return f"has the character {wrong!r}, which nobody sees"
    return None if text == text.strip() else "begins or ends with a blank"
