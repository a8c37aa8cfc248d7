"""Checks between tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from lookup.settings import examine_evaluation
from lookup.settings.checks import cross_problems
from tests.settings.files import MINIMAL, mistakes, write

_A = '[[brokers]]\nid = "a:1"\n'
_SECOND = '[[policies]]\nname = "stock"\nselector = "x"\n'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            MINIMAL.replace('"stock"', '"stok"', 1),
            "evaluation.incumbent: there is no policy named 'stok'; did you mean",
        ),
        (MINIMAL + _SECOND, "policies: 2 policies are named 'stock'; a name should occur once"),
        (
            MINIMAL.replace("\n\n", '\nload = "reported"\n\n'),
            'evaluation.load: "reported" needs a LOADS table: give inputs.loads',
        ),
        (MINIMAL + '[[namespaces]]\nname = "a/b"\n' * 2, "namespaces: 2 entries are named 'a/b'"),
        (MINIMAL + '[failure_domains]\nx = ["a:1"]\ny = ["a:1"]', "failure_domains: broker 'a:1' is listed 2 times"),
        (MINIMAL + _A + _A, "brokers[1]: 'a:1' is registered by brokers[0] at the same time"),
        (
            MINIMAL + _A + '[[brokers]]\nid = "{n}:1"\ncount = 2\nclusters = ["x"]\n' + _A.replace("a", "1"),
            "brokers[2]: '1:1' is registered by brokers[1] at the same time",
        ),
    ],
)
def test_tables_that_contradict_each_other_are_told(tmp_path: Path, text: str, sentence: str) -> None:
    """Names meet their definitions, occur once, and no broker is registered twice at a time."""
    (told,) = mistakes(write(tmp_path, "e.toml", text))

    assert told.startswith(f"e.toml: {sentence}")


@pytest.mark.parametrize(
    ("first", "second", "clash"),
    [
        ("until = 2026-01-02T00:00:00Z", "from = 2026-01-02T00:00:00Z", False),
        ("until = 2026-01-02T00:00:01Z", "from = 2026-01-02T00:00:00Z", True),
        ("from = 2026-01-02T00:00:00Z", "until = 2026-01-02T01:00:00+01:00", False),
        ('clusters = ["x"]', 'clusters = ["y", "z"]', False),
        ('clusters = ["x"]', 'clusters = ["y", "x"]', True),
        ('clusters = ["x"]', "", True),
    ],
)
def test_intervals_of_one_id_are_disjoint_in_a_cluster(tmp_path: Path, first: str, second: str, clash: bool) -> None:
    """Half-open intervals may touch, and one id may stand in several clusters."""
    path = write(tmp_path, "e.toml", f"{MINIMAL}{_A}{first}\n{_A}{second}\n")

    problems = examine_evaluation(path, environ={}).problems

    told = f"{path}: brokers[1]: 'a:1' is registered by brokers[0] at the same time"
    assert problems == ((told,) if clash else ())


def test_tables_that_are_wrong_in_themselves_are_not_compared() -> None:
    """A check whose tables are not all there says nothing."""
    assert cross_problems({}) == []
