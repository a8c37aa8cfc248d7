"""Quote users' texts in sentences, escaped and with bounded length, and suggest the names they intended.

No byte of a file may control a terminal, so every text from a user is escaped here before it is put into a sentence.
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
    "BREAKING", "HIDDEN", "closest", "forbidden_character", "join_names", "json_text", "one_line", "printable",
    "printed_line", "quantity", "shown", "suggestion", "toml_key", "toml_text", "unseen",
]  # fmt: skip

#: Characters that break a list of names are controls, half surrogate pairs (not UTF-8), line and paragraph separators.
BREAKING = ("Cc", "Cs", "Zl", "Zp")
#: The same with invisible characters, for example a blank without width, or a mark that reverses the letters after it.
HIDDEN = (*BREAKING, "Cf")

#: Characters that a text in JSON may have to escape, which are all but printable ASCII and line ends.
_PERHAPS_HIDDEN = re.compile(r"[^ -~\n]")

#: A key of TOML without quotation marks.
_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")

#: Characters of a text, or of another value written out, that a sentence repeats.
_LONGEST = 80
#: Names of a list that a sentence repeats.
_MOST_NAMES = 12
#: Greatest number of names that are searched for a suggestion.
_MOST_COMPARED = 2_000
#: Quotes values other than texts, with a few entries and two levels of depth.
_SHORT = Repr()
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxother, _SHORT.maxlong = 2, _LONGEST, _LONGEST, _LONGEST


def shown(value: object) -> str:
    r"""Format a value for a sentence. Texts are put in quotation marks, and long values are cut.

    Example:
        >>> print(shown("w\x1b[31mhen"), shown(7))
        'w\x1b[31mhen' 7
    """
    if isinstance(value, str):
        # Cut before escaping, since a later cut might end inside an escape, or keep only escapes.
        return repr(value if len(value) <= _LONGEST else f"{value[: _LONGEST - 3]}...")
    text = _SHORT.repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def join_names(names: Iterable[str]) -> str:
    """Join names with commas, quote names other than plain words, and count the omitted ones."""
    items = list(names)
    quoted = []
    for name in islice(items, _MOST_NAMES):
        # A comma or a blank at an end would be read as the list's own.
        is_plain = 0 < len(name) <= _LONGEST and name.isprintable() and "," not in name and name == name.strip()
        quoted.append(name if is_plain else shown(name))
    rest = len(items) - len(quoted)
    return ", ".join(quoted) + (f" and {rest:,} more" if rest else "")


def closest(wrong: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Find the known name most similar to a wrong one, None if no similarity reaches `cutoff` (a ratio).

    Of thousands none is suggested, since each wrong name is compared with all, which takes a second for 80,000.
    """
    names = list(known)
    return (
        next(iter(get_close_matches(wrong, names, n=1, cutoff=cutoff)), None) if len(names) <= _MOST_COMPARED else None
    )


def suggestion(wrong: str, known: Iterable[str], *, nothing: str = "there are none") -> str:
    """Build the clause of an error with the name that was probably intended, or else with all known names.

    Args:
        nothing: the clause if there are no known names.
    """
    names = sorted(known)
    nearest = closest(wrong, names)
    if nearest is not None:
        return f"did you mean {shown(nearest)}?"
    return f"known: {', '.join(names)}" if names else nothing


def printable(text: str) -> str:
    r"""Escape the control characters of a text, other than line ends and tabs.

    Example:
        >>> print(printable("a\x1b[31mb"))
        a\x1b[31mb
    """
    return _escape(text, "\n\t")


def one_line(text: str) -> str:
    """Escape the control characters of a text, including line ends."""
    return _escape(text, "")


def printed_line(text: str) -> str:
    """Escape a text for one printed line, so that it cannot end the line, control a terminal or give CI commands."""
    line = one_line(text)
    # To GitHub's runners a line that begins so is a command.
    return f" {line}" if line.lstrip().startswith("::") else line


def json_text(value: Any, *, indent: int | None = None) -> str:
    r"""Write a value as JSON with escapes for invisible characters. Programs read the same value.

    Example:
        >>> print(json_text({"a": "é\u202e"}))
        {"a": "é\u202e"}
    """
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    return _PERHAPS_HIDDEN.sub(lambda match: match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1], text)


def toml_key(key: str) -> str:
    """Write a key as TOML, with quotation marks if it needs them."""
    return key if _BARE.match(key) else toml_text(key)


def toml_text(value: object) -> str:
    """Write a value as TOML, with inline tables, without None, and with escapes for invisible characters."""
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
    def escape_match(match: re.Match[str]) -> str:
        char, code = match[0], ord(match[0])
        return char if char.isprintable() else f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"

    return _PERHAPS_HIDDEN.sub(escape_match, text)


def quantity(count: int, singular: str, plural: str | None = None) -> str:
    """Write a count with its noun, as in `1 file` or `2,000 files`.

    Args:
        plural: the plural if it is not the singular with an `s`.
    """
    return f"{count:,} {singular if count == 1 else plural or f'{singular}s'}"


def _escape(text: str, exempt: str) -> str:
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in exempt else repr(char)[1:-1] for char in text)


def forbidden_character(text: str, separators: str = "", categories: tuple[str, ...] = HIDDEN) -> str | None:
    """Find the first character of a text that is in one of these categories, or is one of these separators."""
    # Most texts are plain, and one test of the whole text avoids a test of each character.
    if text.isprintable() and not any(separator in text for separator in separators):
        return None
    return next((c for c in text if c in separators or unicodedata.category(c) in categories), None)


def unseen(text: str) -> str | None:
    """Describe the invisible character in a text as the end of a sentence, None if there is none."""
    wrong = forbidden_character(text)
    if wrong is not None:
        return f"has the character {wrong!r}, which nobody sees"
    return None if text == text.strip() else "begins or ends with a blank"
