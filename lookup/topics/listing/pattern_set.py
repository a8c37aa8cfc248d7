"""Match one name against many patterns at once; the answer is that of every `TopicsPattern` by itself.

A pattern is filed by a literal text that each of its names must hold, if it has one that few others share: at the
beginning, as in `acme/eu/orders-17-.*`, or anywhere, as in `.*-17`. A name then finds its candidates by looking up its
own pieces, however many patterns there are, and each candidate is asked by itself. All other patterns are compiled
together, some hundreds to one `RE2::Set`.

Patterns come and go one at a time. Literals are filed at once; sets are compiled when enough patterns wait for it, and
merged as they grow, so that a pattern is compiled a few times and not once for each that comes after it.

Source: RE2's `re2/set.h`; measurements: `docs/decisions/one-way-to-ask.md`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lookup.topics.listing.topic_list import TopicsPattern, bare_name, compiled_set

__all__ = ["PatternSet"]

#: Patterns that may share a literal: each is asked by itself for every name that holds it.
_SHARING = 16
#: Patterns that wait to be compiled together: each is asked by itself meanwhile.
_LOOSE = 32
#: Patterns of one `RE2::Set`: compiling it holds the caller for some 10 ms.
_SET = 1_024

#: Patterns of a set that take as long as one asked by itself, at worst: a set follows all that have not failed yet.
_TOGETHER = 10

#: A pattern up to its first group, class, counted repetition or escape of a letter: a sequence of characters, each of
#: which may be repeated, and of dots and anchors.
_HEAD = re.compile(r"(?:[^\\()\[\]{}|]|\\[^A-Za-z0-9])*")
#: Between two literals of a head: a dot, an anchor, or a character that is repeated or may be missing.
_GAP = re.compile(r"(?:\\.|[^\\])[*+?]+|(?<!\\)[.^$]", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class PatternSet:
    """The patterns that are watched, or asked for, in one namespace.

    Args:
        namespace: tenant/namespace; a literal that all of its names hold files nothing.
        texts: the first patterns, as clients send them.

    Raises:
        PatternError: for a pattern that cannot be used.
    """

    def __init__(self, namespace: str, texts: Iterable[str] = ()) -> None:
        self._common = f"{namespace}/"
        #: how many patterns names were asked of so far, in patterns asked by themselves: what matching has taken
        self.n_asked = 0
        #: text of a pattern -> the place where it is filed
        self._filed: dict[str, _Literals | _Compiled] = {}
        self._starts, self._pieces, self._compiled = _Starts(), _Pieces(), _Compiled()
        for text in texts:
            self.add(text)

    def __len__(self) -> int:
        return len(self._filed)

    def add(self, text: str) -> None:
        """Add a pattern, unless it is there."""
        if text in self._filed:
            return
        pattern = TopicsPattern(text)
        start, pieces = _literals(pattern.bare)
        # The rarer literal, at the beginning if there is a choice: one look-up finds it there.
        choices: list[tuple[int, _Literals, str]] = []
        if start not in self._common:
            choices.append((self._starts.sharing(start), self._starts, start))
        choices += [(self._pieces.sharing(piece), self._pieces, piece) for piece in pieces if piece not in self._common]
        n_sharing, literals, literal = min(choices, key=lambda choice: choice[0], default=(_SHARING, self._starts, ""))
        if n_sharing < _SHARING:
            literals.put(literal, pattern)
            self._filed[text] = literals
        else:
            self._compiled.put(pattern)
            self._filed[text] = self._compiled

    def remove(self, text: str) -> None:
        """Remove a pattern, if it is there."""
        place = self._filed.pop(text, None)
        if place is not None:
            place.remove(text)

    def matching(self, topic: str) -> list[str]:
        """Return the patterns that a complete name matches, in no order."""
        bare = bare_name(topic)
        candidates = self._starts.candidates(bare)
        candidates += self._pieces.candidates(bare)
        found = [pattern.text for pattern in candidates if pattern.fits(bare)]
        found += self._compiled.matching(bare)
        self.n_asked += len(candidates) + self._compiled.n_asked
        return found


def _literals(bare: str) -> tuple[str, list[str]]:
    """Return the literal that every name of a pattern begins with, perhaps empty, and those that it holds elsewhere."""
    head = _HEAD.match(bare)
    # An alternative may lack any literal of the others; `(?i)` and its like change the meaning of what follows only.
    if head is None or "|" in bare:
        return "", []
    text = head[0]
    # Up to here a repetition is a sign of its own; counted, `a{0,1}`, it belongs to the character before it.
    if bare[head.end() : head.end() + 1] == "{":
        text = re.sub(r"(?:\\.|[^\\])\Z", "", text, flags=re.DOTALL)
    start, *others = (_ESCAPE.sub(r"\1", piece) for piece in _GAP.split(text.removeprefix("^")))
    return start, [piece for piece in others if piece]


class _Literals:
    """Patterns by a literal, and the lengths of these."""

    __slots__ = ("_by_literal", "_by_text", "_lengths")

    def __init__(self) -> None:
        self._by_literal: dict[str, dict[str, TopicsPattern]] = {}
        self._by_text: dict[str, str] = {}
        #: length -> how many literals have it
        self._lengths: dict[int, int] = {}

    def sharing(self, literal: str) -> int:
        """Return how many patterns are filed under a literal."""
        return len(self._by_literal.get(literal, ()))

    def put(self, literal: str, pattern: TopicsPattern) -> None:
        if literal not in self._by_literal:
            self._by_literal[literal] = {}
            self._lengths[len(literal)] = self._lengths.get(len(literal), 0) + 1
        self._by_literal[literal][pattern.text] = pattern
        self._by_text[pattern.text] = literal

    def remove(self, text: str) -> None:
        literal = self._by_text.pop(text)
        del self._by_literal[literal][text]
        if not self._by_literal[literal]:
            del self._by_literal[literal]
            self._lengths[len(literal)] -= 1
            if not self._lengths[len(literal)]:
                del self._lengths[len(literal)]


class _Starts(_Literals):
    """Patterns by the literal that their names begin with."""

    __slots__ = ()

    def candidates(self, bare: str) -> list[TopicsPattern]:
        found: list[TopicsPattern] = []
        for length in self._lengths:
            patterns = self._by_literal.get(bare[:length])
            # A length beyond the end of the name would find the literals of the name's own length again.
            if patterns is not None and length <= len(bare):
                found += patterns.values()
        return found


class _Pieces(_Literals):
    """Patterns by a literal that their names hold somewhere."""

    __slots__ = ()

    def candidates(self, bare: str) -> list[TopicsPattern]:
        by_literal = self._by_literal
        # Each once, though a name may hold a literal twice.
        found: dict[str, TopicsPattern] = {}
        for length in self._lengths:
            for start in range(len(bare) - length + 1):
                patterns = by_literal.get(bare[start : start + length])
                if patterns is not None:
                    found |= patterns
        return [*found.values()]


@dataclass(slots=True, eq=False)
class _Set:
    """Some patterns compiled together; those that were removed are still in the set, but no longer among the live."""

    texts: tuple[str, ...]
    live: dict[str, TopicsPattern]
    #: None: RE2 could not compile them together
    compiled: Any
    #: for the last name, in patterns asked by themselves
    n_asked: int = 0

    @property
    def is_hollow(self) -> bool:
        return 2 * len(self.live) < len(self.texts)

    def matching(self, bare: str) -> list[str]:
        found = self.compiled.Match(bare) if self.compiled is not None else None
        # RE2 answers "none" too if it runs out of memory; the pattern of every name, which is the last, shows that.
        if found is None or len(self.texts) not in found:
            self.n_asked = len(self.live)
            return _asked(self.live, bare)
        self.n_asked = len(self.texts) // _TOGETHER
        return [self.texts[number] for number in found if number < len(self.texts) and self.texts[number] in self.live]


class _Compiled:
    """Patterns in sets of RE2, and those that wait to be compiled."""

    __slots__ = ("_is_hollow", "_loose", "_sets", "n_asked")

    def __init__(self) -> None:
        #: for the last name, in patterns asked by themselves
        self.n_asked = 0
        self._loose: dict[str, TopicsPattern] = {}
        #: the large ones first
        self._sets: list[_Set] = []
        #: whether a set is mostly of removed patterns
        self._is_hollow = False

    def put(self, pattern: TopicsPattern) -> None:
        self._loose[pattern.text] = pattern
        if len(self._loose) < _LOOSE:
            return
        live, self._loose = self._loose, {}
        # Merged with sets of its size, as a counter carries: each pattern is compiled once per doubling.
        while self._sets and len(self._sets[-1].live) <= len(live) and len(self._sets[-1].live) + len(live) <= _SET:
            live |= self._sets.pop().live
        self._sets.append(_Set(tuple(live), live, compiled_set(pattern.bare for pattern in live.values())))
        self._sets.sort(key=lambda compiled: -len(compiled.live))

    def remove(self, text: str) -> None:
        if self._loose.pop(text, None) is not None:
            return
        place = next(compiled for compiled in self._sets if text in compiled.live)
        del place.live[text]
        self._is_hollow = self._is_hollow or place.is_hollow

    def _refill(self) -> None:
        """Give up sets that are mostly of removed patterns, and compile the rest again."""
        # Not with each removal: of a connection that ends many patterns go one after the other.
        hollow = [compiled for compiled in self._sets if compiled.is_hollow]
        self._sets = [compiled for compiled in self._sets if not compiled.is_hollow]
        for compiled in hollow:
            for pattern in compiled.live.values():
                self.put(pattern)
        self._is_hollow = False

    def matching(self, bare: str) -> list[str]:
        if self._is_hollow:
            self._refill()
        found = _asked(self._loose, bare)
        self.n_asked = len(self._loose)
        for compiled in self._sets:
            found += compiled.matching(bare)
            self.n_asked += compiled.n_asked
        return found


def _asked(patterns: dict[str, TopicsPattern], bare: str) -> list[str]:
    return [text for text, pattern in patterns.items() if pattern.fits(bare)]
