"""The tables of an evaluation, and checks between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from lookup.settings import EvaluationFile, EvaluationSection, InputsSection, VerdictSection, examine_settings
from tests.settings.files import MINIMAL, mistakes, write


@pytest.mark.parametrize(
    "keys",
    [
        {"session_s": 90},
        {"seeds": [1, 2, 1]},
        {"load_reports": "published", "load": "reported"},
        {"draw": 3, "seeds": [1, 2]},
        {"seeds": []},
        {"seeds": list(range(1001))},
        {"seeds": 0},
        {"seeds": 1001},
        {"seeds": True},
        {"seeds": '"3"'},
        {"seeds": [1 << 63]},
        {"owner_loss": "none"},
        {"load": "measured"},
        {"tick_s": 0},
        {"warmup_s": -1},
        {"overload_threshold": 0.0},
        {"bytes_per_weight": 5e-324},
        {"bytes_per_weight": 1e308},
        {"max_quarantine_ratio": 1.1},
        {"default_bundles": 1 << 20},
    ],
)
def test_a_replay_that_makes_no_sense_is_refused(tmp_path: Path, keys: dict[str, Any]) -> None:
    """Spans are whole ticks, seeds differ, and every figure lies in its range."""
    flags = {f"evaluation.{key}": value for key, value in keys.items()}

    (mistake, *_) = mistakes(write(tmp_path, "e.toml", MINIMAL), flags)

    assert mistake.startswith(f"command line: evaluation.{next(iter(keys))}")


_CENTURY_S = 3_155_760_000


@pytest.mark.parametrize("key", ["tick_s", "session_s", "balance_s", "warmup_s", "reconnect_s", "window_s"])
@pytest.mark.parametrize("seconds", [_CENTURY_S + 1, (1 << 63) - 1, 90_000_000_000_000_000_000])
def test_a_span_of_more_than_a_century_is_refused(key: str, seconds: int) -> None:
    """Microseconds of every span stay within 64 bits, and so does an instant after it."""
    with pytest.raises(ValidationError) as caught:
        EvaluationSection.model_validate({"incumbent": "x", key: seconds})

    assert caught.value.errors()[0]["loc"] == (key,)
    assert str(_CENTURY_S) in caught.value.errors()[0]["msg"]


def test_a_century_is_the_longest_span() -> None:
    """Spans as long as they may be are taken as written."""
    spans = dict.fromkeys(["tick_s", "session_s", "balance_s", "warmup_s", "reconnect_s", "window_s"], _CENTURY_S)
    section = EvaluationSection.model_validate({"incumbent": "x", **spans})

    assert {key: getattr(section, key) for key in spans} == spans
    assert VerdictSection(block_s=_CENTURY_S).block_s == _CENTURY_S


@pytest.mark.parametrize(("seeds", "expected"), [(1, 1), (3, 3), (1000, 1000), ([7, -2], (7, -2)), ((4,), (4,))])
def test_seeds_are_a_number_or_a_list(seeds: object, expected: int | tuple[int, ...]) -> None:
    """A number is drawn once the log is known; a list is taken as it is."""
    section = EvaluationSection.model_validate({"incumbent": "x", "seeds": seeds})

    assert section.seeds == expected
    assert section.drawn == (tuple(range(1, expected + 1)) if isinstance(expected, int) else expected)


@pytest.mark.parametrize(
    "keys",
    [
        {"block_s": _CENTURY_S + 1},
        {"margin": -0.1},
        {"margins": {"moves": "x"}},
        {"min_units": 0},
        {"min_events": 0},
        {"accept_placement": "yes"},
        {"primary": "moves"},
    ],
)
def test_a_verdict_that_makes_no_sense_is_refused(keys: dict[str, Any]) -> None:
    """Margins are not negative, limits are at least 1, switches are true or false, and primary metrics are a list."""
    with pytest.raises(ValidationError):
        VerdictSection.model_validate(keys)


def test_an_empty_path_is_refused() -> None:
    """A path of nothing would be the folder of the settings."""
    with pytest.raises(ValidationError):
        InputsSection(lookups="")


_A = '[[brokers]]\nid = "a:1"\n'
_SECOND = '[[policies]]\nname = "stock"\nselector = "x"\n'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (MINIMAL.replace('"stock"', '"stok"', 1), "evaluation.incumbent: there is no policy named 'stok'"),
        (MINIMAL + _SECOND, "policies: 2 policies are named 'stock'"),
        (MINIMAL.replace("\n\n", '\nload = "reported"\n\n'), "evaluation.load: "),
        (MINIMAL + '[[namespaces]]\nname = "a/b"\n' * 2, "namespaces: 2 "),
        (MINIMAL + '[failure_domains]\nx = ["a:1"]\ny = ["a:1"]', "failure_domains: broker 'a:1'"),
        (MINIMAL + _A + _A, "brokers[1]: 'a:1' is registered by brokers[0]"),
        (
            MINIMAL + _A + '[[brokers]]\nid = "{n}:1"\ncount = 2\nclusters = ["x"]\n' + _A.replace("a", "1"),
            "brokers[2]: '1:1' is registered by brokers[1]",
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

    problems = examine_settings(EvaluationFile, path, environ={}).problems

    assert [problem.partition(" is ")[0] for problem in problems] == [f"{path}: brokers[1]: 'a:1'"] * clash


def test_tables_that_are_wrong_in_themselves_are_not_compared() -> None:
    """A check whose tables are not all there says nothing."""
    assert EvaluationFile.problems_between({}) == []


def test_reports_of_bundles_are_of_the_log_s_own() -> None:
    """With BUNDLES no policy begins with others; it may say the number that the evaluation says."""
    given = {"evaluation": {"incumbent": "p", "default_bundles": 8}, "inputs": {"bundles": "b.parquet"}}
    policies = [{"name": "p", "selector": "best", "bundles": 8}, {"name": "q", "selector": "best", "bundles": 4}]

    EvaluationFile.model_validate({**given, "policies": policies[:1]})
    with pytest.raises(ValidationError, match="4 cannot be replayed: BUNDLES"):
        EvaluationFile.model_validate({**given, "policies": policies})
