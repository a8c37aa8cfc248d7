"""Spaces of settings, and the points in them."""

from __future__ import annotations

import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.errors import SettingsError
from lookup.settings.policy import PolicySpec
from lookup.tuning.space import Axis, near, spread
from tests.tuning.worlds import TODAY, space_of

_SHIPPED = Path(__file__).parents[2] / "configs" / "spaces"
_THRESHOLD = {"shedder.threshold": {"low": 0.02, "high": 0.5, "scale": "log"}}


def test_the_space_of_the_page_can_be_searched() -> None:
    """Its parts and parameters are those that ship."""
    page = (_SHIPPED.parents[1] / "docs" / "tune.md").read_text(encoding="utf-8")
    (text,) = (block for block in page.split("```") if block.startswith("toml") and "[[spaces]]" in block)
    (given,) = tomllib.loads(text.removeprefix("toml"))["spaces"]
    today = tomllib.loads((_SHIPPED.parent / "policies" / "rack-then-load.toml").read_text(encoding="utf-8"))

    assert len(space_of(given["vary"], today).axes) == 3


def test_points_lie_all_over_a_range() -> None:
    """Every quarter of a scale of ratios has a quarter of them, or one more."""
    points = list(spread(space_of(_THRESHOLD), 15))

    values = [point.changes["shedder.threshold"] for point in points]
    ends = [0.02 * 25 ** (quarter / 4) for quarter in range(5)]
    counts = [sum(low < value <= high for value in values) for low, high in pairwise(ends)]
    assert len(values) == 15
    assert max(counts) - min(counts) <= 1


@given(st.permutations([0.0, 0.1, 0.2, 0.3]), st.integers(0, 4))
def test_listed_values_are_all_tried_in_whatever_order_they_stand(listed: list[float], more: int) -> None:
    """If there are as many points as combinations, and a second list changes nothing of it."""
    vary = {"shedder.threshold": listed, "shedder.history": [0.1, 0.5, 0.9]}

    points = list(spread(space_of(vary), 12 + more))

    assert len({point.identity for point in points}) == 12


def test_a_long_list_gives_as_many_points_as_are_asked_for() -> None:
    """Where several places have the same value, further ones are taken."""
    values = [number / 100 for number in range(40)]

    assert len(list(spread(space_of({"shedder.threshold": values}), 30))) == 30


@pytest.mark.parametrize(("low", "high"), [(1.001, 1.009), (1.0, 1.01), (9.9, 9.99)])
def test_narrow_ranges_have_as_many_values_as_wide_ones(low: float, high: float) -> None:
    """Numbers far from 0 have the digits that it takes."""
    points = list(spread(space_of({"shedder.threshold": {"low": low, "high": high}}), 15))

    assert len(points) == 15
    assert all(low < point.changes["shedder.threshold"] < high for point in points)


@pytest.mark.parametrize("name", ["threshold", "rebalancing", "uniform", "transfer", "placement", "avg"])
def test_values_of_spaces_that_ship_have_three_digits(name: str) -> None:
    """Each of their ranges has room enough for them."""
    vary = tomllib.loads((_SHIPPED / f"{name}.toml").read_text())["vary"]
    for ends in (values for values in vary.values() if isinstance(values, dict)):
        axis = Axis("a", (), ends["low"], ends["high"], is_log=ends.get("scale") == "log")
        values = [axis.value(step / 200) for step in range(201)]
        assert all(value in (axis.low, axis.high, float(f"{value:.3g}")) for value in values)


@pytest.mark.parametrize(("high", "kind"), [(8, int), (8.0, float)])
def test_whole_ends_make_whole_numbers(high: float, kind: type) -> None:
    """`1, 8` is eight values, `1, 8.0` any between them."""
    points = list(spread(space_of({"shedder.threshold": {"low": 1, "high": high}}), 15))

    assert {type(point.changes["shedder.threshold"]) for point in points} == {kind}
    assert len(points) <= (8 if kind is int else 15)


def test_a_missing_end_is_that_of_the_part() -> None:
    """The weight of the past is a share: a range without ends goes from 0 to 1."""
    space = space_of({"shedder.history": {}})

    assert (space.axes[0].low, space.axes[0].high) == (0, 1)


@pytest.mark.parametrize(("key", "kind"), [("threshold", float), ("loadBalancerAvgShedderLowThreshold", int)])
def test_beside_a_missing_end_the_key_says_what_is_whole(key: str, kind: type) -> None:
    """A share below a whole `1` has a fraction, a key of which Pulsar's value is whole has none."""
    shedder = {"use": "threshold" if kind is float else "avg"}
    path = f"shedder.{key}" if kind is float else key
    points = spread(space_of({path: {"high": 30}}, {**TODAY, "shedder": shedder}), 15)

    assert {type(point.changes[path]) for point in points} == {kind}


def test_what_is_so_already_is_no_change() -> None:
    """A point has only what differs from the policy."""
    space = space_of(
        {"shedder.lower_boundary": [True, False]}, {**TODAY, "shedder": {"use": "threshold", "lower_boundary": True}}
    )

    changes = [dict(point.changes) for point in spread(space, 3)]
    assert sorted(changes, key=len) == [{}, {"shedder.lower_boundary": False}]


def test_values_that_all_candidates_have_come_first() -> None:
    """A part that is set is there for the settings that are varied in it, and no two points share it."""
    space = space_of({"shedder.max_share": {"low": 0.1, "high": 0.3}}, set={"shedder": {"use": "rebalance"}})

    shares = [space.policy(point, "x").shedder.parameters["max_share"] for point in spread(space, 3)]  # type: ignore[union-attr]
    assert len(set(shares)) == 3


def test_a_part_that_is_set_anew_has_none_of_the_old_values() -> None:
    """A value is a change unless the new part has it, whatever the old one had."""
    today = {**TODAY, "shedder": {"use": "rebalance", "max_share": 0.3}}
    space = space_of({"shedder.max_share": [0.1, 0.3]}, today, set={"shedder": {"use": "rebalance"}})

    for point in spread(space, 3):
        policy = space.policy(point, "x")
        assert policy.shedder is not None
        assert policy.shedder.parameters["max_share"] == point.changes["shedder.max_share"]


def test_keys_of_a_broker_conf_are_varied_as_it_has_them(tmp_path: Any) -> None:
    """In Pulsar's units; also the class of the shedder, for which the file is read anew."""
    (tmp_path / "broker.conf").write_text("loadBalancerBrokerThresholdShedderPercentage=30\n")
    today = {"name": "today", "from_broker_conf": str(tmp_path / "broker.conf")}
    uniform = "org.apache.pulsar.broker.loadbalance.impl.UniformLoadShedder"
    space = space_of(
        {"maxUnloadPercentage": {"low": 0.1, "high": 0.5}}, today, set={"loadBalancerLoadSheddingStrategy": uniform}
    )

    point = next(spread(space, 1))
    policy = space.policy(point, "x")

    assert policy.shedder is not None
    assert policy.shedder.use == "uniform"
    assert dict(point.changes) == {"loadBalancerLoadSheddingStrategy": uniform, "maxUnloadPercentage": 0.3}
    assert space.base.value_at("loadBalancerBrokerThresholdShedderPercentage") == 30


def test_pulsars_own_values_are_a_candidate(tmp_path: Any) -> None:
    """What differs from them today is a change."""
    (tmp_path / "broker.conf").write_text("loadBalancerBrokerThresholdShedderPercentage=30\n")
    today = {"name": "today", "from_broker_conf": str(tmp_path / "broker.conf")}
    space = space_of({"loadBalancerBrokerThresholdShedderPercentage": {"low": 2, "high": 40}}, today)

    found = space.defaults()

    assert found is not None
    assert dict(found.changes) == {"loadBalancerBrokerThresholdShedderPercentage": 10}
    assert space_of(_THRESHOLD).defaults() is None


@given(st.floats(0.0, 1.0), st.integers(0, 3))
def test_points_near_another_come_closer_each_turn(centre: float, turn: int) -> None:
    """They lie within the space, and within half the reach of the turn before."""
    space = space_of({"shedder.threshold": {"low": 0.0, "high": 1.0}})

    points = list(near(space, [space.point([centre])], 8, turn=turn))

    for point in points:
        assert 0.0 <= point.coordinates[0] <= 1.0
        assert abs(point.coordinates[0] - centre) <= 0.25 * 0.5**turn + 1e-9


_MISSPELT = "loadBalancerBrokerThresholdSheddersPercentage"


@pytest.mark.parametrize(
    ("vary", "said"),
    [
        ({"shedder.threshold": {"low": -0.5, "high": 0.5}}, "policy 'today' shedder: threshold = -0.5: "),
        ({"shedder.threshold": {}}, "space 'space': vary.shedder.threshold: "),
        ({"shedder.treshold": {"low": 0.1, "high": 0.5}}, "'treshold'; did you mean 'threshold'?"),
        ({_MISSPELT: {"low": 1, "high": 40}}, f"{_MISSPELT}: "),
        ({"name": ["a", "b"]}, "vary.name: "),
        ({"scorers[0].weight": [0.0, 1.0]}, "policy 'today' has no scorers[0].weight"),
        ({"shedder.threshold": {"high": 0.5, "scale": "log"}}, "vary.shedder.threshold: low: 0 "),
        ({"shedder.history": {"low": 2.0}}, "vary.shedder.history: high: 1 "),
        ({"shedder": ["threshold", {"use": "threshold"}]}, "vary.shedder: policy 'today' is"),
    ],
)
def test_a_wrong_space_is_refused(vary: dict[str, Any], said: str) -> None:
    """Before anything is replayed, with what would be right."""
    with pytest.raises(SettingsError) as caught:
        space_of(vary)

    assert said in str(caught.value)


def test_a_setting_that_another_key_has_is_known() -> None:
    """Its own name is no advice."""
    key = "loadBalancerBrokerThresholdShedderPercentage"

    with pytest.raises(SettingsError, match=f"vary.{key}: policy 'today' is the same"):
        space_of({key: [5, 10]}, set={"shedder.threshold": 0.1})


def test_a_misspelt_key_that_all_candidates_would_have_is_refused() -> None:
    """Else it would be without effect, and without a word."""
    with pytest.raises(SettingsError, match=r"set.shedr.threshold: .*'shedder.threshold'\?"):
        space_of({"shedder.threshold": [0.1, 0.2]}, set={"shedr.threshold": 1.0})


def test_an_end_that_a_part_excludes_is_not_tried() -> None:
    """A share that should be above 0 has no least value: the range says where it begins."""
    today = {**TODAY, "shedder": "rebalance"}

    with pytest.raises(SettingsError, match=r"max_share: .* low"):
        space_of({"shedder.max_share": {"high": 0.5}}, today)
    assert space_of({"shedder.max_share": {"low": 0.1}}, today).axes[0].high == 1


def test_a_setting_counts_under_one_choice_of_another() -> None:
    """What only one of two shedders reads is read."""
    vary = {
        "shedder": ["threshold", {"use": "overload"}],
        "loadBalancerBrokerThresholdShedderPercentage": {"low": 1, "high": 40},
    }

    assert len(space_of(vary).axes) == 2


def test_changing_a_policy_leaves_it_as_it_was() -> None:
    """Values of lists and tables are those of the new policy alone."""
    policy = PolicySpec.model_validate(
        {"name": "a", "selector": "best", "scorers": [{"use": "headroom", "weight": 1.0}]}
    )

    changed = policy.with_changes("b", {"scorers[0].weight": 3.0})

    assert (policy.scorers[0].weight, changed.scorers[0].weight, changed.name) == (1.0, 3.0, "b")


_CONF_KEY = "defaultNumberOfNamespaceBundles"


@pytest.mark.parametrize("key", ["bundles", _CONF_KEY])
def test_bundles_are_varied_from_those_of_the_evaluation(key: str) -> None:
    """What the evaluation says holds today, and is no change; both keys make the same policies."""
    space = space_of({key: [4, 8, 16]}, bundles=8)
    changes = [dict(space.point([place]).changes) for place in (0.1, 0.5, 0.9)]

    assert space.today(space.axes[0]) == 8
    assert changes == [{key: 4}, {}, {key: 16}]
    assert [space.policy(space.point([place]), "x").bundles for place in (0.1, 0.5, 0.9)] == [4, None, 16]


def test_a_range_of_bundles_has_whole_numbers() -> None:
    """Spread by ratios."""
    points = spread(space_of({"bundles": {"low": 2, "high": 64, "scale": "log"}}, bundles=4), 15)

    assert {type(value) for point in points for value in point.changes.values()} == {int}
