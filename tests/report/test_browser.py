"""`report.html` in Chromium without a network: charts, tables, themes, paper, and what keeps readers out.

Playwright drives the browser, since it emulates themes and paper, reports errors and refused content, and takes the
Chromium that is installed in place of one of its own. Screenshots stay beside the page, or in the folder that
REPORT_SCREENSHOTS names.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lookup.report.figures import read_run
from lookup.report.page import html_report
from tests.report.runs import broad

playwright = pytest.importorskip("playwright.sync_api", reason="playwright, of the extra `test`, is not installed")

pytestmark = pytest.mark.browser

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
#: No name is known, and what has no name goes to a port where nobody listens.
_OFFLINE = ["--host-resolver-rules=MAP * ~NOTFOUND", "--proxy-server=127.0.0.1:9", "--disable-gpu"]
_CHARTS = {"trade-chart", "trade-narrow-chart", "load-chart", "flows-chart", "moves-chart"}
#: Collects what the page's policy refuses.
_WATCH = """
window.refused = [];
document.addEventListener("securitypolicyviolation", (event) => window.refused.push(event.violatedDirective));
"""
_DRAWN = "document.documentElement.dataset.charts === 'drawn'"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Render a run that has something for every section."""
    folder = broad(tmp_path_factory.mktemp("browser") / "run", policies=4, clusters=2, hours=24)
    (folder / "report.html").write_text(html_report(read_run(str(folder))), encoding="utf-8")
    return folder / "report.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Start Chromium, with its network refused."""
    path = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if path is None:
        pytest.skip("there is no Chromium: scripts/ensure-browser.sh installs it")
    # Chromium refuses to run as root with its sandbox.
    flags = [*_OFFLINE, "--no-sandbox"] if os.geteuid() == 0 else _OFFLINE
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=path, args=flags)
        yield started
        started.close()


class _Watched:
    """An open page, and everything it complained of."""

    def __init__(self, browser: Any, report: Path, **options: Any) -> None:
        self.complaints: list[str] = []
        self.page = browser.new_context(viewport={"width": 1280, "height": 900}, **options).new_page()
        self.page.add_init_script(_WATCH)
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("requestfailed", lambda request: self.complaints.append(f"failed: {request.url}"))
        self.page.goto(report.as_uri())
        self.page.wait_for_function(_DRAWN)

    def colours(self) -> tuple[str, str]:
        """Return the colours of paper and ink."""
        style = "getComputedStyle(document.body)"
        return self.page.evaluate(f"[{style}.backgroundColor, {style}.color]")

    def close(self) -> None:
        """Close the page, and check that it complained of nothing and nothing was refused."""
        refused = self.page.evaluate("window.refused")
        self.page.context.close()
        assert self.complaints == []
        assert refused == []


@pytest.fixture
def watched(browser: Any, report: Path) -> Iterator[_Watched]:
    """Open the page; it must have complained of nothing in the end."""
    opened = _Watched(browser, report)
    yield opened
    opened.close()


@pytest.mark.path
def test_every_section_and_chart_is_there(watched: _Watched) -> None:
    """Each link of the list leads to a section with a heading, and each chart has marks."""
    page = watched.page
    links = page.eval_on_selector_all("nav a", "all => all.map(one => one.getAttribute('href'))")

    assert len(links) == 8
    assert all(page.locator(f"{link} h2").count() == 1 for link in links)
    assert set(page.eval_on_selector_all(".chart", "all => all.map(one => one.id)")) == _CHARTS
    for chart in _CHARTS:
        marks = page.locator(f"#{chart} svg g[class*='mark-'] > path, #{chart} svg g[class*='mark-'] > text").count()
        assert marks > 5, chart


def test_charts_have_a_title_a_text_and_their_numbers(watched: _Watched) -> None:
    """For readers who do not see them: a caption, a description, and a table behind a summary."""
    page = watched.page
    for chart in _CHARTS - {"trade-narrow-chart"}:
        # The two drawings of one chart share a table.
        figure = page.locator("#trade" if chart == "trade-chart" else f"#{chart}-figure")
        figure.locator("details > summary").first.click()
        figure.locator("details table").first.wait_for()

        assert figure.locator("figcaption").first.inner_text()
        assert len(page.locator(f"#{chart}").get_attribute("aria-label")) > 40
        assert figure.locator("details table tbody tr").count() > 0


def test_a_table_sorts_by_key_and_says_so(watched: _Watched) -> None:
    """Enter on a head sorts by its column, once more the other way round; dashes stay below."""
    page = watched.page
    head = page.locator("#figures-first-all thead th").nth(3)
    read = "rows => rows.map(row => parseFloat(row.cells[3].firstChild.textContent.replace(/,/g, '')))"

    head.locator("button").focus()
    page.keyboard.press("Enter")
    first, said = page.eval_on_selector_all("#figures-first-all tbody tr", read), head.get_attribute("aria-sort")
    page.keyboard.press("Enter")
    second = page.eval_on_selector_all("#figures-first-all tbody tr", read)

    known = [value for value in first if value == value]
    assert (said, head.get_attribute("aria-sort")) == ("ascending", "descending")
    assert known == sorted(known)
    assert second[: len(known)] == known[::-1]
    assert all(value != value for value in first[len(known) :])


def test_the_choice_of_candidate_holds_for_all_charts(watched: _Watched) -> None:
    """One choice redraws every chart over time, and the tables that are open."""
    page = watched.page
    page.locator("#load-chart-figure summary").click()
    page.locator("#load-chart-figure table").first.wait_for()
    page.locator("#load-chart-figure select[data-choice=policy]").select_option("policy-03")
    page.locator("#load-chart-figure select[data-choice=cluster]").select_option("cluster-1")
    page.wait_for_function(_DRAWN)

    for chart in ("load-chart", "moves-chart", "flows-chart"):
        assert page.locator(f"#{chart} svg text", has_text="policy-03").count() == 1
        assert page.locator(f"#{chart}-figure select[data-choice=cluster]").input_value() == "cluster-1"
    assert page.locator("#load-chart-figure caption").all_inner_texts() == [
        f"load / mean, {policy}, cluster cluster-1" for policy in ("policy-00", "policy-03")
    ]


def test_one_table_of_figures_is_shown_at_a_time(watched: _Watched) -> None:
    """That of all clusters, until another cluster is chosen."""
    tables = [watched.page.locator(f"#figures-{name}") for name in ("first-all", "every-cluster-0", "every-cluster-1")]
    before = [table.is_visible() for table in tables]
    watched.page.locator("select[data-show=cluster]").select_option("cluster-1")

    assert before == [True, False, False]
    assert [table.is_visible() for table in tables] == [False, False, True]


@pytest.mark.parametrize("chart", ["load-chart", "moves-chart", "flows-chart"])
def test_numbers_over_time_are_those_drawn(watched: _Watched, chart: str) -> None:
    """The table that is made when it is asked for has every value, in the unit in which it is drawn."""
    page = watched.page
    page.locator(f"#{chart}-figure summary").click()
    (data,) = (entry for entry in json.loads(page.locator("#charts").inner_text()) if entry["id"] == chart)
    table = page.locator(f"#{chart}-figure table").first
    # A table is made after the click: the browser says by an event that something was unfolded.
    table.wait_for()

    cells = table.locator("td").all_inner_texts()
    values = [value for row in data["values"]["cluster-0"]["policy-00"] for value in row]
    assert cells == ["–" if value is None else f"{value / data['scale']:g}" for value in values]


def test_the_theme_follows_the_system_until_the_button_is_pressed(browser: Any, report: Path) -> None:
    """Light on dark and dark on light, in charts as well; the button turns it round and names what it does."""
    seen = {}
    for scheme in ("light", "dark"):
        watched = _Watched(browser, report, color_scheme=scheme)
        page, button = watched.page, watched.page.locator("#theme")
        _screenshot(page, report, scheme)
        before, offered = watched.colours(), button.inner_text()
        button.click()
        page.wait_for_function(_DRAWN)
        ink = page.locator("#trade-chart svg text").first.evaluate("text => getComputedStyle(text).fill")
        seen[scheme] = (before, offered, watched.colours(), button.inner_text())

        assert ink == watched.colours()[1]
        watched.close()
    (light, *_), (dark, *_) = seen.values()
    assert seen == {"light": (light, "Dark", dark, "Light"), "dark": (dark, "Light", light, "Dark")}


@pytest.mark.parametrize("policies", [2, 7, 16])
def test_the_first_screen_answers(browser: Any, tmp_path: Path, policies: int) -> None:
    """On a desk and on a phone, in either theme: the best candidate's sentence and cost, and the chart's marks."""
    folder = broad(tmp_path / "run", policies=policies, clusters=2, hours=24, brokers=60 if policies == 16 else 8)
    (folder / "report.html").write_text(html_report(read_run(str(folder))), encoding="utf-8")
    for scheme, (width, height), chart in (
        ("light", (1440, 900), "#trade-chart"),
        ("dark", (390, 844), "#trade-narrow-chart"),
        ("light", (390, 844), "#trade-narrow-chart"),
        ("dark", (1440, 900), "#trade-chart"),
    ):
        watched = _Watched(browser, folder / "report.html", color_scheme=scheme)
        watched.page.set_viewport_size({"width": width, "height": height})
        shown = ("#answer .card h3", "#answer .card p", "#answer .cost", "#answer .sure", "#answer .next", chart)
        boxes = {name: watched.page.locator(name).bounding_box() for name in shown}
        points = watched.page.locator(f"{chart} svg g.mark-symbol.role-mark path")
        marks = [points.nth(number).bounding_box() for number in range(points.count())]
        _screenshot(watched.page, folder / "report.html", f"first-{policies}-{width}-{scheme}", full_page=False)
        screens = watched.page.evaluate("document.documentElement.scrollHeight") / height
        watched.close()

        assert screens <= (7 if width > height else 10) - 2 * (policies < 16)
        assert len(marks) == policies
        for name, box in [*boxes.items(), *(("mark", mark) for mark in marks)]:
            assert box is not None, name
            assert box["x"] >= 0, name
            assert box["x"] + box["width"] <= width, name
            assert box["y"] + box["height"] <= height, name


def test_intervals_are_shown_to_pointers_and_keys(watched: _Watched) -> None:
    """Beside each figure of a card, and hidden until then."""
    figure = watched.page.locator("#answer .facet").first
    assert not figure.locator(".tip").is_visible()
    figure.hover()
    assert "95 % interval: " in figure.locator(".tip").inner_text()
    watched.page.mouse.move(0, 0)
    figure.focus()
    assert figure.locator(".tip").is_visible()


def test_values_are_seen_on_a_phone(watched: _Watched) -> None:
    """The column of names stays in sight and leaves room for two columns of values."""
    page = watched.page
    page.set_viewport_size({"width": 390, "height": 844})
    row = page.locator("#figures-first-all tbody tr").first
    row.scroll_into_view_if_needed()
    page.locator(".scroll:has(#figures-first-all)").evaluate("one => { one.scrollLeft = 200; }")
    name, *values = (row.locator("th, td").nth(place).bounding_box() for place in range(5))

    assert name["x"] >= 0
    assert name["width"] < 160
    assert sum(name["x"] + name["width"] <= box["x"] and box["x"] + box["width"] <= 390 for box in values) >= 1


def test_paper_has_no_buttons_and_charts_fit(watched: _Watched, report: Path) -> None:
    """What cannot be pressed on paper is not printed, and charts fit the page."""
    page = watched.page
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 720, "height": 1000})
    _screenshot(page, report, "print")

    assert not page.locator("#theme").is_visible()
    assert not page.locator("nav").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 720
    assert len(page.pdf()) > 20_000


def test_a_narrow_window_has_no_scrollbar_of_its_own(watched: _Watched) -> None:
    """Wide charts and tables scroll by themselves, by key as well, and the sections are reached from a list."""
    page = watched.page
    assert not page.locator(".narrow").is_visible()
    page.set_viewport_size({"width": 400, "height": 800})

    assert page.locator(".narrow").is_visible()
    page.locator(".narrow summary").click()
    page.locator(".narrow a[href='#moves']").click()
    assert page.evaluate("location.hash") == "#moves"
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    box = "one => [one.clientWidth <= 400, one.scrollWidth > one.clientWidth]"
    assert page.locator(".scroll:has(#load-chart)").evaluate(box) == [True, True]
    assert page.locator(".scroll:not([tabindex='0'])").count() == 0


def test_nothing_keeps_readers_out(browser: Any, report: Path) -> None:
    """axe-core finds no violation, in either theme and on a phone, with everything unfolded."""
    for scheme, width in (("light", 1280), ("dark", 1280), ("light", 390)):
        watched = _Watched(browser, report, color_scheme=scheme)
        watched.page.set_viewport_size({"width": width, "height": 844})
        found = _violations(watched)
        watched.close()
        assert found == []


def _violations(watched: _Watched) -> list[tuple[str, list[str]]]:
    """Return what axe-core finds that keeps readers out, with everything unfolded."""
    axe = (
        Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
        / "pulsar-lookup"
        / "axe-core-4.14.1"
        / "axe.min.js"
    )
    if not axe.exists():
        pytest.skip("axe-core is not in the cache: scripts/ensure-browser.sh gets it")
    watched.page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    watched.page.evaluate(axe.read_text(encoding="utf-8"))
    found = watched.page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [(entry["id"], [node["target"] for node in entry["nodes"]][:3]) for entry in found]


def test_without_scripts_every_sentence_and_table_is_there(browser: Any, report: Path) -> None:
    """A reader who lets no script run has the answer and the numbers."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())

    assert page.locator("#answer .card p").inner_text()
    assert re.search(r"\d", page.locator("#figures-first-all").inner_text())
    context.close()


def _screenshot(page: Any, report: Path, name: str, *, full_page: bool = True) -> None:
    folder = Path(os.environ.get("REPORT_SCREENSHOTS", report.parent))
    page.screenshot(path=folder / f"report-{name}.png", full_page=full_page)
