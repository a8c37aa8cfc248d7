"""Sentences that name arguments of the library, so that a command can name its flags in their place."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Argument", "Sentence"]


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument within a sentence; as text it is written as in a call."""

    #: as in the signature of the function or dataclass
    name: str
    #: None: the sentence names the argument alone
    value: bool | float | str | None = None

    def __str__(self) -> str:
        return self.name if self.value is None else f"{self.name}={self.value!r}"


class Sentence(str):
    """A text that remembers which words of it are arguments.

    A value of the user's may look like an argument or a flag, so commands put flags into `parts` and replace no text.
    """

    __slots__ = ("parts",)

    #: the sentence, cut around its arguments
    parts: tuple[str | Argument, ...]

    def __new__(cls, *parts: str | Argument) -> Sentence:
        """Join the parts of a sentence."""
        sentence = super().__new__(cls, "".join(map(str, parts)))
        sentence.parts = parts
        return sentence
