"""The answer for each candidate: its sentence, what it gains and costs, how sure that is, and what to do next."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from lookup.report.blocks import Card
from lookup.report.cards import about_locality, cards, nothing_told, order_of_cards, ranked, sentences, who_is_alike
from lookup.report.words import size_text
from lookup.score.scoring import Fidelity, Scored
from tests.report.results import placed_once, result, varied, wide
from tests.score.cases import SEEDS, decided, moves, plan, ratios, replicated, scored, spread


def near(policy: str, share: float, width: float = 0.1) -> object:
    """Write down the lookups that a policy serves from their own rack."""
    return ratios(policy, spread(share, width), "match_ratio", key="rack")


def even(policy: str, peak: float) -> object:
    """Write down the load of a policy's busiest broker, without a trend."""
    return ratios(policy, spread(peak, 0.01), "imbalance_max_mean")


def traded(**figures: tuple[float, float, float]) -> Scored:
    """Compare policies by locality, balance and moves; all answer everything, which decides."""
    parts = []
    for policy, (share, peak, count) in figures.items():
        parts += [near(policy, share), even(policy, peak), moves(policy, [count] * 40), ratios(policy, [1.0] * 40)]
    return decided(parts, *figures, primary=("answered_ratio",))


def card(found: Scored, place: int = 0) -> Card:
    """Return one card of a run."""
    return cards(found).items[place]


class TestSentence:
    """What a candidate does better and worse, in one sentence."""

    def test_gains_then_costs(self) -> None:
        """What decides and says nothing stands first; figures are in words, differences in two digits."""
        found = traded(random=(0.34, 1.76, 5), rack=(0.436, 1.19, 11.5))

        (sentence,) = sentences(found)
        parts = ("rack: Answers as many", "9.6 points more", "balances better; ", "2.3 times as many")
        places = [sentence.index(part) for part in parts]
        assert places == sorted(places)

    def test_what_is_not_told_is_no_gain(self) -> None:
        """A figure that only looks better is named as open, with no number."""
        parts = [ratios(policy, [1.0] * 40) for policy in ("stock", "new")]
        parts += [moves(policy, counts) for policy, counts in (("stock", [30.0] * 40), ("new", [29.0, 31.5] * 20))]

        found = card(decided(parts, "stock", "new", primary=("answered_ratio",)))

        assert found.sentence.endswith("in moved bundles.")
        assert (found.gains, found.style) == ([], "inconclusive")
        assert [(facet.words, facet.word) for facet in found.costs] == [("moved bundles", "open")]

    def test_what_chance_may_bring_among_so_many_is_a_perhaps(self) -> None:
        """Behind all that is told; a loss of that kind as well."""
        old, new = cards(varied(primary=("match_ratio:zone",))).items

        assert "; perhaps serves 1 point more" in new.sentence
        assert old.sentence.startswith("Perhaps moves 6.7 % more bundles; ")
        assert "“perhaps”" in old.certainty

    def test_these_hours_are_said_of_what_holds_in_them(self) -> None:
        """Beside differences that hold for the policy."""
        _, new = cards(varied()).items

        assert "; balances worse (only in these hours) and " in new.sentence
        assert new.style == "inconclusive"
        assert "load of the busiest broker" in new.certainty

    def test_parts_of_a_figure_are_left_to_the_whole(self) -> None:
        """Moves of one cause are among all moves."""
        parts = [moves(p, [n] * 40, key=key) for p, n in (("stock", 3), ("new", 9)) for key in (None, "shed")]

        found = card(decided(parts, "stock", "new", primary=("moves",)))

        assert [facet.name for facet in found.costs] == ["moves"]

    def test_what_neither_has_is_not_named(self) -> None:
        """A label that no broker has is matched as rarely by both."""
        parts = [ratios(policy, [1.0] * 40) for policy in ("stock", "new")]
        parts += [ratios(policy, [0.0] * 40, "match_ratio", key="app") for policy in ("stock", "new")]
        parts += [moves(policy, [count] * 40) for policy, count in (("stock", 3), ("new", 4))]

        found = card(decided(parts, primary=("answered_ratio", "match_ratio")))

        assert "app" not in found.sentence
        assert "33 % more" in found.sentence

    def test_names_of_settings_are_no_templates(self) -> None:
        """A label may be called anything."""
        parts = [ratios(p, spread(s, 0.1), "match_ratio", key="{points}{x}") for p, s in (("stock", 0.3), ("new", 0.6))]

        assert "from their own " in card(decided(parts, primary=())).sentence


class TestOrder:
    """The best candidate first."""

    def test_both_aims_before_one(self) -> None:
        """Whatever it costs; of equals the one with the larger differences."""
        found = traded(random=(0.3, 1.8, 5), even=(0.3, 1.2, 5), both=(0.4, 1.2, 50), more=(0.5, 1.1, 50))

        assert ranked(found) == ["more", "both", "even"]

    def test_what_decides_against_a_candidate_puts_it_last(self) -> None:
        """However much nearer it is."""
        parts = [part for policy, s, n in _DECIDING for part in (near(policy, s), moves(policy, [n] * 40))]

        assert ranked(decided(parts, "stock", "near", "calm", primary=("moves",))) == ["calm", "near"]

    def test_the_order_is_explained(self) -> None:
        """With what decides the exit code, in words and as settings have it."""
        text = order_of_cards(result())

        assert text.endswith(": answered lookups (`answered_ratio`), moved bundles (`moves`).")


_DECIDING = (("stock", 0.3, 5), ("near", 0.9, 9), ("calm", 0.3, 5))


class TestLocality:
    """Who is nearest, where the first card is about something else."""

    def test_the_nearest_is_named_with_its_sentence(self) -> None:
        """If it is not the best."""
        parts = [part for policy, s, n in _DECIDING for part in (near(policy, s), moves(policy, [n] * 40))]

        sentence = str(about_locality(decided(parts, "stock", "near", "calm", primary=("moves",))))
        assert "same-rack share has near: " in sentence
        assert "60 points more" in sentence

    def test_that_none_is_nearer_is_said(self) -> None:
        """And nothing where the first card says it, or where there is no locality."""
        even_ = traded(random=(0.3, 1.8, 5), even=(0.3, 1.2, 5))
        farther = traded(random=(0.3, 1.8, 5), far=(0.2, 1.2, 5), other=(0.25, 1.8, 5))
        half = max((v.high - v.low) / 2 for v in farther.verdicts if v.name == ("match_ratio", "rack"))

        assert str(about_locality(even_)).endswith("same-rack share than random.")
        assert str(about_locality(farther)).endswith(f" above {size_text(half, farther.metric['match_ratio'])}.")
        assert about_locality(traded(random=(0.3, 1.8, 5), rack=(0.4, 1.8, 5))) is None
        assert about_locality(result()) is None


class TestAlike:
    """Policies that decide alike are one card."""

    def test_their_names_are_counted(self) -> None:
        """Two are named, the others counted; the header of the page says so too."""
        names = ["stock", *(f"p{number}" for number in range(16))]
        found = scored([ratios(name, [0.5 if name == "stock" else 0.7] * 30) for name in names], plan(*names))

        assert [each.title for each in cards(found).items] == ["p0, p1 and 14 more decide alike"]
        assert who_is_alike(found) == "p0, p1 and 14 more decide alike"
        assert who_is_alike(varied()) == "no two decide alike"

    def test_one_that_is_the_incumbent_again_says_so(self) -> None:
        """And there is nothing to do about it."""
        twin = card(wide(2))

        assert (twin.step, twin.command) == ("nothing to do", "")


class TestNext:
    """What to do, with a command."""

    def test_the_winner_is_confirmed_and_others_by_name(self) -> None:
        """The folder and names are quoted for a shell."""
        found = traded(random=(0.3, 1.8, 5), even=(0.3, 1.2, 5), both=(0.4, 1.2, 50))

        commands = [each.command.partition("--confirm ")[2] for each in cards(found, "my runs/a").items]
        assert commands == ["'my runs/a' --output confirmed", "'my runs/a' --candidate even --output confirmed"]

    def test_a_loss_is_looked_into(self) -> None:
        """By the owners of a topic under the candidate and under the incumbent."""
        assert card(result(), 1).command.startswith("lookup explain RUN_DIR --policy new --policy stock")

    def test_one_placement_asks_for_seeds(self) -> None:
        """Ten of them cost seconds, and say whether it was luck."""
        found = card(placed_once())
        assert found.title == "new"

        assert found.step == "10 seeds would tell"
        assert "--set evaluation.seeds=10 " in found.command

    def test_a_policy_that_cannot_act_says_why(self) -> None:
        """Before anything else."""
        found = replace(traded(random=(0.3, 1.8, 5), rack=(0.4, 1.2, 5)), cannot_act={"rack": "no broker has a rack"})

        assert card(found).step.endswith(": no broker has a rack")


def _unsure_twice() -> Scored:
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


class TestNothingTold:
    """A run in which no candidate differs."""

    def test_it_says_which_run_would_tell(self) -> None:
        """So many seeds, or a log so many times as long, if the differences are as large as they look."""
        parts = [
            replace(part, seed=seed)
            for seed in range(1, 11)
            for policy, shift in (("stock", 0), ("new", 1))
            for part in (near(policy, 0.30 + 0.01 * shift + 0.012 * ((seed * (3 + 4 * shift)) % 5 - 2)),)
        ]
        found = scored(parts, plan(seeds=tuple(range(1, 11)), primary=("match_ratio:rack",)))
        text = nothing_told(found)

        assert {verdict.verdict for verdict in found.verdicts} == {"inconclusive"}
        assert text is not None
        needed = card(found).step.partition(" would tell")[0]
        assert text.endswith(f", {needed} would.")
        assert f"evaluation.seeds={needed.removesuffix(' seeds')} " in card(found).command

    def test_it_names_the_number_of_the_card(self) -> None:
        """One number, of the figure that needs least, though a primary figure and one of `aims` need others."""
        found = _unsure_twice()
        text = nothing_told(found)

        assert {verdict.verdict for verdict in found.verdicts} == {"inconclusive"}
        assert text is not None
        seeds = re.findall(r"\d+ seeds", f"{text} {card(found).step}")
        assert len(seeds) == 2
        assert len(set(seeds)) == 1
        assert "moved load" in text
        assert "moved load" in card(found).step

    def test_it_names_the_number_of_the_card_of_one_placement(self) -> None:
        """What varies with the demand would be shown by a longer log, but another placement comes first."""
        parts = [near(policy, share, width) for policy, share, width in (("stock", 0.4, 0.1), ("new", 0.41, 0.3))]
        found = scored(parts, plan(primary=("match_ratio:rack",)))

        assert card(found).step == "10 seeds would tell"
        assert str(nothing_told(found)).endswith(" 10 seeds would.")

    def test_no_fewer_seeds_than_can_carry_a_verdict(self) -> None:
        """Where two seeds are all that is in the way, the number is that of the verdict's own reason."""
        parts = [near(policy, share) for policy, share in (("stock", 0.1), ("new", 0.6))]
        found = scored(replicated(parts, (1, 2)), plan(seeds=(1, 2), primary=("match_ratio:rack",)))

        assert card(found).step.startswith("5 seeds would tell")
        assert str(found.verdicts[0].reason).endswith("; 5 seeds would")
        assert card(found).certainty.startswith("2 seeds can carry no verdict")

    def test_no_seeds_help_against_a_gap(self) -> None:
        """What the replay itself may bring is named with its size, and nothing is asked for."""
        parts = [
            replace(part, seed=seed)
            for seed in SEEDS
            for policy, share in (("stock", 0.3), ("new", 0.31 + 0.02 * (seed % 3 - 1)))
            for part in (near(policy, share),)
        ]
        found = scored(parts, plan(seeds=SEEDS, primary=("match_ratio:rack",)))
        gap = Fidelity("match_ratio", "rack", 0.5, 0.3, 0.3, 0.3, 0.2, SEEDS, None)
        (verdict,) = found.verdicts
        assert verdict.margin < abs(verdict.delta) < (verdict.high - verdict.low) / 2
        assert " seeds would tell " in card(found).step

        found = replace(found, fidelity=[gap])

        for text in (card(found).certainty, card(found).step, str(about_locality(found))):
            assert "fidelity gap of 20 points" in text
        assert "as it looks" not in str(nothing_told(found))

    def test_a_run_with_a_verdict_says_nothing(self) -> None:
        """One that is better or worse in anything; and one without a candidate has nothing to tell."""
        assert nothing_told(result()) is None
        assert nothing_told(scored([ratios("stock", [0.5] * 30)], plan("stock"))) is None

    def test_too_little_is_said_with_its_reason(self) -> None:
        """Where no interval says how much more is needed."""
        parts = [near(policy, share) for policy, share in (("stock", 0.3), ("new", 0.5))]
        few = [replace(part, sums=part.sums[:3]) for part in parts]

        text = nothing_told(scored(replicated(few), plan(seeds=(1, 2, 3, 4, 5), primary=("match_ratio:rack",))))

        assert "reason for the first figure: " in str(text)


@pytest.mark.parametrize("shift", [0.0, 0.05])
def test_equals_are_not_told_apart(shift: float) -> None:
    """Two policies whose figures differ by the luck of ten placements have no gain, and no loss."""
    parts = [
        replace(part, seed=seed)
        for seed in range(1, 11)
        for policy, luck in (("stock", 0.0), ("new", (-1) ** seed * shift))
        for part in (near(policy, 0.4 + luck), even(policy, 1.5 + luck))
    ]
    found = card(scored(parts, plan(seeds=tuple(range(1, 11)), primary=())))

    assert (found.gains, found.costs) == ([], [])
    assert "better" not in found.sentence
