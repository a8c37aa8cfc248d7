"""Sections of the page about demand: drawn anew, drifting, on another day, with few seeds, and before a gate."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from lookup.model.evidence import effective
from lookup.score.scoring import Scored
from tests.acceptance.calibration.demand import Demand
from tests.acceptance.calibration.drift import Drift
from tests.acceptance.calibration.equals import Counts, is_kept, upper_bound
from tests.acceptance.calibration.markdown import state, table, unkept

__all__ = [
    "another_day_section", "drifting_section", "few_section", "gate_section", "redrawn_by_metric_section",
    "redrawn_section", "winners_section",
]  # fmt: skip

#: The most that may be told apart between equals, and the upper bound of what may be: shares.
_REDRAWN, _UPPER, _DRIFTING, _FALSE = 0.06, 0.08, 0.07, 0.05
#: Share of runs of equals that a gate may stop.
_ALARM = 0.01
#: On two days, differences by figure.
Days = tuple[Mapping[str, float], Mapping[str, float]]


def redrawn_section(redrawn: Mapping[Demand, Counts]) -> tuple[list[str], bool]:
    """Say for each kind of demand how often equals were told apart."""
    rows, are_kept = [], []
    for demand, counts in redrawn.items():
        match = counts.by_metric["match_ratio[rack]"]
        failed = counts.failed / max(1, counts.runs)
        held = f"{1 - match.missed / match.judged:.0%} of {match.judged:.0f}" if match.judged else "none is judged"
        are_kept.append(match.share <= _REDRAWN + _noise(match.made) and failed <= _FALSE)
        worth = f"{effective(demand.sizes):.1f}"
        rows.append((demand.name, worth, f"{match.share:.1%}", held))
    head = ("log", "worth", "false in `match_ratio[rack]`", "intervals that hold the true 0")
    text = [
        "One policy uses the brokers of rack a and the other those of rack b. The share of a bundle's clients in",
        "rack a is random for each log, so the policies are equal over all logs and different on each of them. Worth",
        "is Kish's effective number of bundles. Below 8 no figure over bundles is judged. At most 5 % of the runs",
        f"may end with exit code 3, and {_failed_runs(redrawn)} did.",
        "",
        *table(head, rows),
    ]
    return text, all(are_kept)


def _failed_runs(redrawn: Mapping[Demand, Counts]) -> str:
    return f"{sum(counts.failed for counts in redrawn.values())} of {sum(counts.runs for counts in redrawn.values()):,}"


def _noise(logs: float) -> float:
    """Return by how much a share of so many logs may exceed a true share of 5 % by chance, two standard errors."""
    return 2 * math.sqrt(0.05 * 0.95 / logs) if logs else 0.0


def redrawn_by_metric_section(redrawn: Mapping[Demand, Counts]) -> tuple[list[str], bool]:
    """Say the same for the metric with the highest upper bound."""
    every = Counts()
    for counts in redrawn.values():
        every.merge(counts)
    judged = {name: count for name, count in every.by_metric.items() if count.judged}
    if not judged:
        return [], True
    kept = all(is_kept(one.false, one.made, most=_REDRAWN, upper=_UPPER) is not False for one in judged.values())
    worst = max(judged, key=lambda name: upper_bound(judged[name].false, judged[name].made))
    count = judged[worst]
    upper = upper_bound(count.false, count.made)
    text = [
        f"Over all kinds of demand, `{worst}` has the most false verdicts of {len(judged)} metrics:",
        f"{count.share:.1%} of {count.made:,.0f} logs (at most 6 %), upper bound {upper:.1%} (at most 8 %).",
        f"Kept for all metrics: {state(kept)}.",
    ]
    return text, kept


def drifting_section(drifts: Mapping[Drift, Counter[str]]) -> tuple[list[str], bool]:
    """Say how often equals whose figure drifts were told apart."""
    rows, are_kept = [], []
    for drift, said in drifts.items():
        shares = {name: said[name] / max(1, said["drawn"]) for name in said}
        are_kept.append(shares["told apart"] <= _DRIFTING)
        figures = (f"{shares[name]:.1%}" for name in ("for these hours", "exit code 3"))
        rows.append((drift.name, f"{shares['told apart']:.1%}{unkept(are_kept[-1])}", *figures))
    head = ("difference", "called different (at most 7 %)", "of these for these hours only", "exit code 3")
    text = [
        "The imbalance of two policies differs by a drift with mean 0 over all draws, in cells of 900 s and blocks",
        "of the same length. Noise is the remaining difference between cells, for a drift of size 1.",
        f"Each is drawn {max((said['drawn'] for said in drifts.values()), default=0):,} times.",
        "",
        *table(head, rows),
    ]
    return text, all(are_kept)


def few_section(few: Mapping[int, Counts]) -> tuple[list[str], bool]:
    """Say what few seeds did."""
    rows, are_kept = [], []
    for size, counts in sorted(few.items()):
        failed = counts.failed / max(1, counts.runs)
        false = sum(count.false for count in counts.by_metric.values())
        made = sum(count.made for count in counts.by_metric.values()) or 1.0
        are_kept.append(failed <= _FALSE)
        rows.append(
            (
                str(size),
                f"{counts.runs:,}",
                f"{false / made:.1%}",
                str(counts.certain),
                f"{failed:.1%}{unkept(failed <= _FALSE)}",
            )
        )
    head = ("seeds", "runs", "false verdicts", "differences with an interval of no width", "exit code 3 (at most 5 %)")
    return list(table(head, rows)), all(are_kept)


def gate_section(deaf: Mapping[int, Sequence[Scored]]) -> tuple[list[str], bool]:
    """Say what a gate let pass."""
    rows, are_kept = [], []
    for namespaces, runs in sorted(deaf.items()):
        logs, codes = len(runs), Counter(scored.exit_code for scored in runs)
        wrong = logs - codes[3 if namespaces else 0]
        # A namespace that is lost must be seen on every log.
        right = wrong == 0 if namespaces else is_kept(wrong, logs, most=_ALARM, upper=1.0)
        are_kept.append(right is not False)
        rows.append((str(namespaces), *(f"{codes[code]} of {logs}" for code in (0, 3, 4)), state(right)))
    head = ("namespaces of 60 never answered", "exit code 0", "exit code 3", "exit code 4", "kept")
    return [
        "A policy against its copy that never answers some namespaces, with the default primary metrics and seeds.",
        "",
        *table(head, rows),
    ], all(are_kept)


def another_day_section(days: Sequence[Days], same: Sequence[Days]) -> tuple[list[str], bool]:
    """Say how differences of one day go with those of the next."""
    rows, are_kept = [], []
    for name in ("match_ratio[rack]", "imbalance_max_mean", "imbalance_cv") if days else ():
        fresh, (alike, *_) = _correlation(days, name), _correlation(same, name)
        are_kept.append(fresh[1] <= 0 <= fresh[2])
        rows.append(
            (f"`{name}`", f"{fresh[0]:.2f}", f"[{fresh[1]:.2f}, {fresh[2]:.2f}]", state(are_kept[-1]), f"{alike:.2f}")
        )
    head = ("metric", "with drawn seeds", "95 % interval", "holds 0", "with the same seeds")
    return [
        "The correlation between the difference of two hashes on one day and on the next day, over",
        f"{len(days)} pairs of days of one demand.",
        "",
        *table(head, rows),
    ], all(are_kept)


def _correlation(days: Sequence[Days], name: str) -> tuple[float, float, float]:
    """Return the correlation of a figure's differences on two days, with its interval (Fisher's transformation)."""
    pairs = np.array([(first[name], second[name]) for first, second in days])
    found = float(np.corrcoef(pairs.T)[0, 1])
    half = 1.96 / math.sqrt(len(pairs) - 3)
    return found, math.tanh(math.atanh(found) - half), math.tanh(math.atanh(found) + half)


def winners_section(winners: Sequence[Scored]) -> list[str]:
    """Say how the best of many equals looked."""
    rows = []
    for metric in ("match_ratio", "imbalance_max_mean", "load_variation"):
        said, seen, better, light = [], [], 0, 0
        for scored in winners:
            luck = next((one for one in scored.winners if one.metric == metric and one.key in (None, "rack")), None)
            if luck is None:
                continue
            verdicts = [one for one in scored.verdicts if (one.metric, one.key) == (metric, luck.key)]
            deltas = [one.delta for one in verdicts]
            said.append(luck.advantage / luck.value)
            seen.append((max(deltas) - sum(deltas) / len(deltas)) / luck.value)
            better += any(one.verdict == "better" for one in verdicts)
            light += any(one.alone == "better" for one in verdicts)
        if seen:
            shares = (f"{sum(those) / len(those):.1%}" for those in (said, seen))
            rows.append((f"`{metric}`", *shares, f"{light} of {len(seen)}", f"{better} of {len(seen)}"))
    head = ("metric", "the best would look better by, as said", "as seen", "any better alone (▴)", "any better (▲)")
    return [
        "Sixteen policies against one, all of them equal, over one log for each kind of policy.",
        "",
        *table(head, rows),
    ]
