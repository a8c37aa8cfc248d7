"""Compare two finished runs by the changed figures of the policies in both, and by the different settings.

Runs are compared as if their random draws were independent. If both replayed one log with the same seeds they are not,
and the interval of a change is wider than necessary, since a folder does not keep figures by replicate and bundle. Some
settings define a figure, so that figures with different values cannot be compared.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lookup.errors import Argument, SettingsError
from lookup.model.quoting import join_names, printed_line, quantity
from lookup.report.blocks import Block, Bullets, Heading, Paragraph, Table
from lookup.report.figures import Run
from lookup.report.markdown import markdown
from lookup.report.numbers import NOTHING, signed_text, value_text
from lookup.report.sentences import join_clauses
from lookup.score.figures import Figure

__all__ = [
    "FIGURE_HEADS", "MOST_ROWS", "SETTING_HEADS", "Change", "Difference", "cautions", "check_comparable",
    "check_same_world", "compare_runs", "difference_markdown", "fingerprints_of", "headline", "legend",
    "rest_in_words", "sentences", "settings_in_words", "why_incomparable",
]  # fmt: skip

#: Heads of the two tables, behind the names of the runs.
SETTING_HEADS = ("setting", "first", "second")
FIGURE_HEADS = ("policy", "figure", "first", "second", "change", "95 % ±")
#: Rows of a table unless all are asked for, and changes or settings that a sentence names.
MOST_ROWS, _MOST_NAMED = 10, 3
#: Parts of a manifest with the request. Its parts about one machine and one day are left out.
_ASKED = ("settings", "inputs", "plugins")


@dataclass(frozen=True, slots=True)
class Change:
    """One figure of one policy in both runs, pooled over clusters."""

    policy: str
    name: str
    unit: str
    #: which direction is better: "up", "down" or "info"
    better: str
    #: NaN if a run has none
    first: float
    second: float
    #: half of the interval of the difference, NaN if a run has no interval
    half: float
    #: why it has different meanings in both runs, one clause, empty if it does not
    unlike: str = ""
    #: whether it may decide the exit code of the second run
    primary: bool = False

    @property
    def delta(self) -> float:
        """Second - first, NaN if that is undefined."""
        return math.nan if self.unlike else self.second - self.first

    @property
    def is_same(self) -> bool:
        """Whether both runs have the same figure, or both lack it."""
        return (self.first == self.second and not self.unlike) or (math.isnan(self.first) and math.isnan(self.second))

    @property
    def is_certain(self) -> bool:
        """Whether the whole interval is a change: 0 lies outside it."""
        return abs(self.delta) > self.half

    @property
    def mark(self) -> str:
        """The mark ▲ or ▼ for better or worse, ? if the interval includes 0, = for one replay, else a blank."""
        if self.unlike or math.isnan(self.half) or self.better == "info":
            return ""
        if not (self.delta or self.half):
            return "="
        if not self.is_certain:
            return "?"
        return "▲" if (self.delta > 0) == (self.better == "up") else "▼"

    @property
    def rank(self) -> tuple[int, bool]:
        """The sort key of changes. Significant ones come first, and primary ones before others.

        The order is significant, perhaps chance, without interval, not comparable.
        """
        kinds = (self.is_certain, not math.isnan(self.delta + self.half), not self.unlike, True)
        return kinds.index(True), not self.primary

    @property
    def words(self) -> str:
        """The change as a headline names it."""
        unit = "" if self.unit == "ratio" else f" {self.unit}"
        return f"{self.name} of {self.policy} {signed_text(self.delta, self.unit)}{unit}"

    @property
    def row(self) -> tuple[str, ...]:
        """The change in words under `FIGURE_HEADS`."""
        change = "not comparable" if self.unlike else f"{signed_text(self.delta, self.unit)} {self.mark}".strip()
        values = (value_text(self.first, self.unit), value_text(self.second, self.unit))
        half = NOTHING if self.unlike else value_text(self.half, self.unit)
        name = self.name if self.unit == "ratio" or self.name.startswith(self.unit) else f"{self.name} ({self.unit})"
        return self.policy, name, *values, change, half

    def document(self) -> dict[str, Any]:
        """Convert the change to a JSON object, with None for missing values."""
        bounds = (self.first, self.second, self.delta, self.delta - self.half, self.delta + self.half)
        ends = [None if math.isnan(bound) else bound for bound in bounds]
        return {
            "policy": self.policy,
            "figure": self.name,
            "unit": self.unit,
            "better": self.better,
            "primary": self.primary,
            **dict(zip(("first", "second", "change", "low", "high"), ends, strict=True)),
            "is_certain": self.is_certain,
            "not_comparable": self.unlike or None,
        }


@dataclass(frozen=True)
class Difference:
    """The difference between two runs."""

    runs: tuple[Run, Run]
    #: key path, values of both runs as JSON, a dash for a missing key, and keys that define figures first
    settings: tuple[tuple[str, str, str], ...]
    #: figures of the policies of both
    changes: tuple[Change, ...]

    @property
    def first(self) -> str:
        """The path of the first run."""
        return self.runs[0].path

    @property
    def second(self) -> str:
        """The path of the second run."""
        return self.runs[1].path

    @property
    def changed(self) -> tuple[Change, ...]:
        """The changed figures, significant changes first, incomparable ones last."""
        return tuple(sorted((change for change in self.changes if not change.is_same), key=lambda change: change.rank))

    def document(self) -> dict[str, Any]:
        """Convert the difference to a JSON object."""
        return {
            "first": self.first,
            "second": self.second,
            "headline": headline(self),
            "cautions": cautions(self),
            "figures": [change.document() for change in self.changed],
            "same": len(self.changes) - len(self.changed),
            "settings": [
                {"setting": key, **{name: json.loads(text) for name, text in values if text != NOTHING}}
                for key, first, second in self.settings
                for values in [(("first", first), ("second", second))]
            ],
        }


def compare_runs(first: Run, second: Run) -> Difference:
    """Compare two runs that were read back."""
    leaves = [dict(_iter_leaves({part: run.manifest[part] for part in _ASKED})) for run in (first, second)]
    settings = [
        (key, leaves[0].get(key, NOTHING), leaves[1].get(key, NOTHING))
        for key in dict.fromkeys([*leaves[0], *leaves[1]])
        if leaves[0].get(key) != leaves[1].get(key)
    ]
    settings.sort(key=lambda row: not _is_definition(row[0]))
    shared = [name for name in first.results.policies if name in second.results.policies]
    figures = [run.results.pooled for run in (first, second)]
    primary = {row.name for row in second.results.verdicts if row.primary}
    changes = []
    for policy in shared:
        rows = [row for of in figures for key, row in of.items() if key[0] == policy and not math.isnan(row.value)]
        for name, figure in {row.name: row for row in rows}.items():
            before, after = (of.get((policy, *name)) for of in figures)
            # One figure with one interval is one replay, in which nothing has changed.
            is_same = _find_bounds(before) is not None and _find_bounds(before) == _find_bounds(after)
            half = 0.0 if is_same else math.hypot(_compute_half(before), _compute_half(after))
            changes.append(
                Change(
                    policy,
                    figure.label,
                    figure.unit,
                    figure.better,
                    math.nan if before is None else before.value,
                    math.nan if after is None else after.value,
                    half,
                    why_incomparable(name[0], *(run.manifest["settings"] for run in (first, second))),
                    name in primary,
                )
            )
    return Difference((first, second), tuple(settings), tuple(changes))


def check_same_world(earlier: Run, settings: Mapping[str, Any], inputs: Mapping[str, Any]) -> None:
    """Refuse an earlier run with other tables or other brokers, whose figures cannot be compared.

    Raises:
        SettingsError: with all differences together.
    """
    before, now = fingerprints_of(earlier.manifest["inputs"]), fingerprints_of(inputs)
    other = [name for name in dict.fromkeys((*before, *now)) if before.get(name) != now.get(name)]
    problems = []
    if "lookups" not in before or "lookups" not in now:
        problems.append("replayed a log that has no fingerprint, as a table given from Python has none")
    elif [name for name in other if name != "brokers"]:
        names = ", ".join(name for name in other if name != "brokers")
        problems.append(f"replayed another log: its {names} differ by their fingerprints")
    if "brokers" in other or earlier.manifest["settings"].get("brokers") != settings.get("brokers"):
        problems.append("replayed other brokers")
    right = "name a run over the same tables with the same brokers"
    if problems:
        raise SettingsError(Argument("against"), f": {earlier.path} {' and '.join(problems)}; {right}")


def check_comparable(earlier: Run, settings: Mapping[str, Any], names: Iterable[str]) -> None:
    """Refuse an earlier run in which figures to be judged have another meaning.

    Raises:
        SettingsError: with all differences together.
    """
    before = earlier.manifest["settings"]
    unlike: dict[str, list[str]] = {}
    for name in names:
        why = why_incomparable(name.partition(":")[0], before, settings)
        if why:
            unlike.setdefault(why, []).append(name)
    if unlike:
        reasons = " and ".join(f"{', '.join(named)} with {earlier.path}: {why}" for why, named in unlike.items())
        right = "name a run with the same value, or leave the figure out of the budget"
        raise SettingsError(Argument("against"), f": cannot compare {reasons}; {right}")


def fingerprints_of(inputs: Mapping[str, Any]) -> dict[str, str]:
    """Find the fingerprint of each table of a manifest's inputs."""
    return {name: entry["blake2b"] for name, entry in inputs.items()}


def sentences(difference: Difference) -> list[str]:
    """Describe the difference in sentences, for readers without tables."""
    settings = settings_in_words(difference)
    return [headline(difference), *cautions(difference), *([f"{settings}."] if difference.settings else [])]


def headline(difference: Difference) -> str:
    """Describe the changes in one sentence."""
    first, second, changed = difference.first, difference.second, difference.changed
    same = len(difference.changes) - len(changed)
    if not difference.changes:
        return f"{first} and {second} have no policy in common: there is no figure to compare."
    if not changed:
        return f"Nothing changed from {first} to {second}: all {same:,} figures are the same."
    kinds = {"▲": "got better", "▼": "got worse", "": "changed, which is neither better nor worse"}
    parts = []
    for mark, words in kinds.items():
        of_kind = [change for change in changed if change.is_certain and change.mark == mark]
        if of_kind:
            parts.append(f"{quantity(len(of_kind), 'figure')} {words} ({_name_changes(of_kind)})")
    unlike = sum(bool(change.unlike) for change in changed)
    perhaps = sum(not change.is_certain for change in changed) - unlike
    more = "more " if parts else ""
    counts = (
        (perhaps, f"{more}differs within chance", f"{more}differ within chance"),
        (unlike, "cannot be compared", "cannot be compared"),
        (same, "is the same", "are the same"),
    )
    rest = [quantity(count, singular, plural) for count, singular, plural in counts if count]
    opening = (
        f"From {first} to {second} {join_clauses(parts)}" if parts else f"No change is shown from {first} to {second}"
    )
    return f"{opening}; {join_clauses(rest)}." if rest else f"{opening}."


def _name_changes(changes: Iterable[Change]) -> str:
    """Describe a few changes in words, each figure once for any number of policies."""
    by_name: dict[str, list[Change]] = {}
    for change in changes:
        by_name.setdefault(change.name, []).append(change)
    texts = []
    for first, *others in list(by_name.values())[:_MOST_NAMED]:
        texts.append(first.words + (f" and {quantity(len(others), 'more policy', 'more policies')}" if others else ""))
    rest = sum(len(some) for some in list(by_name.values())[_MOST_NAMED:])
    return ", ".join(texts) + (f", and {rest:,} more" if rest else "")


def cautions(difference: Difference) -> list[str]:
    """List the facts to know before a figure is trusted, one sentence each."""
    unlike = [change for change in difference.changed if change.unlike]
    texts = []
    for why in dict.fromkeys(change.unlike for change in unlike):
        of_these = dict.fromkeys(change.name for change in unlike if change.unlike == why)
        texts.append(f"Not comparable: {join_names(of_these)}, since {why}.")
    if len({fingerprints_of(run.manifest["inputs"]).get("lookups") for run in difference.runs}) > 1:
        texts.append("The runs replayed different logs, so changes may come from the log.")
    policies = [run.results.policies for run in difference.runs]
    for where, own, other in ((difference.first, *policies), (difference.second, *policies[::-1])):
        names = [name for name in own if name not in other]
        if names:
            texts.append(f"Only {where} has {', '.join(names)}.")
    before, now = (run.results.exit_code for run in difference.runs)
    if before != now:
        texts.append(f"The exit code of {difference.first} was {before}, that of {difference.second} {now}.")
    return texts


def legend(difference: Difference) -> list[str]:
    """Explain the marks in a table of figures, or return nothing without marks."""
    if all(change.unlike for change in difference.changed):
        return []
    text = (
        "▲ better, ▼ worse, ? the 95 % interval contains 0. Figures without an interval or a better direction have no "
        "mark. Intervals treat the runs as independent. Of a hundred equal figures up to five get ▲ or ▼."
    )
    return [text]


def settings_in_words(difference: Difference) -> str:
    """Count the settings that differ, and name the first of them."""
    named = [key for key, _, _ in difference.settings[:_MOST_NAMED]]
    rest = len(difference.settings) - len(named)
    settings = quantity(len(difference.settings), "setting differs", "settings differ")
    return f"{settings}: {', '.join(named)}{f' and {rest:,} more' if rest else ''}"


def rest_in_words(count: int, noun: str, how: str) -> str:
    """Describe the number of rows that a table leaves out."""
    differ = quantity(count, f"more {noun} differs", f"more {noun}s differ")
    return f"{differ}; {how} lists {'it' if count == 1 else 'them'}."


def difference_markdown(difference: Difference, how: str = "") -> str:
    """Write the difference as Markdown, for a comment on a change. Settings are folded where HTML is rendered.

    Args:
        how: the command that lists figures beyond the first `MOST_ROWS`. If it is empty, all of them are written.
    """
    changed = difference.changed
    rows = changed[:MOST_ROWS] if how else changed
    title = f"{difference.first} and {difference.second}"
    blocks: list[Block] = [Heading(title, 1), Paragraph(headline(difference))]
    if rows:
        blocks.append(Table(FIGURE_HEADS, [change.row for change in rows]))
    if len(rows) < len(changed):
        blocks.append(Paragraph(rest_in_words(len(changed) - len(rows), "figure", how)))
    notes = [*cautions(difference), *legend(difference)]
    if notes:
        blocks.append(Bullets(notes))
    text = markdown(blocks)
    if difference.settings:
        title = html.escape(printed_line(settings_in_words(difference)), quote=False)
        table = markdown([Table(SETTING_HEADS, difference.settings)])
        text += f"\n<details>\n<summary>{title}</summary>\n\n{table}\n</details>\n"
    return text


def _is_definition(key: str) -> bool:
    table, _, rest = key.partition(".")
    return table.partition("[")[0] in _TABLES or (table == "evaluation" and rest in _MEANINGS)


def _find_bounds(figure: Figure | None) -> tuple[float, ...] | None:
    return None if figure is None or math.isnan(figure.low) else (figure.value, figure.low, figure.high)


def _compute_half(figure: Figure | None) -> float:
    """Compute half of a figure's interval, which may be cut off at 0 on one side, NaN if there is none."""
    if figure is None or math.isnan(figure.low):
        return math.nan
    return max(figure.value - figure.low, figure.high - figure.value)


def _iter_leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every value with its key path, with policies by name and settings without their heading."""
    if isinstance(value, Mapping) and value:
        for key, entry in value.items():
            below = key if path in ("", "settings") else f"{path}.{key}"
            yield from _iter_leaves(entry, below)
    elif isinstance(value, list) and value and all(isinstance(entry, Mapping) for entry in value):
        for number, entry in enumerate(value):
            yield from _iter_leaves(entry, f"{path}[{entry.get('name', number)}]")
    else:
        yield path, json.dumps(value, ensure_ascii=False)


_EVERY: frozenset[str] = frozenset()
_BALANCE = frozenset({"imbalance_cv", "imbalance_max_mean", "load_variation"})
#: Figures that are about load, the weight of recent lookups.
_LOAD = frozenset({"moved_weight", "overload_ratio"})
_NETWORK = frozenset({"network_covered_ratio", "network_cost", "network_ms_mean", "network_ms_p95"})
#: By key of `[evaluation]` the metrics whose meaning depends on it, or all of them for the empty set.
_MEANINGS: Mapping[str, frozenset[str]] = {
    "warmup_s": _EVERY,
    "scored_from": _EVERY,
    "balance_s": _BALANCE,
    "load": _LOAD,
    "session_s": _LOAD,
    "tick_s": _LOAD,
    "overload_threshold": frozenset({"overload_ratio"}),
    "window_s": frozenset({"redundant_moves"}),
    "bytes_per_weight": frozenset({"network_cost"}),
}
#: The same by table, of which every key counts.
_TABLES: Mapping[str, frozenset[str]] = {"topology": _NETWORK, "clients": _NETWORK | {"match_ratio"}}


def why_incomparable(metric: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    """Explain in one clause why a metric has different meanings in two runs, empty if it does not.

    Args:
        metric: its name, without a key.
        first: settings of a run, as in its manifest. A setting that only one of both has is not compared.
        second: settings of the other.
    """
    before, after = first.get("evaluation", {}), second.get("evaluation", {})
    clauses = [
        f"{key} differs ({json.dumps(before[key])}, {json.dumps(after[key])})"
        for key in _select_keys(metric, _MEANINGS)
        if key in before and key in after and before[key] != after[key]
    ]
    clauses += [
        f"the table {table} differs"
        for table in _select_keys(metric, _TABLES)
        if table in first and table in second and _drop_file(first[table]) != _drop_file(second[table])
    ]
    return " and ".join(clauses)


def _select_keys(metric: str, meanings: Mapping[str, frozenset[str]]) -> Iterable[str]:
    return (key for key, metrics in meanings.items() if metrics is _EVERY or metric in metrics)


def _drop_file(table: Any) -> Any:
    """Copy a table without the name of its file, since its source does not matter."""
    return {key: value for key, value in table.items() if key != "file"} if isinstance(table, Mapping) else table
