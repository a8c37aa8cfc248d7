"""Sentences that name arguments of the library."""

from __future__ import annotations

import pickle

import pytest

from lookup.errors import InputError
from lookup.model.sentences import Argument, Sentence


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
    error = InputError(Sentence(Argument("output"), ": o is not empty; give ", Argument("force", value=True)))

    assert str(error) == "output: o is not empty; give force=True"
    assert error.args[0].parts == (Argument("output"), ": o is not empty; give ", Argument("force", value=True))


def test_a_sentence_survives_pickling() -> None:
    """A task of Spark's may return it."""
    sentence = Sentence("give ", Argument("cluster"))

    copy = pickle.loads(pickle.dumps(sentence))

    assert (copy, copy.parts) == (sentence, sentence.parts)
