"""Says where what came out of an example differs from what was expected.

Numbers, texts, lists and objects follow section 2 of the vectors' README; where an area says otherwise, its key stands
in one of the tables at the top. How actual results are made is the business of the groups' modules.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lookup.errors import (
    ArgumentError,
    InputError,
    InvalidNameError,
    NotFoundError,
    PolicyError,
    PulsarLookupError,
    SettingsError,
    StateError,
)
from tests.vectors.reading import EXPLANATIONS, NotUnderstood

__all__ = ["Difference", "differences"]

#: Java's exceptions, without the word at their end, and which of ours says the same.
_ERROR_KINDS: Mapping[str, tuple[type[PulsarLookupError], ...]] = {
    "IllegalArgument": (ArgumentError, InvalidNameError, InputError, SettingsError),
    "NumberFormat": (ArgumentError, InvalidNameError, InputError),
    "NullPointer": (ArgumentError, InvalidNameError, InputError),
    "IllegalState": (StateError,),
    "IndexOutOfBounds": (NotFoundError,),
    "ArrayIndexOutOfBounds": (NotFoundError,),
    "NoSuchElement": (NotFoundError,),
    "NotFound": (NotFoundError,),
    "PulsarServer": (NotFoundError, StateError),
    "server": (NotFoundError, StateError),
    "BrokerFilter": (PolicyError, ArgumentError, StateError),
    "BrokerFilterBadVersion": (PolicyError, ArgumentError, StateError),
}

#: Keys whose lists are compared in order, by area; `*` stands for all areas. Lists of numbers are always in order, all
#: others are sets.
_IN_ORDER: Mapping[str, frozenset[str]] = {
    "*": frozenset({"children"}),
    "bundles.boundaries": frozenset({"bundles"}),
    "bundles.split": frozenset({"boundaries", "new_bundles"}),
    "bundles.split_at": frozenset({"new_bundles"}),
    "lookup_properties.concurrent": frozenset({"assign_calls_seen_in_order"}),
    "split_strategy": frozenset({"decisions_per_call"}),
    "strategy.least_resource_usage": frozenset({"selected", "weightedMaxEMA_after"}),
    "strategy.round_robin": frozenset({"selected"}),
    "topics.filter": frozenset({"topics"}),
    "topics.filter_system": frozenset({"topics"}),
    "topk": frozenset({"order"}),
}

#: Keys whose objects map names to values, so that a name too many is a difference; other objects are records, of which
#: only the keys that are present are checked.
_MAPS = frozenset({"BrokerLookupData.properties", "per_source", "select", "unload", "weightedMaxEMA_after"})

#: Tolerances other than 1e-9, relative and absolute alike, by area and key; `*` stands for all keys.
_TOLERANCES: Mapping[tuple[str, str], float] = {
    ("resource_usage.percent", "percentUsage"): 0.0,
    ("resource_usage.percent", "percentUsage_div_100"): 1e-15,
    ("strategy.least_resource_usage", "weightedMaxEMA_after"): 1e-12,
    ("transfer_shedder.load_stats", "*"): 1e-5,
}

#: Keys under which an error is expected, whatever they hold.
_ERROR_KEYS = frozenset({"error", "error_contains"})

#: Keys of single areas that hold the kind of an error.
_REFUSALS = frozenset({("bundles.split_at", "boundary_equal_to_either_endpoint")})

#: Keys of which the first word counts, what follows explains.
_FIRST_WORDS = frozenset(
    {
        ("assign.filter", "assigned"),
        ("assign.no_candidates", "result"),
        ("assign.read_only", "result"),
        ("lookup_properties.select", "all_16_partitions_connect_to"),
        ("service_unit_state_data.construct", "result"),
    }
)

#: Keys that hold a claim in words, with the word by which it is told from another claim, if there can be another; a
#: handler answers whether the claim holds.
_CLAIMS: Mapping[tuple[str, str], str] = {
    ("assign.dedupe", "both_get"): "same",
    ("assign.dedupe", "options_used"): "first",
    ("assign.same_owner", "result"): "same",
    ("custom_selection_strategy", "selected"): "smallest",
    ("topk", "invariant"): "",
    ("transfer_shedder.property", "invariant"): "",
}

#: Keys whose list must be part of the answered pool, not all of it: others that tie are acceptable.
_PARTS_OF_POOLS = frozenset({("transfer_shedder", "dest_one_of")})

_ERROR_WORD = re.compile(r"(?:error\b[\s:,]*)?([^\s:,(]*)", re.DOTALL)
_RELATIVE = 1e-9


@dataclass(frozen=True, slots=True)
class Difference:
    """One key of an expectation that was not met."""

    key: str
    expected: Any
    #: errors as kind and sentence
    actual: Any


def differences(area: str, expected: Mapping[str, Any], actual: Mapping[str, Any] | Exception) -> list[Difference]:
    """Compare an answer, or the error that came instead of one, with an expectation.

    A call that should have failed and did not is a difference, and so is one that failed and should not have.

    Raises:
        NotUnderstood: where the answer has nothing under a key, or an expected error is of an unknown kind.
    """
    checked = {key: value for key, value in expected.items() if not _explains(key)}
    if isinstance(actual, Exception):
        return _failed_call(checked, actual)
    return [
        Difference(key, value, _shown(found))
        for key, value in checked.items()
        if not _Place(area, key).agrees(value, found := _answered(key, actual))
    ]


def _explains(key: str) -> bool:
    return key in EXPLANATIONS or key.endswith("_is_upstream_assertion")


def _answered(key: str, actual: Mapping[str, Any]) -> Any:
    for name in (key, key.partition("~")[0]):
        if name in actual:
            return actual[name]
    if key in _ERROR_KEYS:
        return dict(actual)
    if isinstance(actual.get("error"), Exception):
        return actual["error"]
    raise NotUnderstood(key)


def _failed_call(expected: Mapping[str, Any], error: Exception) -> list[Difference]:
    """Compare where the call failed: an error must be expected, and nothing else can be."""
    about = {key: value for key, value in expected.items() if _expects_error(key, value)}
    if not about:
        return [Difference(key, value, _shown(error)) for key, value in expected.items()]
    rest = expected.keys() - about.keys()
    if rest:
        raise NotUnderstood(min(rest))
    return [Difference(key, value, _shown(error)) for key, value in about.items() if not _is_error(key, value, error)]


def _expects_error(key: str, value: object) -> bool:
    return key in _ERROR_KEYS or (isinstance(value, str) and value.startswith("error"))


def _is_error(key: str, expected: object, error: Exception) -> bool:
    if key == "error_contains":
        return isinstance(error, PulsarLookupError) and str(expected) in str(error)
    return isinstance(error, _kinds(str(expected)))


def _kinds(text: str) -> tuple[type[PulsarLookupError], ...]:
    found = _ERROR_WORD.match(text)
    word = (found[1] if found else "").removesuffix("Exception")
    if not word:
        return (PulsarLookupError,)
    if word not in _ERROR_KINDS:
        raise NotUnderstood(text)
    return _ERROR_KINDS[word]


def _shown(value: Any) -> Any:
    """Return a value as a report writes it: errors as kind and sentence."""
    if isinstance(value, Exception):
        return f"{type(value).__name__}: {value}"
    if isinstance(value, Mapping):
        return {key: _shown(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_shown(entry) for entry in value]
    return sorted(value, key=str) if isinstance(value, (set, frozenset)) else value


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in an area's expectation two values are compared."""

    area: str
    #: innermost key; nested lists and elements of lists add `[]`
    key: str

    def agrees(self, expected: Any, actual: Any) -> bool:
        """Tell whether an answer is what was expected."""
        if isinstance(actual, Exception):
            return self._is_error_kind(expected) and _is_error(self.key, expected, actual)
        if isinstance(expected, bool) or expected is None:
            return actual is expected
        if isinstance(expected, str):
            return self._same_text(expected, actual)
        if isinstance(expected, (int, float)):
            return self._same_number(expected, actual)
        if isinstance(expected, Mapping):
            return isinstance(actual, Mapping) and self._same_object(expected, actual)
        return isinstance(actual, (list, tuple, set, frozenset)) and self._same_list(expected, list(actual))

    def _is_error_kind(self, expected: Any) -> bool:
        return _expects_error(self.key, expected) or (self.area, self.key) in _REFUSALS

    def _same_text(self, expected: str, actual: Any) -> bool:
        if (self.area, self.key) in _CLAIMS:
            return self._holds(expected, actual)
        if isinstance(actual, float) and not math.isfinite(actual):
            return expected == str(actual)
        if (self.area, self.key) in _FIRST_WORDS and isinstance(actual, str):
            return _first_word(expected) == _first_word(actual)
        return isinstance(actual, str) and expected == actual

    def _holds(self, claim: str, actual: Any) -> bool:
        if _CLAIMS[self.area, self.key] not in claim:
            raise NotUnderstood(claim)
        return actual is True

    def _same_number(self, expected: float, actual: Any) -> bool:
        if isinstance(actual, bool) or not isinstance(actual, (int, float)):
            return False
        if isinstance(expected, int) and isinstance(actual, int):
            return expected == actual
        _, tilde, absolute = self.key.partition("~")
        if tilde:
            return abs(expected - actual) <= float(absolute.rstrip("[]"))
        special = self._tolerance()
        if special is None:
            return math.isclose(expected, actual, rel_tol=_RELATIVE)
        return math.isclose(expected, actual, rel_tol=special, abs_tol=special)

    def _tolerance(self) -> float | None:
        for key in (self.key.rstrip("[]"), "*"):
            if (self.area, key) in _TOLERANCES:
                return _TOLERANCES[self.area, key]
        return None

    def _same_object(self, expected: Mapping[str, Any], actual: Mapping[str, Any]) -> bool:
        is_map = self.key.rstrip("[]") in _MAPS
        if (is_map and expected.keys() != actual.keys()) or not expected.keys() <= actual.keys():
            return False
        # The values of a map carry its key on, so that tolerances hold for them.
        return all(
            _Place(self.area, self.key + "[]" if is_map else key).agrees(value, actual[key])
            for key, value in expected.items()
            if not _explains(key)
        )

    def _same_list(self, expected: Sequence[Any], actual: Sequence[Any]) -> bool:
        inner = _Place(self.area, self.key + "[]")
        if (self.area, self.key) in _PARTS_OF_POOLS:
            return all(any(inner.agrees(wanted, found) for found in actual) for wanted in expected)
        if len(expected) != len(actual):
            return False
        if self._is_in_order(expected):
            return all(inner.agrees(wanted, found) for wanted, found in zip(expected, actual, strict=True))
        return inner._same_set(expected, list(actual))

    def _is_in_order(self, expected: Sequence[Any]) -> bool:
        if self.key in _IN_ORDER["*"] | _IN_ORDER.get(self.area, frozenset()):
            return True
        return bool(expected) and all(isinstance(entry, (int, float)) for entry in expected)

    def _same_set(self, expected: Sequence[Any], left: list[Any]) -> bool:
        for wanted in expected:
            found = next((index for index, entry in enumerate(left) if self.agrees(wanted, entry)), None)
            if found is None:
                return False
            del left[found]
        return True


def _first_word(text: str) -> str:
    return (text.split() or [""])[0].rstrip(".,:;")
