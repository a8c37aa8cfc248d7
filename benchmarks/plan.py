"""Time `lookup plan` over the record of a large cluster: 100 brokers, 10,000 bundles, a report of each a minute."""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from figures import Figure
from processes import run_measured

from lookup.collect.folder import RecordFolder
from lookup.collect.observing import BrokerRegistry, BrokerReport, CaughtUp, Observer, Record, StateRecord, TopBundles
from lookup.model.bundles import BundleRange, equal_boundaries

__all__ = ["make_record", "measure_plan"]

_NAMESPACES, _BUNDLES_EACH, _BROKERS, _MINUTES = 100, 100, 100, 20
_START_S = 1_795_000_000
_BROKER_IDS = [f"broker-{number:03}.example.org:8080" for number in range(_BROKERS)]
_BUNDLES = [
    f"tenant/namespace-{number:03}/{BundleRange(*ends)}"
    for number in range(_NAMESPACES)
    for ends in pairwise(equal_boundaries(_BUNDLES_EACH))
]
#: What the issue asks for: seconds and MiB of the whole process.
_MOST_S, _MOST_MIB = 3.0, 500.0


def measure_plan() -> Iterator[Figure]:
    """Yield how long a plan takes over the record of a large cluster, and how much memory."""
    with tempfile.TemporaryDirectory(prefix="lookup-bench-") as folder:
        make_record(Path(folder, "record"))

        def run(name: str, *, memory: bool) -> tuple[float, float]:
            words = ["-m", "lookup", "plan", "--record", f"{folder}/record", "--output", f"{folder}/{name}", "--quiet"]
            measured = run_measured([*words, "--max-moves", "100"], memory=memory)
            return measured.seconds, measured.python_bytes / 2**20

        seconds = min(run(f"time-{number}", memory=False)[0] for number in range(3))
        mib = run("memory", memory=True)[1]
        show = ["-m", "lookup", "plan", "show", f"{folder}/time-0"]
        shown = sorted(run_measured(show).seconds for _ in range(5))[2]
    what = f"plan of at most 100 moves, {len(_BUNDLES):,} bundles on {_BROKERS} brokers, whole process"
    yield Figure(what, seconds, "s", _MOST_S, note=f"a record with {_MINUTES} reports of each")
    yield Figure(f"{what}: peak memory", mib, "MiB", _MOST_MIB)
    yield Figure("`lookup plan show` of that plan, whole process", shown, "s", 0.4, note="median of 5")


def make_record(folder: Path) -> None:
    """Record a made cluster whose brokers are unevenly loaded."""
    observer = Observer("large")
    with RecordFolder(str(folder)) as into:
        for minute in range(_MINUTES):
            for record in _minute(minute):
                observer.take(record)
            for table, rows in observer.pending.items():
                if rows:
                    until_us = (_START_S + 60 * minute) * 1_000_000
                    into.write(table, rows, until_us=until_us, position=observer.position)
                    rows.clear()


def _minute(minute: int) -> Iterator[Record]:
    ts_us, dice = (_START_S + 60 * minute) * 1_000_000, random.Random(minute)
    if minute == 0:
        data = {"webServiceUrl": "http://b:8080", "startTimestamp": 1, "properties": {"lookup.rack": "A"}}
        yield BrokerRegistry(dict.fromkeys(_BROKER_IDS, json.dumps(data)), ts_us)
        for place, bundle in enumerate(_BUNDLES):
            state = {"state": "Owned", "dstBroker": _BROKER_IDS[place % _BROKERS], "timestamp": 1, "versionId": 1}
            yield StateRecord(bundle, json.dumps(state), ts_us, (1, place, -1))
        yield CaughtUp(ts_us)
    for number, broker in enumerate(_BROKER_IDS):
        # Ten of a hundred carry twice the load.
        means = [(2e6 if number < 10 else 1e6) * (1.0 + place % 7) for place in range(_BUNDLES_EACH)]
        loads = [mean * dice.uniform(0.8, 1.2) for mean in means]
        half = sum(loads) / 2
        yield BrokerReport(broker, json.dumps({"msgThroughputIn": half, "msgThroughputOut": half}), ts_us)
        named = zip(_BUNDLES[number::_BROKERS], loads, strict=True)
        top = [{"bundleName": name, "stats": {"msgThroughputIn": load / 2, "msgThroughputOut": load / 2}}
               for name, load in named]  # fmt: skip
        yield TopBundles(json.dumps({"topBundlesLoadData": top}), ts_us, broker)


if __name__ == "__main__":
    for figure in measure_plan():
        sys.stdout.write(figure.row() + "\n")
