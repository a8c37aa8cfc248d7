"""What a reader should know before trusting the figures."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from lookup.replay.outcome import Finding, InputFacts
from lookup.replay.senders import senders_of
from lookup.report.cards import cards
from lookup.report.caveats import caveats, what_cannot_act
from lookup.report.gate import gate_of
from lookup.report.markdown import markdown_report
from lookup.score.scoring import Scored
from tests.report.results import INPUTS, placed_once, result, varied
from tests.score.cases import SEEDS, decided, moves, plan, ratios, replicated, scored, spread


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
    assert text.startswith("new, old: rendezvous ")
    assert "do not decide the exit code" in text


def test_policies_with_the_same_figures_are_named() -> None:
    """Those that agree in every metric, to the last digit, and only those."""
    parts = [
        ratios(policy, spread(0.5 + gain, 0.1), cluster=cluster)
        for policy, gain in (("stock", 0.0), ("new", 0.2), ("twin", 0.0))
        for cluster in "cd"
    ]

    said = [text for text in caveats(scored(parts, plan("stock", "new", "twin"))) if "same figures" in text]

    assert [text.partition(" have ")[0] for text in said] == ["stock, twin"]


def test_findings_are_cautions() -> None:
    """What a run found without effect is said with evidence and remedy."""
    finding = Finding("namespace", "a; b", 3)

    assert "a; b." in caveats(result(inputs=replace(INPUTS, findings=(finding,))))


def test_one_seed_is_a_caveat() -> None:
    """Of all policies."""
    assert any(text.startswith("stock, new, twin: ") and "one seed" in text for text in caveats(placed_once()))
    assert not any("placement only" in text for text in caveats(result()))


def test_placements_that_settings_accept_decide_the_exit_code() -> None:
    """The caveat does not say otherwise."""
    (text,) = [text for text in caveats(placed_once(accept_placement=True)) if "placement only" in text]

    assert "(△ ▽) and decide the exit code" in text


def test_clusters_that_disagree_are_a_caveat() -> None:
    """Each with its own difference in the metric's own direction, and those that agree are not mentioned."""
    (said,) = [text for text in caveats(varied()) if "clusters disagree" in text]

    assert said.startswith("match_ratio[rack] of new: ")
    assert said.endswith(" better in c (+0.1000 ratio), worse in d (-0.2000 ratio).")


def test_clusters_disagree_in_the_direction_of_their_metric() -> None:
    """Fewer moves are better, and a cluster that shows neither is undecided."""
    counts = {"c": [30.0] * 40, "d": [30.0] * 40, "e": [30.0] * 40}
    changed = {"c": [20.0] * 40, "d": [45.0] * 40, "e": [23.0, 35.0] * 20}
    parts = [moves("stock", of, cluster=cluster) for cluster, of in counts.items()]
    parts += [moves("new", of, cluster=cluster) for cluster, of in changed.items()]

    (said,) = [text for text in caveats(decided(parts, primary=("moves",))) if "disagree" in text]

    assert said.startswith("moves of new: ")
    for part in ("better in c (-400 moves)", "worse in d (+600 moves)", "undecided in e (-40 moves)"):
        assert part in said


def test_differences_that_drift_are_a_caveat() -> None:
    """By figure and candidate; a log without a drift has none."""
    (said,) = [text for text in caveats(varied()) if "these hours (△ ▽)" in text]

    assert "(△ ▽): imbalance_max_mean of new. " in said
    assert "do not decide the exit code" in said
    assert not [text for text in caveats(result()) if "these hours (△ ▽)" in text]


@pytest.mark.parametrize(
    ("seeds", "costs"), [(2, ("7.2", "87.5%")), (3, ("2.0", "96.9%")), (4, ("1.3", "99.2%")), (5, None)]
)
def test_what_few_seeds_cost_is_a_caveat(seeds: int, costs: tuple[str, str] | None) -> None:
    """Student's t over the root of their number, and one half to the power of 2 n - 1; five are enough."""
    numbers = tuple(range(1, seeds + 1))
    parts = replicated([ratios(name, spread(0.5, 0.1)) for name in ("stock", "new")], numbers)

    said = [caveat for caveat in caveats(scored(parts, plan(seeds=numbers))) if caveat.startswith(f"{seeds} seeds:")]

    assert [re.findall(r"[0-9.]+[0-9]%?", caveat) for caveat in said] == ([list(costs)] if costs else [])


def test_seeds_cost_nothing_where_nothing_is_compared() -> None:
    """Of the incumbent alone, and of one seed, which has a caveat of its own."""
    alone = scored(replicated([ratios("stock", [0.5] * 30)], (1, 2)), plan("stock", seeds=(1, 2)))

    assert not [text for found in (alone, placed_once()) for text in caveats(found) if "seeds: intervals" in text]


def test_what_cannot_act_is_named() -> None:
    """With the reason, in the first line and nowhere else; of the incumbent with what follows."""
    found = result(cannot_act={"twin": "no broker has a place"})
    incumbent = replace(found, cannot_act={found.incumbent: "no bytes are known"})

    (text,) = what_cannot_act(found)
    assert (text.startswith("twin "), text.endswith(": no broker has a place")) == (True, True)
    assert text not in caveats(found)
    assert next(what_cannot_act(incumbent)).endswith("so there is no verdict")
    assert next(line for line in markdown_report(incumbent).splitlines()[1:] if line).startswith(found.incumbent)


def test_what_cannot_act_is_said_once_for_all_policies_of_one_reason() -> None:
    """A sweep of nine values of one shedder is one sentence, not nine."""
    sweep = dict.fromkeys(("t5", "t10", "t20"), "no bytes are known")

    texts = what_cannot_act(result(cannot_act={**sweep, "twin": "no broker has a place"}))

    assert [text.partition(" is not ")[0] for text in texts] == ["each of t5, t10, t20", "twin"]


def test_nothing_to_be_careful_about() -> None:
    """A complete log, given capacities, replicates that were placed anew: no caveats."""
    clean = InputFacts(capacity="given", induced_ratio=0.0, quarantined=0)
    parts = [*replicated([ratios("stock", [1.0] * 30)]), ratios("(logged)", [1.0] * 30, seed=0)]

    assert caveats(scored(parts, plan("stock", seeds=SEEDS), inputs=clean)) == []


def test_an_unchecked_replay_is_told() -> None:
    """With the reason."""
    parts = replicated([ratios("stock", [1.0] * 30)])
    (text,) = caveats(scored(parts, plan("stock", seeds=SEEDS), logged_reason="only 3 % carry a broker"))

    assert text.startswith("Fidelity is unknown: only 3 % ")


@pytest.mark.parametrize(("logged", "is_strange"), [(0.5, False), (0.504, False), (0.506, True), (0.3, True)])
def test_a_log_of_another_policy_is_strange(logged: float, is_strange: bool) -> None:
    """A figure that no replicate shows is named; a gap inside its margin, here 0.005, is no difference."""
    sentences = [text for text in caveats(result(logged)) if text.startswith("The log was not")]

    assert len(sentences) == is_strange
    assert all("would show answered_ratio (" in text for text in sentences)


@pytest.mark.parametrize(("answered", "told"), [([0.0] * 30, True), ([0.0] * 29 + [1.0], False)])
def test_a_cluster_without_answers_is_told(answered: list[float], told: bool) -> None:
    """Policies that answer nobody are alike, which looks like a good result."""
    parts = [ratios("stock", [0.0] * 30), ratios("new", answered), ratios("(logged)", [1.0] * 30)]

    texts = caveats(scored(parts, plan("stock", "new")))

    assert any("a single lookup of" in text for text in texts) is told


def _of_few(namespaces: int) -> Scored:
    """Compare with a candidate whose locality is worse by as much in each of sixty bundles."""
    bundles = [f"t/n{number % namespaces:02}/{number}" for number in range(60)]
    parts = [ratios(name, spread(share, 0.1, 60), "match_ratio") for name, share in (("stock", 0.6), ("new", 0.4))]
    how = plan(seeds=SEEDS, primary=("match_ratio",))
    return scored(replicated(parts), how, senders={"c": senders_of(sorted(bundles))})


def test_few_namespaces_are_named_with_what_rests_on_them() -> None:
    """Two leave it open whether their bundles are independent, in every output; twenty are the units."""
    few, many = _of_few(2), _of_few(20)

    (said,) = [text for text in caveats(few) if text.startswith("The demand comes from 60 bundles, worth 60 of equal")]
    assert "of too few namespaces" in said
    assert "The demand comes from 20 namespaces, worth 20 of equal weight." in caveats(many)
    assert "Only if bundles are independent: " in cards(few).items[0].sentence
    assert "▽ worse, only if bundles are independent" in markdown_report(few)
    assert "only if bundles are independent" in gate_of(few).checks[0].reason
    assert "independent" not in "".join(caveats(many))
    assert [one.exit_code for one in (few, many)] == [0, 3]
