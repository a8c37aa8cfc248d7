"""What a report says of a run: the answer, cards, what decides, and what to know before it is trusted."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from inspect import getdoc

import pytest

from lookup.replay.outcome import Finding, InputFacts, MetricSums
from lookup.replay.senders import senders_of
from lookup.report.blocks import Card, Facet
from lookup.report.figures import Results
from lookup.report.gate import gate_of
from lookup.report.sentences import (
    answer,
    at_best_sentence,
    card,
    cautions,
    comparison_counts,
    conclusion,
    definitions,
    identical_sentence,
    idle_sentences,
    locality,
    luck_sentence,
    mark_of,
    name_of,
    rank_candidates,
    undecided_figures,
    wholes,
)
from tests.report.results import decided, near, placed_once, result, scored, varied, wide, with_figure
from tests.score.cases import METRICS, SEEDS, moves, plan, ratios, replicated, spread


def rack(policy: str, share: float, width: float = 0.1) -> MetricSums:
    """Write down the lookups that a policy serves from their own rack."""
    return ratios(policy, spread(share, width), "match_ratio", key="rack")


def even(policy: str, peak: float) -> MetricSums:
    """Write down the load of a policy's busiest broker, without a trend."""
    return ratios(policy, spread(peak, 0.01), "imbalance_max_mean")


def traded(**figures: tuple[float, float, float]) -> Results:
    """Compare policies by locality, balance and moves; all answer everything, which decides."""
    parts = []
    for policy, (share, peak, count) in figures.items():
        parts += [rack(policy, share), even(policy, peak), moves(policy, [count] * 40), ratios(policy, [1.0] * 40)]
    return decided(parts, *figures, primary=("answered_ratio",))


def figures_of_row(found: Card, head: str) -> list[Facet]:
    """Return the figures on one row of a card."""
    return [facet for name, facets, _ in found.rows if name == head for facet in facets]


#: A sentence of each kind, to the letter; all other tests look for figures and names.
SENTENCES = {
    "switch": (
        answer(traded(random=(0.34, 1.76, 5), rack=(0.436, 1.19, 11.5))).sentence,
        (
            "Switch to rack: it serves 43.6 % of the lookups in their own rack instead of 34.0 % and loads the busiest "
            "broker with 1.19 × mean instead of 1.76 × mean, but moves 2.3 times as many bundles."
        ),
    ),
    "keep": (
        answer(result()).sentence,
        "Keep stock: twin does not differ by more than the margin, and new moves twice as many bundles.",
    ),
    "identical": (answer(wide(3)).sentence, "Keep policy-0: every candidate takes the same decisions on this log."),
    "alone": (
        answer(scored([ratios("stock", [0.5] * 30)], plan("stock"))).sentence,
        "Only stock was replayed. There is no candidate to compare.",
    ),
    "worse": (conclusion(result()), "Worse on a primary metric: moves of new (exit code 3)."),
    "open": (
        conclusion(varied()),
        "Not shown to be kept on this log: answered_ratio of old (exit code 4). Undecided: 2 of 4 primary comparisons.",
    ),
    "at best": (
        at_best_sentence(near()),
        "Even if bundles could move at any time, same-rack lookups would be at most 75.0 %.",
    ),
    "luck": (
        luck_sentence(varied()),
        "By chance alone, the best of 2 equal candidates would look 1.3% better in moves.",
    ),
    "budget": (gate_of(result(), {"moves": 50}).headline, "The budget is exceeded by moves of new (exit code 5)."),
}


@pytest.mark.parametrize("kind", SENTENCES)
def test_a_report_says_it_in_these_words(kind: str) -> None:
    """Once for each kind of sentence."""
    said, sentence = SENTENCES[kind]

    assert said == sentence


class TestAnswer:
    """Switch, keep, or cannot tell."""

    def test_a_primary_loss_keeps_the_incumbent(self) -> None:
        """However large the gain."""
        parts = [part for policy, s, n in _DECIDING for part in (rack(policy, s), moves(policy, [n] * 40))]
        found = answer(decided(parts, "stock", "near", primary=("moves",)))

        assert (found.kind, found.about) == ("keep", "near")

    @pytest.mark.parametrize(("share", "kind"), [(0.04, "switch"), (0.2, "keep")])
    def test_much_overload_keeps_the_incumbent(self, share: float, kind: str) -> None:
        """However large the gain, and although a little overload is only a price."""
        parts = [part for policy, near in (("stock", 0.3), ("new", 0.6)) for part in (rack(policy, near),)]
        parts += [
            ratios(policy, spread(of, 0.001), "overload_ratio") for policy, of in (("stock", 0.01), ("new", share))
        ]
        found = answer(decided(parts, "stock", "new", primary=()))

        assert (found.kind, found.about) == (kind, "new")
        assert "overloads brokers" in found.sentence

    def test_what_is_not_significant_is_not_equal(self) -> None:
        """The values and the smallest change that this log shows are named."""
        parts = [ratios(policy, [1.0] * 40) for policy in ("stock", "new")]
        parts += [
            moves(policy, counts) for policy, counts in (("stock", [30.0, 90.0] * 20), ("new", [90.0, 35.0] * 20))
        ]
        found = answer(decided(parts, "stock", "new", primary=("answered_ratio",)))

        assert (found.kind, found.about) == ("unclear", None)
        assert "moves 2,400 → 2,500" in found.sentence
        assert re.search(r"only changes above [\d,]+ in moves\.$", found.sentence)

    def test_fewer_moves_are_not_worth_an_aim_that_may_be_lost(self) -> None:
        """A gain beside the aims is no switch while an aim looks worse, and both are named."""
        parts = [rack("stock", 0.4), rack("new", 0.39, 0.3)]
        parts += [moves(policy, [count] * 40) for policy, count in (("stock", 9), ("new", 3))]
        found = answer(decided(parts, "stock", "new", primary=()))

        assert found.kind == "unclear"
        assert "new moves 67 % fewer bundles. Its effect on same-rack lookups (40.0 % → 39.0 %)" in found.sentence

    def test_an_incumbent_that_cannot_act_compares_with_nothing(self) -> None:
        """With the reason."""
        found = answer(replace(result(), cannot_act={"stock": "no bytes are known"}))

        assert (found.kind, "no bytes are known" in found.sentence) == ("unclear", True)

    @pytest.mark.parametrize("shift", [0.0, 0.05])
    def test_equals_are_no_switch(self, shift: float) -> None:
        """Two policies that differ by the luck of ten placements have no gain, and no loss."""
        parts = [
            replace(part, seed=seed)
            for seed in range(1, 11)
            for policy, luck in (("stock", 0.0), ("new", (-1) ** seed * shift))
            for part in (rack(policy, 0.4 + luck), even(policy, 1.5 + luck))
        ]
        results = scored(parts, plan(seeds=tuple(range(1, 11)), primary=()))

        assert answer(results).kind != "switch"
        assert [facet for head in ("Gain", "Cost") for facet in figures_of_row(card(results, "new"), head)] == []


class TestCard:
    """One candidate in figures and sentences."""

    def test_a_gain_is_no_cost_and_the_other_way_round(self) -> None:
        """Each figure is on one row; what is neither is on a third."""
        found = card(traded(random=(0.3, 1.8, 5), rack=(0.4, 1.8, 4)), "rack")

        assert [facet.name for facet in figures_of_row(found, "Gain")] == ["match_ratio[rack]", "moves"]
        assert (figures_of_row(found, "Cost"), found.style) == ([], "better")

    def test_what_is_unclear_has_its_figures(self) -> None:
        """A figure that only looks better is no gain."""
        found = card(varied(), "old")

        assert figures_of_row(found, "Gain") == []
        assert [facet.name for facet in figures_of_row(found, "Unclear")] == ["moves", "answered_ratio"]
        assert "worse if it were the only comparison" in figures_of_row(found, "Unclear")[0].word

    def test_a_condition_is_said_of_what_holds_under_it(self) -> None:
        """Beside changes that hold for the policy."""
        found = card(varied(), "new")

        assert "(only in these hours)" in found.sentence
        assert (found.style, "Only in these hours: " in found.certainty) == ("inconclusive", True)

    def test_parts_of_a_figure_are_left_to_the_whole(self) -> None:
        """Moves of one cause are among all moves."""
        parts = [moves(p, [n] * 40, key=key) for p, n in (("stock", 3), ("new", 9)) for key in (None, "shed")]
        results = decided(parts, "stock", "new", primary=("moves",))

        assert [facet.name for facet in figures_of_row(card(results, "new"), "Cost")] == ["moves"]
        assert [row.label for row in wholes(results)] == ["moves"]

    def test_names_of_settings_are_no_templates(self) -> None:
        """A label may be called anything."""
        parts = [ratios(p, spread(s, 0.1), "match_ratio", key="{after}{x}") for p, s in (("stock", 0.3), ("new", 0.6))]

        assert "own {after}{x} instead" in card(decided(parts, primary=()), "new").sentence

    def test_policies_that_decide_alike_share_a_card(self) -> None:
        """Two are named, the others counted."""
        names = ["stock", *(f"p{number}" for number in range(16))]
        results = scored([ratios(name, [0.5 if name == "stock" else 0.7] * 30) for name in names], plan(*names))

        assert card(results, "p3").title == "p0, p1 and 14 more (identical)"
        assert identical_sentence(results).startswith("p0, p1 and 14 more take the same decisions")
        assert identical_sentence(varied()) == "No two policies take the same decisions."
        assert card(wide(2), "policy-1").step == "Nothing."


class TestOrder:
    """The best candidate first."""

    def test_both_aims_before_one(self) -> None:
        """Whatever it costs; of equals the one with the larger changes."""
        found = traded(random=(0.3, 1.8, 5), even=(0.3, 1.2, 5), both=(0.4, 1.2, 50), more=(0.5, 1.1, 50))

        assert rank_candidates(found) == ["more", "both", "even"]

    def test_what_decides_against_a_candidate_puts_it_last(self) -> None:
        """However much nearer it is."""
        parts = [part for policy, s, n in _DECIDING for part in (rack(policy, s), moves(policy, [n] * 40))]

        assert rank_candidates(decided(parts, "stock", "near", "calm", primary=("moves",))) == ["calm", "near"]


_DECIDING = (("stock", 0.3, 5), ("near", 0.9, 9), ("calm", 0.3, 5))


class TestNext:
    """What to do, with a command."""

    def test_the_winner_is_confirmed_and_others_by_name(self) -> None:
        """The folder and names are quoted for a shell."""
        found = traded(random=(0.3, 1.8, 5), even=(0.3, 1.2, 5), both=(0.4, 1.2, 50))

        commands = [
            card(found, name, "my runs/a").command.partition("--confirm ")[2] for name in rank_candidates(found)
        ]
        assert commands == ["'my runs/a' --output confirmed", "'my runs/a' --candidate even --output confirmed"]

    def test_a_loss_is_looked_into(self) -> None:
        """By the owners of a topic under the candidate and under the incumbent."""
        assert card(traded(random=(0.3, 1.8, 5), far=(0.2, 1.8, 5)), "far").command == (
            "lookup explain RUN_DIR --policy far --policy random --topic TOPIC"
        )

    def test_one_placement_asks_for_seeds(self) -> None:
        """Ten of them cost seconds, and show whether it was luck."""
        assert "--set evaluation.seeds=10 " in card(placed_once(), "new").command

    def test_seeds_or_a_longer_log_are_asked_for_by_number(self) -> None:
        """The same number in the sentence and in the command."""
        found = card(_unsure_twice(), "new")

        seeds = re.findall(r"(\d+) seeds", found.step)
        assert len(seeds) == 1
        assert f"evaluation.seeds={seeds[0]} " in found.command
        assert "moved load" in found.step

    def test_no_fewer_seeds_than_can_carry_a_verdict(self) -> None:
        """Where two seeds are all that is in the way, the number is that of the verdict's own reason."""
        parts = [rack(policy, share) for policy, share in (("stock", 0.1), ("new", 0.6))]
        found = scored(replicated(parts, (1, 2)), plan(seeds=(1, 2), primary=("match_ratio:rack",)))

        assert card(found, "new").step.startswith("5 seeds would show")
        assert str(found.verdicts[0].reason).endswith("; 5 seeds would")
        assert card(found, "new").certainty.startswith("2 seeds cannot show")

    def test_no_seeds_help_against_a_gap(self) -> None:
        """What the replay itself may bring is named with its size, and nothing is asked for."""
        parts = [
            replace(part, seed=seed)
            for seed in SEEDS
            for policy, share in (("stock", 0.3), ("new", 0.31 + 0.02 * (seed % 3 - 1)))
            for part in (rack(policy, share),)
        ]
        found = scored(parts, plan(seeds=SEEDS, primary=("match_ratio:rack",)))
        assert " seeds would show " in card(found, "new").step

        hidden = card(with_figure(found, "stock", ("match_ratio", "rack"), gap=0.2), "new")

        assert ("differs from the log by 20 points" in hidden.step, hidden.command) == (True, "")

    def test_a_policy_that_cannot_act_says_why(self) -> None:
        """Before anything else, and in the first line of the report."""
        found = replace(traded(random=(0.3, 1.8, 5), rack=(0.4, 1.2, 5)), cannot_act={"rack": "no broker has a rack"})

        assert card(found, "rack").step.endswith(": no broker has a rack.")
        assert list(idle_sentences(found)) == ["rack cannot act on this log: no broker has a rack."]


def _unsure_twice() -> Results:
    """Compare by moves and by moved load, of which moves need more seeds."""
    parts = [
        part
        for seed in SEEDS
        for policy, luck in (("stock", 0), ("new", seed % 3 - 1))
        for part in (
            moves(policy, [30 + (policy == "new") + 2.6 * luck] * 40, seed=seed),
            moves(policy, [30 + (policy == "new") + 2.0 * luck] * 40, metric="moved_weight", seed=seed),
        )
    ]
    return scored(parts, plan(seeds=SEEDS, primary=("moved_weight",)))


class TestMarks:
    """One character for a verdict."""

    def test_every_kind(self) -> None:
        """Full, light, open, and none without a verdict."""
        rows = varied().pooled

        marks = {(policy, name, key): mark_of(row) for (policy, name, key), row in rows.items()}
        assert marks["new", "match_ratio", "rack"] == "▼"
        assert marks["new", "match_ratio", "zone"] == "▴"
        assert marks["new", "imbalance_max_mean", None] == "▽"
        assert marks["old", "match_ratio", "rack"] == "≡"
        assert marks["old", "answered_ratio", None] == "?"
        assert marks["stock", "answered_ratio", None] == ""
        assert mark_of(result().pooled["twin", "imbalance_cv", None]) == "○"


class TestNames:
    """What figures are called."""

    def test_a_label_is_in_the_name(self) -> None:
        """Whatever it is called, and a cause in words."""
        assert name_of(("match_ratio", "rack")) == "same-rack lookups"
        assert name_of(("moves", "shed")) == "moves (unloaded by the shedder)"
        assert name_of(("tail_latency", "p99")) == "tail latency p99"

    def test_every_figure_of_a_run_is_defined(self) -> None:
        """By the first sentence of its metric, with the better direction."""
        defined = dict(definitions(result()))
        metric = next(metric for metric in METRICS if metric.name == "answered_ratio")

        assert defined["answered_ratio"].startswith(str(getdoc(metric)).partition("\n\n")[0].replace("\n", " ")[:20])
        assert "more is better" in defined["answered_ratio"]
        assert "incumbent" in defined

    def test_locality_is_the_label_that_decides(self) -> None:
        """Else a rack, else the distance; nothing where nobody is near anything."""
        assert locality(varied(primary=("match_ratio:zone",))) == ("match_ratio", "zone")
        assert locality(varied()) == ("match_ratio", "rack")
        assert locality(result()) is None


def test_undecided_figures_say_what_would_be_seen() -> None:
    """By figure, with its policies, and the smallest change or the reason."""
    by_label = dict(text.split(" of ", 1) for text in undecided_figures(varied()))

    assert by_label["answered_ratio"].startswith("old: this log shows changes above ")
    assert by_label["imbalance_max_mean"].startswith("new: only in these hours")


def test_comparisons_are_counted_with_what_chance_does() -> None:
    """Those for the exit code, the others, and the figures that are parts of another."""
    deciding, others = comparison_counts(result())

    assert deciding.startswith("2 comparisons decide ")
    assert others.startswith("1 other comparison is ")


class TestCautions:
    """What to know before figures are trusted."""

    @pytest.mark.parametrize(
        ("results", "words"),
        [
            (result(), "No broker has a capacity"),
            (result(), "1.23% of the lookups came within 30 s"),
            (result(), "3 records could not be used"),
            (result(inputs=InputFacts(findings=(Finding("x", "rack is in no broker", 3),))), "rack is in no broker."),
            (varied(), "Clusters disagree on match_ratio[rack] of new: better in c (+10 points), worse in d"),
            (varied(), "Only in these hours (△ ▽): imbalance_max_mean of new."),
            (placed_once(), "it was replayed with one seed"),
            (result(logged=0.506), "no replicate of it would show answered_ratio ("),
            (scored([ratios("stock", [0.0] * 30), ratios("new", [0.0] * 30)], plan("stock", "new")), "a single lookup"),
        ],
        ids=range(9),
    )
    def test_each_is_said(self, results: Results, words: str) -> None:
        """With its numbers and names."""
        assert any(words in text for text in cautions(results))

    @pytest.mark.parametrize(
        ("results", "words"),
        [
            # A gap inside its margin, here 0.005, is no difference.
            (result(logged=0.504), "The log was not written"),
            (scored([ratios(name, [0.0] * 29 + [1.0]) for name in ("stock", "new")]), "a single lookup"),
            (varied(), "seeds intervals are"),
        ],
        ids=range(3),
    )
    def test_nothing_is_said_without_cause(self, results: Results, words: str) -> None:
        """A caution that is always there is not read."""
        assert not any(words in text for text in cautions(results))

    def test_few_seeds_are_named_with_what_they_cost(self) -> None:
        """Two of them make intervals several times as wide."""
        parts = [rack(policy, share) for policy, share in (("stock", 0.1), ("new", 0.6))]
        texts = cautions(scored(replicated(parts, (1, 2)), plan(seeds=(1, 2), primary=("match_ratio:rack",))))

        assert any(re.search(r"With 2 seeds intervals are \d", text) for text in texts)
        assert any("2 seeds are too few for 1 comparison" in text for text in texts)

    def test_few_namespaces_are_named_with_what_rests_on_them(self) -> None:
        """Two leave it open whether their bundles are independent, in every output; twenty are the units."""
        few, many = _of_few(2), _of_few(20)

        assert any("from 60 bundles, as many as 60 of equal size. There are too few" in text for text in cautions(few))
        assert "The demand comes from 20 namespaces, as many as 20 of equal size." in cautions(many)
        assert "Only if bundles are independent, it serves" in card(few, "new").sentence
        assert "only if bundles are independent" in gate_of(few).checks[0].reason
        assert [one.exit_code for one in (few, many)] == [0, 3]

    def test_a_clean_run_has_none(self) -> None:
        """A complete log, given capacities, replicates that were placed anew."""
        clean = InputFacts(capacity="given", induced_ratio=0.0, quarantined=0)
        parts = [*replicated([ratios("stock", [1.0] * 30)]), ratios("(logged)", [1.0] * 30, seed=0)]

        assert cautions(scored(parts, plan("stock", seeds=SEEDS), inputs=clean)) == []


def _of_few(namespaces: int) -> Results:
    """Compare with a candidate whose locality is worse by as much in each of sixty bundles."""
    bundles = [f"t/n{number % namespaces:02}/{number}" for number in range(60)]
    parts = [ratios(name, spread(share, 0.1, 60), "match_ratio") for name, share in (("stock", 0.6), ("new", 0.4))]
    how = plan(seeds=SEEDS, primary=("match_ratio",))
    return scored(replicated(parts), how, senders={"c": senders_of(sorted(bundles))})


def test_no_share_is_negative() -> None:
    """Neither in sentences nor in figures."""
    for results in (result(), placed_once(), varied(), near()):
        texts = [answer(results).sentence, *(card(results, name).sentence for name in results.candidates)]
        assert not re.search(r"-\d[\d.]* %", " ".join(texts))
        assert not math.isnan(results.exit_code)
