"""Sentences of the report."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from lookup.model.decision import CycleReason
from lookup.replay.outcome import ReplayOutcome
from lookup.report.comparison import MARKS, UNJUDGED, number_text
from lookup.report.markdown import markdown_report
from lookup.report.wording import (
    caveats,
    comparisons,
    conclusion,
    cycles_of,
    differing,
    floors,
    idle_shedders,
    legend,
    meanings,
    opening,
    outcomes,
    undecided,
    undecided_figures,
    winners_luck,
)
from lookup.score.scoring import Plan, score
from lookup.score.winners import Winner
from lookup.settings.evaluation import EvaluationSection, VerdictSection
from tests.report.results import INPUTS, placed_once, result, varied
from tests.report.test_markdown import section
from tests.report.test_printing import printed
from tests.score.cases import METRICS, SEEDS, decided, moves, plan, ratios, replicated, scored, spread, sums


def test_each_candidate_has_a_sentence() -> None:
    """How many verdicts of each kind, and where it is worse on a primary metric."""
    new, twin = outcomes(result())

    assert new == "new: 1 better, 1 worse, 1 inconclusive; worse on primary moves"
    assert twin == "twin: 2 identical, 1 not judged"


def test_figures_that_differ_are_named() -> None:
    """Those that are better and those that are worse, a primary one marked; parts count with the whole."""
    assert [differing(result(), policy) for policy in ("new", "twin")] == [
        "Better: answered_ratio *. Worse: moves *.",
        "",
    ]


def test_parts_of_a_figure_count_once() -> None:
    """Moves of one cause, and those on cycles, count with all moves; keys without a whole count each."""
    parts = [
        moves(policy, [count] * 40, metric=metric, key=key)
        for policy, count in (("stock", 3), ("new", 9))
        for metric, key in (("moves", None), ("moves", "shed"), ("moves", "forced"), ("cycle_moves", None))
    ]
    parts += [ratios(policy, [0.5] * 40, "match_ratio", key=key) for policy in ("stock", "new") for key in ("a", "b")]

    found = decided(parts, "stock", "new", primary=("moves",))
    (sentence,) = outcomes(found)

    assert sentence.startswith("new: 1 worse, 2 identical; worse on primary moves")
    assert [*comparisons(found)][-1] == (
        "Figures that are parts of another are counted once, with the whole: moves[forced], moves[shed], cycle_moves."
    )


def test_undecided_metrics_are_named_with_the_smallest_effect() -> None:
    """Half of the interval of the difference; a metric that has none is not judged."""
    parts = [moves(policy, counts) for policy, counts in (("stock", [30.0] * 40), ("new", [29.0, 31.5] * 20))]
    parts += [sums(policy, [[1, 2]] * 30, "network_ms_p95") for policy in ("stock",)]
    how = {"primary": ("moves", "network_ms_p95")}
    result_ = decided(parts, "stock", "new", **how)
    (verdict,) = (verdict for verdict in result_.verdicts if verdict.metric == "moves")

    assert undecided(result_) == (
        "Undecided on every primary comparison (in brackets the smallest effect that this log can show, or why it "
        "shows none): "
        f"network_ms_p95 of new (not judged); moves of new ({number_text((verdict.high - verdict.low) / 2)} moves)."
    )
    assert undecided(result()) is None


def test_a_run_that_is_undecided_says_so_first() -> None:
    """On the terminal; in the report below the answer, one figure an entry."""
    parts = [moves(policy, counts) for policy, counts in (("stock", [30.0] * 40), ("new", [29.0, 31.5] * 20))]
    result_ = decided(parts, "stock", "new", primary=("moves",))

    assert printed(result_).startswith("Undecided on every primary comparison (")
    (listed,) = undecided_figures(result_)
    assert f": {listed}." in printed(result_)
    head = markdown_report(result_).partition("##")[0]
    assert head.index("* new: undecided on moves.") < head.index(f"* {listed}")


def test_a_certain_loss_comes_before_what_is_undecided() -> None:
    """The sentence that decides the exit code begins the report."""
    parts = [moves(policy, counts) for policy, counts in (("stock", [30.0] * 40), ("new", [29.0, 31.5] * 20))]
    parts += [ratios(policy, spread(mean, 0.1)) for policy, mean in (("stock", 0.5), ("new", 0.2))]

    first, second = opening(decided(parts, "stock", "new", primary=("moves", "answered_ratio")))

    assert "exit code 3" in first
    assert second.startswith("Undecided on 1 of 2 primary comparisons")


def test_a_sentence_on_one_placement_says_so() -> None:
    """If anything is better or worse for it only."""
    new, twin = outcomes(placed_once())

    assert new == "new: 1 better, 1 worse, 1 inconclusive, 2 of these for this placement only; worse on primary moves"
    assert twin == "twin: 2 identical, 1 not judged"


def test_a_sentence_on_these_hours_says_so() -> None:
    """If anything is better or worse in them only; a candidate whose other verdicts hold has no addition."""
    new, old = outcomes(varied())

    assert new == (
        "new: 1 better, 3 worse, 2 inconclusive, 1 of these for these hours only; worse on primary imbalance_max_mean"
    )
    assert old == "old: 1 worse, 2 identical, 3 inconclusive"


def test_what_holds_for_these_hours_is_undecided() -> None:
    """Beside what is inconclusive; what is better for the policy and what is the same are not listed."""
    figures = undecided_figures(varied())

    assert [text.partition(" (")[0] for text in figures] == ["imbalance_max_mean of new", "answered_ratio of old"]
    assert undecided(varied(primary=("match_ratio:rack",))) is None


def test_comparisons_are_counted() -> None:
    """Those that decide the exit code, together, and the others by figure, with what chance alone would do."""
    together, alone = comparisons(result())

    assert together == (
        "2 comparisons decide the exit code (*), judged together: between equals at most 5% of all runs would call any "
        "of them better or worse, and at most 0.5% worse."
    )
    assert alone == (
        "1 further comparison was judged, those of a figure together: between equals chance alone would tell "
        "candidates apart in at most 0.05 of 1 figure."
    )


def test_comparisons_of_one_figure_are_one_chance() -> None:
    """Two candidates by five figures: chance tells them apart in a twentieth of the figures, not of the comparisons."""
    decide, others = comparisons(varied())

    assert decide.startswith("2 comparisons decide the exit code (*), judged together")
    assert others.startswith("8 further comparisons were judged, those of a figure together: ")
    assert others.endswith("chance alone would tell candidates apart in at most 0.25 of 5 figures.")


def test_comparisons_that_were_not_made_are_not_counted() -> None:
    """Of one placement none decides; of the incumbent alone there are none."""
    assert [text.partition(",")[0] for text in comparisons(placed_once())] == ["3 further comparisons were judged"]
    assert list(comparisons(scored([], plan("stock")))) == []


def test_the_conclusion_says_what_the_exit_code_means() -> None:
    """3 for worse, 4 for undecided, 0 for neither, and the incumbent alone."""
    open_, short, clean = (
        decided([moves("stock", [30] * n), moves("new", [30, *[31] * (n - 1)])], primary=("moves",), **rules)
        for n, rules in ((3, {"require_decision": True}), (3, {}), (30, {"margin": 0.1}))
    )

    assert "exit code 3" in conclusion(result())
    assert conclusion(open_) == (
        "A decision was required and at least one primary metric is inconclusive, or decided for this placement or "
        "these hours only (exit code 4). Undecided: every primary comparison."
    )
    assert conclusion(clean) == "No candidate is worse than the incumbent on a primary metric."
    assert conclusion(short) == f"{conclusion(clean)} Undecided: every primary comparison."
    assert conclusion(scored([], plan("stock"))).startswith("Only the incumbent")


def test_the_conclusion_on_one_placement_says_so() -> None:
    """A loss with one draw of luck does not pass in silence, and fails the run if settings accept that."""
    assert "worse for this placement or these hours only (▽), other luck may turn it" in conclusion(placed_once())
    assert "exit code 3" in conclusion(placed_once(accept_placement=True))


@pytest.mark.parametrize(("accept", "code"), [(False, 0), (True, 0)])
def test_a_loss_in_these_hours_does_not_fail_a_run(accept: bool, code: int) -> None:
    """It does not pass in silence, and settings that accept a placement do not accept it."""
    found = varied(primary=("imbalance_max_mean",), accept_placement=accept)

    assert found.exit_code == code
    assert "worse for this placement or these hours only (▽), other luck may turn it, so it does not" in conclusion(
        found
    )
    assert conclusion(found).endswith("Undecided: 1 of 2 primary comparisons.")


def test_a_loss_that_is_not_excluded_is_named_by_the_conclusion() -> None:
    """By figure and candidate, though no decision was required, and what was kept is not named."""
    found = varied()

    assert found.exit_code == 4
    assert not found.plan.rules.require_decision
    assert conclusion(found) == (
        "It is not shown that nothing is lost on this log: answered_ratio of old (exit code 4). Undecided: 2 of 4 "
        "primary comparisons."
    )


def test_every_figure_without_guard_is_named() -> None:
    """Of all candidates, but of primary metrics only: others lose hand-overs without a word."""
    both = varied(primary=("answered_ratio", "in_transition"))
    text = conclusion(replace(both, exit_code=4))

    assert text.startswith("On this log something is lost, for this placement only: in_transition[Releasing] of new, ")
    assert "It is not shown that nothing is lost on this log: answered_ratio of old" in text
    assert "in_transition" not in conclusion(varied())


def test_a_certain_loss_of_what_is_guarded_is_a_loss() -> None:
    """It has the exit code of one, which comes before that of a guard."""
    found = varied(primary=("answered_ratio", "in_transition"))

    assert (found.exit_code, conclusion(found).partition(".")[0]) == (
        3,
        "At least one candidate is worse than the incumbent on a primary metric (exit code 3)",
    )


def test_everything_to_be_careful_about_is_said() -> None:
    """Capacity, induced lookups, quarantine, covered share."""
    text = "\n".join(caveats(result()))

    assert "capacity: assumed" in text
    assert "1.23% of the lookups came within 30 s" in text
    assert "3 records could not be used" in text
    assert "at least 25.0% of the weight" in text


def test_policies_that_were_placed_once_are_named_by_reason() -> None:
    """One sentence for all of a reason."""
    parts = replicated([ratios(name, [0.5] * 30) for name in ("stock", "new", "old")])
    unsalted = {"new": ("rendezvous",), "old": ("rendezvous",)}

    texts = caveats(scored(parts, plan("stock", "new", "old", seeds=SEEDS), unsalted=unsalted))

    (text,) = [text for text in texts if "placement" in text]
    assert text == (
        "new, old: rendezvous tells equal brokers apart by their names, whatever the salt, so verdicts that involve it "
        "hold for this placement only (△ ▽) and do not decide the exit code: another draw of luck may turn them."
    )


def test_policies_with_the_same_figures_are_named() -> None:
    """Those that agree in every metric, to the last digit, and only those."""
    parts = [
        ratios(policy, spread(0.5 + gain, 0.1), cluster=cluster)
        for policy, gain in (("stock", 0.0), ("new", 0.2), ("twin", 0.0))
        for cluster in "cd"
    ]

    said = [text for text in caveats(scored(parts, plan("stock", "new", "twin"))) if "same figures" in text]

    assert said == ["stock, twin have the same figures in every metric: on this log they are one policy."]


def test_findings_are_cautions() -> None:
    """What a run found without effect is said with evidence and remedy."""
    finding = {"rule": "weight", "what": "a", "how_often": "b", "evidence": "c", "remedy": "d"}

    assert "a (b): c; d." in caveats(result(inputs={**INPUTS, "findings": [finding]}))


def test_one_seed_is_a_caveat() -> None:
    """Of all policies."""
    assert any(
        text.startswith("stock, new, twin: it was replayed with one seed, so") for text in caveats(placed_once())
    )
    assert not any("placement only" in text for text in caveats(result()))


def test_placements_that_settings_accept_decide_the_exit_code() -> None:
    """The caveat does not say otherwise."""
    (text,) = [text for text in caveats(placed_once(accept_placement=True)) if "placement only" in text]

    assert "(△ ▽) and decide the exit code" in text


def test_a_decision_on_one_placement_is_none() -> None:
    """If one was required the conclusion does not call it inconclusive."""
    parts = [ratios(name, [share] * 30) for name, share in (("stock", 0.5), ("new", 0.6))]

    text = conclusion(scored(parts, plan(require_decision=True)))

    assert "inconclusive, or decided for this placement or these hours only (exit code 4)" in text


def test_clusters_that_disagree_are_a_caveat() -> None:
    """Each with its own difference in the metric's own direction, and those that agree are not mentioned."""
    (said,) = [text for text in caveats(varied()) if "clusters disagree" in text]

    assert said == (
        "match_ratio[rack] of new: clusters disagree, better in c (+0.1000 ratio), worse in d (-0.2000 ratio)."
    )


def test_clusters_disagree_in_the_direction_of_their_metric() -> None:
    """Fewer moves are better, and a cluster that shows neither is undecided."""
    counts = {"c": [30.0] * 40, "d": [30.0] * 40, "e": [30.0] * 40}
    changed = {"c": [20.0] * 40, "d": [45.0] * 40, "e": [23.0, 35.0] * 20}
    parts = [moves("stock", of, cluster=cluster) for cluster, of in counts.items()]
    parts += [moves("new", of, cluster=cluster) for cluster, of in changed.items()]

    (said,) = [text for text in caveats(decided(parts, primary=("moves",))) if "disagree" in text]

    assert said == (
        "moves of new: clusters disagree, better in c (-400 moves), worse in d (+600 moves), undecided in e "
        "(-40 moves)."
    )


def test_differences_that_drift_are_a_caveat() -> None:
    """By figure and candidate; a log without a drift has none."""
    (said,) = [text for text in caveats(varied()) if "hours only" in text]

    assert said == (
        "For these hours only (△ ▽): imbalance_max_mean of new. These differences drift as slowly as the log is long, "
        "so they do not decide the exit code; a longer log would say whether they last."
    )
    assert not [text for text in caveats(result()) if "hours only" in text]


@pytest.mark.parametrize(
    ("seeds", "costs"), [(2, ("7.2", "87.5%")), (3, ("2.0", "96.9%")), (4, ("1.3", "99.2%")), (5, None)]
)
def test_what_few_seeds_cost_is_a_caveat(seeds: int, costs: tuple[str, str] | None) -> None:
    """Student's t over the root of their number, and one half to the power of 2 n - 1; five are enough."""
    numbers = tuple(range(1, seeds + 1))
    parts = replicated([ratios(name, spread(0.5, 0.1)) for name in ("stock", "new")], numbers)

    said = [caveat for caveat in caveats(scored(parts, plan(seeds=numbers))) if caveat.startswith(f"{seeds} seeds:")]

    assert said == [
        f"{seeds} seeds: intervals are {wider} times as wide as with 5 where luck of the placement prevails, and no "
        f"difference is more certain than {certain}."
        for wider, certain in ([costs] if costs else [])
    ]


def test_seeds_cost_nothing_where_nothing_is_compared() -> None:
    """Of the incumbent alone, and of one seed, which has a caveat of its own."""
    alone = scored(replicated([ratios("stock", [0.5] * 30)], (1, 2)), plan("stock", seeds=(1, 2)))

    assert not [text for found in (alone, placed_once()) for text in caveats(found) if "seeds: intervals" in text]


def test_the_luck_of_the_winner_ends_the_opening() -> None:
    """Relative to the mean of the candidates: of two equals the better one is by 0.59 of their spread."""
    *others, luck = opening(varied())
    counts = [[30 + seed * step % 5 for seed in SEEDS] for step in (2, 3)]
    error = np.sqrt(np.mean([np.var(of, ddof=1) / len(of) for of in counts]))
    share = stats.norm.ppf((2 - 0.375) / 2.25) * error / np.mean(counts)

    assert luck == (
        f"By luck of the placement alone the best of 2 equal candidates would look {share:.1%} better in moves."
    )
    assert (luck, len(others)) == (winners_luck(varied()), 2)


def test_the_luck_of_the_winner_follows_a_certain_loss() -> None:
    """With or without anything that is undecided."""
    decided_, open_ = (
        opening(varied(primary=primary)) for primary in (("match_ratio:rack",), ("answered_ratio", "in_transition"))
    )

    assert [(len(sentences), sentences[-1]) for sentences in (decided_, open_)] == [
        (2, winners_luck(varied())),
        (3, winners_luck(varied())),
    ]
    assert "(exit code 3)" in decided_[0]
    assert "(exit code 3)" in open_[0]


@pytest.mark.parametrize(
    ("winners", "expected"),
    [
        ([], None),
        ([Winner("moves", None, 3, 200.0, 10.0)], "3 equal candidates would look 5.0% better in moves."),
        ([Winner("moves", None, 3, 200.0, 0.19)], None),
        ([Winner("moves", None, 3, 200.0, 0.2)], "3 equal candidates would look 0.1% better in moves."),
        ([Winner("moves", None, 3, 0.0, 10.0)], None),
        ([Winner("moves", None, 3, math.nan, 10.0)], None),
        ([Winner("network_cost", None, 3, 200.0, 10.0)], None),
        ([Winner("imbalance_cv", None, 2, 1.0, 0.2)], "2 equal candidates would look 20.0% better in imbalance_cv."),
        (
            [Winner("imbalance_cv", None, 2, 1.0, 0.2), Winner("imbalance_max_mean", None, 4, 2.0, 0.1)],
            "4 equal candidates would look 20.0% better in imbalance_cv, 5.0% better in imbalance_max_mean.",
        ),
    ],
)
def test_only_an_advantage_worth_a_word_has_one(winners: list[Winner], expected: str | None) -> None:
    """Of primary figures, imbalance and moves, from a tenth of a percent of the figure on."""
    sentence = winners_luck(replace(varied(primary=("imbalance_cv",)), winners=winners))

    assert sentence == (expected and f"By luck of the placement alone the best of {expected}")


def test_one_candidate_has_no_luck_of_a_winner() -> None:
    """It was not chosen among several."""
    parts = [moves(policy, [30 + seed % 3] * 40, seed=seed) for policy in ("stock", "new") for seed in SEEDS]

    found = scored([*parts, ratios("new", [0.5] * 40)], plan(seeds=SEEDS, primary=("moves",)))

    assert winners_luck(found) is None
    assert len(opening(found)) == 1


def test_what_cannot_act_is_named() -> None:
    """With the reason, whether it is the incumbent or a candidate."""
    texts = caveats(result(cannot_act={"twin": "no broker has a place"}))

    assert "twin is not what it says: no broker has a place" in texts


def test_what_cannot_act_is_said_once_for_all_policies_of_one_reason() -> None:
    """A sweep of nine values of one shedder is one sentence, not nine."""
    sweep = dict.fromkeys(("t5", "t10", "t20"), "no bytes are known")

    texts = caveats(result(cannot_act={**sweep, "twin": "no broker has a place"}))

    assert [text for text in texts if "is not what it says" in text] == [
        "each of t5, t10, t20 is not what it says: no bytes are known",
        "twin is not what it says: no broker has a place",
    ]


def test_nothing_to_be_careful_about() -> None:
    """A complete log, given capacities, replicates that were placed anew: no caveats."""
    clean = {"capacity": "given", "induced_ratio": 0.0, "quarantined": 0}
    parts = [*replicated([ratios("stock", [1.0] * 30)]), ratios("(logged)", [1.0] * 30, seed=0)]

    assert caveats(scored(parts, plan("stock", seeds=SEEDS), inputs=clean)) == []


def test_an_unchecked_replay_is_told() -> None:
    """With the reason."""
    parts = replicated([ratios("stock", [1.0] * 30)])
    (text,) = caveats(scored(parts, plan("stock", seeds=SEEDS), logged_reason="only 3 % carry a broker"))

    assert text.startswith("Fidelity is unknown: only 3 % carry a broker.")


@pytest.mark.parametrize(("logged", "is_strange"), [(0.5, False), (0.504, False), (0.506, True), (0.3, True)])
def test_a_log_of_another_policy_is_strange(logged: float, is_strange: bool) -> None:
    """A figure that no replicate shows is named; a gap inside its margin, here 0.005, is no difference."""
    sentences = [text for text in caveats(result(logged)) if text.startswith("The log was not written by stock")]

    assert len(sentences) == is_strange
    assert all("would show answered_ratio (" in text for text in sentences)


@pytest.mark.parametrize(("answered", "told"), [([0.0] * 30, True), ([0.0] * 29 + [1.0], False)])
def test_a_cluster_without_answers_is_told(answered: list[float], told: bool) -> None:
    """Policies that answer nobody are alike, which looks like a good result."""
    parts = [ratios("stock", [0.0] * 30), ratios("new", answered), ratios("(logged)", [1.0] * 30)]

    texts = caveats(scored(parts, plan("stock", "new")))

    assert any(text.startswith("No policy answered a single lookup of cluster") for text in texts) is told


@pytest.mark.parametrize(("first_us", "told"), [(1_767_571_200_000, True), (1_767_571_200_000_000, False)])
def test_times_before_there_was_a_log_are_told(first_us: int, told: bool) -> None:
    """Milliseconds that are taken for µs make a day of two minutes in January 1970."""
    sentence = "The log begins in January 1970. Whole numbers in `ts` are taken for µs: are they ms or seconds?"

    assert (sentence in caveats(result(inputs=INPUTS | {"first_us": first_us}))) is told


def test_shared_ownership_is_told() -> None:
    """No bundle has an owner."""
    how = Plan(("stock",), EvaluationSection(incumbent="stock", ownership="shared"), VerdictSection())

    assert any("Ownership is shared" in text for text in caveats(score(ReplayOutcome([]), METRICS, how)))


@pytest.mark.parametrize(("floor", "expected"), [({"c": 1.02, "d": None}, ["c 1.02"]), (None, [])])
def test_floors(floor: object, expected: list[str]) -> None:
    """One for each cluster that has one."""
    assert floors(result(inputs=INPUTS | {"imbalance_floor": floor})) == expected


def test_every_verdict_is_explained() -> None:
    """In the legend and in the list of meanings; so are open marks and light ones."""
    assert all(text.partition(":")[0] in legend() for text in meanings())
    assert [text.partition(":")[0] for text in meanings()] == [
        *(f"{mark} {word}" for word, mark in MARKS.items()),
        f"{UNJUDGED} not judged",
    ]
    assert "△ ▽ for this placement or these hours only" in legend()
    assert "▴ ▾ if it were the only comparison" in legend()


IDLE: dict[str, Any] = {
    "shedder": "threshold",
    "cycles": 720,
    "reasons": {"hit-count": 700, "too-little": 20},
    "accepted": 0,
    "refused": {},
    "excess": {"hit-count": 0.0, "too-little": 0.25},
}
BUSY: dict[str, Any] = {
    "shedder": "avg",
    "cycles": 3,
    "reasons": {"hit-count": 1, "mine": 1, "overloaded": 1},
    "accepted": 1_000,
    "refused": {"grace-period": 2, "in-flight": 1},
    "excess": {"hit-count": 0.1},
}
CYCLES = {"cycles": {"stock": IDLE, "new": BUSY}}


def test_a_shedder_that_unloaded_nothing_has_a_line() -> None:
    """The most frequent reason comes first; one that unloaded something, or never ran, has none."""
    idle = idle_shedders({"cycles": {**CYCLES["cycles"], "unborn": {**IDLE, "cycles": 0, "reasons": {}}}})

    assert idle == ["stock: the shedder ran 720 cycles and unloaded nothing: balanced 700, too little to offload 20"]
    assert idle_shedders({}) == []


def test_the_line_stands_below_the_table() -> None:
    """Of a run without idle shedders there is none."""
    assert "\nstock: the shedder ran 720 cycles" in printed(result(inputs={**INPUTS, **CYCLES}))
    assert "the shedder ran" not in printed()


def test_balance_is_certain_only_if_no_broker_was_over() -> None:
    """A reason that is nobody's but a third party's stands as it is, and so does an excess that is not told."""
    rows = cycles_of(CYCLES)["new"].rows

    assert rows == [
        ("balanced, or not for long enough out of balance", "1", "0.1"),
        ("mine", "1", "–"),
        ("unloaded from overloaded brokers", "1", "–"),
    ]


def test_the_report_has_a_table_for_each_policy() -> None:
    """Below what was proposed; nothing of it is among the inputs."""
    text = markdown_report(result(inputs={**INPUTS, **CYCLES}))
    moved = section(text, "Why bundles moved, or did not")

    assert "### stock\n\nThe shedder `threshold` ran 720 cycles: 0 unloads accepted, 0 proposals refused.\n" in moved
    assert "`avg` ran 3 cycles: 1,000 unloads accepted, 3 proposals refused (grace-period 2, in-flight 1)." in moved
    assert "| too little to offload | 20     | 0.25           |" in moved
    assert "cycles" not in section(text, "Inputs")


def test_every_reason_of_a_shedder_has_words() -> None:
    """Those that only splits have are not among them."""
    splits = {CycleReason.TOPICS, CycleReason.SESSIONS, CycleReason.MSG_RATE, CycleReason.BANDWIDTH}
    reasons = {str(reason): 1 for reason in set(CycleReason) - splits}
    rows = cycles_of({"cycles": {"p": {**IDLE, "reasons": reasons, "excess": {}}}})["p"].rows

    assert not {words for words, _, _ in rows} & set(reasons)
