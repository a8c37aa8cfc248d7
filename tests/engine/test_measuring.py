"""The door to metrics: what they may answer, and the sentence for everything else."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from lookup.engine.measuring import keys_of, luck_of, sums_of, value_of
from lookup.errors import PluginError
from tests.score.oracle import Change, Happenings
from tests.score.worlds import HOUR, batch_of, labelled

WORLD = Happenings([], None, {("c", hour * HOUR): frozenset() for hour in range(3)}, HOUR)
#: Two bundles, three cells, one event.
BATCH = replace(batch_of(WORLD, [labelled("b1:8080")]), bundles=("b0", "b1"), events=("forced",))
INF, NAN = math.inf, math.nan
TWO = np.ones((2, 1))


@dataclass(frozen=True)
class Told:
    """A metric that answers as it is told."""

    name: ClassVar[str] = "told"

    keys_answer: Any = (None,)
    sums_answer: Any = None
    value_answer: Any = None
    grain: str = "lookup"
    resample: str = "bundle"
    every_key: tuple[str, ...] | None = None

    def keys(self, batch: object) -> Any:
        """Answer."""
        return self.keys_answer

    def accumulate(self, batch: object, key: object) -> Any:
        """Answer."""
        return self.sums_answer

    def value(self, sums: object) -> Any:
        """Answer."""
        return self.value_answer


@dataclass(frozen=True)
class Demanding(Told):
    """A metric that placement does not vary."""

    luck: ClassVar[tuple[str, ...]] = ("demand",)


@pytest.mark.parametrize(
    ("resample", "expected"),
    [
        ("bundle", ("demand", "placement")),
        ("time", ("demand", "placement")),
        ("event", ("demand", "placement", "events")),
        ("none", ("demand", "placement")),
    ],
)
def test_a_metric_varies_with_its_rows_and_the_placement(resample: str, expected: tuple[str, ...]) -> None:
    """Unless it says what it varies with."""
    assert luck_of(Told(resample=resample)) == expected
    assert luck_of(Demanding(resample=resample)) == ("demand",)


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (None, "None"),
        ((1,), r"\(1,\)"),
        ("rack", "'rack'"),
        (5, "5"),
        ((b"a",), r"\(b'a',\)"),
        (("\ud800",), r"\('\\ud800',\)"),
    ],
)
def test_other_keys_are_refused(answer: Any, shown: str) -> None:
    """With what was answered, and what would be right."""
    with pytest.raises(PluginError, match=rf"^metric 'told' answered {shown} for its keys; "):
        keys_of(Told(answer), [BATCH])


def test_a_key_that_can_never_be_is_refused() -> None:
    """A metric that lists its keys holds to the list."""
    assert keys_of(Told((None, "a"), every_key=("a", "b")), [BATCH]) == (None, "a")
    with pytest.raises(PluginError, match=r"^metric 'told' answered .*'c'.*every_key, \('a'"):
        keys_of(Told((None, "c"), every_key=("a", "b")), [BATCH])


@pytest.mark.parametrize(
    ("resample", "answer"),
    [
        ("bundle", TWO),
        ("bundle", [[True], [False]]),
        ("bundle", np.ones((2, 3), dtype=np.int64)),
        ("time", np.ones((3, 2))),
        ("event", np.ones((3, 1))),
        ("none", np.ones((0, 2))),
    ],
)
def test_sums_are_real_numbers_by_unit(resample: str, answer: Any) -> None:
    """A row per bundle, a row per cell, a row per bundle and event, or rows of the metric's own."""
    sums = sums_of(Told(sums_answer=answer, resample=resample), [BATCH, BATCH], None).total

    assert sums.dtype == np.float64
    assert np.array_equal(sums, np.asarray(answer, dtype=np.float64) * 2)


@pytest.mark.parametrize(
    ("resample", "answer", "sentence"),
    [
        ("bundle", np.ones((3, 1)), r".* float64 .*\(3, 1\) .*\(2, k\) .* row per bundle"),
        ("bundle", np.ones(2), r".* float64 .*\(2,\) .* key 'k'"),
        ("bundle", np.ones((2, 0)), r".* float64 .*\(2, 0\)"),
        ("bundle", TWO * 1j, r".* complex128 "),
        ("bundle", np.array([["a"], ["b"]]), r".* <U1 "),
        ("bundle", [[1.0], [1.0, 2.0]], r"\[\[1.0\], \[1.0, 2.0\]\] for its sums"),
        ("bundle", np.ma.masked_less(TWO, 5), r".*nan in row 0"),
        ("bundle", None, r"None .* key 'k'.*\(2, k\)"),
        ("time", TWO, r".*\(2, 1\) .*\(3, k\) .* row per cell"),
        ("event", TWO, r".*\(2, 1\) .*\(3, k\) .* bundle and event"),
        ("none", 1.0, r"1.0 .* key 'k'.*\(n, k\)"),
        ("bundle", [[1.0], [INF]], r".*inf in row 1, column 0 "),
        ("time", [[1.0, NAN]] * 3, r".*nan in row 0, column 1 "),
    ],
)
def test_other_sums_are_refused(resample: str, answer: Any, sentence: str) -> None:
    """With what was answered, and what would be right."""
    with pytest.raises(PluginError, match=rf"^metric 'told' answered {sentence}"):
        sums_of(Told(sums_answer=answer, resample=resample), [BATCH], "k")


@dataclass(frozen=True)
class Growing(Told):
    """A metric without rows of its own that has more of them in every batch."""

    def accumulate(self, batch: object, key: object) -> Any:
        """Answer with one row more than the last time."""
        self.sums_answer.append([1.0])
        return np.array(self.sums_answer)


def test_sums_that_do_not_add_up_are_refused() -> None:
    """Batches of one run have the same rows."""
    with pytest.raises(PluginError, match=r"^metric 'told' .*\(2, 1\) cannot be added to .*\(1, 1"):
        sums_of(Growing(sums_answer=[], resample="none"), [BATCH, BATCH], None)


@pytest.mark.parametrize(("grain", "shown"), [("lookup", [0, 1, 2]), ("change", [1]), ("cell", [2])])
def test_batches_without_what_is_counted_are_not_shown(grain: str, shown: list[int]) -> None:
    """Their sums are 0: of three batches one has a change and another has cells."""
    change = Change("c", 0, "b0", None, "b1:8080", "first")
    changed = batch_of(replace(WORLD, changes=[change]), [labelled("b1:8080")]).changes
    cells = replace(BATCH.cells, registered=np.ones_like(BATCH.cells.registered))
    batches = [BATCH, replace(BATCH, changes=changed), replace(BATCH, cells=cells)]

    sums = sums_of(Told(sums_answer=TWO, grain=grain), batches, None)

    assert [place for place, row in enumerate(sums.by_batch) if row.any()] == shown
    assert sums.total.tolist() == (TWO * len(shown)).tolist()


def test_sums_are_nobody_elses() -> None:
    """What a metric holds on to is not what is added up."""
    held = np.ones((2, 1))
    sums = sums_of(Told(sums_answer=held), [BATCH], None).total
    held[:] = 9.0

    assert sums.tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize(
    ("resample", "shape", "answer"),
    [
        ("bundle", (2,), 0.5),
        ("bundle", (2,), np.array(NAN)),
        ("bundle", (4, 2), [0, 1, NAN, True]),
        ("none", (4, 2), NAN),
    ],
)
def test_values_are_real_numbers_or_nan(resample: str, shape: tuple[int, ...], answer: Any) -> None:
    """One for each of the totals, NaN where there is nothing to measure."""
    value = value_of(Told(value_answer=answer, resample=resample), np.ones(shape))

    assert value.dtype == np.float64
    assert np.array_equal(value, np.asarray(answer, dtype=np.float64), equal_nan=True)


@pytest.mark.parametrize(
    ("resample", "shape", "answer", "sentence"),
    [
        ("bundle", (2,), [1.0], r"\[1.0\] .*\(2,\); one real number"),
        ("bundle", (4, 2), 1.0, r"1.0 .*\(4, 2\); .*\(4,\)"),
        ("none", (4, 2), np.ones(4), r".* float64 .*\(4,\) .*; one real number"),
        ("bundle", (2,), 1j, "1j for the value"),
        ("bundle", (2,), "1", "'1' for the value"),
        ("bundle", (2,), None, "None for the value"),
        ("bundle", (2,), -INF, "the value -inf; NaN"),
        ("bundle", (2, 2), [NAN, INF], "the value inf; NaN"),
    ],
)
def test_other_values_are_refused(resample: str, shape: tuple[int, ...], answer: Any, sentence: str) -> None:
    """Infinity too: nothing that is compared with it could be said."""
    with pytest.raises(PluginError, match=rf"^metric 'told' answered {sentence}"):
        value_of(Told(value_answer=answer, resample=resample), np.ones(shape))


class Ratio(Told):
    """A metric that divides without looking."""

    def value(self, sums: Any) -> Any:
        """Divide."""
        return sums[..., 0] / sums[..., 1]


def test_what_is_masked_is_nothing_to_measure() -> None:
    """The number below the mask is no figure."""
    value = value_of(Told(value_answer=np.ma.masked_less(np.array([1, 9]), 5)), np.ones((2, 2)))

    assert np.array_equal(value, [NAN, 9.0], equal_nan=True)
    assert np.isnan(value_of(Told(value_answer=np.ma.masked), np.ones(2)))


def test_nothing_divided_by_nothing_is_nothing_to_measure() -> None:
    """And nobody is warned of it: tests end at any warning."""
    assert np.isnan(value_of(Ratio(), np.zeros((3, 2)))).all()


class _Stopped(BaseException):
    """Something that is no ordinary error."""


class Raising(Told):
    """A metric that raises what it is told."""

    def keys(self, batch: object) -> Any:
        """Raise."""
        raise self.keys_answer

    def accumulate(self, batch: object, key: object) -> Any:
        """Raise."""
        raise self.keys_answer

    def value(self, sums: object) -> Any:
        """Raise."""
        raise self.keys_answer


CALLS: tuple[Callable[[Any], object], ...] = (
    lambda metric: keys_of(metric, [BATCH]),
    lambda metric: sums_of(metric, [BATCH], None),
    lambda metric: value_of(metric, np.ones(2)),
)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("error", [ZeroDivisionError("x"), SystemExit(0), _Stopped("x"), StopIteration("x")], ids=repr)
def test_whatever_a_metric_raises_is_one_sentence(call: Callable[[Any], object], error: BaseException) -> None:
    """With file and line; a metric that ends the program would let a gate pass."""
    name = type(error).__name__

    with pytest.raises(PluginError, match=rf"^metric 'told' raised {name}: [x0] \(test_measuring\.py, line \d+\)$"):
        call(Raising(error))


@pytest.mark.parametrize("call", CALLS)
def test_control_c_is_nobodys_mistake(call: Callable[[Any], object]) -> None:
    """It goes through."""
    with pytest.raises(KeyboardInterrupt):
        call(Raising(KeyboardInterrupt()))
