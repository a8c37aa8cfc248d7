"""The whole calibration: `python -m tests.acceptance.calibration [--write] [--logs N]`, on all cores, without Spark."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

from tests.acceptance.calibration.demand import DEMANDS, deaf, redrawn, same_luck, two_days
from tests.acceptance.calibration.differences import covered_in, elsewhere, found_in, widths_in
from tests.acceptance.calibration.drift import DRIFTS, Drift, drifting
from tests.acceptance.calibration.equals import best_of, equals_in, few_seeds_in
from tests.acceptance.calibration.tables import Findings, page
from tests.acceptance.calibration.tenants import PAIRS, TENANTS, compared_by_tenants
from tests.acceptance.calibration.worlds import KINDS, WORLDS, World

_PAGE = Path(__file__).parents[3] / "docs" / "calibration.md"
_BEGIN, _END = "<!-- calibration: begin -->", "<!-- calibration: end -->"
#: Pairs of kinds whose true difference is looked for in intervals.
_DIFFERENT = (("dice", "shedder"), ("rendezvous", "ring"))


_Job = tuple[Callable[[], Any], Callable[[Any], None]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Calibrate, print the tables and keep them in the docs if asked to; return 1 if a bound is not kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.calibration", description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the tables in docs/calibration.md")
    parser.add_argument(
        "--logs", type=int, default=6, help="short logs of each kind of policy; of longer ones fewer (default: 6)"
    )
    parser.add_argument("--demos", type=int, default=100, help="logs of the demo's size (default: 100)")
    parser.add_argument("--truths", type=int, default=5, help="logs on which a true difference is known (default: 5)")
    parser.add_argument("--elsewhere", type=int, default=60, help="logs whose mean difference is known (default: 60)")
    parser.add_argument("--redrawn", type=int, default=100, help="logs of each kind of demand (default: 100)")
    parser.add_argument("--tenants", type=int, default=60, help="logs of each kind of tenants (default: 60)")
    parser.add_argument("--drifts", type=int, default=1000, help="drifts of each kind (default: 1000)")
    parser.add_argument("--few", type=int, default=4, help="logs of each kind of policy with few seeds (default: 4)")
    parser.add_argument("--days", type=int, default=30, help="pairs of days of one demand (default: 30)")
    parser.add_argument("--processes", type=int, default=2, help="how many at once (default: 2)")
    given = parser.parse_args(arguments)
    findings = Findings()
    _run(list(_jobs(findings, given)), given.processes)
    text, is_kept = page(findings)
    sys.stdout.write(text)
    if given.write:
        head, rest = _PAGE.read_text().split(_BEGIN)
        _PAGE.write_text(f"{head}{_BEGIN}\n\n{text}{_END}{rest.split(_END)[1]}")
    return 0 if is_kept else 1


def _jobs(findings: Findings, given: argparse.Namespace) -> Iterator[_Job]:
    """Yield what is to be done, the longest first, each with what becomes of its answer."""
    logs = itertools.count(1)
    for world in sorted(WORLDS, key=lambda world: -world.hours * world.clusters):
        for kind in KINDS:
            for seed in itertools.islice(logs, round(given.logs / world.cost) or 1):
                yield partial(equals_in, world, kind, [seed]), partial(findings.add_equals, (kind, world))
    yield from _about_demand(findings, given)
    yield from _about_tenants(findings, given)
    for kinds in _DIFFERENT:
        for seed in range(1, given.truths + 1):
            yield partial(covered_in, World(), kinds, [seed]), partial(findings.add_coverage, kinds)
    if given.demos:
        yield partial(widths_in, 1), findings.widths.update
    for seed in range(1001, 1001 + given.elsewhere):
        yield partial(elsewhere, World(), ("dice", "shedder"), seed), findings.elsewhere.append
    for seed in range(1, given.demos + 1):
        yield partial(found_in, [seed]), findings.found.append


def _about_demand(findings: Findings, given: argparse.Namespace) -> Iterator[_Job]:
    """Yield what is to be done with few seeds, and with demand that is drawn anew, drifts, or comes again."""
    for place, kind in enumerate(("dice", "shedder", "plug-in hash", "sticky")):
        for seed in range(given.few):
            yield partial(few_seeds_in, World(), kind, 2_000 + 100 * place + seed), findings.add_few_seeds
        if given.few:
            yield partial(best_of, World(lost=1), kind, 3_000 + place), findings.winners.append
    for place, demand in enumerate(DEMANDS):
        for seed in range(given.redrawn):
            yield partial(redrawn, demand, 10_000 * place + seed), findings.redrawn[demand].add
    for namespaces in (0, 1, 3):
        # What is rare among equals needs more of them.
        for seed in range(given.redrawn if namespaces else 4 * given.redrawn):
            yield partial(deaf, 500_000 + seed, namespaces), findings.deaf[namespaces].append
    for seed in range(given.days):
        yield partial(two_days, seed), findings.days.append
        yield partial(same_luck, seed), findings.same_days.append
    for drift in DRIFTS:
        yield partial(_drifts_of, drift, given.drifts), partial(findings.drifts.__setitem__, drift)


def _about_tenants(findings: Findings, given: argparse.Namespace) -> Iterator[_Job]:
    """Yield what is to be done with demand that comes from whole namespaces and tenants at once."""
    for place, world in enumerate(TENANTS):
        for pair in PAIRS:
            for seed in range(given.tenants if pair == "mirror" else given.tenants * 2 // 3):
                number = 1_000_000 + 10_000 * place + 1_000 * list(PAIRS).index(pair) + seed
                yield partial(compared_by_tenants, world, pair, number), findings.tenants[pair][world].append


def _drifts_of(drift: Drift, count: int) -> Counter[str]:
    """Count what is said of a figure over so many drifts."""
    said: Counter[str] = Counter()
    for seed in range(count):
        scored = drifting(drift, seed)
        (verdict,) = scored.verdicts
        said["drawn"] += 1
        said["told apart"] += verdict.verdict in ("better", "worse")
        said["for these hours"] += verdict.verdict in ("better", "worse") and verdict.holds_for == "hours"
        said["exit code 3"] += scored.exit_code == 3
    return said


def _run(jobs: Sequence[_Job], processes: int) -> None:
    began = time.monotonic()
    with ProcessPoolExecutor(processes) as pool:
        waiting = {pool.submit(work): keep for work, keep in jobs}
        for done, future in enumerate(as_completed(waiting), 1):
            waiting[future](future.result())
            sys.stderr.write(f"\r{done} of {len(jobs)}, {time.monotonic() - began:.0f} s")
            sys.stderr.flush()
    sys.stderr.write("\n")


if __name__ == "__main__":
    sys.exit(main())
