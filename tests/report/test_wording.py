"""Sentences on verdicts."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from lookup.replay.outcome import LOGGED
from lookup.report.comparison import LIGHT_MARKS, MARKS, UNJUDGED, number_text
from lookup.report.markdown import markdown_report
from lookup.report.wording import (
    aims,
    at_best,
    comparisons,
    conclusion,
    differing,
    legend,
    locality,
    meanings,
    opening,
    outcomes,
    terms,
    undecided,
    undecided_figures,
    winners_luck,
)
from lookup.score.metrics import lookup_register_metrics
from lookup.score.scoring import Scored
from lookup.score.verdict import Winner
from tests.report.results import placed_once, result, varied
from tests.report.test_printing import printed
from tests.score.cases import SEEDS, decided, moves, plan, ratios, replicated, scored, spread, sums

_DEMAND = "for demand like this, on this log"


def test_each_candidate_has_a_sentence() -> None:
    """How many verdicts of each kind, and where it is worse on a primary metric."""
    new, twin = outcomes(result())

    assert new.endswith("; worse on primary moves")
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

    assert sentence.startswith("new: 1 worse, 2 identical; ")
    assert [*comparisons(found)][-1].endswith(": moves[forced], moves[shed], cycle_moves.")


def test_undecided_metrics_are_named_with_the_smallest_effect() -> None:
    """Half of the interval of the difference; a metric that has none is not judged."""
    parts = [moves(policy, counts) for policy, counts in (("stock", [30.0] * 40), ("new", [29.0, 31.5] * 20))]
    parts += [sums(policy, [[1, 2]] * 30, "network_ms_p95") for policy in ("stock",)]
    how = {"primary": ("moves", "network_ms_p95")}
    result_ = decided(parts, "stock", "new", **how)
    (verdict,) = (verdict for verdict in result_.verdicts if verdict.metric == "moves")

    half = number_text((verdict.high - verdict.low) / 2)
    assert str(undecided(result_)).endswith(f": network_ms_p95 of new (not judged); moves of new ({half} moves).")
    assert undecided(result()) is None


def _with_gap(gap: float, *shares: float) -> Scored:
    """Compare candidates that serve so much more from near than `stock`, whose share is that far from the log's."""
    width = {"stock": 0.1} | {f"new-{place}": 0.2 for place in range(len(shares))}
    gains = (0.0, *shares)
    log = ratios(LOGGED, [0.5 + gap] * 40, seed=0, metric="match_ratio", key="rack")
    parts = [
        ratios(name, spread(0.5 + gain, width[name]), "match_ratio", key="rack")
        for name, gain in zip(width, gains, strict=True)
    ]
    return scored([*replicated(parts), log], plan(*width, seeds=SEEDS, primary=("match_ratio:rack",)))


def test_a_gap_is_the_smallest_effect_where_it_is_larger() -> None:
    """It stands with its name, and no half of an interval that is smaller."""
    found = _with_gap(0.3, 0.2)
    (verdict,) = found.verdicts
    gap = found.gaps["match_ratio", "rack"]

    assert (verdict.high - verdict.low) / 2 < verdict.delta < gap
    assert undecided_figures(found) == [f"match_ratio[rack] of new-0 (the fidelity gap of {number_text(gap)} ratio)"]
    assert found.least_shown(verdict) == gap


def test_a_difference_that_many_comparisons_leave_open_is_no_effect_that_is_shown() -> None:
    """What would be told apart alone is not: the effect is larger."""
    found = _with_gap(0.01, *([0.0] * 5), 0.025)
    *_, verdict = found.verdicts

    assert (verdict.alone, verdict.verdict, verdict.delta > verdict.high - verdict.delta) == (
        "better",
        "inconclusive",
        True,
    )
    (text,) = undecided_figures(found)
    assert text.endswith(f" to more than {number_text(verdict.delta)} ratio)")


def test_two_seeds_show_no_effect() -> None:
    """No difference would be told from chance by them, so that no size is named."""
    parts = [ratios(name, [share] * 30, "match_ratio", key="rack") for name, share in (("stock", 0.1), ("new", 0.9))]
    found = scored(replicated(parts, (1, 2)), plan(seeds=(1, 2), primary=("match_ratio:rack",)))

    (text,) = undecided_figures(found)
    assert text.startswith("match_ratio[rack] of new (none: ")


def test_what_is_undecided_stands_below_the_answer() -> None:
    """In the report, one figure an entry; on the terminal with everything else."""
    parts = [moves(policy, counts) for policy, counts in (("stock", [30.0] * 40), ("new", [29.0, 31.5] * 20))]
    result_ = decided(parts, "stock", "new", primary=("moves",))

    assert undecided(result_) in printed(result_, detail="all")
    assert "smallest effect" not in printed(result_)
    (listed,) = undecided_figures(result_)
    head = markdown_report(result_).partition("##")[0]
    assert head.index("* **new** (best of 1 ") < head.index(f"* {listed}")


def test_a_certain_loss_comes_before_what_is_undecided() -> None:
    """The sentence that decides the exit code begins the report."""
    parts = [moves(policy, counts) for policy, counts in (("stock", [30.0] * 40), ("new", [29.0, 31.5] * 20))]
    parts += [ratios(policy, spread(mean, 0.1)) for policy, mean in (("stock", 0.5), ("new", 0.2))]

    first, second = opening(decided(parts, "stock", "new", primary=("moves", "answered_ratio")))

    assert "exit code 3" in first
    assert second.startswith("Undecided on 1 of 2 ")


def test_a_sentence_on_these_hours_says_so() -> None:
    """If anything is better or worse in them only; a candidate whose other verdicts hold has no addition."""
    new, old = outcomes(varied())

    assert new.startswith("new: 1 better, 3 worse, 2 inconclusive, 1 of these ")
    assert new.endswith("; worse on primary imbalance_max_mean")
    assert old == "old: 1 worse, 2 identical, 3 inconclusive"


def test_what_holds_for_these_hours_is_undecided() -> None:
    """Beside what is inconclusive; what is better for the policy and what is the same are not listed."""
    figures = undecided_figures(varied())

    assert [text.partition(" (")[0] for text in figures] == ["imbalance_max_mean of new", "answered_ratio of old"]
    assert undecided(varied(primary=("match_ratio:rack",))) is None


def test_comparisons_are_counted() -> None:
    """Those that decide the exit code, together, and the others by figure, with what chance alone would do."""
    together, alone = comparisons(result())

    assert together.startswith("2 comparisons decide ")
    assert alone.startswith("1 further comparison was judged")
    assert alone.endswith(" 0.05 of 1 figure.")


def test_comparisons_of_one_figure_are_one_chance() -> None:
    """Two candidates by five figures: chance tells them apart in a twentieth of the figures, not of the comparisons."""
    decide, others = comparisons(varied())

    assert decide.startswith("2 comparisons decide ")
    assert others.startswith("8 further comparisons were judged")
    assert others.endswith(" 0.25 of 5 figures.")


def test_comparisons_that_were_not_made_are_not_counted() -> None:
    """Of one placement none decides; of the incumbent alone there are none."""
    assert [text.partition(" ")[0] for text in comparisons(placed_once())] == ["3"]
    assert list(comparisons(scored([], plan("stock")))) == []


def test_the_conclusion_says_what_the_exit_code_means() -> None:
    """3 for worse, 4 for undecided, 0 for neither, and the incumbent alone."""
    open_, short, clean = (
        decided([moves("stock", [30] * n), moves("new", [30, *[31] * (n - 1)])], primary=("moves",), **rules)
        for n, rules in ((3, {"require_decision": True}), (3, {}), (30, {"margin": 0.1}))
    )

    assert "exit code 3" in conclusion(result())
    assert conclusion(open_).endswith("(exit code 4). Undecided: every primary comparison.")
    assert "exit code" not in conclusion(clean)
    assert conclusion(short) == f"{conclusion(clean)} Undecided: every primary comparison."
    assert conclusion(scored([], plan("stock"))).startswith("Only the incumbent")


def test_the_conclusion_on_one_placement_says_so() -> None:
    """A loss with one draw of luck does not pass in silence, and fails the run if settings accept that."""
    assert "has an open mark" in conclusion(placed_once())
    assert "exit code 3" in conclusion(placed_once(accept_placement=True))


@pytest.mark.parametrize(("accept", "code"), [(False, 0), (True, 0)])
def test_a_loss_in_these_hours_does_not_fail_a_run(accept: bool, code: int) -> None:
    """It does not pass in silence, and settings that accept a placement do not accept it."""
    found = varied(primary=("imbalance_max_mean",), accept_placement=accept)

    assert found.exit_code == code
    assert "open mark (▽)" in conclusion(found)
    assert conclusion(found).endswith("Undecided: 1 of 2 primary comparisons.")


def test_every_figure_without_guard_is_named() -> None:
    """Of all candidates, but of primary metrics only: others let lookups wait without a word."""
    both = varied(primary=("answered_ratio", "waiting"))
    text = conclusion(replace(both, exit_code=4))

    assert "for this placement only: waiting[lock] of new, " in text
    assert "lost on this log: answered_ratio of old" in text
    assert "waiting" not in conclusion(varied())


def test_a_certain_loss_of_what_is_guarded_is_a_loss() -> None:
    """It has the exit code of one, which comes before that of a guard."""
    found = varied(primary=("answered_ratio", "waiting"))

    assert found.exit_code == 3
    assert conclusion(found).partition(".")[0].endswith("(exit code 3)")


def test_a_decision_on_one_placement_is_none() -> None:
    """If one was required the conclusion does not call it inconclusive."""
    parts = [ratios(name, [share] * 30) for name, share in (("stock", 0.5), ("new", 0.6))]

    text = conclusion(scored(parts, plan(require_decision=True)))

    assert "its verdict has an open mark (exit code 4)" in text


def test_the_luck_of_the_winner_ends_the_opening() -> None:
    """Relative to the mean of the candidates: of two equals the better one is by 0.59 of their spread."""
    *others, luck = opening(varied())
    counts = [[30 + seed * step % 5 for seed in SEEDS] for step in (2, 3)]
    error = np.sqrt(np.mean([np.var(of, ddof=1) / len(of) for of in counts]))
    share = stats.norm.ppf((2 - 0.375) / 2.25) * error / np.mean(counts)

    assert luck.endswith(f" {share:.1%} better in moves.")
    assert (luck, len(others)) == (winners_luck(varied()), 2)


def test_the_luck_of_the_winner_follows_a_certain_loss() -> None:
    """With or without anything that is undecided."""
    decided_, open_ = (
        opening(varied(primary=primary)) for primary in (("match_ratio:rack",), ("answered_ratio", "waiting"))
    )

    assert [(len(sentences), sentences[-1]) for sentences in (decided_, open_)] == [
        (2, winners_luck(varied())),
        (3, winners_luck(varied())),
    ]
    assert "(exit code 3)" in decided_[0]
    assert "(exit code 3)" in open_[0]


@pytest.mark.parametrize(
    ("winners", "end"),
    [
        ([], None),
        ([Winner("moves", None, 3, 200.0, 10.0)], "5.0% better in moves."),
        ([Winner("moves", None, 3, 200.0, 0.19)], None),
        ([Winner("moves", None, 3, 200.0, 0.2)], "0.1% better in moves."),
        ([Winner("moves", None, 3, 0.0, 10.0)], None),
        ([Winner("moves", None, 3, math.nan, 10.0)], None),
        ([Winner("network_cost", None, 3, 200.0, 10.0)], None),
        (
            [Winner("imbalance_cv", None, 2, 1.0, 0.2), Winner("imbalance_max_mean", None, 4, 2.0, 0.1)],
            "20.0% better in imbalance_cv, 5.0% better in imbalance_max_mean.",
        ),
    ],
)
def test_only_an_advantage_worth_a_word_has_one(winners: list[Winner], end: str | None) -> None:
    """Of primary figures, imbalance and moves, from a tenth of a percent of the figure on."""
    sentence = winners_luck(replace(varied(primary=("imbalance_cv",)), winners=winners))

    assert sentence is end or str(sentence).endswith(f" {end}")


def test_one_candidate_has_no_luck_of_a_winner() -> None:
    """It was not chosen among several."""
    parts = [moves(policy, [30 + seed % 3] * 40, seed=seed) for policy in ("stock", "new") for seed in SEEDS]

    found = scored([*parts, ratios("new", [0.5] * 40)], plan(seeds=SEEDS, primary=("moves",)))

    assert winners_luck(found) is None
    assert len(opening(found)) == 1


def test_every_verdict_is_explained() -> None:
    """In the legend and in the list of meanings; so are open marks and light ones."""
    assert all(text.partition(":")[0] in legend() for text in meanings())
    assert [text.partition(":")[0] for text in meanings()] == [
        *(f"{mark} {word}" for word, mark in MARKS.items()),
        f"{UNJUDGED} not judged",
    ]
    assert "△ ▽ only in this placement" in legend()
    assert "▴ ▾ if it were" in legend()


def test_locality_is_the_match_that_decides_else_that_of_racks() -> None:
    """Of keys that no policy ever matches none is taken."""
    parts = [
        ratios(policy, spread(mean, 0.1) if mean else [0.0] * 40, "match_ratio", key=key)
        for policy in ("stock", "new")
        for key, mean in (("app", 0.0), ("rack", 0.4), ("zone", 0.5))
    ]

    assert locality(decided(parts, "stock", "new", primary=("match_ratio:zone",))) == ("match_ratio", "zone")
    assert locality(decided(parts, "stock", "new", primary=("match_ratio:app",))) == ("match_ratio", "rack")
    assert locality(result()) is None
    assert aims(result()) == ()
    assert aims(varied()) == (("match_ratio", "rack"), ("imbalance_max_mean", None))


def test_a_run_without_labels_has_no_best_locality() -> None:
    """There is nothing to be near to."""
    assert at_best(result()) is None


def test_every_figure_of_a_run_is_explained_by_its_metric() -> None:
    """The first sentence of the metric's own description, its unit and direction, once for all its keys."""
    parts = [ratios(p, [0.5] * 40, "match_ratio", key=key) for p in ("stock", "new") for key in ("rack", "zone")]

    explained = dict(terms(decided(parts, "stock", "new")))

    assert explained["match_ratio[rack], match_ratio[zone]"].endswith("(ratio, more is better).")


def test_figures_that_a_run_lacks_are_left_out() -> None:
    """A line on what is nowhere on the page would be one to skip."""
    words = [word for word, _ in terms(result())]

    assert "answered_ratio" in words
    assert "overload_ratio" not in words


def test_every_built_in_metric_has_a_description() -> None:
    """In one paragraph that fits a line of the list."""
    for metric in lookup_register_metrics():
        assert 20 < len((metric.__doc__ or "").partition("\n\n")[0]) < 120, metric.name


def test_words_of_verdicts_are_explained() -> None:
    """Those that a reader who did not write the settings asks about."""
    words = " ".join(word for word, _ in terms(result()))

    for word in ("primary metric", "margin", "fidelity", "at best", "only in this placement", "undecided"):
        assert word in words


def test_scopes_questions_and_marks_are_explained() -> None:
    """Every mark that is neither of a whole verdict, and both questions that a verdict may answer."""
    explained = dict(terms(result()))

    assert {"only in these hours, △ ▽", "▴ ▾"} <= set(explained)
    assert "guarded" in explained[_DEMAND]
    assert all(any(mark in word for word in explained) for mark in (*LIGHT_MARKS.values(), "△", "▽"))
