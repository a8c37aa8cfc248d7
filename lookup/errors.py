"""Every exception the framework raises on purpose.

    PulsarLookupError            the root: its text is a sentence for a user; the command line exits with 2
    ├── InvalidNameError         a topic, namespace or bundle is not written as Pulsar writes it
    │   └── PatternError         a pattern of topic names cannot be used
    ├── SettingsError            one or several mistakes in settings, each with its place
    ├── PluginError              a plug-in cannot be loaded or registers something wrong
    ├── InputError               a table, log or file of the user cannot be used
    │   └── LimitError           a request is larger than a server accepts
    ├── ArgumentError            an operation was given a value it cannot work with
    ├── StateError               an operation does not fit the state things are in
    ├── NotFoundError            what an operation asks for is not there
    ├── NotSupportedError        a server cannot do what it is asked for, and nothing less will do
    └── PolicyError              a part of a policy failed while deciding
        └── ContractError        a part answered what its protocol forbids; always ends the run
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


class PulsarLookupError(Exception):
    """Root of everything the framework raises on purpose; its text is a sentence for a user.

    Args:
        parts: the sentence, cut around its arguments if it names some.
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
        problems: one sentence each, with file and key; all mistakes of a run are reported together. Or the beginning of
            the only one.
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
    """An operation was given a value it cannot work with; Pulsar's illegal argument."""


class StateError(PulsarLookupError):
    """An operation does not fit the state things are in; Pulsar's illegal state."""


class NotFoundError(PulsarLookupError):
    """Something an operation asks for is not there: an index outside all ranges, a name that nothing has."""


class NotSupportedError(PulsarLookupError):
    """A server cannot do what it is asked for, and what it can do instead would be wrong; Pulsar's not supported."""


class PolicyError(PulsarLookupError):
    """A part of a policy failed while deciding, and the policy says `on_error = "stop"`."""


class ContractError(PolicyError):
    """A part answered what its protocol forbids: wrong length, NaN, a negative weight; always ends the run."""


class ReadsError(ContractError):
    """A part touched a field it did not declare in `reads`.

    Deliberately no `AttributeError`: a part that asks `hasattr` or `getattr(..., None)` must not hide its read.
    """
