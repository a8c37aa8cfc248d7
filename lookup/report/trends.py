"""Read many finished runs, and line up their figures by when the runs started.

Where settings have changed what a figure means, a new stretch of its points begins: points of two stretches are not
joined. Intervals are those of the runs, each for itself.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from typing import Any

import pyarrow.fs as pafs

from lookup.errors import InputError, PulsarLookupError, SettingsError
from lookup.hooks import Metric
from lookup.logs.sources import locate
from lookup.model.quoting import listed, quantity, shown
from lookup.report.blocks import Block, Bullets, Heading, Paragraph, Table
from lookup.report.comparison import NOTHING, label, value_text
from lookup.report.difference import (
    MOST_ROWS,
    Change,
    Difference,
    cautions,
    compare_runs,
    fingerprints_of,
    headline,
    legend,
    primary_names,
    why_incomparable,
    with_unit,
)
from lookup.report.folder import read_run
from lookup.report.markdown import markdown
from lookup.score.luck import Estimate

__all__ = [
    "CSV_HEADS", "DatedRun", "Point", "Trend", "Trends", "csv_rows", "left_out", "notes_of", "read_trends",
    "runs_table", "summary_of", "trends_markdown", "trends_table",
]  # fmt: skip

#: Columns of a history for programs, one row per point.
CSV_HEADS = tuple("run started exit_code policy figure unit better primary stretch value low high".split())
#: Heads of the table of runs.
_RUN_HEADS = ("#", "started, UTC", "run", "exit code", "not as in the run before")
#: From the lowest value of a stretch to its highest; what stands between two stretches, and for a run without a figure.
_BLOCKS, _BREAK, _GAP = "▁▂▃▄▅▆▇█", "/", "·"
#: Runs of a line of blocks.
_MOST_BLOCKS = 24
#: Folders that are read at the same time; most of the time is spent waiting for a store.
_THREADS = 8


@dataclass(frozen=True)
class DatedRun:
    """A finished run as a history needs it; a whole one, with its parts and clusters, may be a hundred times as big."""

    #: path or URI
    path: str
    started: datetime
    exit_code: int
    incumbent: str
    clusters: Sequence[str]
    manifest: Mapping[str, Any]
    #: metric and key of the figures that may decide its exit code
    primary: Set[tuple[str, str | None]]
    metrics: Mapping[str, Metric]
    #: by policy, metric and key
    figures: Mapping[tuple[str, str, str | None], Estimate]

    @property
    def day(self) -> str:
        """Return the start as tables have it, in UTC."""
        return f"{self.started:%Y-%m-%d %H:%M}"


@dataclass(frozen=True, slots=True)
class Point:
    """What a figure was in one run."""

    #: of the run, from 0 for the one that started first
    number: int
    value: float
    #: NaN if the run has no interval
    low: float
    high: float
    #: points of the same stretch mean the same
    stretch: int


@dataclass(frozen=True)
class Trend:
    """One figure of one policy in all runs that have it, pooled over clusters."""

    policy: str
    name: str
    unit: str
    #: which direction is better: "up", "down" or "info"
    better: str
    #: whether it may decide the exit code of the newest run
    primary: bool
    points: tuple[Point, ...]
    #: from the run before to the newest; None if one of the two has no such policy
    newest: Change | None

    @property
    def has_changed(self) -> bool:
        """Return whether the figure was not the same in all runs."""
        return len({point.value for point in self.points}) > 1

    @property
    def rank(self) -> tuple[bool, bool, bool]:
        """Return by what trends are sorted: primary figures first, then what has just changed, then what ever has."""
        return not self.primary, not (self.newest and self.newest.is_certain), not self.has_changed

    def blocks(self, runs: int) -> str:
        """Return a line of blocks, one for each of the newest runs, each stretch from its lowest to its highest value.

        Args:
            runs: how many there are.
        """
        line, before = [], None
        numbers = range(max(0, runs - _MOST_BLOCKS), runs)
        shown_points = {point.number: point for point in self.points if point.number in numbers}
        for number in numbers:
            point = shown_points.get(number)
            if point is None:
                line.append(_GAP)
                continue
            if before not in (None, point.stretch):
                line.append(_BREAK)
            before = point.stretch
            values = [other.value for other in shown_points.values() if other.stretch == point.stretch]
            span = max(values) - min(values)
            # What does not change has no highest value.
            share = (point.value - min(values)) / span if span else 0.0
            line.append(_BLOCKS[round(share * (len(_BLOCKS) - 1))])
        return "".join(line)


@dataclass(frozen=True)
class Trends:
    """The figures of runs over time."""

    #: by start, the newest last
    runs: tuple[DatedRun, ...]
    #: those that matter most first
    trends: tuple[Trend, ...]
    #: between the last two runs; None if there is only one
    newest: Difference | None

    @property
    def changes(self) -> tuple[str, ...]:
        """Return for each run in words what is not as in the run before; an empty text for nothing."""
        return ("", *(_changes(before, now) for before, now in pairwise(self.runs)))

    def document(self) -> dict[str, Any]:
        """Return the history as JSON has it."""
        runs = [
            {"run": run.path, "started": run.started.isoformat(), "exit_code": run.exit_code, "changes": changes}
            for run, changes in zip(self.runs, self.changes, strict=True)
        ]
        rows = [dict(zip(CSV_HEADS, row, strict=True)) for row in csv_rows(self)]
        return {"runs": runs, "points": rows}


def read_trends(folders: Sequence[str], warn: Callable[[str], None]) -> Trends:
    """Read runs, and all runs that lie below folders that are none.

    A run that was named must be readable. One that was found is left out if it is not, with a warning: a store of
    artefacts may hold runs that other versions have written, or that were cut off.

    Args:
        folders: paths or URIs.
        warn: is handed a sentence for each run that is left out.

    Raises:
        SettingsError: for all folders together that are no runs and hold none, or are runs that cannot be read.
    """
    problems, runs = [], dict[str, DatedRun]()
    for folder in dict.fromkeys(path.rstrip("/") or path for path in folders):
        try:
            paths = sorted(_runs_in(folder, warn))
        except InputError as error:
            problems.append(str(error))
            continue
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="history") as pool:
            dated = list(pool.map(_dated, paths))
        refused = [str(run) for run in dated if not isinstance(run, DatedRun)]
        if len(refused) == len(paths):
            what = f"{folder}: holds {quantity(len(paths), 'run')}, none of which can be read; the first: {refused[0]}"
            problems += refused if paths == [folder] else [what]
            continue
        for sentence in refused:
            warn(f"left out: {sentence}")
        # A run may be named, and lie below another folder that is.
        runs |= {_identity(*locate(run.path)): run for run in dated if isinstance(run, DatedRun)}
    if problems:
        raise SettingsError(problems)
    ordered = tuple(sorted(runs.values(), key=lambda run: (run.started, run.path)))
    newest = compare_runs(*(read_run(run.path) for run in ordered[-2:])) if len(ordered) > 1 else None
    return Trends(ordered, _lined_up(ordered, newest), newest)


def _runs_in(path: str, warn: Callable[[str], None]) -> Iterator[str]:
    """Yield a folder if it is a run, else the runs below it; hidden folders, as unfinished outputs are, hold none."""
    system, root = locate(path)
    waiting, seen, is_empty = [root], set[str](), True
    while waiting:
        folder = waiting.pop()
        # A link may lead to a run that is there already, or back to where it lies.
        if _identity(system, folder) in seen:
            continue
        seen.add(_identity(system, folder))
        try:
            entries = system.get_file_info(pafs.FileSelector(folder))
        except OSError as error:
            # Arrow's own text says what it called, and the path once more.
            reason = os.strerror(error.errno) if error.errno else str(error)
            what = f"{path}{folder[len(root) :]}: cannot be read as a folder: {reason}"
            if folder == root:
                raise InputError(f"{what}; name a folder that `lookup evaluate` has written") from None
            warn(f"left out: {what}")
            continue
        if any(entry.base_name == "summary.json" for entry in entries):
            is_empty = False
            yield f"{path}{folder[len(root) :]}"
            continue
        waiting += [
            entry.path
            for entry in entries
            if entry.type == pafs.FileType.Directory and not entry.base_name.startswith((".", "_"))
        ]
    if is_empty:
        raise InputError(
            f"{path}: is no run and holds none; name a folder that `lookup evaluate` has written, or one above such"
        )


def _identity(system: pafs.FileSystem, folder: str) -> str:
    """Return what two paths of one folder have in common."""
    return os.path.realpath(folder) if isinstance(system, pafs.LocalFileSystem) else f"{system.type_name}:{folder}"


def _dated(path: str) -> DatedRun | PulsarLookupError:
    """Read a run; a refusal is returned, since one of many may be left out."""
    try:
        run = read_run(path)
        clock = run.manifest.get("wall_clock")
        started = clock.get("started") if isinstance(clock, Mapping) else None
        try:
            moment = datetime.fromisoformat(started).astimezone(UTC)  # type: ignore[arg-type]  # it may be anything
        except (TypeError, ValueError, OverflowError):
            what = f"{path}/manifest.json: wall_clock.started is {shown(started)}, and should be a time like"
            return InputError(f"{what} 2026-01-05T02:00:00+00:00; evaluate again")
    except PulsarLookupError as error:
        return error
    scored = run.scored
    return DatedRun(
        path, moment, scored.exit_code, scored.incumbent, scored.clusters, run.manifest, primary_names(run),
        scored.metric, scored.pooled,
    )  # fmt: skip


def _lined_up(runs: Sequence[DatedRun], newest: Difference | None) -> tuple[Trend, ...]:
    """Return the trend of every figure that any of the runs has."""
    changes = {(change.policy, change.name): change for change in newest.changes} if newest else {}

    @cache
    def is_like(metric: str, first: int, second: int) -> bool:
        of = [runs[number] for number in (first, second)]
        units = {run.metrics[metric].unit for run in of}
        return len(units) == 1 and not why_incomparable(metric, *(run.manifest["settings"] for run in of))

    # In the order of the newest run.
    names = dict.fromkeys(name for run in reversed(runs) for name in run.figures)
    trends = []
    for policy, metric, key in names:
        points: list[Point] = []
        for number, run in enumerate(runs):
            figure = run.figures.get((policy, metric, key))
            if figure is None or math.isnan(figure.value):
                continue
            stretch = points[-1].stretch + (not is_like(metric, points[-1].number, number)) if points else 0
            points.append(Point(number, figure.value, figure.low, figure.high, stretch))
        if points:
            known, name = runs[points[-1].number].metrics[metric], label(metric, key)
            is_primary, change = (metric, key) in runs[-1].primary, changes.get((policy, name))
            trends.append(Trend(policy, name, known.unit, known.better, is_primary, tuple(points), change))
    order = {name: place for place, name in enumerate(dict.fromkeys(trend.name for trend in trends))}
    return tuple(sorted(trends, key=lambda trend: (trend.rank, order[trend.name])))


def _changes(before: DatedRun, now: DatedRun) -> str:
    """Return in words what was asked differently, and that figures mean something else since."""
    first, second = (run.manifest["settings"] for run in (before, now))
    other = []
    for table in dict.fromkeys((*first, *second)):
        was, is_now = first.get(table), second.get(table)
        # Where a log lies differs from night to night: its fingerprint counts.
        if was == is_now or table == "inputs":
            continue
        if table in ("evaluation", "verdict") and was and is_now:
            other += [f"{table}.{key}" for key in {**was, **is_now} if was.get(key) != is_now.get(key)]
        else:
            other.append(table)
    logs, logs_now = (fingerprints_of(run.manifest["inputs"]) for run in (before, now))
    other += [name for name in dict.fromkeys((*logs, *logs_now)) if logs.get(name) != logs_now.get(name)]
    versions = [run.manifest["versions"].get("pulsar-lookup") for run in (before, now)]
    whys = dict.fromkeys(why_incomparable(metric, first, second) for metric in now.metrics if metric in before.metrics)
    texts = [f"other {listed(dict.fromkeys(other))}"] if other else []
    texts += [f"version {versions[1]} in place of {versions[0]}"] if versions[0] != versions[1] else []
    return "; ".join([*texts, *(f"some figures mean something else: {why}" for why in whys if why)])


def summary_of(trends: Trends) -> list[str]:
    """Return how many runs there are, and what changed in the newest, one sentence each."""
    runs = trends.runs
    span = f"of {runs[0].day} UTC" if len(runs) == 1 else f"from {runs[0].day} to {runs[-1].day} UTC"
    return [f"{quantity(len(runs), 'run')} {span}.", *([headline(trends.newest)] if trends.newest else [])]


def notes_of(trends: Trends, *, has_blocks: bool = False) -> list[str]:
    """Return what to know about the figures, one sentence or two each.

    Args:
        has_blocks: whether values over time are drawn as lines of blocks.
    """
    notes = []
    if has_blocks:
        which = f", the newest {_MOST_BLOCKS}" if len(trends.runs) > _MOST_BLOCKS else ""
        blocks = f"{_BLOCKS[0]} for the lowest value and {_BLOCKS[-1]} for the highest; {_GAP} no figure"
        notes.append(f"Over time: a block for each run{which}, {blocks}.")
    if any(trend.points[-1].stretch for trend in trends.trends):
        notes.append(f"At {_BREAK} settings changed what the figure means: values on its two sides are not comparable.")
    if trends.newest:
        notes += [*legend(trends.newest), *cautions(trends.newest)]
        notes.append(
            "The interval of a run is about that run alone: whether those of two runs overlap is no verdict on a "
            "change. `lookup diff` compares two runs."
        )
    return notes


def left_out(trends: Trends, how: str) -> list[str]:
    """Return what tables that are not whole leave out, in a sentence; nothing if that is nothing.

    Args:
        how: the flag that lists it.
    """
    counts = ((len(trends.trends) - MOST_ROWS, "more figure"), (len(trends.runs) - MOST_ROWS, "earlier run"))
    rest = [quantity(count, noun) for count, noun in counts if count > 0]
    return [f"Left out: {' and '.join(rest)}; {how} has everything."] if rest else []


def trends_table(trends: Trends, *, is_whole: bool, has_blocks: bool) -> Table:
    """Return the figures, `MOST_ROWS` at most: as lines of blocks, or by their values in as many of the newest runs.

    Args:
        is_whole: all figures and all runs.
        has_blocks: whether values over time are drawn.
    """
    count = len(trends.runs)
    numbers = range(0 if is_whole else max(0, count - MOST_ROWS), count)
    middle = ("over time", "newest") if has_blocks else tuple(f"#{number + 1}" for number in numbers)
    rows = []
    for trend in trends.trends if is_whole else trends.trends[:MOST_ROWS]:
        starts = {now.number for before, now in pairwise(trend.points) if before.stretch != now.stretch}
        values = {
            point.number: f"{f'{_BREAK} ' if point.number in starts else ''}{value_text(point.value, trend.unit)}"
            for point in trend.points
        }
        texts = [values.get(number, NOTHING) for number in numbers]
        if has_blocks:
            texts = [trend.blocks(count), texts[-1].removeprefix(f"{_BREAK} ")]
        change = NOTHING if trend.newest is None else trend.newest.row[4]
        rows.append((trend.policy, with_unit(trend.name, trend.unit), *texts, change))
    return Table(("policy", "figure", *middle, "change"), rows, texts=(0, 1))


def runs_table(trends: Trends, *, is_whole: bool) -> Table:
    """Return the runs, `MOST_ROWS` of the newest at most.

    Args:
        is_whole: all runs.
    """
    rows = [
        (str(number), run.day, run.path, str(run.exit_code), changes)
        for number, (run, changes) in enumerate(zip(trends.runs, trends.changes, strict=True), start=1)
    ]
    return Table(
        _RUN_HEADS, rows if is_whole else rows[-MOST_ROWS:], "run-table", "Runs by when they started", texts=(1, 2, 4)
    )


def csv_rows(trends: Trends) -> Iterator[tuple[object, ...]]:
    """Yield a row for each point under `CSV_HEADS`; None for an interval that there is not."""
    for trend in trends.trends:
        for point in trend.points:
            run = trends.runs[point.number]
            bounds = (None if math.isnan(bound) else bound for bound in (point.low, point.high))
            of_trend = (trend.policy, trend.name, trend.unit, trend.better, trend.primary)
            yield run.path, run.started.isoformat(), run.exit_code, *of_trend, point.stretch, point.value, *bounds


def trends_markdown(trends: Trends, how: str = "") -> str:
    """Write the history as Markdown.

    Args:
        how: the command that lists what tables leave out; if it is empty, they leave out nothing.
    """
    opening, *headlines = summary_of(trends)
    blocks: list[Block] = [Heading(opening.removesuffix("."), 1), *map(Paragraph, headlines)]
    blocks.append(trends_table(trends, is_whole=not how, has_blocks=True))
    blocks += map(Paragraph, left_out(trends, how) if how else ())
    blocks += [Bullets(notes_of(trends, has_blocks=True)), Heading("Runs"), runs_table(trends, is_whole=not how)]
    return markdown(blocks)
