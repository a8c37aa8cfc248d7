"""What a search writes down of a finalist: its patch, and what has to be known of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lookup.tuning.document import conclusion, judged_entry, list_confirmed
from lookup.tuning.racing import Standing
from lookup.tuning.search import Candidate, Search
from lookup.tuning.trials import Shown
from tests.tuning.worlds import AIMS, IMBALANCE, TODAY, searched, space_of, standing

_CONF_KEY = "defaultNumberOfNamespaceBundles"


def _shown(search: Search) -> Shown:
    return Shown(AIMS, {one.number: standing(1.0 if one.number else 2.0) for one in search.candidates})


def _judged(key: str, today: dict[str, Any]) -> dict[str, Any]:
    """Return the entry of the candidate with 16 bundles, where namespaces have four."""
    space = space_of({key: [4, 8, 16]}, today, bundles=4)
    search, _ = searched(space, lambda one: standing(1.0 if one.point.changes.get(key) == 16 else 2.0))
    best: Candidate = next(one for one in search.candidates if one.point.changes.get(key) == 16)
    return judged_entry(best, search, _shown(search))


@pytest.mark.parametrize("key", ["bundles", _CONF_KEY])
def test_bundles_are_patched_under_pulsars_key_with_a_caution(tmp_path: Path, key: str) -> None:
    """By whatever key they are varied; none is for a running cluster, and namespaces that exist have to be split."""
    (tmp_path / "broker.conf").write_text(f"{_CONF_KEY}=32\n")
    for today in (dict(TODAY), {"name": "today", "from_broker_conf": str(tmp_path / "broker.conf")}):
        judged = _judged(key, today)

        assert judged["before"] == {key: 4}
        assert judged["patch"] == f"-{_CONF_KEY}=4\n+{_CONF_KEY}=16"
        assert (judged["dynamic"], judged["back"]) == ([], [])
        assert "namespaces with 16 bundles" in judged["caution"]
        assert "`pulsar-admin namespaces split-bundle`" in judged["caution"]


def test_a_key_that_was_not_written_is_deleted_on_the_way_back(tmp_path: Path) -> None:
    """Pulsar's own value of it is not known; that of a key that was written comes back."""
    keys = ("loadBalancerSheddingGracePeriodMinutes", "loadBalancerBrokerThresholdShedderPercentage")
    (tmp_path / "broker.conf").write_text(f"{keys[1]}=10\n")
    vary = {keys[0]: [5, 15], keys[1]: [4, 8]}
    space = space_of(vary, {"name": "today", "from_broker_conf": str(tmp_path / "broker.conf")})
    search, _ = searched(space, lambda one: standing(1.0 if one.number else 2.0))

    judged = judged_entry(search.candidates[1], search, _shown(search))
    assert judged["policy"]["pulsar"] == "4.2"
    assert judged["back"] == [
        f"pulsar-admin brokers update-dynamic-config --config {keys[1]} --value 10",
        f"pulsar-admin brokers delete-dynamic-config --config {keys[0]}",
    ]


def test_other_changes_need_no_caution() -> None:
    """Of the shedder, say."""
    space = space_of({"shedder.threshold": [0.1, 0.2]})
    search, _ = searched(space, lambda one: standing(1.0 if one.number else 2.0))

    judged = judged_entry(search.candidates[1], search, _shown(search))
    assert judged["caution"] is None
    assert judged["patch"] == ""


@pytest.mark.parametrize(
    ("gap", "effect"), [(0.0, "imbalance_max_mean 0.3"), (0.5, "imbalance_max_mean 0.5 (the fidelity gap)")]
)
def test_nothing_confirmed_says_what_could_have_been_shown(gap: float, effect: str) -> None:
    """Half of an interval, or the fidelity gap if it is larger: what is below it may be the replay's own."""
    today = standing(2.0).figures
    today = {**today, IMBALANCE: replace(today[IMBALANCE], gap=gap)}

    shown = Shown(AIMS, {0: Standing(today), 1: standing(1.9, half=0.3)})
    text = conclusion([], shown, "on days that the search has not seen")

    assert "none of 1 finalist is confirmed on days " in text
    assert text.split(": ")[-1].split(", ")[0] == effect


def _finalist(number: int, *keys: str, as_good: Sequence[int] = (), objection: str | None = None) -> dict[str, Any]:
    changes = dict.fromkeys(keys, 1)
    return {"candidate": number, "changes": changes, "as_good": list(as_good), "objection": objection}


def test_of_finalists_that_are_as_good_the_one_with_the_fewest_changes_comes_first() -> None:
    """Whichever looked best: that differs from one draw of seeds to the next."""
    judged = [_finalist(7, "a", "b", as_good=[3]), _finalist(5, "a", objection="worse"), _finalist(3, "a", as_good=[7])]

    assert [one["candidate"] for one in list_confirmed(judged)] == [3, 7]


def test_fewer_changes_do_not_come_first_if_they_are_shown_to_be_worse() -> None:
    """Candidate 3 is not among those that are as good as 7."""
    judged = [_finalist(7, "a", "b"), _finalist(3, "a", as_good=[7])]

    assert [one["candidate"] for one in list_confirmed(judged)] == [7, 3]
