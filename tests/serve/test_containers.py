"""What `configs/deploy` starts in containers fits the commands: settings, paths, ports, probes, variables and secrets.

Neither containers nor a Kubernetes are started: the manifests are held against the schemas of Compose and Kubernetes,
and what stands in them against the commands, which run as processes with the very settings.
"""

from __future__ import annotations

import configparser
import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from lookup.cli import root_parser
from lookup.commands.cluster_flags import cluster_of
from lookup.commands.options import parse_command
from lookup.commands.serve import load_settings
from lookup.settings import ServingFile, load_serving
from tests.processes import awaited
from tests.serve.servers import Server, lookup_entry, started_apart

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "configs" / "deploy"
_SETTINGS = DEPLOY / "settings" / "serve.toml"
_MANIFESTS = sorted(path for path in (DEPLOY / "kubernetes").glob("*.yaml") if path.name != "kustomization.yaml")
#: Of the oldest and the newest Kubernetes that the manifests are held against.
_RELEASES = ("1.27", "1.37")
#: Where the file of settings is in the containers.
_MOUNTED = "/etc/lookup/serve.toml"


def _variables() -> dict[str, str]:
    lines = (DEPLOY / "settings" / "cluster.env").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def _settings() -> ServingFile:
    # But for the token, which is no file of the repository.
    return load_serving(_SETTINGS)


def _compose() -> dict[str, Any]:
    return dict(yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8")))


def _manifests() -> Iterator[dict[str, Any]]:
    for path in _MANIFESTS:
        yield from yaml.safe_load_all(path.read_text(encoding="utf-8"))


def _of_kind(kind: str) -> dict[str, Any]:
    (manifest,) = (manifest for manifest in _manifests() if manifest["kind"] == kind)
    return manifest


def _pod() -> dict[str, Any]:
    return dict(_of_kind("StatefulSet")["spec"]["template"]["spec"])


def _containers() -> dict[str, dict[str, Any]]:
    return {container["name"]: container for container in _pod()["containers"]}


# Schemas


def test_compose_file_fits_the_schema_of_the_specification() -> None:
    """Every key is one of Compose's, and its value of the type that it wants."""
    schema = json.loads((files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json").read_text("utf-8"))
    compose = _compose()

    jsonschema.validate(compose, schema)

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(compose | {"services": {"serve": {"healthchek": {}}}}, schema)


@pytest.mark.parametrize("release", _RELEASES)
def test_manifests_fit_the_schemas_of_kubernetes(release: str) -> None:
    """Every key is known to the API, in an older release and in a newer one."""
    for manifest in _manifests():
        kubernetes_validate.validate(manifest, release, strict=True)

    service = _of_kind("Service")
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(service | {"spec": service["spec"] | {"port": 8900}}, release, strict=True)


# Settings and commands


def test_settings_and_variables_are_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """Collector and server take the connection from the variables, and the server has owners."""
    for name, value in _variables().items():
        monkeypatch.setenv(name, value)

    settings = load_settings(parse_command(root_parser(), ["serve", str(_SETTINGS)]))
    cluster = cluster_of(parse_command(root_parser(), ["collect", "--output", "o"]))

    assert settings.collect is not None
    assert settings.collect.service_url == cluster.service_url == _variables()["LOOKUP_CLUSTER__SERVICE_URL"]
    assert {f"LOOKUP_CLUSTER__{key.upper()}" for key in cluster.model_fields_set} == {*_variables()}
    assert settings.serving.warnings == ()


def test_both_kits_start_the_same_commands() -> None:
    """Flags and folders of Compose are those of Kubernetes, and the commands know them."""
    in_pods = {name: container["args"] for name, container in _containers().items()}

    assert {name: service["command"] for name, service in _compose()["services"].items()} == in_pods
    assert vars(parse_command(root_parser(), in_pods["collect"][1:]))["output"] == "/data/collected"
    assert vars(parse_command(root_parser(), in_pods["serve"][1:]))["config"] == _MOUNTED


# Paths, ports, secrets


def test_paths_of_the_settings_are_on_the_volume_of_both() -> None:
    """The record and what the collector writes outlast the containers; all else cannot be written."""
    settings, pod = _settings(), _containers()
    collected = vars(parse_command(root_parser(), pod["collect"]["args"][1:]))["output"]
    written = [settings.serving.record, collected]

    for container in pod.values():
        mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
        assert all(PurePosixPath(path).is_relative_to(mounts["data"]["mountPath"]) for path in written)
        assert "readOnly" not in mounts["data"]
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
    for service in _compose()["services"].values():
        assert "data:/data" in service["volumes"]
        assert service["read_only"] is True
    (claim,) = _of_kind("StatefulSet")["spec"]["volumeClaimTemplates"]
    assert claim["metadata"]["name"] == "data"
    # Only one may record: another pod begins when this one has ended.
    assert _of_kind("StatefulSet")["spec"]["replicas"] == 1


def test_the_token_is_mounted_where_the_settings_look() -> None:
    """It is a file that is in neither the repository nor an image."""
    path = _settings().serving.token_file
    volumes = {volume["name"]: volume for volume in _pod()["volumes"]}
    (mount,) = (mount for mount in _containers()["serve"]["volumeMounts"] if mount["name"] == "token")
    ((item,), secret) = volumes["token"]["secret"]["items"], volumes["token"]["secret"]["secretName"]

    assert f"{mount['mountPath']}/{item['path']}" == path
    assert _compose()["services"]["serve"]["secrets"] == [{"source": "lookup-token", "target": path}]
    file = _compose()["secrets"]["lookup-token"]["file"]
    assert not [manifest for manifest in _manifests() if manifest["kind"] == "Secret"]
    assert secret == _containers()["serve"]["env"][0]["valueFrom"]["secretKeyRef"]["name"]
    for name in (".gitignore", ".dockerignore"):
        assert f"configs/deploy/{file}" in (ROOT / name).read_text(encoding="utf-8").replace("\n/", "\n").split()


def test_one_port_from_settings_to_network_policy() -> None:
    """Server, container, Service, probes, published port and policy mean the same one."""
    port = _settings().serving.port
    serve = _containers()["serve"]
    (named,) = serve["ports"]
    (of_service,) = _of_kind("Service")["spec"]["ports"]
    (rule,) = _of_kind("NetworkPolicy")["spec"]["ingress"]

    assert named == {"name": "http", "containerPort": port}
    assert (of_service["port"], of_service["targetPort"]) == (port, "http")
    assert rule["ports"] == [{"port": "http"}]
    assert {serve[f"{kind}Probe"]["tcpSocket"]["port"] for kind in ("startup", "readiness")} == {"http"}
    assert _compose()["services"]["serve"]["ports"] == [f"{port}:{port}"]
    labels = _of_kind("StatefulSet")["spec"]["template"]["metadata"]["labels"]
    assert _of_kind("Service")["spec"]["selector"] == labels
    (selected,) = _of_kind("NetworkPolicy")["spec"]["podSelector"]["matchExpressions"]
    assert {selected["key"]: selected["values"][0]} == labels


def test_addresses_of_the_cluster_may_be_reached() -> None:
    """The ports of cluster.env are those that the network policy lets out."""
    egress = _of_kind("NetworkPolicy")["spec"]["egress"]
    ports = {str(port["port"]) for rule in egress for port in rule["ports"]}

    assert {*re.findall(r":(\d+)", " ".join(_variables().values()))} <= ports


def test_the_image_has_what_its_containers_run() -> None:
    """Compose builds the stage `live`, whose extras are those that both commands ask for."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    target = _compose()["services"]["serve"]["build"]["target"]
    stage = text.partition(f" AS {target}\n")[2].partition("\nFROM ")[0]
    (extras,) = re.findall(r"/source\[([\w,]+)\]", stage)

    assert {"collect", "report", "serve"} <= {*extras.split(",")}
    assert json.loads(stage.partition("CMD ")[2]) == _containers()["serve"]["args"]
    assert {container["image"] for container in _containers().values()} == {f"pulsar-lookup:{target}"}


# Plans and their moves, by a timer


_REBALANCE = DEPLOY / "settings" / "rebalance.sh"
#: A `lookup` that writes its arguments down and ends with the exit code that a file beside it has for the command.
_LOOKUP = """#!/bin/sh
echo "$*" >>"$HERE/ran"
case "$*" in plan*) for output; do :; done; mkdir "$output"; echo >"$output/plan.json" ;; esac
exit "$(cat "$HERE/$1.code")"
"""


def _rebalance(folder: Path, **codes: int) -> tuple[int, list[list[str]]]:
    """Run the script once, with commands that end with some codes; return its own, and what it ran."""
    (folder / "lookup").write_text(_LOOKUP, encoding="utf-8")
    (folder / "lookup").chmod(0o755)
    (folder / "ran").write_text("", encoding="utf-8")
    for command, code in {"plan": 0, "apply": 0, **codes}.items():
        (folder / f"{command}.code").write_text(str(code), encoding="utf-8")
    environment = {**_variables(), "PATH": f"{folder}:/usr/bin:/bin", "HERE": str(folder)}
    done = subprocess.run(["sh", _REBALANCE, folder / "plans"], env=environment, capture_output=True, check=False)
    return done.returncode, [line.split() for line in (folder / "ran").read_text(encoding="utf-8").splitlines()]


@pytest.mark.process
def test_the_timer_plans_and_makes_the_moves(tmp_path: Path) -> None:
    """With flags that the commands know; a journal that an earlier run has left is recovered first."""
    code, ran = _rebalance(tmp_path)
    (folder,) = (tmp_path / "plans").iterdir()
    (folder / "plan.json.journal").touch()
    _, again = _rebalance(tmp_path, plan=2)

    assert (code, [words[0] for words in ran]) == (0, ["plan", "apply"])
    planning, applying = (vars(parse_command(root_parser(), words)) for words in ran)
    assert (planning["output"], applying["plan"]) == (folder.name, folder.name)
    assert (applying["yes"], applying["freeze_shedding"]) == (True, True)
    assert vars(parse_command(root_parser(), again[0]))["recover"] == f"{folder.name}/plan.json.journal"


@pytest.mark.process
@pytest.mark.parametrize(
    ("codes", "code", "commands", "kept"),
    [({"plan": 4}, 0, ["plan"], 0), ({"plan": 2}, 2, ["plan"], 1), ({"apply": 4}, 4, ["plan", "apply"], 1)],
    ids=["nothing-to-move", "no-plan", "stopped"],
)
def test_the_timer_fails_only_if_moves_were_not_made(
    tmp_path: Path, codes: dict[str, int], code: int, commands: list[str], kept: int
) -> None:
    """That nothing is worth moving is no failure, and leaves no folder behind."""
    ended, ran = _rebalance(tmp_path, **codes)

    assert (ended, [words[0] for words in ran]) == (code, commands)
    assert len([*(tmp_path / "plans").iterdir()]) == kept


@pytest.mark.process
def test_units_of_systemd_are_sound(tmp_path: Path) -> None:
    """`systemd-analyze` finds no mistake in them, if it is there, and the service runs the script."""
    units = {path.name: path for path in (DEPLOY / "systemd").iterdir()}
    service = configparser.ConfigParser(strict=False, interpolation=None)
    service.read(units["lookup-rebalance.service"], encoding="utf-8")

    assert units.keys() == {"lookup-rebalance.service", "lookup-rebalance.timer"}
    assert service["Service"]["Type"] == "oneshot"
    assert _REBALANCE.name in service["Service"]["ExecStart"]
    if (program := shutil.which("systemd-analyze")) is not None:
        for path in units.values():
            shutil.copy(path, tmp_path)
        found = subprocess.run(
            [program, "verify", *(tmp_path / name for name in units)], capture_output=True, text=True, check=False
        )
        assert (found.returncode, found.stderr) == (0, "")


# The server, as the containers start it


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Start `lookup serve` with the settings that ship, in a folder of its own, on a free port."""
    (tmp_path / "token").write_text("s3cret\n", encoding="utf-8")
    path = tmp_path / "serve.toml"
    path.write_text(_SETTINGS.read_text(encoding="utf-8"), encoding="utf-8")
    moved = {
        "serving.record": tmp_path / "record",
        "serving.token_file": tmp_path / "token",
        "serving.flush_s": 0.2,
        "serving.port": 0,
        "serving.bind": "127.0.0.1",
    }
    with started_apart(path, *(word for key, value in moved.items() for word in ("--set", f"{key}={value}"))) as server:
        yield server


def _probe(words: list[str], server: Server) -> int:
    """Run the command of a probe against the server; return its exit code."""
    assert words[0] == "python"
    port = str(_settings().serving.port)
    assert any(port in word for word in words)
    command = [sys.executable, *(word.replace(port, str(server.port)) for word in words[1:])]
    return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode


@pytest.mark.process
def test_probes_tell_a_sick_server_from_a_dead_one(server: Server) -> None:
    """If rows cannot be written Compose says unhealthy; Kubernetes leaves the server alone until it answers no more."""
    alive = _containers()["serve"]["livenessProbe"]["exec"]["command"]
    _, *healthy = _compose()["services"]["serve"]["healthcheck"]["test"]
    token = {"Authorization": "Bearer s3cret"}
    well = server.ask("GET", "/health")[0], _probe(alive, server), _probe(healthy, server)

    (server.record / "lookups").write_text("in the way", encoding="utf-8")
    server.ask("POST", "/record", {"broker": "b1:8080", "lookups": [lookup_entry()]}, headers=token)
    awaited(lambda: server.ask("GET", "/health")[0] == 503)
    sick = _probe(alive, server), _probe(healthy, server)
    server.signal(signal.SIGSTOP)
    hung = _probe(alive, server)
    server.signal(signal.SIGCONT)

    assert well == (200, 0, 0)
    assert sick == (0, 1)
    assert hung == 1
