"""Compare two finished runs: what was asked differently, and what came out differently under policies both have.

Runs are compared as if their luck had nothing in common. If both replayed one log with the same seeds it has, so that
the interval of a difference is wider than it need be: a folder keeps no figures by replicate and bundle.

Some settings of an evaluation are part of what a figure is, so that figures with others cannot be compared. One that
changes what policies do, such as a bundle count, is no such part: the figure then shows its effect.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lookup.errors import Argument, SettingsError
from lookup.model.quoting import listed, quantity
from lookup.report.blocks import Block, Bullets, Heading, Table
from lookup.report.comparison import NOTHING, interval_text, label, signed_text, value_text
from lookup.report.folder import Run
from lookup.report.markdown import markdown
from lookup.score.luck import Estimate

__all__ = [
    "FIGURE_HEADS", "SETTING_HEADS", "Change", "Difference", "check_comparable", "check_same_world",
    "compare_runs", "difference_markdown", "sentences", "why_incomparable",
]  # fmt: skip

#: Heads of the two tables, behind the names of the runs.
SETTING_HEADS = ("setting", "first", "second")
FIGURE_HEADS = ("policy", "figure", "unit", "first", "second", "change", "95 % interval")
#: Parts of a manifest that say what was asked; what it says of one machine and one day is left out.
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
    #: half of the interval of the difference; NaN if a run has no interval
    half: float
    #: why it does not mean the same in both runs, one clause; empty if it does
    unlike: str = ""

    @property
    def delta(self) -> float:
        """Return second - first; NaN if that means nothing."""
        return math.nan if self.unlike else self.second - self.first

    @property
    def is_same(self) -> bool:
        """Return whether both runs say the same, an absent figure included."""
        return (self.first == self.second and not self.unlike) or (math.isnan(self.first) and math.isnan(self.second))

    @property
    def mark(self) -> str:
        """Return ▲ or ▼ for better or worse, ? if the interval holds no change, = for one replay, else a blank."""
        if self.unlike or math.isnan(self.half) or self.better == "info":
            return ""
        if not (self.delta or self.half):
            return "="
        if abs(self.delta) <= self.half:
            return "?"
        return "▲" if (self.delta > 0) == (self.better == "up") else "▼"

    @property
    def row(self) -> tuple[str, ...]:
        """Return the change in words under `FIGURE_HEADS`."""
        interval = interval_text(self.delta - self.half, self.delta + self.half, self.unit)
        change = f"{signed_text(self.delta, self.unit)} {self.mark}".strip()
        change = f"not comparable: {self.unlike}" if self.unlike else change
        values = (value_text(self.first, self.unit), value_text(self.second, self.unit))
        return self.policy, self.name, self.unit, *values, change, interval


@dataclass(frozen=True)
class Difference:
    """What differs between two runs."""

    runs: tuple[Run, Run]
    #: key path, value of the first and of the second as JSON; a dash for a key that a run does not have
    settings: tuple[tuple[str, str, str], ...]
    #: figures of the policies of both
    changes: tuple[Change, ...]

    @property
    def first(self) -> str:
        """Return the path of the first run."""
        return self.runs[0].path

    @property
    def second(self) -> str:
        """Return the path of the second run."""
        return self.runs[1].path

    @property
    def changed(self) -> tuple[Change, ...]:
        """Return the figures that are not the same, those that cannot be compared among them."""
        return tuple(change for change in self.changes if not change.is_same)


def compare_runs(first: Run, second: Run) -> Difference:
    """Compare two runs that were read back."""
    asked = [dict(_leaves({part: run.manifest[part] for part in _ASKED})) for run in (first, second)]
    keys = dict.fromkeys([*asked[0], *asked[1]])
    settings = tuple(
        (key, asked[0].get(key, NOTHING), asked[1].get(key, NOTHING))
        for key in keys
        if asked[0].get(key) != asked[1].get(key)
    )
    shared = [name for name in first.scored.plan.policies if name in second.scored.plan.policies]
    figures = [run.scored.pooled for run in (first, second)]
    metrics = {**second.scored.metric, **first.scored.metric}
    changes = []
    for policy in shared:
        for name in dict.fromkeys(key[1:] for key in (*figures[0], *figures[1]) if key[0] == policy):
            before, after = (of.get((policy, *name)) for of in figures)
            metric = metrics[name[0]]
            # One figure with one interval is one replay, in which nothing has changed.
            is_same = _bounds(before) is not None and _bounds(before) == _bounds(after)
            half = 0.0 if is_same else math.hypot(_half(before), _half(after))
            changes.append(
                Change(
                    policy,
                    label(*name),
                    metric.unit,
                    metric.better,
                    math.nan if before is None else before.value,
                    math.nan if after is None else after.value,
                    half,
                    why_incomparable(name[0], *(run.manifest["settings"] for run in (first, second))),
                )
            )
    return Difference((first, second), settings, tuple(changes))


def check_same_world(earlier: Run, settings: Mapping[str, Any], inputs: Mapping[str, Any]) -> None:
    """Refuse an earlier run whose figures cannot be compared with those of another: of other tables or other brokers.

    Args:
        settings: of the other run, as in its manifest.
        inputs: fingerprint of each table of the other run.

    Raises:
        SettingsError: all differences together.
    """
    before, now = _fingerprints(earlier.manifest["inputs"]), _fingerprints(inputs)
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
    """Refuse an earlier run in which figures that are to be judged mean something else.

    Args:
        settings: of the other run, as in its manifest.
        names: of the figures, `metric` or `metric:key`.

    Raises:
        SettingsError: all differences together.
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


def _fingerprints(inputs: Mapping[str, Any]) -> dict[str, str]:
    return {name: entry["blake2b"] for name, entry in inputs.items()}


def sentences(difference: Difference) -> list[str]:
    """Return what stands above the tables, one sentence each."""
    first, second = difference.first, difference.second
    unlike = [change for change in difference.changed if change.unlike]
    same = len(difference.changes) - len(difference.changed)
    settings = quantity(len(difference.settings), "setting differs", "settings differ")
    if difference.settings:
        settings += f": {listed(key for key, _, _ in difference.settings)}; "
    figures = quantity(len(difference.changed) - len(unlike), "figure differs", "figures differ")
    texts = [f"{settings}{'' if difference.settings else ', '}{figures} and {same:,} are the same."]
    for why in dict.fromkeys(change.unlike for change in unlike):
        of_these = dict.fromkeys(change.name for change in unlike if change.unlike == why)
        texts.append(f"Not comparable: {listed(of_these)}, since {why}.")
    if len({_fingerprints(run.manifest["inputs"]).get("lookups") for run in difference.runs}) > 1:
        texts.append("The runs replayed different logs, so that changes are those of the log as well.")
    policies = [run.scored.plan.policies for run in difference.runs]
    for where, own, other in ((first, *policies), (second, *policies[::-1])):
        names = [name for name in own if name not in other]
        if names:
            texts.append(f"Only {where} has {', '.join(names)}.")
    before, now = (run.scored.exit_code for run in difference.runs)
    if before != now:
        texts.append(f"The exit code of {first} was {before}, that of {second} {now}.")
    if len(difference.changed) > len(unlike):
        texts.append(
            "Changes are second - first, with 95 % intervals as if the runs shared no luck: ▲ better, ▼ worse, ? the "
            "interval holds no change; without a mark there is no interval or no better."
        )
    return texts


def difference_markdown(difference: Difference) -> str:
    """Write the difference as Markdown, for a comment on a change."""
    blocks: list[Block] = [Heading(f"{difference.first} and {difference.second}", 1), Bullets(sentences(difference))]
    if difference.settings:
        blocks += [Heading("Settings"), Table(SETTING_HEADS, difference.settings)]
    if difference.changed:
        blocks += [Heading("Figures"), Table(FIGURE_HEADS, [change.row for change in difference.changed])]
    return markdown(blocks)


def _bounds(figure: Estimate | None) -> tuple[float, ...] | None:
    """Return a figure with its interval; None if it has none."""
    return None if figure is None or math.isnan(figure.low) else (figure.value, figure.low, figure.high)


def _half(figure: Estimate | None) -> float:
    """Return half of a figure's interval, which may be cut off at 0 on one side; NaN if there is none."""
    if figure is None or math.isnan(figure.low):
        return math.nan
    return max(figure.value - figure.low, figure.high - figure.value)


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every value with its key path; policies go by their names, and settings without their heading."""
    if isinstance(value, Mapping) and value:
        for key, entry in value.items():
            below = key if path in ("", "settings") else f"{path}.{key}"
            yield from _leaves(entry, below)
    elif isinstance(value, list) and value and all(isinstance(entry, Mapping) for entry in value):
        for number, entry in enumerate(value):
            yield from _leaves(entry, f"{path}[{entry.get('name', number)}]")
    else:
        yield path, json.dumps(value, ensure_ascii=False)


_EVERY: frozenset[str] = frozenset()
_BALANCE = frozenset({"imbalance_cv", "imbalance_max_mean", "load_variation"})
#: Figures that are about load, the weight of recent lookups.
_LOAD = frozenset({"moved_weight", "overload_ratio"})
_NETWORK = frozenset({"network_covered_ratio", "network_cost", "network_ms_mean", "network_ms_p95"})
#: By key of `[evaluation]` the metrics that mean something else if it differs; all of them for the empty set.
_MEANINGS: Mapping[str, frozenset[str]] = {
    "ownership": _EVERY,
    "warmup_s": _EVERY,
    "balance_s": _BALANCE,
    "load": _LOAD,
    "session_s": _LOAD,
    "tick_s": _LOAD,
    "overload_threshold": frozenset({"overload_ratio"}),
    "window_s": frozenset({"redundant_moves"}),
    "bytes_per_weight": frozenset({"network_cost"}),
    "handover_s": frozenset({"in_transition", "in_transition_weight"}),
}
#: The same by table, of which every key counts.
_TABLES: Mapping[str, frozenset[str]] = {"topology": _NETWORK, "clients": _NETWORK | {"match_ratio"}}


def why_incomparable(metric: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    """Return why a metric does not mean the same in two runs, one clause; an empty text if it does.

    Args:
        metric: its name, without a key.
        first: settings of a run, as in its manifest; what one of both does not have is not compared.
        second: those of the other.
    """
    before, after = first.get("evaluation", {}), second.get("evaluation", {})
    clauses = [
        f"{key} differs ({json.dumps(before[key])}, {json.dumps(after[key])})"
        for key in _concerning(metric, _MEANINGS)
        if key in before and key in after and before[key] != after[key]
    ]
    clauses += [
        f"the table {table} differs"
        for table in _concerning(metric, _TABLES)
        if table in first and table in second and _content(first[table]) != _content(second[table])
    ]
    return " and ".join(clauses)


def _concerning(metric: str, meanings: Mapping[str, frozenset[str]]) -> Iterable[str]:
    return (key for key, metrics in meanings.items() if metrics is _EVERY or metric in metrics)


def _content(table: Any) -> Any:
    """Return a table without the name of its file: where it was read from does not matter."""
    return {key: value for key, value in table.items() if key != "file"} if isinstance(table, Mapping) else table
