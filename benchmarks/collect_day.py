"""Feed a made day of a large cluster to what `lookup collect` runs, and print how much memory that takes.

100 brokers report their load every ten seconds and their ten top bundles every minute; 10,000 bundles are assigned, and
every second one of them moves. No source and no clock: records come as fast as they are taken, rows are written to a
temporary folder once per simulated minute, as with `--every 60s`.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise

from lookup.collect.folder import RecordFolder
from lookup.collect.observing import (
    BrokerRegistry,
    BrokerReport,
    Bundles,
    CaughtUp,
    Observer,
    Record,
    StateRecord,
    TopBundles,
)
from lookup.model.bundles import BundleRange, equal_boundaries

_NAMESPACES, _BUNDLES_EACH, _BROKERS = 100, 100, 100
_BOUNDARIES = equal_boundaries(_BUNDLES_EACH)
_BROKER_IDS = [f"broker-{number:03}.example.org:8080" for number in range(_BROKERS)]
_BUNDLES = [
    f"tenant/namespace-{number:03}/{BundleRange(*ends)}"
    for number in range(_NAMESPACES)
    for ends in pairwise(_BOUNDARIES)
]
_START_S = 1_795_000_000
_MIB = 1024


def main() -> None:
    """Simulate, and print the peak of resident memory, the rows and the time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=int, default=24)
    hours = parser.parse_args().hours
    before, began = _peak_mib(), time.monotonic()
    rows = 0
    with tempfile.TemporaryDirectory() as output, RecordFolder(output) as folder:
        observer = Observer("large", folder.past("large"))
        for minute in range(hours * 60):
            for record in _minute(minute):
                observer.take(record)
            for table, pending in observer.pending.items():
                if pending:
                    until_us = (_START_S + minute * 60) * 1_000_000
                    folder.write(table, pending, until_us=until_us, position=observer.position)
                    rows += len(pending)
                    pending.clear()
            folder.write_namespaces(observer.first_boundaries)
        assert not observer.refused, observer.reasons
    seconds = time.monotonic() - began
    print(f"{hours} hours, {rows:,} rows in {seconds:.0f} s: {_peak_mib():.0f} MiB at most, {before:.0f} MiB before")


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _MIB


def _minute(minute: int) -> Iterator[Record]:
    """Yield what the cluster publishes in a minute."""
    start = _START_S + minute * 60
    brokers, bundles = _BROKER_IDS, _BUNDLES
    if minute == 0:
        data = {"webServiceUrl": "http://b:8080", "startTimestamp": 1, "properties": {"lookup.rack": "A"}}
        yield BrokerRegistry(dict.fromkeys(brokers, json.dumps(data)), start * 1_000_000)
        for number in range(_NAMESPACES):
            yield Bundles(f"tenant/namespace-{number:03}", _BOUNDARIES, start * 1_000_000)
        for number, bundle in enumerate(bundles):
            yield _state(bundle, "Owned", number, 1, start, dstBroker=brokers[number % _BROKERS])
        yield CaughtUp(start * 1_000_000)
    for second in range(60):
        # A bundle's turn comes again after 10,000 s, each time with three more versions.
        serial = minute * 60 + second
        number, turn = serial % len(bundles), serial // len(bundles)
        source, target = brokers[(number + turn) % _BROKERS], brokers[(number + turn + 1) % _BROKERS]
        for step, state in enumerate(("Releasing", "Assigning", "Owned")):
            version = 2 + 3 * turn + step
            yield _state(bundles[number], state, len(bundles) + 3 * serial + step, version, start + second,
                         dstBroker=target, sourceBroker=source)  # fmt: skip
        if second % 10 == 0:
            for number, broker in enumerate(brokers):
                yield BrokerReport(broker, _load(number + serial), (start + second) * 1_000_000)
    for number in range(_BROKERS):
        stats = {"msgRateIn": 1.5, "msgThroughputIn": 1e6, "msgRateOut": 2.5, "msgThroughputOut": 2e6, "topics": 7}
        top = [{"bundleName": bundle, "stats": stats} for bundle in bundles[number::_BROKERS][:10]]
        yield TopBundles(json.dumps({"topBundlesLoadData": top}), (start + 59) * 1_000_000)


def _state(bundle: str, state: str, place: int, version: int, ts_s: int, **brokers: str) -> StateRecord:
    record = {"state": state, "force": False, "timestamp": ts_s * 1_000, "versionId": version, **brokers}
    return StateRecord(bundle, json.dumps(record), ts_s * 1_000_000, (1, place, -1))


def _load(number: int) -> str:
    usage = {"usage": number % 100 + 0.123456789, "limit": 200.0}
    resources = dict.fromkeys(("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut"), usage)
    figures = dict.fromkeys(("msgThroughputIn", "msgThroughputOut", "msgRateIn", "msgRateOut"), number / 7)
    return json.dumps({**resources, **figures, "bundleCount": 100, "topics": 700, "maxResourceUsage": 0.5})


if __name__ == "__main__":
    main()
