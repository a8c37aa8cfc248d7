"""`make bench`: every figure the project is held to, each against its floor or rival of the same run.

    python benchmarks/run.py                      all of it, about forty minutes on two cores
    python benchmarks/run.py --only decision      one part: rivals, four, replicates, sixteen, doubling, demo, starting,
                                                  cores, large, small, tables, steady, closed, decision, serving,
                                                  topics, watches, tuning, plan, live
    python benchmarks/run.py --write              and keep the table in docs/benchmarks.md

Logs are made under `bench-data/` where they are missing (7 seconds, 200 MB for 20 million lookups).
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from decision import measure_decision
from evaluating import EVALUATE_MODULES, default_seeds, evaluate_command, seeds_variable, table_variables
from figures import Figure, as_markdown, replace_block
from plan import measure_plan
from polls import measure_polls
from processes import Measured, run_measured
from rivals import RIVALS
from serve import measure_serving
from topics import hash_costs, measure_discovery, measure_filling, measure_writes
from tuning import measure_tuning
from watches import measure_watches

from lookup.model.quoting import quantity

__all__ = ["main"]

_HERE = Path(__file__).resolve().parent
_PAGE = _HERE.parent / "docs" / "benchmarks.md"
_MASTER = "local[2]"
_GIB = 2**30
#: How often each whole process is timed.
_ROUNDS = 5
#: Those of the shipped evaluations.
_REPLICATES = 10
_WHOLE = f"whole processes, medians of {_ROUNDS}, in turns"


@dataclass(frozen=True)
class _Whole:
    """A whole process: an evaluation, or a rival."""

    config: str = ""
    rival: str = ""
    #: of a log of so many times the rows
    times: int = 1
    seeds: int = 1
    #: where it runs
    master: str = "none"


_FOUR, _SIXTEEN = "evaluation-4.toml", "evaluation-16.toml"
#: The whole processes that parts are made of.
_PROCESSES: Mapping[str, _Whole] = {
    **{rival: _Whole(rival=rival) for rival in RIVALS},
    "four": _Whole(_FOUR),
    "four on Spark": _Whole(_FOUR, master=_MASTER),
    "replicates": _Whole(_FOUR, seeds=_REPLICATES),
    "replicates on Spark": _Whole(_FOUR, seeds=_REPLICATES, master=_MASTER),
    "sixteen": _Whole(_SIXTEEN),
    "double": _Whole(_FOUR, times=2),
}
#: Which of them a part needs.
_NEEDS: Mapping[str, Sequence[str]] = {
    "rivals": tuple(RIVALS),
    "four": ("arrow", "duckdb", "polars", "spark", "four", "four on Spark"),
    "replicates": ("spark", "replicates", "replicates on Spark"),
    "sixteen": ("spark", "four", "sixteen"),
    "doubling": ("four", "double"),
}


class _Bench:
    """One run: its logs, and what was measured so far."""

    def __init__(self, data: Path, rows: int, parts: Sequence[str]) -> None:
        self._data = data
        self.rows = rows
        self._wholes = [name for name in _PROCESSES if any(name in _NEEDS.get(part, ()) for part in parts)]
        self._done: dict[str, Measured] = {}

    def log(self, times: int = 1) -> Path:
        """Return the LOOKUPS of the benchmark log, or of one several times as long; make it where it is missing."""
        rows = self.rows * times
        folder = self._data / f"{rows // 1_000_000}m"
        if not (folder / "lookups").exists():
            run_measured([str(_HERE / "make_log.py"), "--rows", str(rows), "--output", str(folder)])
        return folder / "lookups"

    def whole(self, name: str) -> Measured:
        """Return the median of several runs of a whole process.

        All that the parts need are run in turns, so that a slow minute of the machine meets each of them.
        """
        rounds = [
            {other: self._once(f"{other}, round {number}", partial(self._process, other)) for other in self._wholes}
            for number in range(1, _ROUNDS + 1)
        ]
        return sorted((measured[name] for measured in rounds), key=lambda measured: measured.seconds)[_ROUNDS // 2]

    def ratio(self, name: str, rival: str) -> float:
        """Return the seconds of a whole process over those of another."""
        return self.whole(name).seconds / self.whole(rival).seconds

    def memory(self, name: str) -> Measured:
        """Return one more run of a whole process, in which its memory was looked at."""
        return self._once(f"{name}, memory", lambda: self._process(name, memory=True))

    def _process(self, name: str, *, memory: bool = False) -> Measured:
        """Run a rival, or `lookup evaluate` into a folder that is thrown away; verdicts may be what they like."""
        whole = _PROCESSES[name]
        lookups, path = self.log(whole.times), _HERE / whole.config
        if whole.rival:
            return run_measured([str(_HERE / "rivals.py"), whole.rival, str(lookups)], memory=memory)
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            arguments = evaluate_command(path, lookups, Path(folder) / "out", whole.master)
            variables = {**table_variables(path, lookups), **seeds_variable(whole.seeds)}
            return run_measured(arguments, allowed=(0, 3, 4), variables=variables, memory=memory)

    def steady(self) -> list[tuple[float, float]]:
        """Return the seconds of several evaluations in one session, and of a bare loop after each."""
        config, log = str(_HERE / "evaluation-4.toml"), str(self.log())
        arguments = [str(_HERE / "steady.py"), "--config", config, "--lookups", log, "--master", _MASTER]
        measured = self._once("steady", lambda: run_measured(arguments))
        return [(float(spent), float(loop)) for spent, loop in json.loads(measured.output.splitlines()[-1])]

    def evaluated(
        self, name: str, master: str, lookups: Path | None = None, *, seeds: int | None = None, memory: bool = False
    ) -> Measured:
        """Return one evaluation of four policies, by default of the benchmark log with the default replicates."""
        config, log = _HERE / "evaluation-4.toml", lookups or self.log()

        def run() -> Measured:
            """Run it into a folder that is thrown away; verdicts may be what they like."""
            with tempfile.TemporaryDirectory(prefix="bench-") as folder:
                arguments = evaluate_command(config, log, Path(folder) / "out", master)
                variables = {**table_variables(config, log), **seeds_variable(seeds)}
                return run_measured(arguments, allowed=(0, 3, 4), variables=variables, memory=memory)

        return self._once(name, run)

    def demo(self, master: str, number: int) -> float:
        """Return the seconds of an evaluation of the demo's log: its incumbent and four candidates."""
        sample = self._data / "sample"
        if not sample.exists():
            run_measured(["-m", "lookup", "generate", "--output", str(sample)])
        config = _HERE.parent / "configs" / "evaluation.toml"
        variables = {**table_variables(config, sample / "lookups"), **seeds_variable(_REPLICATES)}
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            words = evaluate_command(config, sample / "lookups", Path(folder) / "out", master)
            print(f"... demo, {master}, round {number}", file=sys.stderr, flush=True)
            return run_measured(words, allowed=(0, 3, 4), variables=variables).seconds

    @property
    def folder(self) -> Path:
        """Return where logs are."""
        return self._data

    def small_log(self, clusters: int) -> Path:
        """Return the folder of a log of 10,000 lookups."""
        log = self._data / f"10k-{clusters}"
        if not log.exists():
            size = ["--lookups", "10000", "--clusters", str(clusters)]
            run_measured(["-m", "lookup", "generate", *size, "--output", str(log)])
        return log

    def small(self, clusters: int) -> tuple[float, float]:
        """Return the seconds of an evaluation of a small log without Spark, and of its imports alone; in turns."""
        log = self.small_log(clusters)
        # An installation compiles its modules. A clone under PYTHONDONTWRITEBYTECODE would do so at every start.
        run_measured(["-m", "compileall", "-q", *map(str, (_HERE.parent / "lookup", _HERE.parent / "plugins"))])
        path, imports = _HERE / "evaluation-4.toml", f"import {', '.join(EVALUATE_MODULES)}"
        variables = {**table_variables(path, log / "lookups"), "LOOKUP_EVALUATION__DEFAULT_BUNDLES": "16"}
        rounds = []
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            arguments = evaluate_command(path, log / "lookups", Path(folder) / "out", "none")
            for number in range(1, _ROUNDS + 1):
                print(f"... small, {quantity(clusters, 'cluster')}, round {number}", file=sys.stderr, flush=True)
                whole = run_measured(arguments, allowed=(0, 3, 4), variables=variables)
                rounds.append((whole.seconds, run_measured(["-c", imports]).seconds))
        return min(whole for whole, _ in rounds), min(alone for _, alone in rounds)

    def tables(self, *flags: str) -> dict[str, Any]:
        """Return what `tables.py` measures."""
        arguments = [str(_HERE / "tables.py"), "--data", str(self._data), "--rounds", str(_ROUNDS), *flags]
        measured = self._once(" ".join(("tables", *flags)), lambda: run_measured(arguments))
        content: dict[str, Any] = json.loads(measured.output.splitlines()[-1])
        return content

    def closed_loop(self, bundles: int, hours: int) -> float:
        """Return the seconds of one policy with a shedder over some hours of one cluster, on one core."""
        size = ["--bundles", str(bundles), "--hours", str(hours)]
        arguments = [str(_HERE / "closed_loop.py"), "--data", str(self._data), *size]
        measured = self._once(f"closed loop, {bundles} bundles, {hours} h", lambda: run_measured(arguments))
        return float(json.loads(measured.output.splitlines()[-1])["seconds"])

    def _once(self, name: str, run: Callable[[], Measured]) -> Measured:
        if name not in self._done:
            print(f"... {name}", file=sys.stderr, flush=True)
            self._done[name] = run()
        return self._done[name]


def _rivals(bench: _Bench) -> Iterator[Figure]:
    what = {
        "arrow": "Arrow reads the five columns",
        "duckdb": "DuckDB groups the log once",
        "polars": "Polars groups the log once",
        "spark": "Spark groups the log once",
    }
    for rival in RIVALS:
        yield Figure(f"{what[rival]}, whole process", bench.whole(rival).seconds, "s", note="benchmarks/rivals.py")


def _four(bench: _Bench) -> Iterator[Figure]:
    what, on_spark = "four policies, one seed, this process", "four policies, one seed, Spark"
    yield Figure(f"{what}, whole process", bench.whole("four").seconds, "s", note="`--master none`, two forks")
    yield Figure(f"{what} / the bare read", bench.ratio("four", "arrow"), "", 6.0, note=_WHOLE)
    yield Figure(f"{what} / DuckDB's group-by", bench.ratio("four", "duckdb"), "", 0.7, note=_WHOLE)
    yield Figure(f"{what} / Polars' group-by", bench.ratio("four", "polars"), "", note=_WHOLE)
    yield Figure(f"{what} / Spark's group-by", bench.ratio("four", "spark"), "", note=_WHOLE)
    yield from _memory(bench, "four", what)
    yield Figure(f"{on_spark}, whole process", bench.whole("four on Spark").seconds, "s", note=f"`--master {_MASTER}`")
    yield Figure(f"{on_spark} / Spark's group-by", bench.ratio("four on Spark", "spark"), "", 0.30, note=_WHOLE)
    yield from _memory(bench, "four on Spark", on_spark)


def _replicates(bench: _Bench) -> Iterator[Figure]:
    for name, where, most in (("replicates", "this process", 0.35), ("replicates on Spark", "Spark", 0.45)):
        what = f"four policies, {_REPLICATES} replicates, {where}"
        yield Figure(f"{what}, whole process", bench.whole(name).seconds, "s")
        yield Figure(f"{what} / Spark's group-by", bench.ratio(name, "spark"), "", most, note=_WHOLE)
        yield from _memory(bench, name, what)


def _memory(bench: _Bench, name: str, what: str) -> Iterator[Figure]:
    held = bench.memory(name)
    yield Figure(f"{what}: the largest process, peak memory", held.largest_bytes / _GIB, "GiB", 1.5)
    if held.java_bytes:
        yield Figure(f"{what}: the JVM, peak memory", held.java_bytes / _GIB, "GiB", note="resident")


def _demo(bench: _Bench) -> Iterator[Figure]:
    for master, most in (("none", 5.0), (_MASTER, 11.0)):
        rounds = [bench.demo(master, number) for number in range(1, _ROUNDS + 1)]
        where = "this process" if master == "none" else "Spark"
        what = f"the demo's log, four candidates, {_REPLICATES} replicates, {where}, whole process"
        yield Figure(what, sorted(rounds)[_ROUNDS // 2], "s", most, note=f"median of {_ROUNDS}")


def _starting(_: _Bench) -> Iterator[Figure]:
    config = str(_HERE.parent / "configs" / "evaluation.toml")
    for words in (["--help"], ["config", "check", config]):
        rounds = sorted(run_measured(["-m", "lookup", *words]).seconds for _ in range(_ROUNDS))
        what = f"`lookup {' '.join(words).replace(config, 'configs/evaluation.toml')}`, whole process"
        yield Figure(what, rounds[_ROUNDS // 2], "s", 0.4, note=f"median of {_ROUNDS}")


def _cores(bench: _Bench) -> Iterator[Figure]:
    def replaying(cores: int) -> float:
        """Return the seconds of the stage of replaying, as the command's progress tells them."""
        seconds = []
        for number in range(1, _ROUNDS + 1):
            measured = bench.evaluated(f"{quantity(cores, 'core')}, round {number}", f"local[{cores}]")
            stages = re.findall(r"\[ *([\d.]+) s\] (replaying .* runs?|scoring)$", measured.output, re.MULTILINE)
            (begin, _), (end, _) = stages[0], stages[-1]
            seconds.append(float(end) - float(begin))
        return min(seconds)

    one, two = replaying(1), replaying(2)
    what = f"four policies, {default_seeds()} replicates, stage of replaying: one core / two"
    yield Figure(what, one / two, "", 1.7, least=True, note=f"{one:.1f} s and {two:.1f} s, the fastest of {_ROUNDS}")


def _large(bench: _Bench) -> Iterator[Figure]:
    for millions in (100, 200):
        folder = bench.folder / f"day-{millions}m"
        if not (folder / "lookups").exists():
            size = ["--rows", str(millions * 1_000_000), "--clusters", "1", "--hours", "24"]
            run_measured([str(_HERE / "make_log.py"), *size, "--output", str(folder)])
        day = f"a day of one cluster with {millions} million lookups"
        measured = bench.evaluated(day, _MASTER, folder / "lookups", seeds=1, memory=True)
        what = f"{day}, four policies: the largest process of a task, peak memory"
        note = f"whole process {measured.seconds:.0f} s, while its memory is looked at"
        yield Figure(what, measured.largest_bytes / _GIB, "GiB", 1.5, note=note)


def _sixteen(bench: _Bench) -> Iterator[Figure]:
    many, few = bench.whole("sixteen").seconds, bench.whole("four").seconds
    yield Figure("sixteen policies, one seed, this process, whole process", many, "s")
    each = (many - few) / 12 / bench.whole("spark").seconds
    yield Figure("each policy more / Spark's group-by", each, "", 0.008, note=_WHOLE)
    yield from _memory(bench, "sixteen", "sixteen policies, one seed, this process")


def _doubling(bench: _Bench) -> Iterator[Figure]:
    yield Figure("four policies, twice the log / once", bench.ratio("double", "four"), "", 2.0, note=_WHOLE)
    yield from _memory(bench, "double", "twice the log")


def _small(bench: _Bench) -> Iterator[Figure]:
    # Clusters are replayed apart: of two that share the rows each is nearly as much work as one that has them all.
    for clusters, most in ((1, 3.0), (2, None)):
        whole, imports = bench.small(clusters)
        log = f"10,000 lookups of {quantity(clusters, 'cluster')}"
        what = f"{log}, four policies, {default_seeds()} replicates, without Spark"
        yield Figure(f"{what}, whole process", whole, "s", most, note=f"the fastest of {_ROUNDS}; `--master none`")
        yield Figure(f"{what} / its imports alone", whole / imports, "", note=f"imports {imports:.2f} s, in turns")


def _tables(bench: _Bench) -> Iterator[Figure]:
    rows = "BUNDLES of 24 h, 10,000 a minute"
    ours, rival = (min(bench.tables()[name]) for name in ("ours_s", "rival_s"))
    note = f"{ours:.1f} s and {rival:.1f} s, the fastest of {_ROUNDS} in turns"
    yield Figure(f"{rows}: read / a Spark group-by of the same figures", ours / rival, "", 2.0, note=note)
    sizes = bench.tables("--driver")
    python, java = sizes["python_bytes"] / _GIB, sizes["java_bytes"] / _GIB
    note = f"Python {python:.2f} GiB, its JVM, with a heap of 512 MiB, {java:.2f} GiB"
    yield Figure(f"{rows}: the driver's peak memory in a replay", python + java, "GiB", 1.0, note=note)


def _steady(bench: _Bench) -> Iterator[Figure]:
    (first, _), *later = bench.steady()
    best, loop = min(later)
    note = f"best of {len(later)}; a bare loop on both cores: {loop:.2f} s beside it, {_spread(later)} in all"
    what = "four policies, session up"
    yield Figure(f"{what}, first evaluation", bench.rows / first / 1e6, "M lookups/s")
    yield Figure(what, bench.rows / best / 1e6, "M lookups/s", 3.0, least=True, note=note)


def _spread(rounds: Sequence[tuple[float, float]]) -> str:
    loops = sorted(loop for _, loop in rounds)
    return f"{loops[0]:.2f} to {loops[-1]:.2f}"


def _closed(bench: _Bench) -> Iterator[Figure]:
    whole, bundles, ticks = bench.closed_loop(10_000, 24), bench.closed_loop(5_000, 24), bench.closed_loop(10_000, 12)
    note = "one core, session up, 100 brokers, 10,000 bundles, `least-used` with `threshold`"
    yield Figure("closed loop over a day", whole, "s", 60.0, note=note)
    yield Figure("closed loop, twice the bundles / once", whole / bundles, "", 2.0, note="as many lookups per bundle")
    yield Figure("closed loop, twice the ticks / once", whole / ticks, "", 2.0)


def _decision(_: _Bench) -> Iterator[Figure]:
    for n_brokers, most_us in ((100, 150.0), (1_000, 1_500.0)):
        times = measure_decision(n_brokers)
        among = f"one decision among {n_brokers:,} brokers"
        yield Figure(f"{among}, p50", times.engine[0], "µs", most_us, note=f"p99 {times.engine[1]:.0f} µs")
        bare = f"bare loop p50 {times.bare[0]:.0f} µs, p99 {times.bare[1]:.0f} µs"
        yield Figure(f"{among} / bare loop", times.ratio, "", 1.5, note=bare)
        yield Figure(f"{among}, cached, p50", times.cached[0], "µs", 20.0, note=f"p99 {times.cached[1]:.1f} µs")
        yield Figure(
            f"one assignment among {n_brokers:,} brokers, p50",
            times.assign[0],
            "µs",
            note=f"p99 {times.assign[1]:.0f} µs",
        )


def _topics(_: _Bench) -> Iterator[Figure]:
    found, catalog = measure_discovery()
    among = f"{found.n_topics // 1_000_000} M topics, three labels each"
    yield Figure(f"{among}: memory per topic", found.bytes_per_topic, "bytes", 600.0, note="growth of the process")
    for name, query in found.queries.items():
        note = f"{query.matches:,} matches; p50 {query.p50_ms:.2f} ms"
        yield Figure(f"{among}: query of {name}, p99", query.p99_ms, "ms", 5.0, note=note)
        scan = f"p50 of a look at each topic's dictionary, {query.scan_ms:.0f} ms, over p99 of the index"
        yield Figure(f"query of {name}: scan / index", query.scan_ms / query.p99_ms, "", 100.0, least=True, note=scan)
    for size, cost in hash_costs():
        note = f"{1e3 * cost / size:.1f} ns per topic"
        yield Figure(f"hash of a list of {size:,} topics, p50", cost, "µs", note=note)
    yield from measure_polls(catalog)
    yield from measure_filling()
    yield from measure_writes()


def _serving(_: _Bench) -> Iterator[Figure]:
    decided, constant = measure_serving()
    among = "decision server, 100 brokers, policy `rack-then-load`, recording"
    note = f"of one core: a second over {decided.cpu_us:.0f} µs of CPU time; {decided.rate:,.0f} by the clock"
    yield Figure(f"{among}: decisions a second", 1e6 / decided.cpu_us, "/s", 3_000.0, least=True, note=note)
    floor = f"{constant.cpu_us:.0f} µs, {constant.rate:,.0f} a second by the clock with the same client"
    yield Figure(f"{among} / constant handler, CPU time", decided.cpu_us / constant.cpu_us, "", note=floor)
    what = "16 requests under way at any time"
    yield Figure(f"{among}: answer, p50", decided.p50_ms, "ms", note=f"p99 {decided.p99_ms:.1f} ms; {what}")


def _watches(_: _Bench) -> Iterator[Figure]:
    yield from measure_watches()


def _tuning(_: _Bench) -> Iterator[Figure]:
    yield from measure_tuning()


def _plan(_: _Bench) -> Iterator[Figure]:
    yield from measure_plan()


def _live(_: _Bench) -> Iterator[Figure]:
    print("... live, some five minutes", file=sys.stderr, flush=True)
    # It steers a cluster as the tests do.
    root = {"PYTHONPATH": str(_HERE.parent)}
    lines = run_measured([str(_HERE / "live.py")], allowed=(0, 2), variables=root).output.splitlines()
    figures = [json.loads(line) for line in lines if line.startswith("{")]
    if not figures:
        # Without the jars of a cluster the other figures are measured all the same.
        print(f"The part live is left out: {lines[-1]}", file=sys.stderr, flush=True)
    for figure in figures:
        yield Figure(**figure)


_PARTS: Mapping[str, Callable[[_Bench], Iterator[Figure]]] = {
    "rivals": _rivals,
    "four": _four,
    "replicates": _replicates,
    "sixteen": _sixteen,
    "doubling": _doubling,
    "demo": _demo,
    "starting": _starting,
    "cores": _cores,
    "large": _large,
    "small": _small,
    "tables": _tables,
    "steady": _steady,
    "closed": _closed,
    "decision": _decision,
    "serving": _serving,
    "topics": _topics,
    "watches": _watches,
    "tuning": _tuning,
    "plan": _plan,
    "live": _live,
}


def main(arguments: list[str] | None = None) -> int:
    """Measure, print the table, and return 1 where a figure is not kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(_PARTS), default=list(_PARTS), help="parts to measure")
    parser.add_argument("--rows", type=int, default=20_000_000, help="lookups of the log, whole millions")
    parser.add_argument("--data", type=Path, default=_HERE.parent / "bench-data", help="where the logs are")
    parser.add_argument("--write", action="store_true", help="keep the table in docs/benchmarks.md")
    options = parser.parse_args(arguments)
    if options.rows < 1_000_000 or options.rows % 1_000_000:
        parser.error(f"--rows is {options.rows}, it must be a multiple of 1,000,000")
    bench = _Bench(options.data, options.rows, options.only)
    figures: list[Figure] = []
    for name in options.only:
        for figure in _PARTS[name](bench):
            print(figure.row(), flush=True)
            figures.append(figure)
    table = as_markdown(figures)
    print(f"\n{table}")
    if options.write:
        replace_block(_PAGE, table)
    return 0 if all(figure.is_met for figure in figures) else 1


if __name__ == "__main__":
    raise SystemExit(main())
