"""Sentences that answer for each candidate."""

from __future__ import annotations

from lookup.report.answer import answers, headline, locality, question
from lookup.report.comparison import value_text
from tests.report.results import placed_once, result, varied
from tests.score.cases import decided, moves, plan, ratios, scored, spread


def test_each_candidate_has_a_sentence_with_its_numbers() -> None:
    """Both figures, the difference in the metric's own direction with its interval, and which of the two it is."""
    new, twin = answers(result())

    assert new == (
        "new: answered_ratio 0.7000 instead of 0.5000 (+0.2000, 0.2000 to 0.2000, better), "
        "moves 2,400 instead of 1,200 (+1,200, 1,200 to 1,200, worse)."
    )
    assert twin == "twin: identical on answered_ratio, moves."


def test_the_numbers_are_those_of_the_figures() -> None:
    """Rounded as everywhere else in the report."""
    found = result()
    figures = found.pooled

    for policy in ("stock", "new"):
        assert value_text(figures[policy, "moves", None].value, "moves") in answers(found)[0]


def test_what_is_undecided_is_named() -> None:
    """In a clause of its own, after what is better or worse."""
    parts = [moves(policy, counts) for policy, counts in (("stock", [30.0] * 40), ("new", [29.0, 31.5] * 20))]
    parts += [ratios(policy, spread(mean, 0.1)) for policy, mean in (("stock", 0.5), ("new", 0.2))]

    (sentence,) = answers(decided(parts, "stock", "new", primary=("moves", "answered_ratio")))

    assert sentence.startswith("new: answered_ratio 0.2000 instead of 0.5000 (-0.3000, ")
    assert sentence.endswith(", worse); undecided on moves.")


def test_headline_figures_that_do_not_decide_are_named_apart() -> None:
    """Locality, imbalance and moves are what a reader looks for, whatever the primary metrics are."""
    parts = [ratios(policy, [1.0] * 40) for policy in ("stock", "new")]
    parts += [ratios(p, spread(mean, 0.1), "match_ratio", key="rack") for p, mean in (("stock", 0.5), ("new", 0.6))]
    parts += [moves(policy, counts) for policy, counts in (("stock", [30.0] * 40), ("new", [29.0, 31.5] * 20))]
    parts += [ratios(p, [share] * 40, "network_cost") for p, share in (("stock", 0.5), ("new", 0.6))]

    (sentence,) = answers(decided(parts, "stock", "new", primary=("answered_ratio",)))

    assert sentence.startswith("new: identical on answered_ratio; not primary: ")
    assert sentence.partition("not primary: ")[2].startswith("match_ratio[rack] 0.6000 instead of 0.5000 (+0.1000, ")
    assert sentence.endswith("better), undecided on moves.")


def test_parts_of_a_figure_are_left_to_the_whole() -> None:
    """Moves of one cause are among all moves."""
    parts = [
        moves(policy, [count] * 40, key=key) for policy, count in (("stock", 3), ("new", 9)) for key in (None, "shed")
    ]

    (sentence,) = answers(decided(parts, "stock", "new", primary=("moves",)))

    assert "moves 360 instead of 120" in sentence
    assert "shed" not in sentence


def test_a_verdict_on_one_placement_says_so() -> None:
    """Behind its word, so that it is not taken for a property of the policy."""
    assert "better for this placement only)" in answers(placed_once())[0]
    assert answers(placed_once())[1].startswith("twin: identical on answered_ratio, moves")


def test_a_verdict_on_these_hours_says_so() -> None:
    """Behind its word too; beside it stands what holds for the policy, without an addition."""
    new, old = answers(varied())

    assert new.startswith("new: answered_ratio 0.9500 instead of 0.9000 (+0.0500, 0.0500 to 0.0500, better), imbalance")
    assert "(+0.1490, 0.0903 to 0.2076, worse for these hours only); not primary: " in new
    assert "hours" not in old


def test_identical_equivalent_and_undecided_figures_have_clauses_of_their_own() -> None:
    """In this order: the same sums, a difference within the margin, and one that is open."""
    parts = [ratios(policy, [1.0] * 40) for policy in ("stock", "new")]
    near = {"stock": [0.5] * 40, "new": [0.501, 0.499] * 20}
    parts += [ratios(policy, shares, "match_ratio", key="zone") for policy, shares in near.items()]
    parts += [moves(policy, counts) for policy, counts in (("stock", [30.0] * 40), ("new", [29.0, 31.5] * 20))]

    (sentence,) = answers(decided(parts, primary=("answered_ratio", "match_ratio:zone", "moves")))

    assert sentence == ("new: identical on answered_ratio; equivalent on match_ratio[zone]; undecided on moves.")


def test_the_question_names_the_incumbent_and_what_decides() -> None:
    """Without a candidate there is none, and no answer."""
    alone = scored([ratios("stock", [0.5] * 30)], plan("stock"))

    assert question(result()) == (
        "Each candidate against stock, the incumbent; in brackets the difference with its 95 % interval. Primary "
        "metrics, by which this evaluation decides: answered_ratio, moves."
    )
    assert question(alone) is None
    assert answers(alone) == []


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
    assert headline(result()) == (("imbalance_max_mean", None), ("moves", None))
