"""Write `tune.html`: a finished search as one page of the same form as `report.html`, drawn from what `tune.json` says.

A candidate stands as far from today's point as it was in the batch that it was tried in last: batches differ in
their luck, differences within one do not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any

from lookup.model.quoting import quantity
from lookup.report.blocks import Block, Bullets, Cell, Fold, Paragraph, Section, Table
from lookup.report.charts import ALONE, extent, trade_chart
from lookup.report.html import html_page
from lookup.report.numbers import ARROWS, NOTHING, number_text
from lookup.report.sentences import head_of
from lookup.score.figures import Figure
from lookup.score.rules import name_of
from lookup.tuning.document import read_figures
from lookup.tuning.wording import (
    SEARCHED,
    Figures,
    beside_today,
    figure_rows,
    gain_text,
    label,
    restart_text,
    sentences,
)

__all__ = ["tuning_page"]

_TITLE = "Settings searched"
_TABLE = "candidates-table"
#: Points farther from the others than so many times what the named ones span would press these into one.
_MOST_SPAN = 1.5

_Document = Mapping[str, Any]


def tuning_page(document: _Document) -> str:
    """Return the page of a search."""
    figures = beside_today(read_figures(document))
    tried = [one for one in document["candidates"][1:] if (one["candidate"], SEARCHED) in figures]
    sealed = document["sealed_from"]
    return html_page(
        [
            Section("answer", "The answer", list(_answer(document, figures))),
            Section("front", _front_title(document, figures), list(_front(document, figures))),
            Section("candidates", "Candidates", list(_candidates(document, figures))),
        ],
        title=_TITLE,
        period=f"{_minute(document['first'])} to {_minute(document['last'])} UTC",
        version=version("pulsar-lookup"),
        incumbent=document["incumbent"]["policy"],
        candidates=[str(one["candidate"]) for one in tried],
        replayed=f"sealed from {_minute(sealed)}" if sealed else "nothing sealed",
        clusters=list(dict.fromkeys(one["space"] for one in document["settings"])),
        source="`tune.json` beside it",
    )


def _caution(document: _Document) -> str:
    return "" if document["sealed_from"] else " (not confirmed: no days were sealed)"


def _answer(document: _Document, figures: Figures) -> Iterator[Block]:
    yield Paragraph(document["conclusion"], "lead")
    if not document["sealed_from"]:
        yield Paragraph(
            "No days were sealed. The best of many candidates tends to look better than it is, and this page cannot "
            "show by how much.",
            "note",
        )
    yield Bullets(list(sentences(document)))
    if document["finalists"]:
        heads, rows = figure_rows(document, figures)
        caption = f"Each figure and its gain over today, up is better{_caution(document)}"
        texts = [place for place, head in enumerate(heads) if head.startswith(("candidate", "answer"))]
        yield Table(heads, rows, "finalists-table", caption, texts=texts)
    for one in document["recommended"]:
        lines = [f"`{line}`" for line in (*one["patch"].splitlines(), *one["dynamic"])]
        blocks: list[Block] = [Bullets(lines)]
        if one.get("restart"):
            blocks.append(Paragraph(restart_text(one["restart"])))
        if one.get("caution"):
            blocks.append(Paragraph(one["caution"]))
        if one["back"]:
            blocks += [Paragraph("And back:"), Bullets([f"`{line}`" for line in one["back"]])]
        yield Fold(f"How to change to candidate {one['candidate']}, and back", blocks)


def _front_title(document: _Document, figures: Figures) -> str:
    chosen = _axes(document, figures)
    if chosen is None:
        return "One aim against another"
    across, up = (head_of(name_of(name)) for name in chosen)
    return f"{up[0].upper()}{up[1:]} against {across}"


def _axes(document: _Document, figures: Figures) -> tuple[str, str] | None:
    """Return the figures to the right and upwards: the two that matter most; None if there is but one."""
    names = dict.fromkeys([*document["objectives"], *document["prices"], "moves"])
    known = [name for name in names if not math.isnan(figures[0, SEARCHED][name].value)][:2]
    if len(known) < 2:
        return None
    # As on the page of a run balance lies to the right.
    first, second = known
    return (second, first) if second == "imbalance_max_mean" else (first, second)


def _front(document: _Document, figures: Figures) -> Iterator[Block]:
    chosen = _axes(document, figures)
    if chosen is None:
        yield Paragraph("This search has no two figures to set against each other.", "note")
        return
    rows = [*_dots(document, figures, chosen)]
    named = {"today", *(row[0] for row in rows if row[1] != "tried")}
    drawn = [row for row in rows if row[0] in named]
    domains = []
    for low in (3, 6):
        ends = [*(row[low] for row in drawn), *(row[low + 1] for row in drawn)]
        least, most = extent(ends)
        # A point far off stays in the table; it would press all others into one.
        reach = (_MOST_SPAN - 1.0) * (most - least)
        inside = [row[low - 1] for row in rows if least - reach <= row[low - 1] <= most + reach]
        domains.append(extent([*ends, *inside]))
    (left, right), (bottom, top) = domains
    seen = [row for row in rows if left <= row[2] <= right and bottom <= row[5] <= top]
    if len(seen) > 1:
        heads = [f"{head_of(name_of(name))} {_arrow(name, document)}" for name in chosen]
        yield trade_chart(
            "front-chart", f"In the search{_caution(document)}", seen, domains, titles=(heads[1], heads[0]),
            shape=ALONE, named=named,
        )  # fmt: skip
    outside = len(rows) - len(seen)
    left_out = f" The chart leaves {quantity(outside, 'distant candidate')} to the table." if outside else ""
    kinds = "Black marks today’s settings, blue the recommended candidate, green other finalists, grey the rest"
    kinds += ", orange Pulsar’s defaults" if any(row[1] == "defaults" for row in rows) else ""
    yield Paragraph(
        f"{kinds}. Larger points move more bundles. Lines are 95 % intervals of the difference from today’s settings. "
        f"They do not correct for the choice of the best among many, which the sealed days do.{left_out}",
        "note",
    )


def _dots(document: _Document, figures: Figures, chosen: tuple[str, str]) -> Iterator[list[Any]]:
    today = figures[0, SEARCHED]
    ends = [today[name].value for name in chosen for _ in range(3)]
    yield ["today", "incumbent", *ends, _known(today["moves"].value), *_texts(today, chosen)]
    dots: list[list[Any]] = []
    for one in document["candidates"][1:]:
        of = figures.get((one["candidate"], SEARCHED))
        if of is None or any(math.isnan(of[name].change) for name in chosen):
            continue
        role = _role(one, document)
        spans = [end for name in chosen for end in _span(of[name], has_width=role != "tried")]
        dots.append([_name(one), role, *spans, _known(of["moves"].value), *_texts(of, chosen)])
    order = ["recommended", "candidate", "defaults", "tried"]
    yield from sorted(dots, key=lambda dot: order.index(dot[1]))


def _texts(figures: Mapping[str, Figure], chosen: tuple[str, str]) -> list[str]:
    across, up = chosen
    return [_text(_known(figures[name].value)) for name in (up, across, "moves")]


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _span(figure: Figure, *, has_width: bool) -> tuple[float, float, float]:
    at = figure.value
    if not (has_width and figure.has_interval):
        return at, at, at
    return at, at + figure.change_low - figure.change, at + figure.change_high - figure.change


def _candidates(document: _Document, figures: Figures) -> Iterator[Block]:
    keys = list(dict.fromkeys(one["key"] for one in document["settings"]))
    today = {(space, one["key"]): one["today"] for one in document["settings"] for space in (None, one["space"])}
    names = dict.fromkeys([*document["objectives"], *document["prices"], *document["limits"], "moves"])
    judged = {one["candidate"]: one["objection"] or "recommended" for one in document["finalists"]}
    rows: list[list[str | Cell]] = []
    for one in document["candidates"]:
        of = figures.get((one["candidate"], SEARCHED))
        if of is None:
            continue
        values = [one["changes"].get(key, today.get((one["space"], key))) for key in keys]
        beaten = None if one["beaten_by"] is None else f"{one['beaten_by']} is significantly better"
        answer = judged.get(one["candidate"]) or beaten or one["idle"] or ""
        cells = [
            Cell(_text(_known(figure.value)), "" if math.isnan(figure.change) else gain_text(figure))
            for figure in (of[name] for name in names)
        ]
        about = [_name(one), one["origin"], one["space"] or NOTHING, answer]
        rows.append([*about, *map(_text, map(_plain, values)), *cells])
    names_shown = (f"{_arrow(name, document)} {label(name, document)}" for name in names)
    heads = ["candidate", "origin", "space", "answer", *keys, *names_shown]
    yield Paragraph(
        "Small type shows the gain over today's settings in the candidate's last batch, with its 95 % interval. "
        "Positive gains are improvements. Each figure is today's value plus this gain. To filter a column, type a "
        "text, `<5`, `>=0.3` or `2..4`."
    )
    choices = {one["key"] for one in document["settings"] if one["scale"] == "choices"}
    texts = [*range(4), *(place + 4 for place, key in enumerate(keys) if key in choices)]
    yield Table(heads, rows, _TABLE, f"Candidates{_caution(document)}", texts=texts, is_filtered=True)


def _role(one: _Document, document: _Document) -> str:
    for role, part in (("recommended", "recommended"), ("candidate", "finalists")):
        if any(one["candidate"] == other["candidate"] for other in document[part]):
            return role
    return one["origin"] if one["origin"] in ("incumbent", "defaults") else "tried"


def _minute(written: str) -> str:
    return written[:16].replace("T", " ")


def _name(one: _Document) -> str:
    number = str(one["candidate"]) if one["candidate"] else "today"
    return f"{number} (defaults)" if one["origin"] == "defaults" else number


def _arrow(name: str, document: _Document) -> str:
    return ARROWS["up" if name in document["rising"] else "down"]


def _plain(value: object) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or isinstance(value, int | float):
        return value
    # A class of Pulsar by its last name.
    return str(value).rpartition(".")[2] if str(value).startswith("org.") else str(value)


def _text(value: Any) -> str:
    if value is None:
        return NOTHING
    return number_text(float(value)) if isinstance(value, int | float) else str(value)
