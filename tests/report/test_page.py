"""`report.html`: its policy, its numbers, its size."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from lookup.report.cards import cards
from lookup.report.caveats import caveats
from lookup.report.comparison import (
    LIGHT_MARKS,
    MARKS,
    OPEN_MARKS,
    UNJUDGED,
    interval_text,
    label,
    mark_of,
    signed_text,
    value_text,
    word_of,
)
from lookup.report.folder import read_run
from lookup.report.page import html_report
from lookup.report.wording import comparisons, conclusion, differing, outcomes, terms, undecided_figures
from lookup.report.words import amount_text, change_text, span_text
from tests.report.results import result, varied
from tests.report.runs import broad, write_earlier, write_run

_VENDORED = files("lookup.report") / "assets" / "vega"
_MARKS = "".join({*MARKS.values(), *OPEN_MARKS.values(), *LIGHT_MARKS.values(), UNJUDGED})


@dataclass
class _Table:
    caption: str = ""
    rows: list[list[str]] = field(default_factory=list)


class _Page(HTMLParser):
    """Texts of a page, its tables by id, and the contents of its scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, _Table] = {}
        self.ids: list[str] = []
        self.raw: list[tuple[str, dict[str, str | None], str]] = []
        self.meta: dict[str, str] = {}
        self.texts: list[str] = []
        self._open: list[tuple[str, dict[str, str | None]]] = []
        self._table = _Table()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag == "meta":
            self.meta[str(named.get("http-equiv") or named.get("name"))] = str(named.get("content"))
            return
        self._open.append((tag, named))
        self.ids += [str(named["id"])] if "id" in named else []
        if tag == "table":
            self._table = self.tables[str(named["id"])] = _Table()
        elif tag == "tr":
            self._table.rows.append([])
        elif tag in ("td", "th"):
            self._table.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        tags = [tag for tag, _ in self._open]
        if tags and tags[-1] in ("script", "style"):
            self.raw.append((*self._open[-1], data))
        elif "small" in tags:
            self._table.rows[-1][-1] += f" {data}"
        elif "td" in tags or "th" in tags:
            self._table.rows[-1][-1] += data
        elif data.strip():
            self.texts.append(" ".join(data.split()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a run that has something for every section."""
    return broad(tmp_path_factory.mktemp("runs") / "run", policies=4, clusters=2, hours=48)


@pytest.fixture(scope="module")
def page(folder: Path) -> _Page:
    """Render that run."""
    return _Page(html_report(read_run(str(folder))))


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


# What the page lets in


def test_the_policy_names_every_script_and_style_and_nothing_else(page: _Page) -> None:
    """Only what stands in the page runs, by its hash; nothing is loaded."""
    directives = dict(part.strip().split(" ", 1) for part in page.meta["Content-Security-Policy"].split(";"))
    scripts = [text for tag, attrs, text in page.raw if tag == "script" and "type" not in attrs]
    styles = [text for tag, _, text in page.raw if tag == "style"]

    assert directives == {
        "default-src": "'none'",
        "script-src": " ".join(map(_hash, scripts)),
        "style-src": " ".join(map(_hash, styles)),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert len(scripts) == 4


def test_no_element_refers_to_anything_outside(folder: Path) -> None:
    """No address, no style attribute, no handler in an attribute: the policy would refuse them."""
    text = re.sub(r"<(script|style).*?</\1>", "", html_report(read_run(str(folder))), flags=re.DOTALL)

    assert not re.search(r"<[^>]* (src|style|on\w+|action|srcset|poster)=", text)
    assert all(target.startswith("#") for target in re.findall(r'href="([^"]*)"', text))


def test_names_cannot_break_out(tmp_path: Path) -> None:
    """A path or a policy with tags in its name is text, in tables and in the data of charts."""
    evil = "</script><script>alert(1)</script><img src=x>"
    folder = write_run(tmp_path / "run", result(), command=["lookup", evil])
    content = json.loads((folder / "summary.json").read_text().replace('"new"', json.dumps(evil)))
    (folder / "summary.json").write_text(json.dumps(content))
    text = html_report(read_run(str(folder)))

    (chart,) = (chart for chart in _charts(_Page(text)) if chart["id"] == "delta-chart")
    assert evil not in text
    assert "<img src=x>" not in text
    assert evil in {row[chart["fields"].index("policy")] for row in chart["rows"]}


def test_vendored_scripts_are_those_of_their_releases() -> None:
    """Every file beside the digests has the one that scripts/vendor-vega.sh wrote down, licences included."""
    named = dict(reversed(line.split("  ")) for line in (_VENDORED / "SHA256SUMS").read_text().splitlines())
    there = {entry.name: hashlib.sha256(entry.read_bytes()).hexdigest() for entry in _VENDORED.iterdir()}
    script = (Path(__file__).parents[2] / "scripts" / "vendor-vega.sh").read_text()

    assert {name: digest for name, digest in there.items() if name != "SHA256SUMS"} == named
    for package, version in re.findall(r"^(vega[\w-]*) ([\d.]+) \w{128}$", script, re.MULTILINE):
        assert f'"{version}"' in (_VENDORED / f"{package}.min.js").read_text()
        assert f"LICENSE-{package}.txt" in there


# What it says


def test_the_answer_has_the_words_of_the_report(folder: Path, page: _Page) -> None:
    """The answers, the conclusion, what is undecided and every caveat stand in it as in report.md."""
    scored, text = read_run(str(folder)).scored, " ".join(page.texts)
    markdown = (folder / "report.md").read_text(encoding="utf-8")

    named = outcomes(scored)
    whole = [conclusion(scored), *undecided_figures(scored), *comparisons(scored)]
    assert len(cards(scored).items) == 3
    for card in cards(scored).items:
        for sentence in (card.sentence, card.certainty, card.step):
            assert sentence in text
            assert sentence in markdown
    for sentence in (*named, *whole, *caveats(scored)):
        assert sentence.partition(": ")[2 if sentence in named else 0] in text
        assert sentence in markdown
    for policy in scored.candidates:
        assert differing(scored, policy) in text


def _summary(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return content


def _written(row: dict[str, Any]) -> tuple[str, str]:
    nan = float("nan")
    value, low, high = (nan if row[name] is None else row[name] for name in ("value", "low", "high"))
    interval = interval_text(low, high, row["unit"])
    return value_text(value, row["unit"]), "" if interval == "–" else interval


@pytest.mark.parametrize(("table", "cluster"), [("comparison-table", None), ("comparison-cluster-1", "cluster-1")])
def test_every_figure_is_that_of_the_summary(folder: Path, page: _Page, table: str, cluster: str | None) -> None:
    """Each cell has value and interval of its figure and policy; each figure of the summary has its cell."""
    wanted = {
        (label(row["metric"], row["key"]), row["policy"]): _written(row)
        for row in _summary(folder)["metrics"]
        if row["cluster"] == cluster and row["by"] is None
    }
    head, *rows = page.tables[table].rows
    policies = [name.removesuffix(" (incumbent)") for name in head[2:]]

    shown = {}
    for name, _, *cells in rows:
        for policy, cell in zip(policies, cells, strict=True):
            value, _, interval = re.sub(f" [{_MARKS}]", "", cell).partition(" ")
            shown[re.sub(r"^[↑↓] | \*$", "", name), policy] = value, interval
    assert shown == wanted


def test_every_figure_of_a_card_is_that_of_the_summary(folder: Path, page: _Page) -> None:
    """Both figures, the change and its interval are rounded from it; they stand on the page as they are."""
    scored, text = read_run(str(folder)).scored, " ".join(page.texts)
    rows = {
        (label(row["metric"], row["key"]), row["policy"]): row
        for row in _summary(folder)["metrics"]
        if row["cluster"] is None and row["by"] is None
    }
    shown = [(card.title, facet) for card in cards(scored).items for facet in (*card.gains, *card.costs)]

    assert len(shown) > 3
    for policy, facet in shown:
        before, after = rows[facet.name, "policy-00"], rows[facet.name, policy]
        metric = scored.metric[after["metric"]]
        (verdict,) = (v for v in scored.verdicts if (label(*v.name), v.policy) == (facet.name, policy))
        sign = 1 if metric.better == "up" else -1
        assert (facet.before, facet.after) == tuple(amount_text(row["value"], metric) for row in (before, after))
        assert facet.change == change_text(before["value"], after["value"], metric)
        assert facet.span == span_text(*sorted((sign * verdict.low, sign * verdict.high)), metric)
        assert f"{facet.before} → {facet.after} {facet.change}, {facet.word} {facet.name}" in text
        assert facet.span in text


def test_every_difference_is_that_of_the_summary(folder: Path, page: _Page) -> None:
    """The numbers below the bars, and the bars themselves, are the verdicts' differences and intervals."""
    scored = read_run(str(folder)).scored
    metrics = {metric.name: metric for metric in scored.metrics}
    drawn = [verdict for verdict in scored.verdicts if verdict.delta == verdict.delta]
    moving = {(v.metric, v.key) for v in drawn if v.delta}
    wanted, ends = {}, {}
    for v in (verdict for verdict in drawn if (verdict.metric, verdict.key) in moving):
        metric, name = metrics[v.metric], (label(v.metric, v.key), v.policy)
        turn = 1 if metric.better == "up" else -1
        change, low, high = (turn * v.delta, *sorted((turn * v.low, turn * v.high)))
        wanted[name] = (
            f"{signed_text(change, metric.unit)} {metric.unit}",
            interval_text(low, high, metric.unit),
            f"{mark_of(v)} {word_of(v)}",
        )
        ends[name] = change
    chart = next(chart for chart in _charts(page) if chart["id"] == "delta-chart")

    rows = page.tables["delta-table"].rows[1:]
    assert {(name.strip("↑↓* "), policy): tuple(rest) for name, policy, *rest in rows} == wanted
    assert {(name.strip("↑↓* "), policy): change for name, policy, change, *_ in chart["rows"]} == ends


def test_every_kind_of_verdict_stands_on_the_page(tmp_path: Path) -> None:
    """Light and open marks and identical figures below the bars, and the caveats of clusters, hours and luck."""
    page = _Page(html_report(read_run(str(write_run(tmp_path / "run", varied())))))

    words = {(name.strip("↑↓* "), policy): word for name, policy, *_, word in page.tables["delta-table"].rows[1:]}
    assert words["match_ratio[zone]", "new"] == "▴ inconclusive"
    assert words["moves", "old"] == "▾ inconclusive"
    assert words["imbalance_max_mean", "new"] == "▽ worse"
    assert words["match_ratio[rack]", "old"] == "≡ identical"
    assert words["answered_ratio", "old"] == "? inconclusive"
    text = " ".join(page.texts)
    assert "clusters disagree, better in c (+0.1000 ratio)" in text
    assert "(△ ▽): imbalance_max_mean of new." in text
    assert "answered_ratio of old (exit code 4)." in text


def test_points_of_the_trade_are_those_of_the_summary(folder: Path, page: _Page) -> None:
    """Locality and imbalance, each with the interval of its difference, and the moves; so are the texts below."""
    rows = {
        (row["metric"], row["key"], row["policy"]): row
        for row in _summary(folder)["metrics"]
        if row["cluster"] is None and row["by"] is None
    }
    chart = next(chart for chart in _charts(page) if chart["id"] == "trade-chart")
    points = [dict(zip(chart["fields"], row, strict=True)) for row in chart["rows"]]
    cells = {policy: texts for policy, *texts in page.tables["trade-table"].rows[1:]}

    assert len(points) == 4
    for point in points:
        near, even = rows["match_ratio", "rack", point["policy"]], rows["imbalance_max_mean", None, point["policy"]]
        assert [point[name] for name in ("y", "y_low", "y_high")] == _beside(folder, near)
        assert [point[name] for name in ("x", "x_low", "x_high")] == _beside(folder, even)
        moved = rows["moves", None, point["policy"]]
        assert point["moves"] == moved["value"]
        texts = [_written(row) for row in (near, even, moved)]
        assert [point[name] for name in ("up", "across", "moved")] == [value for value, _ in texts]
        assert cells[point["policy"]] == [f"{value} {interval}".strip() for value, interval in texts]


def _beside(folder: Path, row: dict[str, Any]) -> list[Any]:
    """Return a figure, and the interval of its difference from the incumbent's where that stands."""
    value = row["value"]
    for verdict in _summary(folder)["verdicts"]:
        if all(verdict[name] == row[name] for name in ("policy", "metric", "key")) and verdict["low"] is not None:
            sign = 1 if row["direction"] == "up" else -1
            bounds = sorted(sign * (verdict[name] - verdict["delta"]) for name in ("low", "high"))
            return [value, *(pytest.approx(value + bound) for bound in bounds)]
    return [value, value, value]


def _charts(page: _Page) -> list[dict[str, Any]]:
    (text,) = (text for _, attrs, text in page.raw if attrs.get("id") == "charts")
    charts: list[dict[str, Any]] = json.loads(text)
    return charts


def test_every_part_shown_is_one_of_the_summary(folder: Path, page: _Page) -> None:
    """Incumbent's and candidate's figure, the change between them, and no change that is a gain."""
    rows = {
        (row["by"]["rack"], label(row["metric"], row["key"]), row["policy"]): row
        for row in _summary(folder)["metrics"]
        if row["cluster"] is None and row["by"] is not None
    }
    shown = page.tables["parts-rack"].rows[1:]

    assert len(shown) == 3
    for part, figure, candidate, before, after, change, unit in shown:
        first, second = rows[part, figure, "policy-00"], rows[part, figure, candidate]
        assert [before, after] == [value_text(row["value"], unit) for row in (first, second)]
        assert change == signed_text(second["value"] - first["value"], unit)
        assert second["value"] < first["value"]


def test_verdicts_have_their_tables(page: _Page) -> None:
    """One for each candidate, with a row for each figure that was judged."""
    assert {name for name in page.tables if name.startswith("verdicts-")} == {
        f"verdicts-policy-0{n}" for n in (1, 2, 3)
    }
    assert len({len(page.tables[f"verdicts-policy-0{number}"].rows) for number in (1, 2, 3)}) == 1


def test_ids_are_unique(page: _Page) -> None:
    """Links and labels mean one element each."""
    assert len(page.ids) == len(set(page.ids))


def test_the_answers_stand_first(folder: Path, page: _Page) -> None:
    """Before the conclusion, and that before all that is counted."""
    scored, text = read_run(str(folder)).scored, " ".join(page.texts)

    order = [cards(scored).items[0].sentence, conclusion(scored), next(comparisons(scored))]
    places = [text.index(sentence) for sentence in order]
    assert places == sorted(places)


def test_figures_and_words_are_explained(folder: Path, page: _Page) -> None:
    """Each figure of the run and each word of the report has a line, in a list that keys can unfold."""
    text = " ".join(page.texts)

    for word, meaning in terms(read_run(str(folder)).scored):
        assert word in text
        assert " ".join(meaning.partition("`")[0].split()) in text


def test_a_run_without_parts_says_how_to_get_them(tmp_path: Path) -> None:
    """By the argument's name and its values."""
    bare = result()
    bare = replace(bare, estimates=[figure for figure in bare.estimates if not figure.series.by])
    page = _Page(html_report(read_run(str(write_run(tmp_path / "run", bare)))))

    assert "by = tenant, namespace, rack or hour." in " ".join(page.texts)


def test_a_run_without_tables_says_so(tmp_path: Path) -> None:
    """Sections that cannot be drawn have a sentence in their place; the rest of the page is there."""
    page = _Page(html_report(read_run(str(write_run(tmp_path / "run", result())))))

    text = " ".join(page.texts)
    assert text.count("no tables of load and flows: ") == 3
    assert "comparison-table" in page.tables
    assert [chart["id"] for chart in _charts(page)] == ["delta-chart"]


def test_a_run_of_an_earlier_version_has_a_page(tmp_path: Path) -> None:
    """Without margins and winners: bars have no band."""
    page = _Page(html_report(read_run(str(write_earlier(tmp_path / "run", varied())))))

    (chart,) = (chart for chart in _charts(page) if chart["id"] == "delta-chart")
    assert {row[chart["fields"].index("margin")] for row in chart["rows"]} == {None}


def test_a_broad_run_stays_small(tmp_path: Path) -> None:
    """Sixteen policies over three clusters and a week are at most 1.5 MB."""
    folder = broad(tmp_path / "run", policies=16, clusters=3, hours=168)

    assert len(html_report(read_run(str(folder))).encode()) <= 1_500_000
