"""What verdicts decide: exit codes, primary metrics, and which names the rules in settings may use."""

from __future__ import annotations

from typing import Any

import pytest

from lookup.errors import SettingsError
from lookup.model.batch import TRANSIT_STATES
from lookup.score.metrics.movement import CAUSES
from lookup.score.verdict import Verdict, check_rules, exit_code
from lookup.settings.sections import VerdictSection
from tests.score.cases import METRICS, plan, ratios, scored, sums


def verdicts(**words: str) -> list[Verdict]:
    """Write down verdicts by metric; those whose name ends in `_` are not primary."""
    return [
        Verdict("new", "stock", name, None, word, None, 0.0, 0.0, 0.0, 0.0, primary=not name.endswith("_"))  # type: ignore[arg-type]  # words of the table
        for name, word in words.items()
    ]


@pytest.mark.parametrize(
    ("words", "required", "code"),
    [
        ({}, True, 0),
        ({"a": "better", "b": "equivalent"}, True, 0),
        ({"a": "better", "b": "worse"}, False, 3),
        ({"a": "inconclusive", "b": "worse"}, True, 3),
        ({"a": "inconclusive"}, False, 0),
        ({"a": "inconclusive"}, True, 4),
        ({"a_": "worse"}, False, 0),
        ({"a_": "inconclusive"}, True, 0),
    ],
)
def test_exit_codes(words: dict[str, str], required: bool, code: int) -> None:
    """Worse comes before undecided; metrics that are not primary never decide."""
    assert exit_code(verdicts(**words), VerdictSection(require_decision=required)) == code


class TestPrimary:
    """Which verdicts decide the exit code."""

    PARTS = (
        *(ratios(policy, [share] * 30) for policy, share in (("stock", 0.9), ("new", 0.1))),
        *(sums(policy, [[2]] * 30, "moves") for policy in ("stock", "new")),
        *(sums(policy, [[2]] * 30, "moves", key="shed") for policy in ("stock", "new")),
        *(sums(policy, [[1, ms]], "network_ms_p95") for policy, ms in (("stock", 1), ("new", 2))),
    )

    @pytest.mark.parametrize(
        ("primary", "expected"),
        [
            (None, ["answered_ratio", "moves", "moves:shed"]),
            (("moves",), ["moves", "moves:shed"]),
            (("moves:shed",), ["moves:shed"]),
            (("network_ms_p95",), ["network_ms_p95"]),
            ((), []),
        ],
    )
    def test_selection(self, primary: Any, expected: list[str]) -> None:
        """By default every metric with a direction and an interval; a name means all its keys."""
        found = [one for one in scored(self.PARTS, plan(primary=primary)).verdicts if one.primary]

        assert [one.metric + (f":{one.key}" if one.key else "") for one in found] == expected

    def test_other_metrics_do_not_decide(self) -> None:
        """A loss elsewhere does not fail the run."""
        assert scored(self.PARTS, plan(primary=("moves",))).exit_code == 0
        assert scored(self.PARTS).exit_code == 3

    @pytest.mark.parametrize("named", ["match_ratio", "moves:forced"])
    def test_what_was_not_measured_is_undecided(self, named: str) -> None:
        """A primary metric that nobody could measure must not pass in silence."""
        result = scored(self.PARTS, plan(primary=(named,), require_decision=True))

        undecided = result.verdicts[-1]
        assert (undecided.metric, undecided.key or "") == (*named.split(":"), "")[:2]
        assert (undecided.verdict, undecided.reason) == ("inconclusive", "it was not measured for either policy")
        assert result.exit_code == 4

    def test_a_key_that_the_log_does_not_have_is_refused(self) -> None:
        """A misspelt property would be a gate that is always open; the sentence names the keys there are."""
        parts = [
            ratios(name, [0.5] * 30, "match_ratio", key=key) for name in ("stock", "new") for key in ("zone", "rack")
        ]
        # a part of the demand is no gate
        parts.append(ratios("stock", [0.5] * 30, "match_ratio", key="rck", by=(("tenant", "t"),)))

        with pytest.raises(SettingsError) as caught:
            scored(parts, plan(primary=("match_ratio:rck", "match_ratio:rack", "match_ratio:")))

        there_are = "could be measured for no policy; this log has match_ratio:rack, match_ratio:zone"
        assert list(caught.value.problems) == [
            f"verdict.primary: {named} {there_are}" for named in ("'match_ratio:rck'", "'match_ratio:'")
        ]

    def test_a_log_without_any_key_says_so(self) -> None:
        """Where clients send no property there is none to name."""
        with pytest.raises(SettingsError, match=r"'match_ratio:rack' could .*; this log has no key of match_ratio$"):
            scored(self.PARTS, plan(primary=("match_ratio:rack",)))

    def test_one_policy_is_enough(self) -> None:
        """A key that only the candidate has is undecided, with the reason, and no mistake."""
        parts = [*self.PARTS, ratios("new", [0.5] * 30, "match_ratio", key="rack")]

        verdict = scored(parts, plan(primary=("match_ratio:rack",))).verdicts[-1]

        assert (verdict.key, verdict.reason) == ("rack", "there is nothing to measure for stock")


class TestRules:
    """Names in the settings are checked."""

    def test_known_names_pass(self) -> None:
        """With keys and without."""
        check_rules(VerdictSection(primary=("moves", "match_ratio:rack"), margins={"moves:shed": 0.1}), METRICS)

    def test_unknown_names_are_refused_together(self) -> None:
        """Each with what was probably meant."""
        rules = VerdictSection(primary=("match_ration:rack",), margins={"zzz": 0.1})

        with pytest.raises(SettingsError) as caught:
            check_rules(rules, METRICS)

        first, second = caught.value.problems
        assert first == "verdict.primary: no metric is named 'match_ration'; did you mean 'match_ratio'?"
        assert second.startswith("verdict.margins: no metric is named 'zzz'; known: agreement_ratio, ")

    def test_metrics_without_direction_cannot_decide(self) -> None:
        """Nobody could say which way is better."""
        with pytest.raises(SettingsError, match="'agreement_ratio' has no direction"):
            check_rules(VerdictSection(primary=("agreement_ratio",)), METRICS)

    @pytest.mark.parametrize(
        ("named", "sentence"),
        [
            ("moves:shedd", "'moves:shedd': moves has no key 'shedd'; did you mean 'shed'?"),
            ("moves:", "'moves:': moves has no key ''; known: admin, forced, shed, split"),
            (
                "answered_ratio:rack",
                "'answered_ratio:rack': answered_ratio has no key 'rack'; it is one figure, write 'answered_ratio'",
            ),
        ],
    )
    def test_a_key_that_no_log_has_is_refused(self, named: str, sentence: str) -> None:
        """Among primary metrics and margins alike, before anything runs."""
        with pytest.raises(SettingsError) as caught:
            check_rules(VerdictSection(primary=(named,), margins={named: 0.1}), METRICS)

        assert list(caught.value.problems) == [f"verdict.primary: {sentence}", f"verdict.margins: {sentence}"]

    def test_the_keys_that_metrics_list_are_those_they_have(self) -> None:
        """All but `match_ratio` say which keys there can be: causes of `moves`, states of lookups in transition."""
        listed = {metric.name: getattr(metric, "every_key", None) for metric in METRICS}

        assert listed.pop("match_ratio") is None
        assert listed.pop("moves") == CAUSES
        assert listed.pop("in_transition") == TRANSIT_STATES
        assert set(listed.values()) == {()}
