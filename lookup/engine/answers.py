"""Check the answers of parts and count their failures. A breach of a protocol ends the run for any `on_error`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookup.errors import ContractError
from lookup.hooks.protocols import ALL_READS, LOAD_DETAILS
from lookup.hooks.raised import read_bounded
from lookup.model.broker import Candidates
from lookup.model.quoting import suggestion

__all__ = [
    "Failures", "checked_mask", "checked_odds", "checked_reads", "checked_scores", "exhaust_generator", "one_by_one",
]  # fmt: skip

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: Kinds of numpy's types that hold numbers. An object may be a number (Decimal, Fraction), a text never is.
_NUMERIC_KINDS = "biufO"


@dataclass
class Failures:
    """Count of the failures of parts, and the message of the first."""

    count: int = 0
    first: str | None = None

    def note(self, message: str) -> None:
        """Count a failure, and keep its message if it is the first."""
        self.count += 1
        self.first = self.first or message


def exhaust_generator(answer: Any) -> Any:
    """Run through a generator so that its errors are raised here. Other answers are returned unchanged."""
    if isinstance(answer, np.ndarray):
        return answer
    return read_bounded(answer) if isinstance(answer, Iterable) and not hasattr(answer, "__len__") else answer


def checked_scores(part: str, answer: Any, brokers: Candidates) -> Floats:
    """Convert a scorer's answer to an array of shape (n_brokers,), with every number in [0, 1].

    Raises:
        ContractError: with the part, the first wrong number and its broker.
    """
    scores = _read_numbers(part, "scores", answer, len(brokers))
    right = (scores >= 0.0) & (scores <= 1.0)
    # Called for every decision, and `count_nonzero` takes a fifth of the time of `all`.
    if np.count_nonzero(right) != len(right):
        raise ContractError(
            f"part {part!r} answered score {_describe_first(scores, ~right, brokers)}, not a number in [0, 1]"
        )
    return scores


def checked_odds(part: str, answer: Any, brokers: Candidates) -> Floats:
    """Convert a selector's answer to an array of shape (n_brokers,), with finite numbers of at least 0.

    Raises:
        ContractError: with the part, the first wrong number and its broker.
    """
    odds = _read_numbers(part, "odds", answer, len(brokers))
    right = (odds >= 0.0) & (odds < np.inf)
    if np.count_nonzero(right) != len(right):
        wrong = _describe_first(odds, ~right, brokers)
        raise ContractError(f"part {part!r} answered odds {wrong}, not a finite number of at least 0")
    return odds


def checked_mask(part: str, answers: Sequence[Any] | NDArray[Any], brokers: Candidates) -> Bools:
    """Convert a filter's answers to a mask of shape (n_brokers,).

    Raises:
        ContractError: if there are too many or too few answers, or an answer is neither true nor false.
    """
    count = len(brokers)
    if len(answers) != count:
        raise ContractError(f"filter {part!r} gave {len(answers)} answers for {count} brokers")
    # Lists of unequal length do not make an array. The check below names the first element that is not a truth value.
    try:
        mask = np.asarray(answers)
    except ValueError:
        mask = np.empty(0)
    if mask.dtype != np.bool_ or mask.shape != (count,):
        wrong = next((answer for answer in answers if not isinstance(answer, bool | np.bool_)), answers)
        raise ContractError(f"filter {part!r} answered {wrong!r}, not true or false")
    return mask


def checked_reads(part: Any) -> frozenset[str]:
    """Find the declared reads of a part, or all reads if it does not declare any.

    Raises:
        ContractError: if they are not a set of names, or a name is unknown.
    """
    name, declared = getattr(part, "name", type(part).__name__), getattr(part, "reads", ALL_READS)
    if isinstance(declared, str) or not isinstance(declared, Iterable):
        raise ContractError(f"part {name!r} declares reads = {declared!r}, which is not a set of names")
    return _check_names(str(name), frozenset(declared if isinstance(declared, frozenset) else read_bounded(declared)))


@lru_cache  # every cycle asks
def _check_names(name: str, reads: frozenset[str]) -> frozenset[str]:
    fields = ALL_READS | LOAD_DETAILS
    # An unknown name would make cached decisions wrong in silence, so a misspelt one ends the run.
    for entry in sorted(map(str, reads - ALL_READS - LOAD_DETAILS)):
        if not entry.removeprefix("properties.") or not entry.startswith("properties."):
            raise ContractError(f"part {name!r} declares to read {entry!r}; {suggestion(entry, fields)}")
    # Figures of the load are part of it.
    return reads | {"view.load"} if reads & LOAD_DETAILS else reads


def _read_numbers(part: str, noun: str, answer: Any, count: int) -> Floats:
    try:
        array = np.asarray(exhaust_generator(answer))
        values = array.astype(np.float64, copy=False) if array.dtype.kind in _NUMERIC_KINDS else None
    except (TypeError, ValueError, OverflowError) as error:
        raise ContractError(f"part {part!r} answered {noun} that are no numbers: {error}") from None
    if values is None:
        raise ContractError(f"part {part!r} answered {noun} that are no numbers: {array.ravel().tolist()[:1]}")
    if not values.ndim:
        raise ContractError(f"part {part!r} answered {answer!r}, not {noun}, one for each broker")
    if values.shape != (count,):
        raise ContractError(f"part {part!r} answered {noun} of shape {values.shape} for {count} brokers")
    return values


def _describe_first(values: Floats, wrong: Bools, brokers: Candidates) -> str:
    first = int(np.argmax(wrong))
    return f"{values[first]} for broker {brokers[first].id!r}"


def one_by_one(part: str, answer: Any, count: int) -> Iterable[Any]:
    """Read a filter's answers, at most one more than expected, so that too many are noticed and endless ones end.

    Raises:
        ContractError: if the answer does not have one value for each broker.
    """
    if not isinstance(answer, Iterable):
        raise ContractError(f"filter {part!r} answered {answer!r}, not true or false for each broker")
    return islice(answer, count + 1)
