"""How answers are compared with expectations."""

from __future__ import annotations

import math
from typing import Any

import pytest

from lookup.errors import ArgumentError, InputError, NotFoundError, PolicyError, StateError
from tests.vectors import Difference, NotUnderstood, differences


def _agree(area: str, key: str, expected: Any, actual: Any) -> bool:
    return not differences(area, {key: expected}, {key: actual})


@pytest.mark.parametrize(
    ("expected", "actual", "agree"),
    [
        (1, 1, True),
        (1, 2, False),
        (1, 1.0, True),
        (1, True, False),
        (True, 1, False),
        (True, True, True),
        (None, None, True),
        (None, 0, False),
        (0, None, False),
        ("a", "a", True),
        ("a", "A", False),
        ("1", 1, False),
        (10**15, 10**15 + 1, False),
        (1.0, 1.0 + 1e-10, True),
        (1.0, 1.0 + 1e-8, False),
        (0.0, 1e-12, False),
        ("inf", math.inf, True),
        ("inf", 5.0, False),
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1}, {"b": 1}, False),
        ({"a": 1, "note": "x"}, {"a": 1, "note": "y"}, True),
        ({"a": 1}, [1], False),
        ([1, 2], [2, 1], False),
        ([1, 2], (1, 2), True),
        (["a", "b"], ["b", "a"], True),
        (["a", "b"], {"a", "b"}, True),
        (["a", "b"], ["a", "a"], False),
        (["a", "a"], ["a", "b"], False),
        (["a"], ["a", "b"], False),
        (["a"], "a", False),
        ([{"x": 1.0}, {"x": 2.0}], [{"x": 2.0}, {"x": 1.0 + 1e-12}], True),
        ([{"x": 1.0}, {"x": 2.0}], [{"x": 2.0}, {"x": 2.0}], False),
        ([["a", "b"], []], [[], ["b", "a"]], True),
    ],
)
def test_values_are_compared_by_the_conventions(expected: Any, actual: Any, *, agree: bool) -> None:
    """Exactly, doubles to 1e-9 relative, lists of names as sets, of objects the keys that are present."""
    assert _agree("any", "key", expected, actual) is agree


@pytest.mark.parametrize(
    ("area", "key", "expected", "actual", "agree"),
    [
        ("topk", "order", ["a", "b"], ["b", "a"], False),
        ("split_strategy", "decisions_per_call", [[], ["a", "b"]], [[], ["b", "a"]], True),
        ("split_strategy", "decisions_per_call", [[], ["a"]], [["a"], []], False),
        ("split_strategy", "decisions", [{"children": ["a", "b"]}], [{"children": ["b", "a"]}], False),
        ("threshold_shedder", "unload", {}, {"b": ["x"]}, False),
        ("threshold_shedder", "unload", {"b": ["x", "y"]}, {"b": ["y", "x"]}, True),
        ("resource_usage.percent", "percentUsage", 30.0, 30.0 + 1e-12, False),
        ("resource_usage.percent", "percentUsage_div_100", 0.3, 0.3 + 1e-16, True),
        ("strategy.least_resource_usage", "weightedMaxEMA_after", [{"b": 0.5}], [{"b": 0.5 + 1e-10}], False),
        ("strategy.least_resource_usage", "weightedMaxEMA_after", [{"b": 0.5}], [{"b": 0.5 + 1e-13}], True),
        ("strategy.least_resource_usage", "weightedMaxEMA_after", [{"b": 0.5}], [{"b": 0.5, "c": 1.0}], False),
        ("transfer_shedder.load_stats", "avg", 0.5, 0.500009, True),
        ("transfer_shedder", "loadAvg~1e-5", 0.5, 0.500009, True),
        ("transfer_shedder", "loadAvg~1e-5", 0.5, 0.50002, False),
        ("transfer_shedder", "single_decision", {"dest_one_of": ["a", "b"]}, {"dest_one_of": ["b", "c", "a"]}, True),
        ("transfer_shedder", "single_decision", {"dest_one_of": ["a", "b"]}, {"dest_one_of": ["a", "c"]}, False),
        ("strategy.least_resource_usage", "selected_one_of", ["a"], ["a", "b"], False),
        ("assign.no_candidates", "result", "empty (not an error)", "empty", True),
        ("assign.filter", "assigned", "present - the one left", "present", True),
        ("assign.filter", "assigned", "b1:8080", "b1:8081", False),
        ("topk", "invariant", "in words", True, True),
        ("topk", "invariant", "in words", False, False),
        ("topk", "invariant", "in words", "in words", False),
    ],
)
def test_what_an_area_says_otherwise_holds(area: str, key: str, expected: Any, actual: Any, *, agree: bool) -> None:
    """Order, tolerances, maps, pools, first words and claims are told by area and key."""
    assert _agree(area, key, expected, actual) is agree


@pytest.mark.parametrize(
    ("key", "expected", "error", "agree"),
    [
        ("error", "IllegalArgument: topic belongs to another namespace", ArgumentError("x"), True),
        ("error", "IllegalArgumentException", InputError("x"), True),
        ("error", "IllegalArgument", StateError("x"), False),
        ("error", "IllegalStateException, counted", StateError("x"), True),
        ("error", "IndexOutOfBounds (the last)", NotFoundError("x"), True),
        ("error", "BrokerFilterBadVersionException", PolicyError("x"), True),
        ("error", "IllegalArgument", ValueError("x"), False),
        ("result", "error: IllegalArgument", ArgumentError("x"), True),
        ("boundaries", "error", StateError("x"), True),
        ("boundaries", "error", KeyError("x"), False),
        ("error_contains", "same broker", ArgumentError("cannot go to same broker"), True),
        ("error_contains", "same broker", ArgumentError("no"), False),
        ("result", "ok", ArgumentError("x"), False),
        ("result", None, ArgumentError("x"), False),
    ],
)
def test_errors_are_compared_by_kind(key: str, expected: Any, error: Exception, *, agree: bool) -> None:
    """The first word names the kind, and only errors of the framework are of one."""
    assert (not differences("any", {key: expected}, error)) is agree


def test_an_error_may_stand_beside_other_results() -> None:
    """A handler returns it under its key."""
    expected = {"error": "IllegalArgument", "map_unchanged": True}

    assert not differences("any", expected, {"error": ArgumentError("x"), "map_unchanged": True})
    assert differences("any", expected, {"error": None, "map_unchanged": True})
    assert differences("any", expected, {"error": StateError("x"), "map_unchanged": True})


def test_a_call_that_should_have_failed_is_a_difference() -> None:
    """What came instead is shown; and an error is one where something else was expected."""
    error = InputError("x")

    assert differences("any", {"error": "IllegalArgument"}, {"a": 1}) == [
        Difference("error", "IllegalArgument", {"a": 1})
    ]
    assert differences("any", {"kept": ["b"]}, {"error": error}) == [Difference("kept", ["b"], "InputError: x")]
    assert differences("any", {"kept": "b"}, {"kept": error}) == [Difference("kept", "b", "InputError: x")]


def test_a_claim_is_known_by_its_word() -> None:
    """Another claim is not understood, whatever a handler answers."""
    assert _agree("assign.dedupe", "options_used", "those of the first call", True)
    with pytest.raises(NotUnderstood):
        _agree("assign.dedupe", "options_used", "those of the last call", True)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ({"a": 1}, {"b": 1}),
        ({"error": "IllegalArgument", "other": 1}, ArgumentError("x")),
        ({"error": "NoSuchKindException"}, ArgumentError("x")),
    ],
)
def test_what_nobody_answers_is_not_understood(expected: dict[str, Any], actual: Any) -> None:
    """A key without an answer and a kind without a meaning never pass."""
    with pytest.raises(NotUnderstood):
        differences("any", expected, actual)


def test_explanations_are_not_checked() -> None:
    """Notes, and the keys that say where a number comes from."""
    expected = {"note": "x", "why": "x", "meaning": "x", "std_is_upstream_assertion": True, "a": 1}

    assert differences("any", expected, {"a": 1}) == []


def test_a_difference_shows_both_sides() -> None:
    """An error by kind and sentence."""
    assert differences("any", {"a": 1, "b": [1]}, {"a": 2, "b": [1]}) == [Difference("a", 1, 2)]
    assert differences("any", {"a": 1}, ArgumentError("no")) == [Difference("a", 1, "ArgumentError: no")]
