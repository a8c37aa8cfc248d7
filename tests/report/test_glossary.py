"""What the figures and the words of a report mean."""

from __future__ import annotations

from lookup.report.comparison import LIGHT_MARKS
from lookup.report.glossary import terms
from lookup.score.metrics import lookup_register_metrics
from tests.report.results import result
from tests.score.cases import decided, ratios


def test_every_figure_of_a_run_is_explained_by_its_metric() -> None:
    """The first sentence of the metric's own description, its unit and direction, once for all its keys."""
    parts = [ratios(p, [0.5] * 40, "match_ratio", key=key) for p in ("stock", "new") for key in ("rack", "zone")]

    explained = dict(terms(decided(parts, "stock", "new")))

    assert explained["match_ratio[rack], match_ratio[zone]"] == (
        "Lookups served by a broker with the client's label / answered lookups whose client sent the property (ratio, "
        "more is better)."
    )


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

    for word in ("primary metric", "margin", "fidelity", "floor", "for this placement only", "undecided"):
        assert word in words


def test_scopes_questions_and_marks_are_explained() -> None:
    """Every mark that is neither of a whole verdict, and both questions that a verdict may answer."""
    explained = dict(terms(result()))

    assert "drifts as slowly as the log is long" in explained["for these hours only, △ ▽"]
    assert "if it were the only comparison" in explained["▴ ▾"]
    assert "guarded on this log" in explained["for demand like this, on this log"]
    assert all(any(mark in word for word in explained) for mark in (*LIGHT_MARKS.values(), "△", "▽"))
