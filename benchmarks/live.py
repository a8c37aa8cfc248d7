"""The broker's side of the decision server in a real cluster of three brokers, each lookup timed by its client.

What the bridge's class costs is compared with Pulsar's own class in one and the same broker. Two brokers, or one that
is started twice, differ by some hundredths in what they can do, which is more than what is to be measured. So brokers
run a subclass of the bridge's class that hands every call on either to that class or to Pulsar's own, as a signal says;
Java compiles both ways. Blocks of a tenth of a second take turns, since the machine's speed changes all the time, and
the recorder stands still in the blocks of Pulsar's class: for what is recorded, blocks of the bridge's class follow one
upon the other. Each of three rounds has brokers that were started anew, one after the other in the role of the one that
is asked. Intervals are those of a jackknife that leaves out one round at a time, so they hold the luck of a start too.

    first assignments     the broker that is asked asks the server: the first lookup of a bundle that no broker owns
    owned bundles         in the same mode, one lookup after the other
    lookups per second    the broker that is asked records, over one connection: one lookup after the other, and 64 at
                          once, which keep its core busy

Each bundle that is looked up again is owned by another broker. While lookups per second are counted, the broker that is
asked runs with both of Java's compilers and its own choice of a collector, as in production; the other two parts end
before the second compiler would have done its work. It has a core of its own; everything else, the client too, runs on
another, or each block would be fast or slow by where the system happens to put threads. The server has a machine of its
own in a real cluster; here, for the rates, one takes its place that only keeps what it is sent, and lookups are counted
afterwards. Processor time is that of all the broker's threads.
"""

from __future__ import annotations

import json
import os
import signal
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
from scipy import stats

from tests.acceptance.pulsar.cluster import RACKS, Broker
from tests.acceptance.pulsar.jvm import Installation, installation, with_bridge
from tests.acceptance.pulsar.live import Live, running_live, topics_by_bundle

__all__ = ["measure_live"]

#: Pulsar's own class, and the bridge's.
_ARMS = ("stock", "bridge")
#: By arm, the signal upon which a broker runs it: those that nothing else sends, and that end no process unheard.
_SIGNALS = {"stock": signal.SIGURG, "bridge": signal.SIGWINCH}
#: s until a broker runs the other arm.
_SWITCHED_S = 0.02
#: The class that brokers run.
_SWITCHED = Path(__file__).with_name("Switched.java")
#: First assignments of each arm in a round, and of one block.
_FIRST, _FIRST_BLOCK = 132, 12
#: Lookups of one block of owned bundles, one after the other; and such blocks of each arm in a round.
_OWNED_BLOCK, _OWNED_BLOCKS = 400, 60
#: Lookups of one block, a tenth of a second, and how many of them are under way at once, by how that is called; and
#: such blocks of each arm in a round.
_LOADS = {"64 at once": (10_000, 64), "one after the other": (1_200, 1)}
_RATE_BLOCKS = 300
#: Lookups before, many at once and so many at a time, with either arm in turns: Java compiles what has run some ten
#: thousand times, and of what a busy broker is asked it records 1,000 per second.
_RUN_IN, _RUN_INS = 100_000, 80
#: s: a broker sends its last lookups within one, after those that wait, which take ten at most.
_PATIENCE_S = 11.5
#: Blocks of each arm that are not counted: a broker compiles its code while it runs, for rates mostly before.
_OWNED_WARM_UP, _RATE_WARM_UP = 4, 20
_OWNED_TOPICS = 40
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


def _by_arm() -> dict[str, list[Floats]]:
    return {arm: [] for arm in _ARMS}


def _by_load() -> dict[str, dict[str, list[Floats]]]:
    return {load: _by_arm() for load in _LOADS}


@dataclass
class _Measured:
    """Milliseconds of single lookups by arm, and of whole blocks the lookups per second; a list holds the rounds."""

    first: Mapping[str, list[Floats]] = field(default_factory=_by_arm)
    #: medians of blocks
    owned: Mapping[str, list[Floats]] = field(default_factory=_by_arm)
    rate: Mapping[str, Mapping[str, list[Floats]]] = field(default_factory=_by_load)
    #: processor time of a broker for one lookup, µs
    processor: Mapping[str, Mapping[str, list[Floats]]] = field(default_factory=_by_load)
    #: lookups that a broker with the bridge's class was sent, and recorded
    sent: Counter[str] = field(default_factory=Counter)
    recorded: Counter[str] = field(default_factory=Counter)


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
    """A running cluster with a broker that is asked."""

    def __init__(self, live: Live, switched: Path, keeper: _Keeper) -> None:
        self._live, self._clients, self._keeper = live, live.cluster.java_clients(), keeper
        bridge = live.cluster.installed["A"]
        self._installed = replace(bridge, class_path=f"{switched}:{bridge.class_path}")
        self._keeper_url = f"http://127.0.0.1:{keeper.server_port}"
        self._cores = sorted(os.sched_getaffinity(0))
        self._asked, self._owner = [*live.cluster.brokers.values()][:2]
        self.measured = _Measured()

    def change_roles(self, number: int) -> None:
        """Ask another broker, and let another one own what is looked up again; start all anew, in `decide`."""
        self._divide_cores(apart=False)
        brokers = [*self._live.cluster.brokers.values()]
        self._asked, self._owner = brokers[number % len(brokers)], brokers[(number + 1) % len(brokers)]
        for broker in brokers:
            # What runs a few hundred times would meet Java's second compiler at work.
            self._start(broker, "decide", self._live.server_url, installation().options)
        self._live.await_brokers(len(brokers))

    def _start(self, broker: Broker, mode: str, server: str, options: tuple[str, ...]) -> None:
        self._live.cluster.installed[broker.rack] = replace(self._installed, options=options)
        self._live.cluster.settings[broker.rack] |= {
            "loadManagerClassName": "lookup.bridge.Switched",
            "lookupPolicyMode": mode,
            "lookupPolicyServer": server,
        }
        self._live.restart(broker)

    def _switch(self, arm: str) -> None:
        """Let the broker that is asked run an arm."""
        self._asked.running.process.send_signal(_SIGNALS[arm])
        time.sleep(_SWITCHED_S)

    def burst(
        self, topics: Sequence[str], times: int, window: int, rack: str = "A", asked: Broker | None = None
    ) -> tuple[Floats, float]:
        """Look topics up; return the time of each lookup in ms, and of all in s."""
        answer = self._clients.ask(
            do="burst", client="", port=(asked or self._asked).binary_port, topics=list(topics), times=times,
            window=window, properties={"rack": rack, "app": "shop"},
        ).result(120)  # fmt: skip
        if "error" in answer:
            raise RuntimeError(f"the broker that is asked: {answer['error']}")
        return np.array(answer["micros"]) / 1e3, float(answer["seconds"])

    def first(self, number: int) -> None:
        """Time the first lookup of bundles that have no owner, in turns."""
        namespace = f"public/first-{number}"
        bundles = 2 * _FIRST + 1
        self._live.cluster.create_namespace(namespace, bundles)
        topics = [*topics_by_bundle(namespace, bundles).values()]
        took: dict[str, list[Floats]] = {arm: [] for arm in _ARMS}
        for at in range(0, len(topics), _FIRST_BLOCK):
            turn = at // _FIRST_BLOCK
            arm = _ARMS[turn % 2]
            self._switch(arm)
            # The policy goes by racks, Pulsar's class draws: owners are spread over the brokers either way.
            rack = RACKS[turn // 2 % len(RACKS)]
            took[arm].append(self.burst(topics[at : at + _FIRST_BLOCK], 1, 1, rack)[0])
        for arm in _ARMS:
            # The first blocks meet code that Java has not compiled yet.
            self.measured.first[arm].append(np.concatenate(took[arm][2:]))

    def owned(self, number: int) -> None:
        """Time lookups of bundles that another broker owns, in turns."""
        topics = self._topics(f"public/owned-{number}")
        times = _OWNED_BLOCK // len(topics)
        self._in_turns(
            self.measured.owned,
            _OWNED_WARM_UP,
            _OWNED_BLOCKS,
            lambda _: float(np.median(self.burst(topics, times, 1)[0])),
        )

    def rates(self, number: int) -> None:
        """Count lookups per second of bundles that another broker owns, in turns."""
        self._start(self._asked, "record", self._keeper_url, ())
        self._live.await_brokers(len(RACKS))
        topics = self._topics(f"public/rates-{number}")
        self._divide_cores(apart=True)
        for number in range(_RUN_INS):
            self._switch(_ARMS[number % 2])
            self.burst(topics, _RUN_IN // len(topics), max(window for _, window in _LOADS.values()))
        for load, (block, window) in _LOADS.items():
            processor: dict[str, list[float]] = {arm: [] for arm in _ARMS}
            self._switch("bridge")
            self._keeper.taken()

            def rate(
                arm: str, block: int = block, window: int = window, processor: dict[str, list[float]] = processor
            ) -> float:
                before = _processor_s(self._asked)
                _, seconds = self.burst(topics, block // len(topics), window)
                processor[arm].append((_processor_s(self._asked) - before) / block * 1e6)
                return block / seconds

            self._in_turns(self.measured.rate[load], _RATE_WARM_UP, _RATE_BLOCKS, rate)
            for arm, values in processor.items():
                self.measured.processor[load][arm].append(np.array(values[_RATE_WARM_UP:]))
            self._switch("bridge")
            self.measured.sent[load] += block * (_RATE_WARM_UP + _RATE_BLOCKS)
            self.measured.recorded[load] += sum(topic in topics for topic in self._keeper.taken())
            got = np.median(self.measured.rate[load]["bridge"][-1] / self.measured.rate[load]["stock"][-1])
            print(f"... live, {load}: {got:.3f} of the rate of Pulsar's class", file=sys.stderr, flush=True)

    def _divide_cores(self, *, apart: bool) -> None:
        """Let the broker that is asked run on the first core and all else on the others, or all on all."""
        first, *others = self._cores
        asked = self._asked.running.process.pid
        for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
            cores = {first} if apart and process.pid == asked else set(others if apart and others else self._cores)
            for thread in process.threads():
                with suppress(ProcessLookupError):
                    os.sched_setaffinity(thread.id, cores)

    def _topics(self, namespace: str) -> list[str]:
        """Return a topic of each bundle of a new namespace, all of them owned by the broker that has that role."""
        bundles = _OWNED_TOPICS + 1
        self._live.cluster.create_namespace(namespace, bundles)
        topics = [*topics_by_bundle(namespace, bundles).values()]
        self.burst(topics, 1, 1, self._owner.rack, self._owner)
        return topics

    def _in_turns(
        self, kept: Mapping[str, list[Floats]], warm_up: int, blocks: int, measure: Callable[[str], float]
    ) -> None:
        values: dict[str, list[float]] = {arm: [] for arm in _ARMS}
        for block in range(warm_up + blocks):
            for arm in _ARMS[:: 1 if block % 2 else -1]:
                self._switch(arm)
                values[arm].append(measure(arm))
        for arm in _ARMS:
            kept[arm].append(np.array(values[arm][warm_up:]))


def _compiled(installed: Installation, folder: Path) -> Path:
    """Compile the class that switches between the arms; return the folder for the class path."""
    folder.mkdir()
    compiler = installed.java.with_name("javac")
    if not compiler.exists():
        raise RuntimeError(f"there is no Java compiler {compiler}, which is needed to compare with Pulsar's own class")
    command = [compiler, "-nowarn", "-cp", installed.class_path, "-d", folder, _SWITCHED]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the class that switches does not compile: {done.stderr}")
    return folder


def _processor_s(broker: Broker) -> float:
    threads = Path(f"/proc/{broker.running.process.pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def measure_live() -> list[Figure]:
    """Start a cluster and a server, measure all, and end them.

    Raises:
        RuntimeError: a sentence that says what is missing to start a cluster.
    """
    installed = with_bridge(installation())
    with (
        tempfile.TemporaryDirectory(prefix="bench-live-") as folder,
        running_live(installation(), Path(folder), "record") as live,
        _Keeper() as keeper,
    ):
        live.write_serving("rack-then-load", _POLICY)
        live.begin_server()
        bench = _Bench(live, _compiled(installed, Path(folder) / "switched"), keeper)
        for number in range(len(RACKS)):
            print(f"... live, round {number + 1} of {len(RACKS)}", file=sys.stderr, flush=True)
            bench.change_roles(number)
            bench.owned(number)
            bench.first(number)
            bench.rates(number)
        return _figures(bench.measured)


def _interval(rounds: Sequence[tuple[Floats, ...]], figure: Callable[..., float]) -> tuple[float, float, float]:
    """Return a figure over all rounds and its 95 % interval by leaving out one round at a time.

    Args:
        rounds: of each round one array for each arm.
        figure: of one array for each arm.
    """

    def over(some: Sequence[tuple[Floats, ...]]) -> float:
        return figure(*[np.concatenate(arm) for arm in zip(*some, strict=True)])

    whole, n = over(rounds), len(rounds)
    without = np.array([over([*rounds[:at], *rounds[at + 1 :]]) for at in range(n)])
    error = float(np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum()))
    half = float(stats.t.ppf(0.975, n - 1)) * error
    return whole, whole - half, whole + half


def _figures(measured: _Measured) -> list[Figure]:
    first = [*zip(measured.first["stock"], measured.first["bridge"], strict=True)]
    each = sum(len(arm) for arm in measured.first["bridge"])
    figures = []
    for quantile, most in ((0.5, _MOST_P50_MS), (0.99, _MOST_P99_MS)):
        more, low, high = _interval(first, lambda a, b, q=quantile: float(np.quantile(b, q) - np.quantile(a, q)))
        without = float(np.quantile(np.concatenate(measured.first["stock"]), quantile))
        note = (
            f"95 % interval {low:.2f} to {high:.2f}; {without:.2f} ms with Pulsar's class; {each} assignments each way"
        )
        what = f"first assignment, asking the server - Pulsar's class, p{100 * quantile:.0f}"
        figures.append(Figure(what, more, "ms", most, note=note))
    owned = [(np.median(b - a, keepdims=True),) for a, b in zip(*(measured.owned[arm] for arm in _ARMS), strict=True)]
    more, low, high = _interval(owned, _mean)
    alone = float(np.median(np.concatenate(measured.owned["stock"])))
    note = (
        f"95 % interval {low:.4f} to {high:.4f}; {alone:.3f} ms with Pulsar's class; medians of {_OWNED_BLOCK} lookups"
    )
    figures.append(
        Figure("lookup of an owned bundle, deciding - Pulsar's class", more, "ms", _RESOLUTION_MS, note=note)
    )
    for load in _LOADS:
        for what, unit, kept, least in (
            ("lookups per second", "lookups/s", measured.rate[load], _LEAST_RATE),
            ("processor time of a lookup", "µs", measured.processor[load], None),
        ):
            # Medians: now and then a block takes twice as long, since the machine had other work.
            ratios = [(np.median(b / a, keepdims=True),) for a, b in zip(*(kept[arm] for arm in _ARMS), strict=True)]
            ratio, low, high = _interval(ratios, _mean)
            alone = float(np.median(np.concatenate(kept["stock"])))
            note = f"95 % interval {low:.3f} to {high:.3f}; {alone:,.0f} {unit} with Pulsar's class"
            name = f"{what}, {load}, recording / Pulsar's class"
            figures.append(Figure(name, ratio, "", least, least=True, note=note))
        share = 100 * measured.recorded[load] / measured.sent[load]
        figures.append(Figure(f"lookups recorded of those that were sent, {load}", share, "%"))
    return figures


def _mean(rounds: Floats) -> float:
    return float(rounds.mean())


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
