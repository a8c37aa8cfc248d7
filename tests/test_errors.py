"""The exception tree."""

from __future__ import annotations

import pickle

import pytest

from lookup import errors
from lookup.errors import (
    Argument,
    ContractError,
    InputError,
    PolicyError,
    PulsarLookupError,
    ReadsError,
    Sentence,
    SettingsError,
)

#: all but what sentences are made of
_ERRORS = [name for name in errors.__all__ if name.endswith("Error")]


@pytest.mark.parametrize("name", _ERRORS)
def test_every_error_descends_from_the_root(name: str) -> None:
    """One `except` at the command line catches them all."""
    assert issubclass(getattr(errors, name), PulsarLookupError)


def test_settings_errors_keep_their_problems_apart() -> None:
    """One sentence, or several, one per line."""
    assert SettingsError("one").problems == ("one",)
    assert SettingsError(["one", "two"]).problems == ("one", "two")
    assert str(SettingsError(["one", "two"])) == "one\ntwo"
    assert SettingsError("give ", Argument("cluster")).problems == ("give cluster",)


def test_an_undeclared_read_is_a_breach_of_contract() -> None:
    """And never an AttributeError, which `getattr` with a default would hide."""
    assert issubclass(ReadsError, ContractError)
    assert issubclass(ContractError, PolicyError)
    assert not issubclass(ReadsError, AttributeError)


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        (Argument("output"), "output"),
        (Argument("force", value=True), "force=True"),
        (Argument("reader", "jsonl"), "reader='jsonl'"),
        (Argument("max_quarantine_ratio", 0.05), "max_quarantine_ratio=0.05"),
    ],
)
def test_an_argument_is_written_as_in_a_call(argument: Argument, text: str) -> None:
    """By its name, and with its value if there is one."""
    assert str(argument) == text


def test_a_sentence_is_a_text_that_knows_its_arguments() -> None:
    """An error says it as text and keeps its parts."""
    error = InputError(Argument("output"), ": o is not empty; give ", Argument("force", value=True))

    assert str(error) == "output: o is not empty; give force=True"
    assert error.args[0].parts == (Argument("output"), ": o is not empty; give ", Argument("force", value=True))


def test_a_sentence_survives_pickling() -> None:
    """A task of Spark's may return it."""
    sentence = Sentence("give ", Argument("cluster"))

    copy = pickle.loads(pickle.dumps(sentence))

    assert (copy, copy.parts) == (sentence, sentence.parts)
