"""The whole calibration: `python -m tests.calibration [--write] [--logs N]`, on all cores, without Spark."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

from tests.calibration.differences import covered_in, elsewhere, found_in, widths_in
from tests.calibration.equals import equals_in
from tests.calibration.tables import Findings, page
from tests.calibration.worlds import KINDS, WORLDS, World

_PAGE = Path(__file__).parents[2] / "docs" / "calibration.md"
_BEGIN, _END = "<!-- calibration: begin -->", "<!-- calibration: end -->"
#: Pairs of kinds whose true difference is looked for in intervals.
_DIFFERENT = (("dice", "shedder"), ("rendezvous", "ring"))


_Job = tuple[Callable[[], Any], Callable[[Any], None]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Calibrate, print the tables and keep them in the docs if asked to; return 1 if a bound is not kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.calibration", description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the tables in docs/calibration.md")
    parser.add_argument(
        "--logs", type=int, default=6, help="short logs of each kind of policy; of longer ones fewer (default: 6)"
    )
    parser.add_argument("--demos", type=int, default=100, help="logs of the demo's size (default: 100)")
    parser.add_argument("--truths", type=int, default=5, help="logs on which a true difference is known (default: 5)")
    parser.add_argument("--elsewhere", type=int, default=60, help="logs whose mean difference is known (default: 60)")
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
    for kinds in _DIFFERENT:
        for seed in range(1, given.truths + 1):
            yield partial(covered_in, World(), kinds, [seed]), partial(findings.add_coverage, kinds)
    if given.demos:
        yield partial(widths_in, 1), findings.widths.update
    for seed in range(1001, 1001 + given.elsewhere):
        yield partial(elsewhere, World(), ("dice", "shedder"), seed), findings.elsewhere.append
    for seed in range(1, given.demos + 1):
        yield partial(found_in, [seed]), partial(findings.add_found, 1)


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
