"""`lookup collect` beside a cluster that speaks TLS and wants tokens: it records all, or says in a sentence why not."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pyarrow.parquet as pq
import pytest

from lookup.collect.sources import Credentials, pulsar_client
from tests.acceptance.pulsar.cluster import CLUSTER, RACKS, Cluster, free_ports, running_cluster
from tests.acceptance.pulsar.jvm import Installation
from tests.processes import awaited, connected
from tests.serve.servers import decide, started_apart, view

pytestmark = pytest.mark.pulsar

_NAMESPACE = "public/secured"
# With a wrong token the client tries for ten seconds.
_SERVING = """
[serving]
cluster = "secured"
record = "record"
port = 0
active = "spread"

[collect]
service_url = "{url}"
token_file = "token"
tls_ca = "{ca}"
wait_s = 20

[[policies]]
name = "spread"
filters = ["anti-affinity"]
selector = "random"
"""
#: Sources that want a token and a certificate, as a collector names them.
_REFUSING = ("the admin REST", "the state topic", "the topic of load reports", "the topic of top bundles")


@dataclass
class _Secured:
    """A cluster with what a collector needs to read it."""

    cluster: Cluster
    #: as the keys of [cluster]
    admin: str
    service_url: str
    #: PEM files: who signed the brokers' certificates, and who did not
    ca: Path
    other_ca: Path
    token: str
    wrong_token: str

    def collect(
        self, record: Path, *, ca: Path, output: IO[str] | int = subprocess.PIPE, **variables: str
    ) -> subprocess.Popen[str]:
        """Start a collector."""
        return subprocess.Popen(
            [
                sys.executable, "-m", "lookup", "collect", "--output", str(record), "--every", "0.5s",
            ],
            env=variables
            | connected(
                admin=self.admin, service_url=self.service_url, zookeeper=self.cluster.zookeeper, tls_ca=str(ca)
            ),
            stdout=output,
            stderr=output,
            text=True,
        )  # fmt: skip


def _token(subject: str, secret: bytes) -> str:
    """Return a JSON web token, signed with HMAC and SHA-256, as `bin/pulsar tokens create` makes it."""

    def encoded(content: bytes) -> str:
        return base64.urlsafe_b64encode(content).rstrip(b"=").decode()

    signed = ".".join(encoded(json.dumps(part).encode()) for part in ({"alg": "HS256"}, {"sub": subject}))
    return f"{signed}.{encoded(hmac.digest(secret, signed.encode(), hashlib.sha256))}"


def _certificate(folder: Path, name: str, *options: str) -> Path:
    """Make a key and its certificate, of two days; return the file of the latter."""
    certificate = folder / f"{name}.pem"
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
            "-keyout", folder / f"{name}.key", "-out", certificate, *options,
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return certificate


@pytest.fixture(scope="module")
def secured(installed: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Secured]:
    """Start brokers with TLS for the binary protocol and the admin REST, and with tokens for both."""
    if shutil.which("openssl") is None:
        pytest.skip("A secured cluster needs openssl, and there is none.")
    folder = tmp_path_factory.mktemp("secrets")
    (folder / "secret.key").write_bytes(secret := os.urandom(32))
    (folder / "token").write_text(token := _token("admin", secret), encoding="utf-8")
    ca, other_ca = _certificate(folder, "ca"), _certificate(folder, "other-ca")
    signed = ("-CA", ca, "-CAkey", folder / "ca.key", "-addext", "subjectAltName=IP:127.0.0.1")
    certificate = _certificate(folder, "broker", *map(str, signed), "-addext", "basicConstraints=critical,CA:FALSE")
    free = iter(free_ports(2 * len(RACKS)))
    ports = {rack: (next(free), next(free)) for rack in RACKS}
    settings = {
        rack: {
            "webServicePortTls": str(web),
            "brokerServicePortTls": str(binary),
            "tlsCertificateFilePath": str(certificate),
            "tlsKeyFilePath": str(folder / "broker.key"),
            "tlsTrustCertsFilePath": str(ca),
            "authenticationEnabled": "true",
            "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
            "tokenSecretKey": f"file://{folder / 'secret.key'}",
            "authorizationEnabled": "true",
            "superUserRoles": "admin",
            "brokerClientTlsEnabled": "true",
            "brokerClientTrustCertsFilePath": str(ca),
            "brokerClientAuthenticationPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
            "brokerClientAuthenticationParameters": f"file://{folder / 'token'}",
        }
        for rack, (web, binary) in ports.items()
    }
    with running_cluster(installed, tmp_path_factory.mktemp("secured"), settings, token=token) as cluster:
        yield _Secured(
            cluster,
            "https://" + ",".join(f"127.0.0.1:{web}" for web, _ in ports.values()),
            "pulsar+ssl://" + ",".join(f"127.0.0.1:{binary}" for _, binary in ports.values()),
            ca,
            other_ca,
            token,
            _token("admin", os.urandom(32)),
        )


def _rows(record: Path) -> dict[str, int]:
    """Return how many rows the tables have."""
    tables = ("brokers", "loads", "bundles", "ownership")
    return {table: sum(pq.read_metadata(part).num_rows for part in (record / table).glob("part-*")) for table in tables}


def _files_with(text: str, *folders: Path) -> list[Path]:
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    return [file for file in files if text.encode() in file.read_bytes()]


@pytest.mark.parametrize("source", ["file", "environment"])
def test_all_tables_are_recorded(secured: _Secured, tmp_path: Path, source: str) -> None:
    """With a token all tables get rows, and no output, record or log of a broker has the token."""
    cluster, namespace = secured.cluster, f"{_NAMESPACE}-{source}"
    cluster.create_namespace(namespace, 4)
    (tmp_path / "token").write_text(secured.token + "\n", encoding="utf-8")
    in_file = {"LOOKUP_CLUSTER__TOKEN_FILE": str(tmp_path / "token")}
    variables = in_file if source == "file" else {"PULSAR_TOKEN": secured.token}
    record = tmp_path / "record"

    process = secured.collect(record, ca=secured.ca, **variables)
    client = pulsar_client(secured.service_url, Credentials(token=secured.token, tls_ca=str(secured.ca)))
    producer = client.create_producer(f"persistent://{namespace}/orders")

    def rows_after_a_message() -> dict[str, int]:
        # The load of a bundle is reported while there is some.
        producer.send(b"one")
        return _rows(record)

    awaited(rows_after_a_message, "rows in all tables", enough=lambda rows: all(rows.values()))
    client.close()
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate()

    assert (process.returncode, "cannot be read" in err) == (0, False), err
    changes = [row for part in (record / "ownership").glob("part-*") for row in pq.read_table(part).to_pylist()]
    assert f"{namespace}/{cluster.bundle_of(producer.topic())}" in {row["bundle"] for row in changes}
    assert secured.token not in out + err
    assert _files_with(secured.token, record, cluster.folder) == []


@pytest.mark.parametrize("wrong", ["token", "ca"])
def test_sources_that_refuse_are_named(secured: _Secured, tmp_path: Path, wrong: str) -> None:
    """With the cluster's name it goes on with what it may read, and names what it may not."""
    token = secured.wrong_token if wrong == "token" else secured.token
    ca = secured.other_ca if wrong == "ca" else secured.ca
    record, said = tmp_path / "record", tmp_path / "said"

    with said.open("w") as output:
        process = secured.collect(record, ca=ca, output=output, PULSAR_TOKEN=token, LOOKUP_CLUSTER__NAME=CLUSTER)
    awaited(
        said.read_text,
        "refusals by all sources",
        enough=lambda text: all(f"{source} cannot be read, and is tried again: " in text for source in _REFUSING),
    )
    awaited(lambda: _rows(record), "all brokers", enough=lambda rows: rows["brokers"] == len(RACKS))
    process.send_signal(signal.SIGTERM)

    assert process.wait() == 0
    assert _files_with(token, tmp_path) == []


def _serving(secured: _Secured, folder: Path, token: str, ca: Path) -> Path:
    (folder / "token").write_text(token + "\n", encoding="utf-8")
    settings = folder / "serving.toml"
    settings.write_text(_SERVING.format(url=secured.service_url, ca=ca), encoding="utf-8")
    return settings


def test_decision_server_follows_owners(secured: _Secured, tmp_path: Path) -> None:
    """With a token from a file a server knows all owners, and no output, record or log of a broker has the token."""
    namespace = f"{_NAMESPACE}-served"
    secured.cluster.create_namespace(namespace, 4)
    with started_apart(_serving(secured, tmp_path, secured.token, secured.ca)) as server:

        def bundles() -> int:
            return int(server.ask("GET", "/health")[1]["owners"]["bundles"])

        before = awaited(bundles, "owners of bundles")
        for topic in range(40):
            secured.cluster.lookup_over_http(f"persistent://{namespace}/topic-{topic}", secured.cluster.running[0])
        awaited(bundles, "owners of four bundles more", enough=lambda known: known >= before + 4)
        assert server.ask("POST", "/decide", decide(view("a", "b")))[0] == 200
        assert server.stop() == 0

    assert not any(secured.token in line for line in server.said)
    assert _files_with(secured.token, server.record, secured.cluster.folder) == []


@pytest.mark.parametrize("wrong", ["token", "ca"])
def test_decision_server_without_owners_says_so(secured: _Secured, tmp_path: Path, wrong: str) -> None:
    """A server whose policy reads owners, and that may not read the state topic, ends with 2 and why it was refused."""
    token = secured.wrong_token if wrong == "token" else secured.token
    ca = secured.other_ca if wrong == "ca" else secured.ca
    settings = _serving(secured, tmp_path, token, ca)

    ended = subprocess.run(
        [sys.executable, "-m", "lookup", "serve", str(settings)], capture_output=True, text=True, check=False
    )

    (error,) = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
    assert (ended.returncode, ended.stdout) == (2, "")
    assert error.startswith("error: collect.service_url: the state topic has not been read to its end: ")
    assert "it is being read" not in error
    assert "policy 'spread' reads view.ownership (anti-affinity); waited 20 s" in error
    assert token not in ended.stderr
