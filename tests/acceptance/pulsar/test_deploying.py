"""What ships for operators, in the programs that read it: rules and dashboard in Prometheus, manifests in kustomize.

These programs are got for it. Collector and server run beside the cluster as their containers start them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import socket
from typing import Any

import pulsar
import pytest
import yaml

from tests.acceptance.pulsar.cluster import CLUSTER, Cluster
from tests.acceptance.pulsar.jvm import printed_by
from tests.processes import awaited, connected
from tests.serve.servers import Server, decide, settings_file, started_apart, view

pytestmark = pytest.mark.pulsar

ROOT = Path(__file__).parents[3]
_DEPLOY = ROOT / "configs" / "deploy"
_RULES = _DEPLOY / "prometheus-rules.yaml"


def _program(script: str) -> Path:
    """Return what a script provides; skip the test if it cannot be had."""
    try:
        return Path(printed_by(script))
    except RuntimeError as error:
        pytest.skip(str(error))


def _block(page: str, beginning: str) -> str:
    """Return the block of a page that has a line that begins so."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    (block,) = (block for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) if beginning in block)
    return str(block)


@dataclass(frozen=True)
class Prometheus:
    """A Prometheus that runs, and where it answers."""

    url: str

    def ask(self, path: str, **parameters: str) -> Any:
        """Return the data of an answer, which must be a success."""
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{query}", timeout=20) as response:
            answer = json.load(response)
        assert answer["status"] == "success", answer
        return answer["data"]


@contextmanager
def _prometheus(folder: Path, config: dict[str, Any]) -> Iterator[Prometheus]:
    """Run Prometheus in a folder until the end of the block."""
    program = _program("ensure-prometheus.sh") / "prometheus"
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    with closing(socket()) as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    flags = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address={address}"]
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen([program, *flags], cwd=folder, stdout=log, stderr=log)
        try:
            made = Prometheus(f"http://{address}")
            awaited(lambda: process.poll() is not None or _is_ready(made.url))
            assert process.poll() is None, (folder / "prometheus.log").read_text()
            yield made
        finally:
            process.kill()
            process.wait()


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/-/ready", timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Prometheus]]:
    """Start a server that has decided, and a Prometheus with the configuration of docs/live.md that scrapes it."""
    folder = tmp_path_factory.mktemp("watched")
    (folder / "token").write_text("s3cret\n", encoding="utf-8")
    shutil.copy(_RULES, folder)
    with started_apart(settings_file(folder, 'token_file = "token"')) as server:
        asked = server.ask("POST", "/decide", decide(view("a", "b")), {"Authorization": "Bearer s3cret"})
        assert asked[0] == 200
        config = yaml.safe_load(_block("live.md", "rule_files:"))
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config["scrape_configs"][0]["static_configs"] = [{"targets": [f"127.0.0.1:{server.port}"]}]
        with _prometheus(folder, config) as prometheus:
            yield server, prometheus


def test_prometheus_scrapes_the_server_with_the_token(watched: tuple[Server, Prometheus]) -> None:
    """The target is up, and a figure of ours has the value that the server counts."""
    server, prometheus = watched

    (target,) = awaited(
        lambda: [each for each in prometheus.ask("targets")["activeTargets"] if each["health"] != "unknown"]
    )
    (sample,) = awaited(
        lambda: prometheus.ask("query", query='lookup_decisions_total{policy="by-rack",outcome="chosen"}')["result"]
    )

    assert (target["health"], target["lastError"]) == ("up", "")
    assert sample["metric"]["job"] == "lookup-serve"
    assert sample["metric"]["instance"] == f"127.0.0.1:{server.port}"
    assert sample["value"][1] == "1"


def test_prometheus_evaluates_every_rule(watched: tuple[Server, Prometheus]) -> None:
    """Each was evaluated without a mistake, and none is pending while the server is well."""
    _, prometheus = watched

    def look() -> list[dict[str, Any]]:
        """Return the evaluated rules."""
        rules = [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]
        return rules if all(rule["health"] != "unknown" for rule in rules) else []

    rules = awaited(look)

    assert len(rules) == _RULES.read_text().count("- alert:")
    assert {rule["health"] for rule in rules} == {"ok"}
    assert {rule["state"] for rule in rules} == {"inactive"}


def test_prometheus_understands_every_panel(watched: tuple[Server, Prometheus]) -> None:
    """Expressions of the dashboard are answered; Grafana itself is not run."""
    _, prometheus = watched
    panels = json.loads((_DEPLOY / "grafana-dashboard.json").read_text(encoding="utf-8"))["panels"]
    texts = [target["expr"].replace("$__rate_interval", "1m") for panel in panels for target in panel["targets"]]

    answers = [prometheus.ask("query", query=text) for text in texts]

    assert len(answers) > 10
    assert all(answer["resultType"] == "vector" for answer in answers)


def test_an_alert_is_pending_when_the_server_is_gone(watched: tuple[Server, Prometheus]) -> None:
    """The last test with the server, which it ends. The alert waits for as long as it says before it fires."""
    server, prometheus = watched
    assert server.stop() == 0

    def look() -> list[str]:
        """Return pending alerts."""
        return [alert["labels"]["alertname"] for alert in prometheus.ask("alerts")["alerts"]]

    assert awaited(look) == ["LookupServerDown"]


# Collector and server


def test_both_containers_work_beside_a_cluster(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    """With their arguments, settings and variables, elsewhere, the server has owners, and the timer plans."""
    client = pulsar.Client(cluster.service_url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null"))
    client.create_producer(f"persistent://{namespace}/orders").send(b"1")
    admin = "http://" + ",".join(broker.web_url.removeprefix("http://") for broker in cluster.brokers.values())
    lines = (_DEPLOY / "settings" / "cluster.env").read_text(encoding="utf-8").splitlines()
    names = [line.partition("=")[0] for line in lines if not line.startswith("#")]
    whole = connected(admin=admin, service_url=cluster.service_url, zookeeper=cluster.zookeeper)
    assert {*names} == {*whole} - {*os.environ}
    (manifest,) = yaml.safe_load_all((_DEPLOY / "kubernetes" / "statefulset.yaml").read_text(encoding="utf-8"))
    containers = {each["name"]: each["args"] for each in manifest["spec"]["template"]["spec"]["containers"]}
    (tmp_path / "token").write_text("s3cret\n", encoding="utf-8")
    text = (_DEPLOY / "settings" / "serve.toml").read_text(encoding="utf-8")
    text = text.replace("/data/", f"{tmp_path}/").replace("/run/lookup/", f"{tmp_path}/")
    text = text.replace('"pulsar-1"', f'"{CLUSTER}"').replace('"0.0.0.0"', '"127.0.0.1"')
    (tmp_path / "serve.toml").write_text(text, encoding="utf-8")
    collect = [
        sys.executable,
        "-m",
        *(word.replace("/data/", f"{tmp_path}/") for word in containers["collect"]),
        "--every",
        "1s",
    ]
    with subprocess.Popen(collect, env=whole, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as collector:
        try:
            awaited(lambda: [*(tmp_path / "collected" / "bundles").glob("part-*1.parquet")])
            flags = ("--port", "0", "--set", f"collect.service_url={cluster.service_url}")
            with started_apart(tmp_path / "serve.toml", *flags) as server:
                status, health = awaited(lambda: server.ask("GET", "/health"), enough=lambda seen: seen[0] == 200)
        finally:
            collector.send_signal(signal.SIGTERM)
    client.close()

    assert collector.returncode == 0
    assert status == 200
    assert health["owners"]["bundles"] > 0
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    script = ["sh", _DEPLOY / "settings" / "rebalance.sh", tmp_path / "plans"]
    assert subprocess.run(script, env={**whole, "PATH": path}, check=False).returncode in (0, 4)


# Manifests


def _built(folder: Path) -> list[dict[str, Any]]:
    done = subprocess.run(
        [_program("ensure-kustomize.sh"), "build", folder], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [*yaml.safe_load_all(done.stdout)]


def _named(manifests: list[dict[str, Any]], kind: str, beginning: str) -> dict[str, Any]:
    (manifest,) = (
        each for each in manifests if each["kind"] == kind and each["metadata"]["name"].startswith(beginning)
    )
    return manifest


def test_a_folder_of_ones_own_changes_what_the_page_says(tmp_path: Path) -> None:
    """The kustomization of docs/deploy.md puts in namespace, image, addresses, settings and the token."""
    shutil.copytree(_DEPLOY, tmp_path / "pulsar-lookup" / "configs" / "deploy")
    own = tmp_path / "ours"
    own.mkdir()
    (own / "kustomization.yaml").write_text(_block("deploy.md", "secretGenerator:"), encoding="utf-8")
    (own / "cluster.env").write_text("LOOKUP_CLUSTER__ZOOKEEPER=zk.ours:2181\n", encoding="utf-8")
    (own / "serve.toml").write_text("# ours\n", encoding="utf-8")
    (own / "token").write_text("s3cret\n", encoding="utf-8")

    manifests = _built(own)

    pod = _named(manifests, "StatefulSet", "lookup")["spec"]["template"]["spec"]
    cluster = _named(manifests, "ConfigMap", "lookup-cluster-")
    secret = _named(manifests, "Secret", "lookup-token-")
    (token,) = (volume["secret"] for volume in pod["volumes"] if volume["name"] == "token")
    assert {manifest["metadata"].get("namespace") for manifest in manifests} == {"pulsar"}
    assert {container["image"].partition(":")[0] for container in pod["containers"]} == {
        "registry.example.com/pulsar-lookup"
    }
    assert cluster["data"]["LOOKUP_CLUSTER__ZOOKEEPER"] == "zk.ours:2181"
    assert _named(manifests, "ConfigMap", "lookup-settings-")["data"] == {"serve.toml": "# ours\n"}
    assert token["secretName"] == secret["metadata"]["name"]
    assert pod["containers"][0]["env"][0]["valueFrom"]["secretKeyRef"]["name"] == secret["metadata"]["name"]
