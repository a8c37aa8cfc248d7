"""A Pulsar cluster on this machine: ZooKeeper, a bookie and brokers with racks, started, steered and ended by tests."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from tests.acceptance.pulsar.clients import JavaClients
from tests.acceptance.pulsar.jvm import Installation, Jvm

__all__ = ["CLUSTER", "LAYOUTS", "RACKS", "REGISTRY", "Broker", "Cluster", "free_ports", "running_cluster"]

CLUSTER = "racks"
RACKS = ("A", "B", "C")
#: Layouts in which every JVM writes its log, each into a file; see `log4j2.xml`.
LAYOUTS = ("clock", "offset", "dashes", "pipes", "json")
#: Folder in ZooKeeper of what brokers publish while they run.
REGISTRY = "/loadbalance/brokers"
_LOG_SETTINGS = Path(__file__).with_name("log4j2.xml")
#: What every broker is started with, besides its addresses and labels.
_SETTINGS = {
    "clusterName": CLUSTER,
    "bindAddress": "127.0.0.1",
    "advertisedAddress": "127.0.0.1",
    "loadManagerClassName": "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl",
    "loadBalancerLoadSheddingStrategy": "org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder",
    # A bundle moves when a test moves it, and only then.
    "loadBalancerSheddingEnabled": "false",
    "loadBalancerAutoBundleSplitEnabled": "false",
    # A report every two seconds, however little has changed: by default a quiet broker reports every 15 minutes.
    "loadBalancerReportUpdateMinIntervalMillis": "2000",
    "loadBalancerReportUpdateThresholdPercentage": "-1",
    # What bundles carry every ten seconds, not once a minute.
    "statsUpdateFrequencyInSecs": "10",
    "statsUpdateInitialDelayInSecs": "10",
    # Compaction, which is looked for each minute, takes the past of bundles from what begins to read later.
    "brokerServiceCompactionMonitorIntervalInSeconds": "86400",
    # A broker that was killed is noticed after this; ZooKeeper's own tick allows 4 to 40 s.
    "metadataStoreSessionTimeoutMillis": "10000",
    # One bookie, small memory.
    "managedLedgerDefaultEnsembleSize": "1",
    "managedLedgerDefaultWriteQuorum": "1",
    "managedLedgerDefaultAckQuorum": "1",
    "managedLedgerCacheSizeMB": "32",
    "managedLedgerOffloadDriver": "",
    "functionsWorkerEnabled": "false",
    "transactionCoordinatorEnabled": "false",
}


@dataclass(slots=True)
class Broker:
    """A broker of the cluster; addresses and logs stay the same when it is started again."""

    rack: str
    web_port: int
    binary_port: int
    #: its configuration and, by layout, its logs
    folder: Path
    jvm: Jvm | None = None

    @property
    def id(self) -> str:
        """Return its id in the registry."""
        return f"127.0.0.1:{self.web_port}"

    @property
    def web_url(self) -> str:
        """Return the address of its admin REST."""
        return f"http://127.0.0.1:{self.web_port}"

    @property
    def service_url(self) -> str:
        """Return the address of its binary protocol."""
        return f"pulsar://127.0.0.1:{self.binary_port}"

    @property
    def running(self) -> Jvm:
        """Return its JVM; a broker that was killed has none."""
        assert self.jvm is not None, f"broker {self.rack} was killed"
        return self.jvm

    def log(self, layout: str) -> Path:
        """Return its log in a layout out of `LAYOUTS`."""
        return self.folder / f"{layout}.log"


class Cluster:
    """Three brokers, each in a rack of its own, over one ZooKeeper and one bookie; every server is a JVM."""

    def __init__(
        self,
        installed: Installation,
        folder: Path,
        settings: Mapping[str, Mapping[str, str]] | None = None,
        token: str | None = None,
    ) -> None:
        self.folder = folder
        #: what brokers are started with beside what all clusters have, by rack
        self.settings = {rack: dict((settings or {}).get(rack, {})) for rack in RACKS}
        #: Java and jars of each broker, by rack
        self.installed = dict.fromkeys(RACKS, installed)
        self._installed = installed
        #: sent with every request to the REST
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        ports = iter(free_ports(2 + 2 * len(RACKS)))
        self.zookeeper_port, self._bookie_port = next(ports), next(ports)
        #: by rack
        self.brokers = {rack: Broker(rack, next(ports), next(ports), folder / f"broker-{rack}") for rack in RACKS}
        self._log_settings = folder / "log4j2.xml"
        self._services: Jvm | None = None
        self._clients: list[JavaClients] = []

    @property
    def release(self) -> tuple[int, int]:
        """Return the first two numbers of the release of Pulsar that it runs."""
        return self._installed.release

    @property
    def zookeeper(self) -> str:
        """Return ZooKeeper's address."""
        return f"127.0.0.1:{self.zookeeper_port}"

    @property
    def service_url(self) -> str:
        """Return one address of all brokers: a client goes on to the next if one is away."""
        return "pulsar://" + ",".join(f"127.0.0.1:{broker.binary_port}" for broker in self.brokers.values())

    # Servers

    def start(self) -> None:
        """Start everything; return when all brokers are ready."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write_log_settings("info")
        services = self.folder / "services"
        self._services = Jvm(
            self._installed, "Node", "services", str(services), CLUSTER,
            str(self.zookeeper_port), str(self._bookie_port),
            folder=services, log_settings=self._log_settings, heap_mb=256,
        )  # fmt: skip
        self._services.wait_until("ZooKeeper and the bookie", (services / "ready").exists)
        for broker in self.brokers.values():
            self._launch(broker)
        for broker in self.brokers.values():
            self._await_ready(broker)

    def stop(self) -> None:
        """End everything at once: nobody needs its data any more."""
        for clients in self._clients:
            clients.close()
        for jvm in [*(broker.jvm for broker in self.brokers.values()), self._services]:
            if jvm is not None:
                jvm.kill()

    def shut_down(self, broker: Broker) -> None:
        """End a broker by SIGTERM: while it is still in the registry, it gives its bundles to others."""
        broker.running.shut_down()
        broker.jvm = None

    def kill(self, broker: Broker) -> None:
        """End a broker by SIGKILL; the others notice when its ZooKeeper session expires."""
        broker.running.kill()
        broker.jvm = None

    def restart(self, broker: Broker) -> None:
        """Start a broker that was killed; return when it is ready."""
        self._launch(broker)
        self._await_ready(broker)

    def _launch(self, broker: Broker) -> None:
        store = f"zk:{self.zookeeper}"
        settings = {
            **_SETTINGS,
            "metadataStoreUrl": store,
            "configurationMetadataStoreUrl": store,
            "webServicePort": broker.web_port,
            "brokerServicePort": broker.binary_port,
            "lookup.rack": broker.rack,
            **self.settings[broker.rack],
        }
        broker.folder.mkdir(exist_ok=True)
        conf = broker.folder / "broker.conf"
        conf.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
        broker.jvm = Jvm(
            self.installed[broker.rack], "Node", "broker", str(conf),
            folder=broker.folder, log_settings=self._log_settings, heap_mb=700,
        )  # fmt: skip

    def _await_ready(self, broker: Broker) -> None:
        def is_ready() -> bool:
            try:
                self.admin("GET", "brokers/ready", asked=broker)
            except OSError:  # the port is not open yet, or it answers with an error
                return False
            return True

        broker.running.wait_until(f"broker {broker.rack}", is_ready)

    # What it is asked

    def admin(self, method: str, path: str, body: Any = None, *, asked: Broker | None = None, **parameters: str) -> Any:
        """Call the admin REST of a broker, the first that runs if none is given; return its answer, None if empty.

        Raises:
            urllib.error.HTTPError: if it refuses.
        """
        broker = asked or self.running[0]
        query = "?" + urlencode(parameters) if parameters else ""
        url = f"{broker.web_url}/admin/v2/{path}{query}"
        return _http(method, url, self._headers, body)

    def create_namespace(self, namespace: str, bundles: int) -> None:
        """Create a namespace of the tenant `public` with bundles of equal size."""
        self.admin("PUT", f"namespaces/{namespace}", {"bundles": {"numBundles": bundles}})

    def bundles(self, namespace: str) -> list[str]:
        """Return the ranges of a namespace's bundles, in order: `0x00000000_0x10000000`."""
        boundaries = self.admin("GET", f"namespaces/{namespace}/bundles")["boundaries"]
        return [f"{first}_{last}" for first, last in pairwise(boundaries)]

    def bundle_of(self, topic: str) -> str:
        """Return the range of a topic's bundle; this assigns no owner."""
        url = f"{self.running[0].web_url}/lookup/v2/topic/{topic.replace('://', '/')}/bundle"
        return str(_http("GET", url, self._headers))

    def lookup_over_http(self, topic: str, asked: Broker) -> str:
        """Return the service URL of the broker that owns a topic, as a broker answers over HTTP."""
        answer = _http("GET", f"{asked.web_url}/lookup/v2/topic/{topic.replace('://', '/')}", self._headers)
        return str(answer["brokerUrl"])

    def unload(self, namespace: str, bundle: str, destination: Broker | None = None) -> None:
        """Make a bundle's owner release it, to a broker if one is given."""
        parameters = {"destinationBroker": destination.id} if destination else {}
        self.admin("PUT", f"namespaces/{namespace}/{bundle}/unload", **parameters)

    def split(self, namespace: str, bundle: str) -> None:
        """Divide a bundle in two halves."""
        self.admin("PUT", f"namespaces/{namespace}/{bundle}/split", unload="false")

    def broker_at(self, url: str) -> Broker:
        """Return the broker with a service URL."""
        return next(broker for broker in self.brokers.values() if broker.service_url == url)

    @property
    def running(self) -> list[Broker]:
        """Return the brokers that have not been killed."""
        return [broker for broker in self.brokers.values() if broker.jvm is not None]

    def java_clients(self) -> JavaClients:
        """Start a JVM for Java clients; it ends with the cluster."""
        clients = JavaClients(self._installed, self.folder / f"clients-{len(self._clients)}", self._log_settings)
        self._clients.append(clients)
        return clients

    def registry(self) -> dict[str, dict[str, Any]]:
        """Return what each broker publishes in ZooKeeper, by its id; the REST does not show lookup properties."""
        zookeeper = KazooClient(self.zookeeper)
        zookeeper.start()
        published = {}
        try:
            for broker in zookeeper.get_children(REGISTRY):
                # One that is lost may leave in between.
                with suppress(NoNodeError):
                    published[broker] = json.loads(zookeeper.get(f"{REGISTRY}/{broker}")[0])
            return published
        finally:
            zookeeper.stop()
            zookeeper.close()

    def owned(self, namespace: str) -> dict[str, Broker]:
        """Return the ranges of a namespace that have an owner, as each broker says itself."""
        return {
            bundle.removeprefix(f"{namespace}/"): broker
            for broker in self.running
            for bundle in self.admin("GET", f"brokers/{CLUSTER}/{broker.id}/ownedNamespaces", asked=broker)
            if bundle.startswith(f"{namespace}/")
        }

    # Logs

    def set_debug(self, *, on: bool) -> None:
        """Switch the lines of successful lookups on or off in all brokers; return when each has taken it over."""
        before = {broker.rack: _settings_read(broker) for broker in self.running}
        self._write_log_settings("debug" if on else "info")
        for broker in self.running:
            broker.running.wait_until("new log settings", lambda b=broker: _settings_read(b) > before[b.rack])

    def _write_log_settings(self, level: str) -> None:
        new = self._log_settings.with_suffix(".new")
        settings = _LOG_SETTINGS.read_text(encoding="utf-8").replace("@LEVEL@", level)
        # From 5.0 on messages are constant, and what varies is in attributes, which older releases do not have.
        attributes = " %X" if self.release >= (5, 0) else ""
        new.write_text(settings.replace("%msg", f"%msg{attributes}"), encoding="utf-8")
        # Whole or not at all: each JVM looks once a second.
        new.replace(self._log_settings)


def _settings_read(broker: Broker) -> int:
    """Return how often log4j has said that it read its settings."""
    return broker.running.console.read_text(errors="replace").count("Reconfiguration complete")


def _http(method: str, url: str, headers: Mapping[str, str], body: Any = None) -> Any:
    """Send a request as JSON; follow redirects, which urllib does for GET only."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **headers}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read().decode()
    except urllib.error.HTTPError as error:
        if error.code != HTTPStatus.TEMPORARY_REDIRECT:
            # Pulsar's reason is in the body, before a stack trace; nobody sees either in a traceback.
            reason = error.read().decode().partition("Stacktrace")[0]
            error.msg = f"{error.msg}: {' '.join(reason.replace(chr(92) + 'n', ' ').split())}"
            raise
        return _http(method, error.headers["Location"], headers, body)
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text


def free_ports(count: int) -> list[int]:
    """Return ports that nothing listens on now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(opened.getsockname()[1]) for opened in sockets]
    for opened in sockets:
        opened.close()
    return ports


@contextmanager
def running_cluster(
    installed: Installation,
    folder: Path,
    settings: Mapping[str, Mapping[str, str]] | None = None,
    *,
    token: str | None = None,
) -> Iterator[Cluster]:
    """Start a cluster, with settings by rack and a token for its REST, and end it when the block does."""
    cluster = Cluster(installed, folder, settings, token)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
