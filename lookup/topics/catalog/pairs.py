"""Check labels and properties, the pairs of texts on a topic, and read and write them as text.

`k1=v1,k2=v2` or `k1:v1,k2:v2` is read and written as in PIP-451 and PIP-452. The last value of a repeated key counts,
as in a map that is filled. Limits are checked before anything is stored. Only spaces are stripped around a key or
value, since any other white space there is invisible, and is refused.

Source: PIP-451 and PIP-452 for the separators. The limits are this catalog's own.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from lookup.errors import ArgumentError
from lookup.model.catalog import TopicEntry
from lookup.model.quoting import forbidden_character, shown, suggestion

__all__ = [
    "LABEL_KEY_SIGNS", "LABEL_RULES", "LABEL_SIGNS", "MAX_LENGTH", "MAX_PAIRS", "PROPERTY_RULES", "PairKind",
    "PairRules", "Pairs", "checked_keys", "checked_pairs", "merged_pairs", "pairs_text", "pairs_without",
    "parse_each",
]  # fmt: skip

#: Characters of a key or a value.
MAX_LENGTH = 256
#: Labels of one topic, and properties of one topic.
MAX_PAIRS = 64

#: Name of a topic's pairs in messages, and the field of an entry.
PairKind: TypeAlias = Literal["labels", "properties"]
#: Labels or properties as they may be given.
Pairs = Mapping[str, str] | Iterable[tuple[str, str]]

#: Characters that a label's value may not contain, since selectors are divided at them and could not name the value.
LABEL_SIGNS = ",=:()"
#: The same of a label's key, with blanks and the signs of conditions that selectors do not have, such as `env!=prod`.
LABEL_KEY_SIGNS = f"{LABEL_SIGNS}!<> "

_SEPARATOR = re.compile("[=:]")
#: The separators in the texts of the PIPs.
_PROPERTY_SIGNS = ",=:"


@dataclass(frozen=True, slots=True)
class PairRules:
    """The limits of labels, or of properties."""

    #: for one of them, in messages
    word: str
    field: PairKind
    #: characters that a key, and a value, may not hold
    key_signs: str
    value_signs: str
    #: whether a value may be the empty text, so that the key is a mark
    may_be_empty: bool
    #: keys that are allowed, None for any
    allowed: frozenset[str] | None = None

    def of(self, entry: TopicEntry) -> Mapping[str, str]:
        """Read the pairs of a topic."""
        return entry.labels if self.field == "labels" else entry.properties

    def with_pairs(self, entry: TopicEntry, pairs: Mapping[str, str]) -> TopicEntry:
        """Replace the pairs of a topic by these pairs."""
        return replace(entry, labels=pairs) if self.field == "labels" else replace(entry, properties=pairs)


#: Selectors name labels, so the rules of labels are stricter.
LABEL_RULES = PairRules("label", "labels", LABEL_KEY_SIGNS, LABEL_SIGNS, may_be_empty=False)
PROPERTY_RULES = PairRules("property", "properties", _PROPERTY_SIGNS, _PROPERTY_SIGNS, may_be_empty=True)


def checked_pairs(pairs: Pairs, rules: PairRules) -> dict[str, str]:
    """Check pairs, and convert them to a dictionary."""
    checked = dict(pairs)
    _refuse_too_many(checked, rules)
    for key, value in checked.items():
        _check_text(key, f"the key of a {rules.word}", rules.key_signs)
        if not rules.may_be_empty or value != "":
            _check_text(value, f"the value of the {rules.word} {shown(key)}", rules.value_signs)
    for key in checked:
        if rules.allowed is not None and key not in rules.allowed:
            raise ArgumentError(
                f"the {rules.word} {key!r} is not among allowed_label_keys; {suggestion(key, sorted(rules.allowed))}"
            )
    return checked


def merged_pairs(pairs: Mapping[str, str], added: Mapping[str, str], rules: PairRules) -> dict[str, str]:
    """Add pairs, which replace the values of existing keys. There may be at most `MAX_PAIRS` together."""
    merged = {**pairs, **added}
    _refuse_too_many(merged, rules)
    return merged


def pairs_without(pairs: Mapping[str, str], keys: Collection[str] | None) -> dict[str, str]:
    """Remove the pairs of some keys, None for all keys."""
    return {} if keys is None else {key: value for key, value in pairs.items() if key not in keys}


def checked_keys(keys: Iterable[str], rules: PairRules, *, everything: bool) -> Collection[str] | None:
    """Check the keys to remove, None for all keys."""
    if isinstance(keys, str):
        raise ArgumentError(f"the {rules.field} to remove are {shown(keys)}, which is one text and no list of keys")
    named = frozenset(keys)
    if bool(named) == everything:
        raise ArgumentError(f"say which {rules.field} to remove: some keys, or everything, one of the two")
    return None if everything else named


def parse_each(text: str) -> Iterator[tuple[str, str]]:
    """Read pairs separated by commas. The first `=` or `:` of each ends its key. An empty text has none.

    Pairs with a repeated key are yielded as well.

    Raises:
        ArgumentError: with the first piece without key or separator.

    Example:
        >>> dict(parse_each("env=prod,tier:a"))
        {'env': 'prod', 'tier': 'a'}
    """
    return map(_parse_pair, text.split(",")) if _trim(text) else iter(())


def pairs_text(pairs: Mapping[str, str]) -> str:
    """Write pairs as `k1=v1,k2=v2`, in the order of keys."""
    return ",".join(f"{key}={pairs[key]}" for key in sorted(pairs))


def _trim(text: str) -> str:
    return text.strip(" ")


def _parse_pair(piece: str) -> tuple[str, str]:
    separator = _SEPARATOR.search(piece)
    key = _trim(piece[: separator.start()]) if separator else ""
    if separator is None or not key:
        raise ArgumentError(f"{shown(piece)} should be of the form key=value or key:value")
    return key, _trim(piece[separator.end() :])


def _refuse_too_many(pairs: Mapping[str, str], rules: PairRules) -> None:
    if len(pairs) > MAX_PAIRS:
        raise ArgumentError(f"a topic may have at most {MAX_PAIRS} keys of a {rules.word}, this makes {len(pairs)}")


def _check_text(text: str, noun: str, signs: str) -> None:
    if not isinstance(text, str):
        raise ArgumentError(f"{noun} is {text!r}, it must be a text")
    # This comes before the text is shown or searched, since it may be of any length.
    if len(text) > MAX_LENGTH:
        raise ArgumentError(f"{noun} has {len(text):,} characters, at most {MAX_LENGTH} are permitted: {shown(text)}")
    if not text:
        raise ArgumentError(f"{noun} is empty")
    if text != text.strip():
        raise ArgumentError(f"{noun} is {shown(text)}, it must not begin or end with a blank")
    wrong = forbidden_character(text, signs)
    if wrong is not None:
        raise ArgumentError(f"{noun} is {shown(text)}, it must not have the character {wrong!r}")
