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

from lookup.report.figures import read_run
from lookup.report.numbers import amount_text, change_text, interval_text, signed_text, span_text, value_text
from lookup.report.page import html_report
from lookup.report.sentences import (
    LIGHT_MARKS,
    MARKS,
    OPEN_MARKS,
    UNJUDGED,
    answer,
    card,
    cautions,
    definitions,
    rank_candidates,
)
from lookup.score.figures import Figure
from tests.report.results import result, varied
from tests.report.runs import broad, write_run

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
    folder = write_run(tmp_path / "run", varied(), command=["lookup", evil])
    content = json.loads((folder / "summary.json").read_text().replace('"new"', json.dumps(evil)))
    (folder / "summary.json").write_text(json.dumps(content))
    text = html_report(read_run(str(folder)))

    (chart,) = (chart for chart in _charts(_Page(text)) if chart["id"] == "trade-chart")
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


def _rows(folder: Path, **chosen: Any) -> dict[tuple[str, str], Figure]:
    """Return the figures of a run by label and policy, those with some columns."""
    rows = read_run(str(folder)).results.figures
    wanted = [row for row in rows if all(getattr(row, name) == value for name, value in chosen.items())]
    return {(row.label, row.policy): row for row in wanted}


def _written(row: Figure) -> tuple[str, str]:
    interval = interval_text(row.low, row.high, row.unit)
    return value_text(row.value, row.unit), "" if interval == "–" else interval


def test_the_answer_has_the_words_of_the_report(folder: Path, page: _Page) -> None:
    """The answer, the cards and every caution are on the page as they are in report.md; the answer comes first."""
    results, text = read_run(str(folder)).results, " ".join(page.texts)
    markdown = (folder / "report.md").read_text(encoding="utf-8")

    cards = [card(results, name, str(folder)) for name in rank_candidates(results)]
    sentences = [answer(results).sentence.partition(": ")[2], *cautions(results)]
    for sentence in (*sentences, *(part for each in cards for part in (each.certainty, each.step))):
        assert sentence in text
        assert sentence in markdown
    assert text.index(answer(results).sentence) < text.index(cards[0].certainty) < text.index(cautions(results)[0])


@pytest.mark.parametrize(
    ("table", "chosen"),
    [
        ("figures-every-all", {"scope": "all clusters"}),
        ("figures-every-cluster-1", {"scope": "cluster", "cluster": "cluster-1"}),
    ],
)
def test_every_figure_is_that_of_the_summary(folder: Path, page: _Page, table: str, chosen: dict[str, str]) -> None:
    """Each cell has value and interval of its figure and policy; each figure of the summary has its cell."""
    wanted = {key: _written(row) for key, row in _rows(folder, **chosen).items()}
    head, *rows = page.tables[table].rows
    policies = [name.removesuffix(" (incumbent)") for name in head[2:]]

    shown = {}
    for name, _, *cells in rows:
        for policy, cell in zip(policies, cells, strict=True):
            value, _, interval = re.sub(f" [{_MARKS}]", "", cell).partition(" ")
            shown[re.sub(r"^[↑↓] | \*$", "", name), policy] = value, interval
    assert shown == wanted


def test_every_figure_of_a_card_is_that_of_the_summary(folder: Path, page: _Page) -> None:
    """Both values, the change and its interval are rounded from it; they stand on the page as they are."""
    results, text, rows = read_run(str(folder)).results, " ".join(page.texts), _rows(folder, scope="all clusters")
    shown = [
        (name, facet) for name in results.candidates for _, facets, _ in card(results, name).rows for facet in facets
    ]

    assert len(shown) > 3
    for policy, facet in shown:
        before, after = rows[facet.name, "policy-00"], rows[facet.name, policy]
        assert (facet.before, facet.after) == tuple(amount_text(row.value, row) for row in (before, after))
        assert facet.change == change_text(before.value, after.value, after)
        assert facet.span == span_text(after.change_low, after.change_high, after)
        assert f"{facet.before} → {facet.after} ({facet.change}), {facet.word} {facet.name}" in text
        assert facet.span in text


def test_every_verdict_is_that_of_the_summary(folder: Path, page: _Page) -> None:
    """With change, interval and reason, in a table for each candidate."""
    rows = _rows(folder, scope="all clusters")

    for policy in ("policy-01", "policy-02", "policy-03"):
        shown = {name.removesuffix(" *"): cells for name, *cells in page.tables[f"verdicts-{policy}"].rows[1:]}
        judged = {label: row for (label, of), row in rows.items() if of == policy and row.verdict is not None}
        assert shown.keys() == judged.keys()
        for label, (_, change, interval, _, reason) in shown.items():
            row = judged[label]
            assert change == ("–" if row.change != row.change else f"{signed_text(row.change, row.unit)} {row.unit}")
            assert (interval, reason) == (interval_text(row.change_low, row.change_high, row.unit), row.reason or "")


def test_points_of_the_trade_are_those_of_the_summary(folder: Path, page: _Page) -> None:
    """Locality and imbalance, each with the interval of its change, and the moves; so are the texts below."""
    rows = _rows(folder, scope="all clusters")
    chart = next(chart for chart in _charts(page) if chart["id"] == "trade-chart")
    points = [dict(zip(chart["fields"], row, strict=True)) for row in chart["rows"]]
    cells = {policy: texts for policy, *texts in page.tables["trade-table"].rows[1:]}

    assert len(points) == 4
    for point in points:
        labels = ("match_ratio[rack]", "imbalance_max_mean", "moves")
        near, even, moved = (rows[label, point["policy"]] for label in labels)
        assert [point[name] for name in ("y", "y_low", "y_high")] == _ends(near)
        assert [point[name] for name in ("x", "x_low", "x_high")] == _ends(even)
        assert point["moves"] == moved.value
        texts = [_written(row) for row in (near, even, moved)]
        assert [point[name] for name in ("up", "across", "moved")] == [value for value, _ in texts]
        assert cells[point["policy"]] == [f"{value} {interval}".strip() for value, interval in texts]


def _ends(row: Figure) -> list[Any]:
    """Return a value, and the interval of its change from it."""
    ends = (row.change_low, row.change_high) if row.has_interval else (0.0, 0.0)
    change = row.change if row.has_interval else 0.0
    return [row.value, *(pytest.approx(row.value + end - change) for end in ends)]


def _charts(page: _Page) -> list[dict[str, Any]]:
    (text,) = (text for _, attrs, text in page.raw if attrs.get("id") == "charts")
    charts: list[dict[str, Any]] = json.loads(text)
    return charts


def test_every_part_shown_is_one_of_the_summary(folder: Path, page: _Page) -> None:
    """Incumbent's and candidate's value, the change between them, and no change that is a gain."""
    shown = page.tables["parts-rack"].rows[1:]

    assert len(shown) == 3
    for part, figure, candidate, before, after, change, unit in shown:
        rows = _rows(folder, scope="part", part=part)
        first, second = rows[figure, "policy-00"], rows[figure, candidate]
        assert [before, after] == [value_text(row.value, unit) for row in (first, second)]
        assert change == signed_text(second.value - first.value, unit)
        assert second.value < first.value


def test_figures_and_words_are_explained(folder: Path, page: _Page) -> None:
    """Each figure of the run and each word of the report has a line, in a list that keys can unfold."""
    text = " ".join(page.texts)

    for word, meaning in definitions(read_run(str(folder)).results):
        assert word in text
        assert " ".join(meaning.partition("`")[0].split()) in text


def test_a_run_without_parts_says_how_to_get_them(tmp_path: Path) -> None:
    """By naming the dimensions."""
    bare = replace(result(), figures=[row for row in result().figures if row.dimension is None])
    page = _Page(html_report(read_run(str(write_run(tmp_path / "run", bare)))))

    assert "evaluate by tenant, namespace, rack, hour or several" in " ".join(page.texts)


def test_a_run_without_tables_says_so(tmp_path: Path) -> None:
    """In place of what cannot be drawn is a sentence; the rest of the page is there."""
    page = _Page(html_report(read_run(str(write_run(tmp_path / "run", result())))))

    assert " ".join(page.texts).count("no tables of load and flows") == 1
    assert "figures-every-all" in page.tables
    assert _charts(page) == []


def test_a_broad_run_stays_small(tmp_path: Path) -> None:
    """Sixteen policies over three clusters and a week are at most 1.2 MB."""
    folder = broad(tmp_path / "run", policies=16, clusters=3, hours=168)

    assert len(html_report(read_run(str(folder))).encode()) <= 1_200_000
