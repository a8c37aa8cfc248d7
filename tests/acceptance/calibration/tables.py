"""The page of the calibration: what was counted, as Markdown, beside what it is held to."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from lookup.score.luck import LEVEL
from lookup.score.scoring import Scored
from tests.acceptance.calibration.demand import Demand
from tests.acceptance.calibration.demand_sections import (
    another_day_section,
    drifting_section,
    few_section,
    gate_section,
    redrawn_by_metric_section,
    redrawn_section,
    winners_section,
)
from tests.acceptance.calibration.differences import REPLICATES, TRUTH, Coverage
from tests.acceptance.calibration.drift import Drift
from tests.acceptance.calibration.equals import SEEDS, Counts, is_kept, upper_bound
from tests.acceptance.calibration.markdown import state, table, unkept
from tests.acceptance.calibration.tenants import Found, Tenants
from tests.acceptance.calibration.tenants_sections import by_label_section, mirror_section, same_places_section
from tests.acceptance.calibration.worlds import World

__all__ = ["Findings", "page"]

#: The most that may be false, and the upper bound of what may be: shares.
_FALSE, _UPPER = 0.05, 0.08
#: What intervals for 95 % have to hold, and in how many logs a known difference has to be found: shares.
_COVERED, _POWER = (0.93, 0.97), 0.95


@dataclass
class Findings:
    """Everything that was counted."""

    #: comparisons of equals over logs without brokers, and over the same with them
    equals: dict[tuple[str, World], Counts] = field(default_factory=lambda: defaultdict(Counts))
    logged: Counts = field(default_factory=Counts)
    coverage: dict[tuple[str, str], dict[str, Coverage]] = field(default_factory=lambda: defaultdict(dict))
    #: of each log, the known differences that were found
    found: list[Counter[str]] = field(default_factory=list)
    widths: dict[tuple[str, int], float] = field(default_factory=dict)
    #: comparisons of equals with the demand drawn anew
    redrawn: dict[Demand, Counts] = field(default_factory=lambda: defaultdict(Counts))
    #: runs in which so many namespaces are never answered
    deaf: dict[int, list[Scored]] = field(default_factory=lambda: defaultdict(list))
    drifts: dict[Drift, Counter[str]] = field(default_factory=dict)
    #: comparisons of equals by the number of seeds
    few: dict[int, Counts] = field(default_factory=lambda: defaultdict(Counts))
    #: of two days each, the differences between two hashes by figure, with drawn seeds and with the same ones
    days: list[tuple[Mapping[str, float], Mapping[str, float]]] = field(default_factory=list)
    same_days: list[tuple[Mapping[str, float], Mapping[str, float]]] = field(default_factory=list)
    #: of many equals against one
    winners: list[Scored] = field(default_factory=list)
    #: by log, the difference between two kinds and its interval, by figure
    elsewhere: list[dict[str, tuple[float, float, float]]] = field(default_factory=list)

    #: by pair of policies and kind of log
    tenants: dict[str, dict[Tenants, list[Found]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )

    def add_equals(self, key: tuple[str, World], counts: tuple[Counts, Counts]) -> None:
        """Add comparisons of equals."""
        self.equals[key].merge(counts[0])
        self.logged.merge(counts[1])

    def add_coverage(self, key: tuple[str, str], counts: dict[str, Coverage]) -> None:
        """Add intervals of differences."""
        for name, one in counts.items():
            own = self.coverage[key].setdefault(name, Coverage())
            own.made += one.made
            own.placement += one.placement
            own.all_luck += one.all_luck

    def add_few_seeds(self, counts: Mapping[int, Counts]) -> None:
        """Add comparisons by the number of seeds."""
        for size, one in counts.items():
            self.few[size].merge(one)


def page(findings: Findings) -> tuple[str, bool]:
    """Return the tables, and whether every bound is kept."""
    every = Counts()
    for counts in findings.equals.values():
        every.merge(counts)
    sections = (
        ([f"Measured {datetime.now(UTC):%Y-%m-%d}, {SEEDS} replicates."], True),
        _runs("## Equals", every, "over logs that do not say which brokers were answered"),
        _false_by_metric(every),
        (["By kind of policy, all metrics together:"], True),
        (_by_kind(findings.equals), True),
        _runs("Over logs with brokers:", findings.logged, "over the same logs with their brokers"),
        (["## Redrawn demand"], True),
        redrawn_section(findings.redrawn),
        redrawn_by_metric_section(findings.redrawn),
        (["## Tenants"], True),
        mirror_section(findings.tenants["mirror"]),
        by_label_section(findings.tenants["first label"]),
        same_places_section(findings.tenants["equals"]),
        (["## Drift"], True),
        drifting_section(findings.drifts),
        (["## Few seeds"], True),
        few_section(findings.few),
        (["## The gate"], True),
        gate_section(findings.deaf),
        (["## Another day"], True),
        another_day_section(findings.days, findings.same_days),
        (["## The best of sixteen equals"], True),
        (winners_section(findings.winners), True),
        (["## Intervals of true differences"], True),
        _covered(findings.coverage),
        (["## Known differences"], True),
        _found(findings.found),
        (["## How many replicates"], True),
        (_widths(findings.widths), True),
        (["## Over other logs"], True),
        (_elsewhere(findings.elsewhere), True),
    )
    lines = (line for text, _ in sections for line in (*text, ""))
    return "\n".join(lines) + "\n", all(kept for _, kept in sections)


def _runs(title: str, counts: Counts, where: str) -> tuple[list[str], bool]:
    share = counts.failed / max(1, counts.runs)
    false = sum(count.false for count in counts.by_metric.values())
    made = max(1.0, sum(count.made for count in counts.by_metric.values()))
    text = [
        title,
        "",
        f"{counts.runs:,} runs compared two equal policies with different seeds, {where}. Of these,",
        f"{counts.failed} ended with exit code 3, {share:.1%} (at most 5 %, kept: {state(share <= _FALSE)}).",
        f"Of the verdicts on figures that differed, {false / made:.1%} were `better` or `worse`.",
    ]
    return text, share <= _FALSE


def _false_by_metric(counts: Counts) -> tuple[list[str], bool]:
    rows, are_kept = [], []
    for name, count in counts.by_metric.items():
        upper = upper_bound(count.false, count.made)
        kept = is_kept(count.false, count.made, most=_FALSE, upper=_UPPER)
        are_kept.append(kept is not False)
        mean = "–" if count.mean_square != count.mean_square else f"{count.mean_square:.2f}"
        rows.append((f"`{name}`", f"{count.made:,.0f}", f"{count.share:.1%}", f"{upper:.1%}{unkept(kept)}", mean))
    head = ("metric", "logs", "false (at most 5 %)", "upper bound (at most 8 %)", "mean of t²")
    return list(table(head, rows)), all(are_kept)


def _by_kind(equals: Mapping[tuple[str, World], Counts]) -> list[str]:
    groups: dict[str, Counts] = {}
    for (kind, _), counts in equals.items():
        groups.setdefault(kind, Counts()).merge(counts)
    rows = []
    for label, counts in groups.items():
        made = sum(count.made for count in counts.by_metric.values())
        false = sum(count.false for count in counts.by_metric.values())
        squares = sum(count.squares for count in counts.by_metric.values())
        judged = sum(count.with_interval for count in counts.by_metric.values())
        rows.append(
            (
                label,
                f"{made:,.0f}",
                f"{false / made:.1%}",
                f"{squares / judged:.2f}",
                f"{counts.failed} of {counts.runs}",
            )
        )
    return list(table(("policy", "comparisons", "false", "mean of t²", "runs with exit code 3"), rows))


def _covered(coverage: Mapping[tuple[str, str], Mapping[str, Coverage]]) -> tuple[list[str], bool]:
    rows = []
    total = Coverage()
    for kinds, by_metric in coverage.items():
        counted = {name: one for name, one in by_metric.items() if one.made}
        if counted:
            made = sum(one.made for one in counted.values())
            placement = sum(one.placement for one in counted.values())
            total.made += made
            total.placement += placement
            lowest = min(counted, key=lambda name: counted[name].placement / counted[name].made)
            least = counted[lowest].placement / counted[lowest].made
            every = sum(one.all_luck for one in counted.values()) / made
            shares = (f"{placement / made:.1%}", f"{least:.1%}, `{lowest}`", f"{every:.1%}")
            rows.append((" and ".join(kinds), str(len(counted)), f"{made:,}", *shares))
    share = total.placement / max(1, total.made)
    kept = _COVERED[0] <= share <= _COVERED[1]
    rows.append(("all", "", f"{total.made:,}", f"**{share:.1%}** (93 to 97 %, kept: {state(kept)})", "", ""))
    text = [
        f"The true difference on a log is the mean over {TRUTH} replicates. It is compared with {TRUTH // SEEDS}",
        f"intervals of {SEEDS} replicates each.",
        "",
        *table(("policies", "metrics", "intervals", "placement alone", "the lowest metric", "all sources"), rows),
    ]
    return text, kept


def _found(found: Sequence[Counter[str]]) -> tuple[list[str], bool]:
    counts, logs = Counter[str](), len(found)
    for of_log in found:
        counts.update(of_log)
    rows = [(name, f"{count} of {logs}", state(count >= _POWER * logs)) for name, count in counts.items()]
    kept = all(count >= _POWER * logs for count in counts.values())
    heads = "against `stock-modular-4.2`, in logs of the demo's size", "found", "kept (95 of 100)"
    return list(table(heads, rows)), kept


def _widths(widths: Mapping[tuple[str, int], float]) -> list[str]:
    names = list(dict.fromkeys(name for name, _ in widths))
    rows = [(name, *(f"{widths[name, size]:.0%}" for size in REPLICATES)) for name in names]
    text = [
        "Half the width of the interval of a difference, as a share of the difference, by the number of replicates,",
        "over one log of the demo's size. Few replicates widen it by Student's t. Many replicates cannot make it",
        "narrower than demand and events permit.",
        "",
    ]
    return text + list(table(("policy and figure", *map(str, REPLICATES)), rows))


def _elsewhere(logs: Sequence[Mapping[str, tuple[float, float, float]]]) -> list[str]:
    rows = []
    names = list(dict.fromkeys(name for log in logs for name in log))
    for name in names:
        intervals = [log[name] for log in logs if name in log]
        mean = sum(delta for delta, _, _ in intervals) / len(intervals)
        held = sum(low <= mean <= high for _, low, high in intervals) / len(intervals)
        if held < 1 - LEVEL:
            rows.append((f"`{name}`", str(len(intervals)), f"{held:.0%}"))
    text = [
        "An interval of one log is not meant for other logs. For most metrics at least 95 % of them contain the mean",
        "difference between a random policy and one with a shedder. The logs have six hours and thirteen changes of",
        f"eight brokers. {len(rows)} of {len(names)} metrics have fewer:",
        "",
    ]
    return text + list(table(("metric", "logs", "intervals that hold the mean over logs"), rows))
