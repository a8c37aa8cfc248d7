"""How sentences repeat what users wrote: escaped, so that no byte of a file rules a terminal, and of bounded length."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from reprlib import Repr

__all__ = ["listed", "one_line", "printable", "shown"]

#: Characters of a text, or of what else is written out, that a sentence repeats.
_LONGEST = 80
#: Names of a list that a sentence repeats.
_MOST_NAMES = 12
#: Of what is no text: a few entries, two levels deep.
_SHORT = Repr()
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxother, _SHORT.maxlong = 2, _LONGEST, _LONGEST, _LONGEST


def shown(value: object) -> str:
    r"""Return a value as a sentence repeats it: a text in quotation marks, and what is long without its end.

    Example:
        >>> print(shown("w\x1b[31mhen"), shown(7))
        'w\x1b[31mhen' 7
    """
    if isinstance(value, str):
        return repr(value if len(value) <= _LONGEST else f"{value[: _LONGEST - 3]}...")
    text = _SHORT.repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def listed(names: Iterable[str]) -> str:
    """Return names with commas between them, those that are not plain words quoted, and how many are left out."""
    every = list(names)
    said = [name if _is_plain(name) else shown(name) for name in islice(every, _MOST_NAMES)]
    rest = len(every) - len(said)
    return ", ".join(said) + (f" and {rest:,} more" if rest else "")


def printable(text: str) -> str:
    r"""Return a text whose control characters are written as escapes; line ends and tabs stay.

    Example:
        >>> print(printable("a\x1b[31mb"))
        a\x1b[31mb
    """
    return _escaped(text, "\n\t")


def one_line(text: str) -> str:
    """Return a text whose control characters, ends of lines among them, are written as escapes."""
    return _escaped(text, "")


def _escaped(text: str, kept: str) -> str:
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in kept else repr(one)[1:-1] for one in text)


def _is_plain(name: str) -> bool:
    return 0 < len(name) <= _LONGEST and name.isprintable() and "," not in name and name == name.strip()
