"""100,000 lookups of three brokers while everything that two decision servers depend on is cut in turn.

Brokers A and B ask and record at the server `one`, broker C records at `two`. Rows stored and rows counted as lost are
all that brokers have answered, as a class of the test counts them there; and each cut raises its alert and no other.
"""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.pulsar.alerts import Cut, Scrapes, assert_alerts
from tests.acceptance.pulsar.clients import JavaClients
from tests.acceptance.pulsar.cluster import RACKS, Cluster, free_ports
from tests.acceptance.pulsar.jvm import Installation, printed_by, with_bridge
from tests.processes import awaited
from tests.serve.servers import Server, read_table, settings_file, started_apart

pytestmark = pytest.mark.pulsar

#: Seconds between two scrapes, which are a quarter of a minute for the rules.
_PACE_S = 0.25
_NAMESPACE, _NEW = "public/asked", "public/new"
_MODES = {"A": "decide", "B": "shadow", "C": "record"}
#: Topics that are asked for, and how often each is by one burst, and by one that is more than a broker can keep.
_TOPICS, _TIMES, _MANY_TIMES = 20, 320, 900
_COUNTED = Path(__file__).parent / "java" / "counted" / "CountedLoadManager.java"
#: Python that makes a server read the state topic at the addresses that lead through relays.
_OUTSIDE = (
    'import pulsar; inner = pulsar.Client; pulsar.Client = lambda *a, **o: inner(*a, listener_name="outside", **o)'
)
_POLICY = """
[[policies]]
name = "by-rack"
scorers = [{ use = "headroom" }]
selector = "random"
"""


class _Relay:
    """Takes connections to a port on to another one, until it is cut."""

    def __init__(self, target: int) -> None:
        self._target, self.port = target, 0
        self.restore()

    def restore(self) -> None:
        """Listen, on the same port as before."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = int(self._listener.getsockname()[1])
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, args=(self._listener, self._open), daemon=True).start()

    def cut(self) -> None:
        """Refuse connections and break those that there are."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _accept(self, listener: socket.socket, connections: list[socket.socket]) -> None:
        with suppress(OSError):
            while True:
                inner, _ = listener.accept()
                outer = socket.create_connection(("127.0.0.1", self._target))
                connections += [inner, outer]
                for source, sink in ((inner, outer), (outer, inner)):
                    threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    @staticmethod
    def _pump(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while part := source.recv(1 << 16):
                sink.sendall(part)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class _Run:
    """Brokers, clients and servers, and what was cut when."""

    def __init__(self, cluster: Cluster, folder: Path, ports: list[int]) -> None:
        self.cluster, self.cuts = cluster, list[Cut]()
        self.scrapes = Scrapes({}, _PACE_S, scaled=["lookup_loads_age_seconds"])
        self.relays = [_Relay(cluster.brokers[rack].binary_port) for rack in RACKS]
        self.admin = _Relay(cluster.brokers["A"].web_port)
        self.servers: dict[str, Server] = {}
        self._settings: dict[str, Path] = {}
        for name, port in zip(("one", "two"), ports, strict=True):
            (folder / name).mkdir(exist_ok=True)
            self._settings[name] = settings_file(folder / name, *self._texts(name))
            text = self._settings[name].read_text().replace("port = 0", f"port = {port}")
            seconds = 0.5 if name == "one" else 5
            self._settings[name].write_text(text.replace("flush_s = 0.2", f"flush_s = {seconds}"), encoding="utf-8")
        #: of the first server; one that is small if this process may mount it
        self.disk = folder / "one" / "record"
        self.disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", self.disk]
        self._is_mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
        #: lookups of bursts, and of bundles without owner
        self._of_bursts = self._of_new = 0
        self._java: JavaClients

    def _texts(self, name: str) -> tuple[str, str]:
        if name == "two":
            return "", ""
        brokers = ",".join(f"127.0.0.1:{relay.port}" for relay in self.relays)
        collect = f'[collect]\nservice_url = "pulsar://{brokers}"\nadmin = "http://127.0.0.1:{self.admin.port}"\n'
        return f'{collect}topics_every_s = 0.5\n[topics]\ncatalog = "topics.db"\n', _POLICY

    @property
    def asked(self) -> int:
        """Return how many lookups clients were answered."""
        return self._of_bursts + self._of_new

    def close(self) -> None:
        """Take the small disk away."""
        if self._is_mounted:
            subprocess.run(["umount", "-l", self.disk], check=True)

    @property
    def addresses(self) -> dict[str, str]:
        """Return where each broker's client of the decision server finds it, beside its own listener."""
        return {
            rack: f"internal:{self.cluster.brokers[rack].service_url},outside:pulsar://127.0.0.1:{relay.port}"
            for rack, relay in zip(RACKS, self.relays, strict=True)
        }

    @contextmanager
    def serving(self, name: str) -> Iterator[None]:
        """Start a server; it is killed at the end of the block."""
        with started_apart(self._settings[name], prelude=_OUTSIDE if name == "one" else "") as server:
            self.servers[name] = server
            self.scrapes.targets[name] = f"http://127.0.0.1:{server.port}"
            yield

    def begin(self) -> None:
        """Create the namespaces and start the clients."""
        self.cluster.create_namespace(_NAMESPACE, 16)
        self.cluster.create_namespace(_NEW, 512)
        self._java = self.cluster.java_clients()
        self._decided = self._java.open("decided", self.cluster.brokers["A"].service_url, {"rack": "A"})
        for number in range(_TOPICS):
            self._decided.do("lookup", topic=f"persistent://{_NAMESPACE}/{number}")
            self._of_bursts += 1

    def burst(self, rack: str, times: int) -> Future[dict[str, Any]]:
        """Ask a broker for all topics, so many times each; the answer comes later."""
        topics = [f"persistent://{_NAMESPACE}/{number}" for number in range(_TOPICS)]
        port = self.cluster.brokers[rack].binary_port
        self._of_bursts += times * _TOPICS
        return self._java.ask(
            do="burst", client="", port=port, topics=topics, times=times, window=64, properties={"rack": rack}
        )

    @contextmanager
    def new_bundles(self) -> Iterator[None]:
        """Look up topics of bundles without owner, about which broker A asks, one a second."""
        ended = threading.Event()

        def look_up() -> None:
            while not ended.wait(1.0):
                self._decided.do("lookup", topic=f"persistent://{_NEW}/{self._of_new}")
                self._of_new += 1

        thread = threading.Thread(target=look_up)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _cut(
        self,
        alert: str,
        name: str,
        minutes: float,
        act: Callable[[], object],
        restore: Callable[[], object],
        *,
        late: int = 8,
        times: dict[str, int] | None = None,
    ) -> None:
        """Cut something for so many minutes of the rules, with bursts at all brokers; wait until it is forgotten."""
        begin = self.scrapes.now
        act()
        bursts = [self.burst(rack, (times or {}).get(rack, _TIMES)) for rack in RACKS]
        answers = [burst.result(240) for burst in bursts]
        assert not [answer for answer in answers if "error" in answer]
        self.scrapes.wait(max(0.0, minutes - (self.scrapes.now - begin) / 4))
        restore()
        self.cuts.append(Cut(alert, name, begin, self.scrapes.now, late))
        self.scrapes.wait(14)

    def _await_well(self, name: str, figure: str) -> None:
        """Wait until a figure of a server is 0 again."""
        awaited(lambda: self.servers[name].figure(figure) == 0 or None, figure)

    def _restore_topics(self) -> None:
        self.admin.restore()
        self._await_well("one", "lookup_topics_lost")

    def _cut_owners(self) -> None:
        for relay in self.relays:
            relay.cut()

    def _restore_owners(self) -> None:
        for relay in self.relays:
            relay.restore()
        self._await_well("one", "lookup_owners_lost")

    def _cut_loads(self) -> None:
        for rack in RACKS:
            (self._counted(rack) / "no-reports").touch()

    def _restore_loads(self) -> None:
        for rack in RACKS:
            (self._counted(rack) / "no-reports").unlink()
        awaited(lambda: self.servers["one"].figure("lookup_loads_age_seconds") < 10 or None)

    def _fill_disk(self) -> None:
        if self._is_mounted:
            with suppress(OSError), (self.disk / "filler").open("wb") as file:
                while True:
                    file.write(bytes(1 << 12))
        else:
            (self.disk / "lookups").rename(self.disk / "aside")
            (self.disk / "lookups").write_text("in the way")

    def _make_room(self) -> None:
        if self._is_mounted:
            (self.disk / "filler").unlink()
        else:
            (self.disk / "lookups").unlink()
            (self.disk / "aside").rename(self.disk / "lookups")
        self._await_well("one", "lookup_record_failing")

    def cut_all(self, second: ExitStack) -> None:
        """Cut one thing after the other.

        Args:
            second: ends the second server.
        """

        def kill() -> None:
            # The broker has sent more than the server has written.
            time.sleep(2)
            self.servers["two"].signal(signal.SIGKILL)
            second.close()

        self._cut("LookupTopicsLost", "one", 7, self.admin.cut, self._restore_topics)
        self._cut("LookupOwnersLost", "one", 7, self._cut_owners, self._restore_owners)
        # Of a load of twenty minutes, which are twenty seconds here.
        self._cut("LookupLoadsOld", "one", 36, self._cut_loads, self._restore_loads, late=96)
        self._cut("LookupRecordFails", "one", 11, self._fill_disk, self._make_room, times={"A": _MANY_TIMES})
        bursts = [self.burst(rack, _TIMES) for rack in ("B", "C")]
        self._cut("LookupServerDown", "two", 7, kill, lambda: second.enter_context(self.serving("two")))
        assert not [answer for burst in bursts if "error" in (answer := burst.result(240))]

    def account(self) -> tuple[int, int, int]:
        """Return the lookups that brokers have answered, the rows that are stored, and how many are counted as lost."""
        answered = sum(int((self._counted(rack) / "answered").read_text()) for rack in RACKS)
        stored = sum(len(read_table(server.record, "lookups")) for server in self.servers.values())
        return answered, stored, round(sum(s.figure("lookup_dropped_lookups") for s in self.servers.values()))

    def _counted(self, rack: str) -> Path:
        return Path(self.cluster.settings[rack]["countedFolder"])


def _with_counted(installed: Installation, folder: Path) -> Installation:
    """Put the class into the class path that counts for itself what brokers answer."""
    javac = shutil.which("javac") or Path(printed_by("ensure-java.sh")) / "bin" / "javac"
    subprocess.run([javac, "-cp", installed.class_path, "-d", folder, _COUNTED], check=True)
    return replace(installed, class_path=f"{folder}:{installed.class_path}")


@pytest.fixture(scope="module")
def run(installed: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Run]:
    """Cut the topics, the owners, the loads, the disk and the second server, one after the other."""
    try:
        with_jar = with_bridge(installed)
        printed_by("ensure-prometheus.sh")
    except RuntimeError as error:
        pytest.skip(str(error))
    folder, ports = tmp_path_factory.mktemp("lossless"), free_ports(2)
    settings = {
        rack: {
            "loadManagerClassName": "CountedLoadManager",
            "countedFolder": str(folder / "counted" / rack),
            "lookupPolicyMode": mode,
            "lookupPolicyServer": f"http://127.0.0.1:{ports[rack == 'C']}",
            "lookupPolicyTimeoutMillis": "5000",
            "advertisedAddress": "",
            "internalListenerName": "internal",
        }
        for rack, mode in _MODES.items()
    }
    for rack in RACKS:
        (folder / "counted" / rack).mkdir(parents=True)
    cluster = Cluster(_with_counted(with_jar, folder / "counted"), folder / "cluster", settings)
    run = _Run(cluster, folder, ports)
    for rack, addresses in run.addresses.items():
        cluster.settings[rack]["advertisedListeners"] = addresses
    try:
        cluster.start()
        with ExitStack() as first, ExitStack() as second:
            first.enter_context(run.serving("one"))
            second.enter_context(run.serving("two"))
            run.begin()
            with run.new_bundles(), run.scrapes:
                run.scrapes.wait(4)
                run.cut_all(second)
            awaited(run.account, "rows for all lookups", enough=lambda counts: counts[0] == counts[1] + counts[2])
            yield run
    finally:
        cluster.stop()
        run.close()


def test_rows_stored_and_rows_counted_as_lost_are_all(run: _Run) -> None:
    """Exactly, and some were lost: by a broker that could keep no more, and by a server that was killed."""
    answered, stored, lost = run.account()
    lost_at = {name: server.figure("lookup_dropped_lookups") for name, server in run.servers.items()}
    numbers = [row["seq"] for row in read_table(run.servers["one"].record, "lookups")]

    # What the broker itself knows to be lost, as it had no room; the rest was in the memory of its server.
    log = run.cluster.brokers["C"].log("clock").read_text()
    own = [int(text) for text in re.findall(r"takes them, (\d+) were lost", log)]
    assert lost_at["two"] > own[-1]
    # Brokers look up some topics of their own.
    assert 100_000 <= run.asked <= answered <= run.asked + 200
    assert stored + lost == answered, (stored, lost_at)
    assert min(lost_at.values()) > 0
    assert len(numbers) == len({*numbers})


def test_each_cut_raises_its_alert_and_no_other(run: _Run, tmp_path: Path) -> None:
    """Within its time, until the cut is repaired; over what both servers were scraped for."""
    assert [cut.alert for cut in run.cuts] == [
        "LookupTopicsLost", "LookupOwnersLost", "LookupLoadsOld", "LookupRecordFails", "LookupServerDown",
    ]  # fmt: skip
    assert_alerts(run.scrapes, run.cuts, tmp_path)
