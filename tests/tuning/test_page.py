"""The page of a search, without a browser."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import lookup
from lookup.logs.jobs import InProcess
from lookup.tuning.page import tuning_page


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Search for the weight of nearness, which is 0 today, and for a setting that does nothing here."""
    folder = tmp_path_factory.mktemp("page")
    log = folder / "log"
    lookup.generate(log, hours=48, lookups=10_000, clusters=1, brokers=6, losses=0, zipf=0.2, logging_policy="none")
    nearest = {"use": "property-match", "key": "rack", "weight": 0.0}
    rules = {"session_s": 3600, "balance_s": 3600, "tick_s": 600}
    evaluation = {
        "evaluation": {"incumbent": "today", "ownership": "shared", "seeds": 5, **rules},
        "inputs": {"lookups": str(log / "lookups"), "brokers": str(log / "brokers")},
        "policies": [{"name": "today", "scorers": ["headroom", nearest], "selector": "best"}],
    }
    vary = {"scorers[1].weight": {"low": 0.0, "high": 8.0}, "grace_s": {"low": 60, "high": 7200}}
    tune = {"objectives": ["match_ratio:rack"], "prices": ["imbalance_max_mean"], "candidates": 8}
    search = {"tune": {"evaluation": evaluation, **tune}, "spaces": [{"name": "near<ness", "vary": vary}]}
    return lookup.tune(search, output=folder / "out", workers=InProcess()).document()


def _charts(page: str) -> dict[str, dict[str, Any]]:
    found = re.search(r'<script type="application/json" id="charts">(.*)</script>', page)
    assert found is not None
    return {chart["id"]: chart for chart in json.loads(found[1])}


def _rows(chart: dict[str, Any]) -> list[dict[str, Any]]:
    return [dict(zip(chart["fields"], row, strict=True)) for row in chart["rows"]]


def test_the_front_is_drawn_beside_the_sealed_days(document: dict[str, Any]) -> None:
    """On equal scales; today and the finalists have names, and finalists stand as far off as their gains say."""
    charts = _charts(tuning_page(document))
    searched, sealed = charts["front-search-chart"], charts["front-sealed-chart"]

    layers = [
        [layer["encoding"]["x"]["scale"] for layer in chart["spec"]["layer"][-1:]] for chart in (searched, sealed)
    ]
    assert layers[0] == layers[1]
    best = document["finalists"][0]
    points = {row["policy"]: row for row in _rows(sealed)}
    gain = points[str(best["candidate"])]["y"] - points["today"]["y"]
    assert gain == pytest.approx(best["sealed"]["match_ratio:rack"]["delta"])
    assert {row["label"] for row in _rows(searched) if row["label"]} >= {"today", str(best["candidate"])}


def test_every_setting_has_a_picture_of_what_its_values_did(document: dict[str, Any]) -> None:
    """A point for each candidate at its value; what did nothing is named as such and comes last."""
    page = tuning_page(document)
    pictures = {name: chart for name, chart in _charts(page).items() if name.startswith("setting-")}

    assert [one["key"] for one in document["settings"] if not one["matters"]] == ["grace_s"]
    assert list(pictures) == ["setting-0-chart", "setting-1-chart"]
    assert "No effect of these could be told from luck: <code>grace_s</code>." in page
    values = {row["candidate"]: row["value"] for row in _rows(pictures["setting-0-chart"])}
    tried = [one for one in document["candidates"] if "scorers[1].weight" in one["changes"] and one["search"]]
    assert all(values[str(one["candidate"])] == one["changes"]["scorers[1].weight"] for one in tried)


def test_a_line_goes_over_the_settings_and_figures_of_each_candidate(document: dict[str, Any]) -> None:
    """From the least value of each, at 0, to the largest, at 1."""
    rows = _rows(_charts(tuning_page(document))["lines-0-chart"])

    places = {(row["candidate"], row["axis"]): row["share"] for row in rows}
    known = {str(one["candidate"]): one for one in document["candidates"][1:] if one["search"]}
    weights = {name: one["changes"].get("scorers[1].weight", 0.0) for name, one in known.items()}
    largest = max(weights, key=weights.__getitem__)
    axes = list(dict.fromkeys(row["axis"] for row in rows))
    assert axes == ["scorers[1].|weight", "grace_s", "match_ratio:|rack", "imbalance_max_|mean"]
    assert (places["today", axes[0]], places[largest, axes[0]]) == (0.0, 1.0)
    assert all(0.0 <= share <= 1.0 for share in places.values())


def test_all_candidates_stand_in_a_table_that_can_be_narrowed(document: dict[str, Any]) -> None:
    """Names out of settings end no tag."""
    page = tuning_page(document)

    table = page.partition('<table id="candidates-table" class="sortable filtered">')[2].partition("</table>")[0]
    assert table.count('<th scope="row">') == sum(one["search"] is not None for one in document["candidates"])
    assert "near&lt;ness" in table
    assert "near<ness" not in page


def test_without_sealed_days_every_figure_says_so(document: dict[str, Any]) -> None:
    """In the title of each chart and table, since one may be shown without the page."""
    page = tuning_page({**document, "sealed_from": None, "recommended": []})

    titles = re.findall(r"<(?:figcaption|caption)[^>]*>([^<]*)", page)
    assert len(titles) >= 5
    assert all(title.endswith("(not confirmed: no days were sealed)") for title in titles)
    assert "not confirmed: no days" not in tuning_page(document)


def test_one_figure_alone_has_no_front(document: dict[str, Any]) -> None:
    """The rest of the page is there."""
    one = {**document, "objectives": ["match_ratio:rack"], "prices": []}

    page = tuning_page(one)

    assert "no two figures to set against each other" in page
    assert "setting-0-chart" in _charts(page)


def test_a_finished_search_is_drawn_again(document: dict[str, Any], tmp_path: Path) -> None:
    """From tune.json alone."""
    (tmp_path / "tune.json").write_text(json.dumps(document))

    assert lookup.open_tuning(tmp_path).page() == tuning_page(document)
