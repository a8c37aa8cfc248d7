"""A stand-in for a cluster on one port: its admin REST, and the records of its state topic over HTTP.

python -m tests.moving.standin URL PLAN JOURNAL [freeze]     applies a plan to it, in a process that tests kill
"""

from __future__ import annotations

import json
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from lookup.api.applying import How, apply
from lookup.collect.collector import Endpoints
from lookup.collect.observing import BrokerReport, CaughtUp, Record, StateRecord
from lookup.collect.sources import Source
from lookup.model.bundles import bundle_ranges, equal_boundaries
from lookup.moving.applying import Pace
from lookup.moving.plan import MovePlan
from lookup.moving.shedding import KEY
from tests.answering import http_answer, serving
from tests.moving.plans import plan_of_moves

__all__ = ["BROKERS", "StandIn", "quick_how", "reading", "running"]

BROKERS = ("a:8080", "b:8080", "c:8080")
_CONFIGURATION = f"brokers/configuration/{KEY}"


class StandIn:
    """A cluster of three brokers; what it does with an unload can be set for each bundle."""

    def __init__(self, bundles: int) -> None:
        self.url = ""
        self.lock = threading.Lock()
        self.brokers = [*BROKERS]
        #: dynamic configuration
        self.configuration: dict[str, str] = {}
        #: what the brokers' own files say of shedding
        self.shedding = "true"
        #: bundle and value of each record of the state topic
        self.records: list[tuple[str, dict[str, Any], int]] = []
        self._versions: dict[str, int] = {}
        self.owners: dict[str, str | None] = {}
        #: unloads by request: bundle and destination
        self.unloads: list[tuple[str, str | None]] = []
        #: by bundle: an answer in place of carrying it out, `vanish` (carried out, not answered), `ignore` (answered,
        #: not carried out), or the broker that gets it
        self.odd: dict[str, Any] = {}
        #: called before and after each change, with `before` or `after`, method and path
        self.on_change: Callable[[str, str], None] = lambda when, what: None
        #: answers by path, in place of its own: status and text
        self.answers: dict[str, tuple[int, str]] = {}
        ranges = bundle_ranges(equal_boundaries(bundles))
        self.bundles = [f"public/shop/{bounds}" for bounds in ranges]
        for number, bundle in enumerate(self.bundles):
            self.give(bundle, BROKERS[number % 3])

    def give(self, bundle: str, broker: str | None) -> None:
        """Let a bundle have another owner, or none, as an administrator does."""
        with self.lock:
            before = self.owners.get(bundle)
            if before is not None:
                self._write(bundle, {"state": "Releasing", "dstBroker": broker, "sourceBroker": before})
            if broker is not None:
                self._write(bundle, {"state": "Assigning", "dstBroker": broker, "sourceBroker": before})
                self._write(bundle, {"state": "Owned", "dstBroker": broker, "sourceBroker": before})
            elif before is not None:
                self._write(bundle, {"state": "Free", "sourceBroker": before})
            self.owners[bundle] = broker

    def lose(self, broker: str) -> None:
        """Take a broker from the registry."""
        self.brokers = [other for other in BROKERS if other != broker]

    def split(self, bundle: str) -> None:
        """Split a bundle in halves."""
        bounds = bundle.rpartition("/")[2]
        low, high = (int(end, 16) for end in bounds.split("_"))
        halves = [f"0x{low:08x}_0x{(low + high) // 2:08x}", f"0x{(low + high) // 2:08x}_0x{high:08x}"]
        with self.lock:
            split = {"splitServiceUnitToDestBroker": dict.fromkeys(halves)}
            self._write(bundle, {"state": "Splitting", "sourceBroker": self.owners[bundle], **split})
            self.owners[bundle] = None

    def _write(self, bundle: str, data: dict[str, Any]) -> None:
        self._versions[bundle] = self._versions.get(bundle, 0) + 1
        content = {key: value for key, value in data.items() if value is not None}
        # Every record has a time of its own.
        ts_us = 1_795_000_000_000_000 + len(self.records) * 1_000_000
        self.records.append((bundle, content | {"versionId": self._versions[bundle], "timestamp": 1}, ts_us))

    def since_us(self, bundle: str) -> int:
        """Return when the latest record of a bundle was written, µs."""
        return max(ts_us for name, _, ts_us in self.records if name == bundle)

    def arrivals(self, bundle: str) -> list[str]:
        """Return the owners of a bundle, in order."""
        return [data["dstBroker"] for name, data, _ in self.records if name == bundle and data["state"] == "Owned"]

    def plan(self, count: int | None = None, **fields: object) -> MovePlan:
        """Return a plan that moves bundles to the next broker."""
        moves = []
        for bundle in self.bundles[:count]:
            owner = self.owners[bundle] or ""
            moves.append((bundle, owner, BROKERS[(BROKERS.index(owner) + 1) % 3], self.since_us(bundle)))
        made = plan_of_moves(moves, BROKERS, **fields)
        # All brokers answer at the one address that there is.
        brokers = tuple(broker.model_copy(update={"web_url": self.url}) for broker in made.brokers)
        return made.model_copy(update={"brokers": brokers})

    # What it answers.

    def respond(self, method: str, target: str, _headers: object) -> bytes | None:
        """Return an answer; None: nothing is answered."""
        answer = self._answered(method, target)
        return None if answer is None else http_answer(answer[1], answer[0])

    def _answered(self, method: str, target: str) -> tuple[int, str] | None:
        path = target.removeprefix("/admin/v2/")
        if (answer := self.answers.get(path.partition("?")[0])) is not None:
            return answer
        if method == "GET":
            return self._told(path)
        self.on_change("before", f"{method} {path}")
        answer = self._changed(method, path)
        self.on_change("after", f"{method} {path}")
        return answer

    def _told(self, path: str) -> tuple[int, str]:
        if path.startswith("/state?"):
            after = int(path.partition("=")[2])
            return 200, json.dumps(self.records[after:])
        known: dict[str, Any] = {
            "clusters": ["east"],
            "brokers/east": self.brokers,
            "brokers/ready": "ok",
            "brokers/configuration/values": self.configuration,
            "brokers/configuration/runtime": {KEY: self.configuration.get(KEY, self.shedding)},
        }
        return (200, json.dumps(known[path])) if path in known else (404, '{"reason": "no such path"}')

    def _changed(self, method: str, path: str) -> tuple[int, str] | None:
        if path.startswith(_CONFIGURATION):
            if method == "DELETE":
                self.configuration.pop(KEY, None)
            else:
                self.configuration[KEY] = path.rpartition("/")[2]
            return 200, ""
        parts = urlsplit(path)
        bundle = unquote(parts.path).removeprefix("namespaces/").removesuffix("/unload")
        destination = parse_qs(parts.query)["destinationBroker"][0]
        self.unloads.append((bundle, destination))
        odd = self.odd.get(bundle)
        if isinstance(odd, tuple):
            return odd
        if odd != "ignore":
            self.give(bundle, odd if odd in BROKERS else destination)
        return None if odd == "vanish" else (204, "")


@contextmanager
def reading(url: str) -> Iterator[Queue[Record]]:
    """Read the state topic of a stand-in, and load reports."""

    class StateSource(Source):
        """Reads records over HTTP."""

        read = 0

        def look(self) -> None:
            """Read what is new, and wait a little."""
            with urllib.request.urlopen(f"{url}/state?after={self.read}", timeout=5) as answer:
                records = json.load(answer)
            for bundle, data, ts_us in records:
                self.put(StateRecord(bundle, json.dumps(data), ts_us, (0, self.read, 0)))
                self.read += 1
            if not records:
                self.put(CaughtUp(0))
                for broker in BROKERS:
                    self.put(BrokerReport(broker, '{"cpu": {"usage": 1.0, "limit": 100.0}}', time.time_ns() // 1000))
            self.stopped.wait(0.02)

    records: Queue[Record] = Queue()
    source = StateSource("state", records)
    source.start()
    try:
        yield records
    finally:
        source.stopped.set()
        source.join()


def quick_how(standin: StandIn | str, **fields: Any) -> How:
    """Return how to make steps as fast as they go."""
    url = standin if isinstance(standin, str) else standin.url
    return How(**{"pace": Pace(interval_s=0.0), "read": lambda *_: reading(url), **fields})


@contextmanager
def running(bundles: int = 6) -> Iterator[StandIn]:
    """Answer until the block ends."""
    standin = StandIn(bundles)
    with serving(standin.respond) as standin.url:
        yield standin


if __name__ == "__main__":
    to, plan, *flags = sys.argv[1:]
    done = apply(
        Path(plan),
        Endpoints(None, to, "pulsar://not-asked:6650"),
        yes=True,
        how=quick_how(to, freeze_shedding="freeze" in flags),
    )
    sys.exit(0 if done.is_whole else 4)
