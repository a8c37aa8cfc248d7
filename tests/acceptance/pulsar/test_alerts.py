"""Every alert that ships fires once and stops, over what Prometheus would scrape from servers while things go wrong.

Servers are processes of `lookup serve`. What they depend on is cut and restored here, and promtool evaluates the rules.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.acceptance.pulsar.alerts import RULES, Cut, Scrapes, assert_alerts
from tests.acceptance.pulsar.jvm import printed_by
from tests.serve.restcluster import RestCluster, rest_cluster
from tests.serve.servers import CLOCK, Server, decide, lookup_entry, settings_file, started_apart
from tests.serve.statefile import PRELUDE, StateFile

pytestmark = pytest.mark.pulsar

_PACE_S = 0.1
#: A scorer that is slow, or fails, while a file is there.
_PLUGIN = '''
"""A plug-in."""
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from lookup.hooks import hookimpl


@dataclass(frozen=True)
class Moody:
    """Score all brokers alike."""

    name: ClassVar[str] = "moody"
    reads: ClassVar[frozenset[str]] = frozenset({"view.now"})

    def score(self, request, brokers, view):
        """Be slow, or fail, while a file says so."""
        here = Path(__file__)
        if here.with_name("broken").exists():
            raise RuntimeError("on purpose")
        time.sleep(0.06 * here.with_name("slow").exists())
        return [1.0 for _ in range(len(brokers))]


@hookimpl
def lookup_register_scorers():
    """Register."""
    return (Moody,)
'''
_POLICIES = """
[[policies]]
name = "by-rack"
scorers = ["moody"]
{filters}selector = "random"
"""
_GROUP = '\n[[namespaces]]\nname = "public/default"\nanti_affinity_group = "shops"\n'
#: Labels of alerts beside the instance that they are about, if it is not the job.
_LABELS: Mapping[str, Mapping[str, str]] = {
    "LookupDecisionsSlow": {},
    "LookupRequestsRefused": {},
    "LookupPolicyFails": {"policy": "by-rack"},
    "LookupRowsLost": {"table": "decisions"},
    "LookupSettingsRefused": {"job": "lookup-serve", "outcome": "refused"},
}
#: Scrapes after which a fault shows: five seconds of a lag, or what waits until there is no room.
_LATE: Mapping[str, int] = {"LookupOwnersLate": 52, "LookupRowsLost": 32}
_READS_OWNERS = 'filters = ["anti-affinity"]\n'


class _Place:
    """A server in a folder, and brokers that ask it and send it lookups all the time."""

    def __init__(self, folder: Path, settings: str, *, filters: str = "", prelude: str = "", brokers: int = 1) -> None:
        self.name, self.folder, self._prelude = folder.name, folder, prelude
        (folder / "moody.py").write_text(_PLUGIN, encoding="utf-8")
        self.path = settings_file(folder, settings, _POLICIES.format(filters=filters))
        self.path.write_text(f'plugin_files = ["moody.py"]\n{self.path.read_text()}', encoding="utf-8")
        self._lists = "[topics]" in settings
        self.server: Server
        self._began = time.time()
        #: what brokers say of their load is older than the server by that, s
        self.loads_age_s = 0.0
        #: lookups that a broker loses before each batch
        self.lost = 0
        self._ended = threading.Event()
        self._brokers = [threading.Thread(target=self._ask, args=(f"b{n}:8080",)) for n in range(1, brokers + 1)]

    def start(self, scrapes: Scrapes) -> ExitStack:
        """Start the server on a free port, and name it to who scrapes it; return what ends it."""
        stack = ExitStack()
        self.server = stack.enter_context(started_apart(self.path, prelude=self._prelude))
        scrapes.targets[self.name] = f"http://127.0.0.1:{self.server.port}"
        return stack

    @contextmanager
    def asked(self) -> Iterator[None]:
        """Let brokers ask until the end of the block."""
        for broker in self._brokers:
            broker.start()
        try:
            yield
        finally:
            self._ended.set()
            for broker in self._brokers:
                broker.join()

    @contextmanager
    def having(self, file: str) -> Iterator[None]:
        """Let a file be there."""
        path = self.folder / file
        path.touch()
        yield
        path.unlink()

    @contextmanager
    def lacking(self, file: str) -> Iterator[None]:
        """Let a file or folder be away; a file is in the place of a folder."""
        path, aside = self.folder / file, self.folder / "aside"
        is_folder = path.is_dir()
        path.rename(aside)
        if is_folder:
            path.write_text("in the way")
        yield
        path.unlink(missing_ok=True)
        aside.rename(path)

    def _question(self, broker: str) -> dict[str, Any]:
        updated = int((self._began - self.loads_age_s) * 1000)
        brokers = {f"b{n}:8080": {"lookupData": {}, "load": {"updatedAt": updated}} for n in (1, 2)}
        return decide({"id": str(updated), "brokers": brokers}, broker=broker)

    def _ask(self, broker: str) -> None:
        number = 0
        while not self._ended.wait(0.02):
            number += 1 + self.lost
            lookups = [lookup_entry(number=number)]
            batch = {"broker": broker, "start": "1", "upTo": number, "dropped": 0, "lookups": lookups}
            # While the server is away the broker loses what it has.
            with suppress(OSError):
                self.server.ask("POST", "/decide", self._question(broker))
                self.server.ask("POST", "/record", batch)
                if self._lists:
                    self.server.ask("POST", "/list", {"namespace": "public/default"})


class _Faults:
    """Everything that goes wrong, on three servers side by side, and what each fault has to raise."""

    def __init__(self, folder: Path, cluster: RestCluster) -> None:
        self.scrapes, self.cuts, self._cluster = Scrapes({}, _PACE_S), list[Cut](), cluster
        self._servers = ExitStack()
        for name in ("one", "two", "three"):
            (folder / name).mkdir()
        states = [StateFile(folder / name).settings for name in ("one", "two")]
        topics = f'admin = "{cluster.url}"\ntopics_every_s = 0.1\ntopics_stale_s = 1\n[topics]\ncatalog = "topics.db"\n'
        reading = f"{states[0]}\nstale_s = 0\n{topics}{_GROUP}"
        self._one = _Place(folder / "one", reading, filters=_READS_OWNERS, prelude=PRELUDE)
        self._two = _Place(folder / "two", states[1], prelude=PRELUDE)
        jump = f"time.time_ns = lambda: true() + os.path.exists({str(folder / 'three' / 'ahead')!r}) * 10**9"
        bounds = "max_pending_rows = 150"
        self._three = _Place(folder / "three", bounds, prelude=f"{CLOCK}; import os; {jump}", brokers=4)

    def play(self) -> None:
        """Start the servers and let everything go wrong."""
        places = (self._one, self._two, self._three)
        with self._servers, ExitStack() as asked, ThreadPoolExecutor() as threads:
            for place in places:
                self._servers.enter_context(place.start(self.scrapes))
                asked.enter_context(place.asked())
            with self.scrapes:
                works = [threads.submit(work) for work in (self._owners_and_topics, self._decisions, self._record)]
                for work in works:
                    work.result()

    @contextmanager
    def _cut(self, place: _Place, minutes: float, *alerts: str) -> Iterator[None]:
        """Note what the body cuts; wait for so many minutes of the rules before it is restored."""
        begin = self.scrapes.now
        yield
        end = self.scrapes.wait(minutes)
        self.cuts += [Cut(alert, place.name, begin, end, _LATE.get(alert, 0), _LABELS.get(alert)) for alert in alerts]

    def _owners_and_topics(self) -> None:
        self.scrapes.wait(2)
        with self._one.lacking("state.jsonl"), self._cut(self._one, 4, "LookupOwnersUnknown"):
            pass
        self.scrapes.wait(13)
        with self._cut(self._one, 14, "LookupTopicsLost"):
            self._cluster.status = 500
        self._cluster.status = None
        self.scrapes.wait(13)

    def _decisions(self) -> None:
        place = self._two
        self.scrapes.wait(2)
        with place.having("slow"), self._cut(place, 16, "LookupDecisionsSlow"):
            pass
        self.scrapes.wait(13)
        with place.having("broken"), self._cut(place, 14, "LookupPolicyFails", "LookupRequestsRefused"):
            pass
        self.scrapes.wait(13)
        with place.lacking("state.jsonl"), self._cut(place, 14, "LookupOwnersLost"):
            pass
        self.scrapes.wait(13)
        with place.having("held"), self._cut(place, 26, "LookupOwnersLate"):
            pass
        self.scrapes.wait(4)
        with self._cut(place, 9, "LookupLoadsOld"):
            place.loads_age_s = 1300
        place.loads_age_s = 0
        self.scrapes.wait(13)

    def _record(self) -> None:
        place, text = self._three, self._three.path.read_text()
        self.scrapes.wait(2)
        with self._cut(place, 5, "LookupSettingsRefused", "LookupClockJumps"):
            place.path.write_text("x = [", encoding="utf-8")
            place.server.signal(signal.SIGHUP)
            with place.having("ahead"):
                self.scrapes.wait(0.5)
        place.path.write_text(text, encoding="utf-8")
        is_remembered = self.scrapes.now + 64 * 4
        with place.lacking("record/decisions"), self._cut(place, 14, "LookupRecordFails", "LookupRowsLost"):
            pass
        self.scrapes.wait(18)
        with self._cut(place, 20, "LookupBrokerDropsLookups"):
            place.lost = 1
        place.lost = 0
        self.scrapes.wait(13)
        with self._cut(place, 0, "LookupServerDown"):
            place.server.signal(signal.SIGKILL)
            self.scrapes.wait(14)
            self._servers.enter_context(place.start(self.scrapes))
        self.scrapes.wait(max(13.0, (is_remembered - self.scrapes.now) / 4))


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> _Faults:
    """Let everything go wrong once."""
    try:
        printed_by("ensure-prometheus.sh")
    except RuntimeError as error:
        pytest.skip(str(error))
    with rest_cluster() as cluster:
        cluster.topics["public/default"] = ["persistent://public/default/a"]
        faults = _Faults(tmp_path_factory.mktemp("alerts"), cluster)
        faults.play()
    return faults


def test_every_alert_fires_once_and_stops(faults: _Faults, tmp_path: Path) -> None:
    """In time, and while nothing else is wrong: what raises one alert raises no other."""
    names = [rule["alert"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]

    assert sorted(cut.alert for cut in faults.cuts) == sorted(names)
    assert_alerts(faults.scrapes, faults.cuts, tmp_path)
