"""`report.md`."""

from __future__ import annotations

import re

from lookup.replay.outcome import InputFacts
from lookup.report.cards import cards
from lookup.report.markdown import markdown_report
from tests.report.results import result, varied
from tests.score.cases import decided, moves, plan, ratios, scored, sums


def section(text: str, heading: str) -> str:
    """Return what stands under a heading of the second level."""
    return re.split(r"^## ", text, flags=re.MULTILINE)[_headings(text).index(heading) + 1]


def _headings(text: str) -> list[str]:
    return re.findall(r"^## (.*)$", text, flags=re.MULTILINE)


def test_sections() -> None:
    """From the outcome to the details."""
    assert _headings(markdown_report(result())) == [
        "Before you trust it",
        "What was evaluated",
        "Inputs",
        "Comparison",
        "Verdicts",
        "Fidelity",
        "By cluster",
        "By part of the demand",
    ]


def test_the_outcome_stands_first() -> None:
    """A paragraph of one line for a comment, then the cards, before any table."""
    title, short, head = markdown_report(result()).partition("##")[0].split("\n\n", 2)

    assert title == "# Placement policies compared"
    assert "\n" not in short
    assert "(exit code 3)" in short
    assert "new: Moves twice" in short
    assert head.startswith("* **twin** (best of 2 against stock): ")
    order = [
        "* **twin** (best of 2 against stock): ",
        "* **new**: Moves twice",
        "Exit code 3: new is worse",
        "What decides the exit code (*): ",
        "* new: 1 better",
    ]
    places = [head.index(text) for text in order]
    assert places == sorted(places)
    assert "* 2 comparisons decide " in head


def test_the_first_paragraph_has_few_candidates() -> None:
    """The best five; the rest is counted."""
    policies = [f"p{number}" for number in range(8)]
    found = decided([moves(policy, [10 * number] * 40) for number, policy in enumerate(policies)], *policies)

    short = markdown_report(found).split("\n\n", 2)[1]

    assert short.endswith("2 more candidates below.")


def test_a_card_has_its_figures_below_its_sentence() -> None:
    """Gain and cost with both figures, the change, its interval and the mark, how sure that is, and a command."""
    lines = [line.strip() for line in markdown_report(result()).partition("##")[0].splitlines()]

    (place,) = (number for number, line in enumerate(lines) if line.startswith("* **new**: "))
    gain, cost, certainty, step = lines[place + 1 : place + 5]
    for part in ("`answered_ratio`", "50.0 % → 70.0 %", "+20 points, ", "+20 to +20 points", ", better"):
        assert part in gain
    for part in ("`moves`", "1,200 → 2,400", "× 2", "+1,200 to +1,200", ", worse"):
        assert part in cost
    assert "1 of 200" in certainty
    assert step.endswith(f": `{cards(result()).items[1].command}`")


def test_what_was_evaluated() -> None:
    """Policies and the settings that shape the numbers."""
    text = section(markdown_report(result()), "What was evaluated")

    assert "* incumbent: `stock`" in text
    assert "* candidates: `new`, `twin`" in text
    assert "60 s; balance in cells of 3600 s" in text
    assert "* replicates: 5, seeds 1, 2, 3, 4, 5" in text


def test_inputs_have_names_and_units() -> None:
    """In words, those that have some, and by cluster where they are."""
    text = section(markdown_report(result()), "Inputs")

    assert re.search(r"\| lookups replayed +\| 1,234,567 +\|", text)
    assert re.search(r"\| clusters +\| c, d +\|", text)


def test_inputs_are_told_once_and_times_are_times() -> None:
    """No µs since 1970, nothing that did not happen, nothing that stands under another heading."""
    inputs = InputFacts(rows=5, first_us=807_256_800_000_000, load="simulated")

    text = section(markdown_report(result(inputs=inputs)), "Inputs")

    assert re.findall(r"^\| (\S.*?) +\| (\S.*?) +\|$", text, flags=re.MULTILINE)[1:] == [
        ("rows of the log", "5"),
        ("first lookup", "1995-08-01 06:00:00 UTC"),
    ]


def test_the_comparison_has_values_marks_and_intervals() -> None:
    """One table of values, one of intervals."""
    text = section(markdown_report(result()), "Comparison")

    assert re.search(r"\| ↑ answered_ratio \\\* +\| ratio +\| 0.5000 +\| 0.7000 ▲ +\| 0.5000 ≡ +\|", text)
    assert re.search(r"\| ↑ answered_ratio \\\* +\| \[0.48\d\d, 0.51\d\d\]", text)


def test_verdicts_have_reasons() -> None:
    """One table for each candidate, with difference, interval, margin and reason."""
    text = section(markdown_report(result()), "Verdicts")

    assert "### new" in text
    assert "### twin" in text
    assert re.search(
        r"\| answered_ratio \\\* +\| ▲ better +\| \+0.2000 ratio +\| \[0.2000, 0.2000\] +\| ±0.0001 +\| +\|", text
    )
    assert re.search(r"imbalance_cv.*\? inconclusive.*smallest detectable effect", text)
    assert "▼ worse: " in text
    assert re.search(r"\| moves \\\* +\| ▼ worse +\| \+1,200 moves", text)


def test_guarded_metrics_have_the_margin_of_guards() -> None:
    """One lookup in 10,000, whatever the figure; that of others is one in a hundred of the incumbent's."""
    text = section(markdown_report(varied()), "Verdicts")

    assert re.search(r"\| answered_ratio .* ±0.0001 ", text)
    assert re.search(r"\| match_ratio\[rack\] .* ±0.005 ", text)


def test_fidelity_has_ranges_gaps_and_reasons() -> None:
    """What could be compared with the log, and why the rest could not."""
    text = section(markdown_report(result()), "Fidelity")

    assert re.search(r"\| metric +\| logged \| replayed \| range +\| gap +\|", text)
    assert re.search(r"\| answered_ratio \| 0.5010 \| 0.5000 +\| \[0.5000, 0.5000\] \| 0.0010 \|", text)
    assert "no gap for network_covered_ratio, imbalance_cv, moves, agreement_ratio: " in text


def test_clusters_and_parts_follow() -> None:
    """Values without marks."""
    text = markdown_report(result())

    assert "### c\n" in section(text, "By cluster")
    assert "### tenant t1" in section(text, "By part of the demand")


def test_one_cluster_needs_no_section() -> None:
    """Nor does a run without parts, candidates or inputs."""
    alone = markdown_report(scored([ratios("stock", [0.5] * 30)], plan("stock")))

    assert _headings(alone) == ["Before you trust it", "What was evaluated", "Comparison", "Fidelity"]
    assert "candidates: none" in alone


def test_many_parts_are_cut() -> None:
    """The rest is said to be elsewhere."""
    parts = [ratios("stock", [0.5] * 30, by=(("tenant", f"t{place:02}"),)) for place in range(15)]

    text = markdown_report(scored([ratios("stock", [0.5] * 30), *parts], plan("stock")))

    assert text.count("### tenant") == 12
    assert "3 more parts are in `summary.json`" in text


def test_tables_are_aligned() -> None:
    """Every row of a table has the same length, so that it reads well as plain text; bars are escaped."""
    parts = [sums(policy, [[1]] * 30, "moves", key="a|b") for policy in ("stock", "new")]
    text = markdown_report(scored(parts))

    tables = [block.splitlines() for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)]
    assert all(len({len(line) for line in table}) == 1 for table in tables)
    assert r"moves[a\|b]" in text
