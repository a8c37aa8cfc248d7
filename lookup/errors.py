"""Exceptions that the framework raises on purpose.

    PulsarLookupError            the root: its text is a sentence for a user, exit code 2
    ├── InvalidNameError         a topic, namespace or bundle is not written in Pulsar's form
    │   └── PatternError         a pattern of topic names cannot be used
    ├── SettingsError            one or several mistakes in settings, each with its place
    ├── PluginError              a plug-in cannot be loaded or registers a wrong class
    ├── InputError               a table, log or file of the user cannot be used
    │   └── LimitError           a request is larger than a server accepts
    ├── ArgumentError            an operation was given a value it cannot work with
    ├── StateError               an operation does not fit the present state
    ├── NotFoundError            the object of an operation does not exist
    ├── NotSupportedError        a server does not support the request, and a smaller answer would be wrong
    └── PolicyError              a part of a policy failed while deciding
        └── ContractError        a part's answer breaks its protocol, which always ends the run
            └── ReadsError       a part touched a field it did not declare in `reads`

Expected outcomes (a broker was filtered, a lookup was declined, a line was unreadable) are values, never exceptions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = [
    "Argument", "ArgumentError", "ContractError", "InputError", "InvalidNameError", "LimitError",
    "NotFoundError", "NotSupportedError", "PatternError", "PluginError", "PolicyError", "PulsarLookupError",
    "ReadsError", "Sentence", "SettingsError", "StateError",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument within a sentence. As text it is written as in a call."""

    #: as in the signature of the function or dataclass
    name: str
    #: None if the sentence only names the argument
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


class PulsarLookupError(Exception):
    """Root of all exceptions that the framework raises on purpose. Its text is a sentence for a user.

    Args:
        parts: the sentence, split around its arguments if it names any.
    """

    def __init__(self, *parts: str | Argument) -> None:
        super().__init__(parts[0] if len(parts) == 1 else Sentence(*parts))


class InvalidNameError(PulsarLookupError):
    """A topic, namespace or bundle is not written as Pulsar writes it."""


class PatternError(InvalidNameError):
    """A pattern of topic names has a scheme that topics do not have, or a construct that cannot be compiled."""


class SettingsError(PulsarLookupError):
    """One or several mistakes in settings.

    Args:
        problems: one sentence for each mistake of a run, with file and key, or the beginning of the only one.
        rest: the rest of a sentence that names arguments.
    """

    def __init__(self, problems: Sequence[str] | str | Argument, *rest: str | Argument) -> None:
        if isinstance(problems, str | Argument):
            super().__init__(problems, *rest)
            self.problems: tuple[str, ...] = self.args
        else:
            super().__init__("\n".join(problems))
            self.problems = tuple(problems)


class PluginError(PulsarLookupError):
    """A plug-in cannot be loaded, misspells a hook or registers something wrong."""


class InputError(PulsarLookupError):
    """A table, log or file of the user cannot be used."""


class LimitError(InputError):
    """A request is larger than a server accepts, or has more in it."""


class ArgumentError(PulsarLookupError):
    """An operation was given a value it cannot work with, like Pulsar's illegal argument."""


class StateError(PulsarLookupError):
    """An operation does not fit the present state, like Pulsar's illegal state."""


class NotFoundError(PulsarLookupError):
    """The object of an operation does not exist, such as an index outside all ranges, or an unknown name."""


class NotSupportedError(PulsarLookupError):
    """A server does not support a request, and its alternatives would be wrong, like Pulsar's not supported."""


class PolicyError(PulsarLookupError):
    """A part of a policy failed while deciding, and the policy has `on_error = "stop"`."""


class ContractError(PolicyError):
    """A part's answer breaks its protocol by wrong length, NaN, or a negative weight. It always ends the run."""


class ReadsError(ContractError):
    """A part touched a field it did not declare in `reads`.

    It is not an `AttributeError`, since a part that calls `hasattr` or `getattr(..., None)` must not hide its read.
    """
