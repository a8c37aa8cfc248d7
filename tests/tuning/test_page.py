"""The page of a search, without a browser."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import lookup
from lookup.logs.jobs import InProcess
from lookup.tuning.document import read_figures
from lookup.tuning.page import tuning_page
from lookup.tuning.wording import SEARCHED
from tests.tuning.files import write_search_file


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Search for the weight of nearness, which is 0 today, and for a setting that does nothing here."""
    folder = tmp_path_factory.mktemp("page")
    log = folder / "log"
    lookup.generate(
        log,
        hours=48,
        lookups=20_000,
        topics=1_000,
        clusters=1,
        brokers=6,
        tenants=96,
        namespaces=96,
        losses=0,
        zipf=0.2,
        rack_affinity=1.0,
    )
    nearest = {"use": "property-match", "key": "rack", "weight": 0.0}
    rules = {"session_s": 3600, "balance_s": 3600, "tick_s": 600}
    evaluation = {
        "evaluation": {"incumbent": "today", "seeds": 5, **rules},
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


def test_the_front_is_drawn(document: dict[str, Any]) -> None:
    """Today and the finalists have names, and stand as far off as their gains say."""
    chart = _charts(tuning_page(document))["front-chart"]

    best = document["finalists"][0]
    points = {row["policy"]: row for row in _rows(chart)}
    gain = points[str(best["candidate"])]["y"] - points["today"]["y"]
    assert gain == pytest.approx(read_figures(document)[best["candidate"], SEARCHED]["match_ratio:rack"].gain)
    assert {row["label"] for row in _rows(chart) if row["label"]} >= {"today", str(best["candidate"])}


def test_all_candidates_stand_in_a_table_that_can_be_narrowed(document: dict[str, Any]) -> None:
    """Names out of settings end no tag."""
    page = tuning_page(document)

    table = page.partition('<table id="candidates-table" class="sortable filtered">')[2].partition("</table>")[0]
    assert table.count('<th scope="row">') == len({row["candidate"] for row in document["figures"]})
    assert "near&lt;ness" in table
    assert "near<ness" not in page


def test_without_sealed_days_every_figure_says_so(document: dict[str, Any]) -> None:
    """In the title of each chart and table, since one may be shown without the page."""
    page = tuning_page({**document, "sealed_from": None, "recommended": []})

    titles = re.findall(r"<(?:figcaption|caption)[^>]*>([^<]*)", page)
    assert len(titles) >= 3
    assert all("no days were sealed" in title for title in titles)
    assert "not confirmed: no days" not in tuning_page(document)


def test_a_candidate_that_moves_less_than_today_can_is_drawn(document: dict[str, Any]) -> None:
    """Its batch had more moves than today has in the last one, so that its gain takes them below 0."""
    today = read_figures(document)[0, SEARCHED]["moves"].value
    fewer = {"value": 3.0, "change": -2.0 * today - 1.0}
    rows = [row | (fewer if (row["candidate"], row["metric"]) == (1, "moves") else {}) for row in document["figures"]]

    page = tuning_page({**document, "figures": rows})

    assert "front-chart" in _charts(page)


def test_one_figure_alone_has_no_front(document: dict[str, Any]) -> None:
    """The rest of the page is there."""
    one = {**document, "objectives": ["moves"], "prices": []}

    assert "no two figures" in tuning_page(one)


def test_a_finished_search_is_drawn_again(document: dict[str, Any], tmp_path: Path) -> None:
    """From tune.json alone."""
    write_search_file(tmp_path / "tune.json", document)

    assert lookup.open_tuning(tmp_path).page() == tuning_page(document)
