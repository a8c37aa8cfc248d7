"""The broker's side of the decision server in a real cluster of three brokers, each lookup timed by its client.

One broker runs Pulsar's own class (`stock`), one records (`record`), one records and asks the server (`decide`). The
first is a subclass that adds nothing, under the name of the bridge's class: brokers send lookups on, and offer each
other no bundles, if the names of their classes differ. A class cannot change while a broker runs, so arms of a
comparison are two brokers that are asked in turns, in short blocks; brokers differ a little, so the three change roles
twice, and every broker is every arm once.

    first assignments     `decide` against `stock`: the first lookup of a bundle that no broker owns
    owned bundles         `decide` against `stock`, one lookup after the other
    lookups per second    `record` against `stock`, over one connection: one lookup after the other, and 64 at once,
                          which keep the broker's core busy

Each bundle that is looked up again is owned by the third broker. While lookups per second are counted, brokers run with
both of Java's compilers and its own choice of a collector, as in production; the other two parts end before the second
compiler would have done its work. The two that are compared share one core, of which the one that is asked has all;
everything else, the client too, runs on another, or each block would be fast or slow by where the system happens to put
threads. The server has a machine of its own in a real cluster; here, for the rates, one takes its place that only keeps
what it is sent, and lookups are counted afterwards. A block of 64 at once lasts ten seconds, so that what a broker does
in the background falls into it. Processor time is that of all the broker's threads, also after the last lookup.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import psutil
from figures import Figure
from numpy.typing import NDArray

from tests.pulsar.cluster import RACKS, Broker
from tests.pulsar.jvm import Installation, installation
from tests.pulsar.live import Live, running_live, topics_by_bundle

__all__ = ["measure_live"]

_ROLES = ("stock", "record", "decide")
_STOCK = """
package lookup.bridge;

public class LookupPolicyLoadManager extends org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl {
}
"""
#: First assignments of each arm in a round, and of one block.
_FIRST, _FIRST_BLOCK = 132, 12
#: Lookups of one block of owned bundles, one after the other; and such blocks of each arm in a round.
_OWNED_BLOCK, _OWNED_BLOCKS = 400, 14
#: Lookups of one block, by how many of them are under way at once; and such blocks of each arm in a round. Many at once
#: come for some ten seconds: a broker's queue takes in five seconds' worth of what it sends, and a shorter block would
#: time how that queue is filled, not what recording costs for long.
_RATE_BLOCK, _RATE_BLOCKS = {64: 1_000_000, 1: 10_000}, 7
#: s for which each arm is asked before: Java compiles what has run some ten thousand times, and a busy broker writes
#: down 2,000 lookups per second.
_RUN_IN_S = 40
#: s: a broker sends its last lookups within one, after those that wait, which take five at most.
_PATIENCE_S = 6.5
#: Blocks of each arm that are not counted: a broker compiles its code while it runs, for rates mostly before.
_OWNED_WARM_UP, _RATE_WARM_UP = 4, 1
_OWNED_TOPICS = 40
_RESAMPLES = 2_000
#: Bounds: ms that a first assignment may take longer at p50 and p99; of a broker's own rate, what must be left.
_MOST_P50_MS, _MOST_P99_MS, _LEAST_RATE = 5.0, 25.0, 0.97
#: ms: an owned bundle's lookup may differ by less than this and count as equal; a lookup takes ten times as long.
_RESOLUTION_MS = 0.05
_POLICY = """
[[policies]]
name = "rack-then-load"
scorers = [{ use = "property-match", key = "rack", weight = 0.7 }, { use = "headroom", weight = 0.3 }]
selector = "best"
"""

Floats = NDArray[np.float64]


def _by_window() -> dict[int, dict[str, list[Floats]]]:
    return {window: {"stock": [], "record": []} for window in _RATE_BLOCK}


@dataclass
class _Measured:
    """Milliseconds of single lookups by arm, and of whole blocks the lookups per second; a list holds the rounds."""

    first: Mapping[str, list[Floats]] = field(default_factory=lambda: {"stock": [], "decide": []})
    #: medians of blocks
    owned: Mapping[str, list[Floats]] = field(default_factory=lambda: {"stock": [], "decide": []})
    #: by how many lookups are under way at once
    rate: Mapping[int, Mapping[str, list[Floats]]] = field(default_factory=_by_window)
    #: processor time of a broker for one lookup, µs
    processor: Mapping[int, Mapping[str, list[Floats]]] = field(default_factory=_by_window)
    #: by how many lookups are under way at once: lookups that were sent to the broker in `record`, and recorded
    sent: Counter[int] = field(default_factory=Counter)
    recorded: Counter[int] = field(default_factory=Counter)


class _Keeper(ThreadingHTTPServer):
    """Keeps the batches of lookups that it is sent."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        batches = self.batches

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer()

            def do_POST(self) -> None:
                batches.append(self.rfile.read(int(self.headers["Content-Length"])))
                self._answer()

            def _answer(self) -> None:
                self.send_response_only(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def taken(self) -> list[str]:
        """Return the topics of the lookups that came since the last call, when the last of them must have come."""
        time.sleep(_PATIENCE_S)
        topics = [lookup["topic"] for batch in self.batches for lookup in json.loads(batch)["lookups"]]
        self.batches.clear()
        return topics


class _Bench:
    """A running cluster with its roles."""

    def __init__(self, live: Live, stock: Path, keeper: _Keeper) -> None:
        self._live, self._clients, self._keeper = live, live.cluster.java_clients(), keeper
        bridge = live.cluster.installed["A"]
        self._installed = dict.fromkeys(_ROLES, bridge) | {
            "stock": replace(bridge, class_path=f"{stock}:{bridge.class_path}")
        }
        self._keeper_url = f"http://127.0.0.1:{keeper.server_port}"
        self._cores = sorted(os.sched_getaffinity(0))
        self.by_role: dict[str, Broker] = {}
        self.measured = _Measured()

    def change_roles(self, number: int, options: tuple[str, ...]) -> None:
        """Give every broker another role, by a restart with options of Java."""
        self._divide_cores(apart=False)
        brokers = [*self._live.cluster.brokers.values()]
        self.by_role = {role: brokers[(at + number) % len(brokers)] for at, role in enumerate(_ROLES)}
        for role, broker in self.by_role.items():
            self._live.cluster.installed[broker.rack] = replace(self._installed[role], options=options)
            self._live.cluster.settings[broker.rack] |= {
                "lookupPolicyMode": "decide" if role == "decide" else "record",
                "lookupPolicyServer": self._live.server_url if role == "decide" else self._keeper_url,
            }
            self._live.restart(broker)
        self._live.await_brokers(len(RACKS))

    def burst(self, role: str, topics: Sequence[str], times: int, window: int, rack: str = "A") -> tuple[Floats, float]:
        """Ask the broker of a role; return the time of each lookup in ms, and of all in s."""
        answer = self._clients.ask(
            do="burst", client="", port=self.by_role[role].binary_port, topics=list(topics), times=times,
            window=window, properties={"rack": rack, "app": "shop"},
        ).result(120)  # fmt: skip
        if "error" in answer:
            raise RuntimeError(f"the broker in mode {role}: {answer['error']}")
        return np.array(answer["micros"]) / 1e3, float(answer["seconds"])

    def first(self, number: int) -> None:
        """Time the first lookup of bundles that have no owner, in turns."""
        namespace, arms = f"public/first-{number}", ("stock", "decide")
        bundles = 2 * _FIRST + 1
        self._live.cluster.create_namespace(namespace, bundles)
        topics = [*topics_by_bundle(namespace, bundles).values()]
        took: dict[str, list[Floats]] = {arm: [] for arm in arms}
        for at in range(0, len(topics), _FIRST_BLOCK):
            turn = at // _FIRST_BLOCK
            # The policy goes by racks, Pulsar's class draws: owners are spread over the brokers either way.
            rack = RACKS[turn // 2 % len(RACKS)]
            took[arms[turn % 2]].append(self.burst(arms[turn % 2], topics[at : at + _FIRST_BLOCK], 1, 1, rack)[0])
        for arm in arms:
            # The first blocks meet code that Java has not compiled yet.
            self.measured.first[arm].append(np.concatenate(took[arm][2:]))

    def owned(self, number: int) -> None:
        """Time lookups of bundles that the broker in `record` owns, in turns."""
        topics = self._topics(f"public/owned-{number}", "record")
        times = _OWNED_BLOCK // len(topics)
        self._in_turns(
            self.measured.owned,
            _OWNED_WARM_UP,
            _OWNED_BLOCKS,
            lambda arm: float(np.median(self.burst(arm, topics, times, 1)[0])),
        )

    def rates(self, number: int) -> None:
        """Count lookups per second of bundles that the broker in `decide` owns, in turns."""
        topics = self._topics(f"public/rates-{number}", "decide")
        self._divide_cores(apart=True)
        for arm in ("stock", "record"):
            self._run_in(arm, topics)
        for window, block in _RATE_BLOCK.items():
            processor: dict[str, list[float]] = {"stock": [], "record": []}
            self._keeper.taken()

            def rate(
                arm: str, window: int = window, block: int = block, processor: dict[str, list[float]] = processor
            ) -> float:
                before = _processor_s(self.by_role[arm])
                _, seconds = self.burst(arm, topics, block // len(topics), window)
                recorded = sum(topic in topics for topic in self._keeper.taken())
                processor[arm].append((_processor_s(self.by_role[arm]) - before) / block * 1e6)
                if arm == "record":
                    self.measured.sent[window] += block
                    self.measured.recorded[window] += recorded
                return block / seconds

            self._in_turns(self.measured.rate[window], _RATE_WARM_UP, _RATE_BLOCKS, rate)
            for arm, values in processor.items():
                self.measured.processor[window][arm].append(np.array(values[_RATE_WARM_UP:]))

    def _divide_cores(self, *, apart: bool) -> None:
        """Let the brokers that are compared run on the first core and all else on the others, or all on all."""
        first, *others = self._cores
        compared = {self.by_role[role].running.process.pid for role in ("stock", "record")} if apart else set()
        for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
            cores = {first} if process.pid in compared else set(others if apart and others else self._cores)
            for thread in process.threads():
                with suppress(ProcessLookupError):
                    os.sched_setaffinity(thread.id, cores)

    def _run_in(self, arm: str, topics: Sequence[str]) -> None:
        window = max(_RATE_BLOCK)
        end = time.monotonic() + _RUN_IN_S
        while time.monotonic() < end:
            self.burst(arm, topics, _RATE_BLOCK[window] // len(topics), window)

    def _topics(self, namespace: str, owner: str) -> list[str]:
        """Return a topic of each bundle of a new namespace, all of them owned by the broker of a role."""
        bundles = _OWNED_TOPICS + 1
        self._live.cluster.create_namespace(namespace, bundles)
        topics = [*topics_by_bundle(namespace, bundles).values()]
        self.burst("decide", topics, 1, 1, self.by_role[owner].rack)
        return topics

    def _in_turns(
        self, kept: Mapping[str, list[Floats]], warm_up: int, blocks: int, measure: Callable[[str], float]
    ) -> None:
        arms = [*kept]
        values: dict[str, list[float]] = {arm: [] for arm in arms}
        for block in range(warm_up + blocks):
            for arm in arms[:: 1 if block % 2 else -1]:
                values[arm].append(measure(arm))
        for arm in arms:
            kept[arm].append(np.array(values[arm][warm_up:]))


def _compiled(installed: Installation, folder: Path) -> Path:
    """Compile Pulsar's own class under the bridge's name; return the folder for the class path."""
    source = folder / "LookupPolicyLoadManager.java"
    folder.mkdir()
    source.write_text(_STOCK, encoding="utf-8")
    compiler = installed.java.with_name("javac")
    if not compiler.exists():
        raise RuntimeError(f"there is no Java compiler {compiler}, which is needed to compare with Pulsar's own class")
    subprocess.run([compiler, "-cp", installed.class_path, "-d", folder, source], check=True, capture_output=True)
    return folder


def _processor_s(broker: Broker) -> float:
    threads = Path(f"/proc/{broker.running.process.pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def measure_live() -> list[Figure]:
    """Start a cluster and a server, measure all, and end them.

    Raises:
        RuntimeError: a sentence that says what is missing to start a cluster.
    """
    installed = replace(installation(), options=())
    with (
        tempfile.TemporaryDirectory(prefix="bench-live-") as folder,
        running_live(installed, Path(folder), "record") as live,
        _Keeper() as keeper,
    ):
        live.write_serving("rack-then-load", _POLICY)
        live.begin_server()
        bench = _Bench(live, _compiled(installed, Path(folder) / "stock"), keeper)
        for number in range(len(_ROLES)):
            print(f"... live, round {number + 1}", file=sys.stderr, flush=True)
            # What runs a few hundred times would meet Java's second compiler at work.
            bench.change_roles(number, installation().options)
            bench.owned(number)
            bench.first(number)
            bench.change_roles(number, ())
            bench.rates(number)
        return _figures(bench.measured)


def _interval(rounds: Sequence[tuple[Floats, ...]], figure: Callable[..., float]) -> tuple[float, float, float]:
    """Return a figure over all rounds and its 95 % interval by resampling within each round.

    Args:
        rounds: of each round one array for each arm; arrays of one length are resampled as pairs.
        figure: of one array for each arm.
    """
    dice = np.random.default_rng(1)

    def drawn() -> float:
        picked = []
        for arms in rounds:
            at = [dice.integers(len(arm), size=len(arm)) for arm in arms]
            picked.append([arm[number] for arm, number in zip(arms, at, strict=True)])
        return figure(*[np.concatenate(arm) for arm in zip(*picked, strict=True)])

    low, high = np.quantile([drawn() for _ in range(_RESAMPLES)], [0.025, 0.975])
    whole = figure(*[np.concatenate(arm) for arm in zip(*rounds, strict=True)])
    return whole, float(low), float(high)


def _figures(measured: _Measured) -> list[Figure]:
    first = [*zip(measured.first["stock"], measured.first["decide"], strict=True)]
    each = sum(len(arm) for arm in measured.first["decide"])
    figures = []
    for quantile, most in ((0.5, _MOST_P50_MS), (0.99, _MOST_P99_MS)):
        more, low, high = _interval(first, lambda a, b, q=quantile: float(np.quantile(b, q) - np.quantile(a, q)))
        without = float(np.quantile(np.concatenate(measured.first["stock"]), quantile))
        note = (
            f"95 % interval {low:.2f} to {high:.2f}; {without:.2f} ms with Pulsar's class; {each} assignments each way"
        )
        what = f"first assignment, asking the server - Pulsar's class, p{100 * quantile:.0f}"
        figures.append(Figure(what, more, "ms", most, note=note))
    owned = [(b - a,) for a, b in zip(measured.owned["stock"], measured.owned["decide"], strict=True)]
    more, low, high = _interval(owned, lambda pairs: float(pairs.mean()))
    alone = float(np.concatenate(measured.owned["stock"]).mean())
    note = (
        f"95 % interval {low:.4f} to {high:.4f}; {alone:.3f} ms with Pulsar's class; medians of {_OWNED_BLOCK} lookups"
    )
    figures.append(
        Figure("lookup of an owned bundle, deciding - Pulsar's class", more, "ms", _RESOLUTION_MS, note=note)
    )
    for window in sorted(_RATE_BLOCK):
        load = "one after the other" if window == 1 else f"{window} at once"
        for what, unit, kept, least in (
            ("lookups per second", "lookups/s", measured.rate[window], _LEAST_RATE),
            ("processor time of a lookup", "µs", measured.processor[window], None),
        ):
            pairs = [(b / a,) for a, b in zip(kept["stock"], kept["record"], strict=True)]
            # The median: now and then a block takes twice as long, since the machine had other work.
            ratio, low, high = _interval(pairs, lambda values: float(np.median(values)))
            alone = float(np.median(np.concatenate(kept["stock"])))
            note = f"95 % interval {low:.3f} to {high:.3f}; {alone:,.0f} {unit} with Pulsar's class"
            name = f"{what}, {load}, recording / Pulsar's class"
            figures.append(Figure(name, ratio, "", least, least=True, note=note))
        share = 100 * measured.recorded[window] / measured.sent[window]
        figures.append(Figure(f"lookups recorded of those that were sent, {load}", share, "%"))
    return figures


def main() -> int:
    """Measure, and print the figures as JSON, one per line; return 2 if a cluster cannot be had."""
    try:
        figures = measure_live()
    except RuntimeError as error:
        print(error)
        return 2
    for figure in figures:
        print(json.dumps(asdict(figure)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
