"""Checks of what parts answer: a breach of a protocol ends the run with a sentence, whatever `on_error` says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookup.errors import ContractError

__all__ = ["checked_odds", "checked_scores"]

Floats = NDArray[np.float64]


def checked_scores(part: str, answer: Any, count: int) -> Floats:
    """Return a scorer's answer as an array of shape (count,), every number in [0, 1].

    Raises:
        ContractError: naming the part and the first number that is wrong.
    """
    scores = _numbers(part, "scores", answer, count)
    _refuse(part, "score", scores, ~((scores >= 0.0) & (scores <= 1.0)), "a number in [0, 1]")
    return scores


def checked_odds(part: str, answer: Any, count: int) -> Floats:
    """Return a selector's answer as an array of shape (count,), every number finite and at least 0.

    Raises:
        ContractError: naming the part and the first number that is wrong.
    """
    odds = _numbers(part, "odds", answer, count)
    _refuse(part, "odds", odds, ~((odds >= 0.0) & (odds < np.inf)), "a finite number of at least 0")
    return odds


def _numbers(part: str, what: str, answer: Any, count: int) -> Floats:
    try:
        values = np.asarray(list(answer) if _is_lazy(answer) else answer, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ContractError(f"part {part!r} answered {what} that are no numbers: {error}") from None
    if values.shape != (count,):
        raise ContractError(f"part {part!r} answered {what} of shape {values.shape} for {count} brokers")
    return values


def _is_lazy(answer: Any) -> bool:
    return isinstance(answer, Iterable) and not hasattr(answer, "__len__")


def _refuse(part: str, what: str, values: Floats, wrong: NDArray[np.bool_], right: str) -> None:
    if wrong.any():
        place = int(np.argmax(wrong))
        raise ContractError(f"part {part!r} answered {what} {values[place]} for broker {place + 1}, not {right}")
