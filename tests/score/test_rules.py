"""The rules of verdicts that name figures: what decides by default, which names settings may use, and margins."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.engine.measuring import question_of
from lookup.engine.ownership import CAUSE_WORDS
from lookup.errors import SettingsError
from lookup.hooks import Metric
from lookup.score.rules import Name, check_measured, check_rules, default_primary, margin_of, name_of, selects
from lookup.settings.evaluation import VerdictSection
from tests.score.cases import METRICS, plan, ratios, scored

OF_NAME = {metric.name: metric for metric in METRICS}


def test_the_default_is_a_short_list() -> None:
    """Answers, every label that policies place by, balance, and what reconnects because of moves."""
    assert default_primary(()) == ("answered_ratio", "imbalance_max_mean", "moved_weight")
    assert default_primary(("rack", "zone"))[1:3] == ("match_ratio:rack", "match_ratio:zone")


@pytest.mark.parametrize(
    ("named", "name", "expected"),
    [
        ("moves", ("moves", None), True),
        ("moves", ("moves", "shed"), True),
        ("moves:shed", ("moves", "shed"), True),
        ("moves:shed", ("moves", None), False),
        ("moves:shed", ("moves", "forced"), False),
        ("moves", ("moved_weight", None), False),
    ],
)
def test_a_name_without_a_key_means_all_of_its_metric(named: str, name: Name, expected: bool) -> None:
    """With a key it means that one."""
    assert selects(named, name) is expected


@pytest.mark.parametrize(
    ("named", "expected"),
    [("moves", ("moves", None)), ("moves:", ("moves", "")), ("match_ratio:a:b", ("match_ratio", "a:b"))],
)
def test_the_first_colon_parts_metric_and_key(named: str, expected: Name) -> None:
    """Keys may have colons."""
    assert name_of(named) == expected


@pytest.mark.parametrize(
    ("margins", "expected"),
    [
        ({}, 0.4),
        ({"moves": 0.1}, 4.0),
        ({"moves": 0.1, "moves:shed": 0.2}, 8.0),
        ({"moves:forced": 0.3}, 0.4),
        ({"moves": 0.0}, 0.0),
    ],
)
def test_the_nearest_name_s_margin_holds(margins: dict[str, float], expected: float) -> None:
    """Metric and key before metric before the general margin, times the incumbent's 40 moves."""
    assert margin_of(OF_NAME["moves"], "shed", VerdictSection(margins=margins), 40.0) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("incumbent", "expected"), [(0.0, 0.25), (0.1, 0.25), (0.5, 0.25), (0.6, 0.3), (4.0, 2.0), (-4.0, 2.0)]
)
def test_a_margin_is_relative_to_the_incumbent_or_to_itself(incumbent: float, expected: float) -> None:
    """Half of its size; of what is smaller than a half, half of a half."""
    rules = VerdictSection(margins={"moves": 0.5})

    assert margin_of(OF_NAME["moves"], None, rules, incumbent) == pytest.approx(expected)


@given(st.sampled_from(METRICS), st.floats(0, 1), st.floats(-9, 9), st.floats(0, 1e-3))
def test_margins_have_no_jump(metric: Metric, share: float, incumbent: float, step: float) -> None:
    """Two incumbents that hardly differ have margins that hardly differ, at 0 as everywhere."""
    rules = VerdictSection(margin=share)
    one, other = (margin_of(metric, None, rules, value) for value in (incumbent, incumbent + step))

    assert abs(one - other) <= share * step + 1e-12


class TestGuardMargin:
    """Of what is judged on this log: answers, overload, and what a plug-in guards."""

    RULES = VerdictSection(margin=0.5, guard_margin=0.002)

    @pytest.mark.parametrize("name", ["answered_ratio", "overload_ratio"])
    @pytest.mark.parametrize("incumbent", [0.0, 0.3, 1.0])
    def test_of_a_ratio_it_is_the_loss_itself(self, name: str, incumbent: float) -> None:
        """Two lookups in a thousand are two in a thousand, however many the incumbent answers."""
        assert margin_of(OF_NAME[name], None, self.RULES, incumbent) == 0.002

    @pytest.mark.parametrize(("incumbent", "expected"), [(50.0, 0.1), (0.0, 4e-6)])
    def test_of_a_count_it_is_relative(self, incumbent: float, expected: float) -> None:
        """As any other margin of a count, only smaller."""
        assert margin_of(OF_NAME["waiting"], None, self.RULES, incumbent) == pytest.approx(expected)

    def test_of_other_ratios_it_is_the_general_one(self) -> None:
        """Locality is not guarded."""
        assert margin_of(OF_NAME["match_ratio"], "rack", self.RULES, 0.8) == pytest.approx(0.4)

    def test_a_margin_that_is_named_comes_first(self) -> None:
        """It is relative then, as the settings say of margins."""
        rules = VerdictSection(margins={"answered_ratio": 0.1})

        assert margin_of(OF_NAME["answered_ratio"], None, rules, 0.8) == pytest.approx(0.08)

    def test_one_in_ten_thousand_by_default(self) -> None:
        """What is lost beyond that is seen by clients."""
        assert margin_of(OF_NAME["answered_ratio"], None, VerdictSection(), 1.0) == 0.0001

    def test_answers_and_overload_are_guarded(self) -> None:
        """No other built-in metric is."""
        assert {name for name, metric in OF_NAME.items() if question_of(metric) == "log"} == {
            "answered_ratio",
            "overload_ratio",
            "waiting",
        }


class TestMeasured:
    """Keys that depend on the log."""

    def test_figures_that_the_log_has_pass(self) -> None:
        """So do keys that every log could have, and metrics without a key."""
        rules = VerdictSection(primary=("match_ratio:rack", "moves:shed", "match_ratio"))

        check_measured(rules, METRICS, [("match_ratio", "rack")])

    def test_a_key_that_the_log_does_not_have_is_refused(self) -> None:
        """A misspelt property would be a gate that is always open; the sentence names the keys there are."""
        parts = [
            ratios(name, [0.5] * 30, "match_ratio", key=key) for name in ("stock", "new") for key in ("zone", "rack")
        ]
        # a part of the demand is no gate
        parts.append(ratios("stock", [0.5] * 30, "match_ratio", key="rck", by=(("tenant", "t"),)))

        with pytest.raises(SettingsError) as caught:
            scored(parts, plan(primary=("match_ratio:rck", "match_ratio:rack", "match_ratio:")))

        for named, problem in zip(("'match_ratio:rck'", "'match_ratio:'"), caught.value.problems, strict=True):
            assert problem.startswith(f"verdict.primary: {named} ")
            assert problem.endswith(" has match_ratio:rack, match_ratio:zone")

    def test_a_log_without_any_key_says_so(self) -> None:
        """If clients send no property there is none to name."""
        with pytest.raises(SettingsError, match=r"'match_ratio:rack' .* of match_ratio$"):
            scored([ratios("stock", [0.5] * 30)], plan(primary=("match_ratio:rack",)))


class TestNames:
    """Names in the settings are checked."""

    def test_unknown_names_are_refused_together(self) -> None:
        """Each with what was probably meant."""
        rules = VerdictSection(primary=("match_ration:rack",), margins={"zzz": 0.1})

        with pytest.raises(SettingsError) as caught:
            check_rules(rules, METRICS)

        first, second = caught.value.problems
        assert first.startswith("verdict.primary: ")
        assert first.endswith("'match_ration'; did you mean 'match_ratio'?")
        assert second.startswith("verdict.margins: ")
        assert "'zzz'; known: agreement_ratio, " in second

    def test_metrics_without_direction_cannot_decide(self) -> None:
        """There is no better and no worse."""
        with pytest.raises(SettingsError, match="'agreement_ratio' has no direction"):
            check_rules(VerdictSection(primary=("agreement_ratio",)), METRICS)

    @pytest.mark.parametrize(
        ("named", "sentence"),
        [
            ("moves:shedd", "'moves:shedd': .*'shed'?"),
            ("moves:", "'moves:': .* admin, forced, shed, split"),
            ("answered_ratio:rack", "'answered_ratio:rack': .* write 'answered_ratio'"),
        ],
    )
    def test_a_key_that_no_log_has_is_refused(self, named: str, sentence: str) -> None:
        """Among primary metrics and margins alike, before anything runs."""
        with pytest.raises(SettingsError) as caught:
            check_rules(VerdictSection(primary=(named,), margins={named: 0.1}), METRICS)

        for place, problem in zip(("primary", "margins"), caught.value.problems, strict=True):
            assert re.match(f"verdict.{place}: {sentence}", problem)

    def test_the_keys_that_metrics_list_are_those_they_have(self) -> None:
        """All but `match_ratio` say which keys there can be: causes of `moves`, why lookups wait."""
        listed = {metric.name: getattr(metric, "every_key", None) for metric in METRICS}

        assert listed.pop("match_ratio") is None
        assert listed.pop("moves") == tuple(CAUSE_WORDS)
        assert listed.pop("waiting") == ("lock",)
        assert set(listed.values()) == {()}
