"""When a server that may move bundles moves none, and what it says; with a lock: `tests/pulsar/test_leading.py`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lookup.moving.shedding import KEY
from tests.processes import awaited
from tests.serve.moving import crowded, looks, moving_settings, serving, window


@pytest.mark.process
def test_outside_its_windows_a_server_only_proposes(tmp_path: Path) -> None:
    """The plan is there, its reason is the time, and the file and metrics have both."""
    with crowded(tmp_path) as standin:
        settings = moving_settings(tmp_path / "one", standin, windows=[window(2, 4), window(5, 6)])
        with serving(settings, standin) as server:
            look = awaited(lambda: looks(server, "outside-windows"))[0]
            counted = server.figure('lookup_balance_looks_total{outcome="outside-windows"}')

        assert look["steps"] == 6
        assert "outside the windows: " in look["reason"]
        assert counted == 1.0
        assert standin.unloads == []
        lines = (tmp_path / "one" / "plans" / "cycles.jsonl").read_text(encoding="utf-8").splitlines()
        assert json.loads(lines[0])["reason"] == look["reason"]


@pytest.mark.process
def test_without_the_lock_a_server_only_proposes(tmp_path: Path) -> None:
    """If ZooKeeper cannot be reached, no server knows that it is the only one."""
    with crowded(tmp_path) as standin:
        with serving(moving_settings(tmp_path / "one", standin, every_s=1.0), standin) as server:
            awaited(lambda: [one for one in looks(server, "not-leader") if "cannot be reached" in one["reason"]])
            leads, (_, about) = server.figure("lookup_balance_leads"), server.ask("GET", "/balance")
            assert server.stop() == 0

        assert (leads, about["leads"], about["mode"]) == (0.0, False, "apply")
        assert standin.unloads == []


@pytest.mark.process
def test_loads_of_before_a_move_are_waited_for(tmp_path: Path) -> None:
    """A broker that took a bundle after its last report is emptier by that than it is."""
    with crowded(tmp_path, minutes=1) as standin:
        with serving(moving_settings(tmp_path / "one", standin), standin) as server:
            look = awaited(lambda: looks(server, "waiting"))[0]

        assert "broker-0:8080" in look["reason"]
        assert "the next report is awaited" in look["reason"]
        assert standin.unloads == []


@pytest.mark.process
@pytest.mark.parametrize(
    ("shedding", "freeze", "sentence"),
    [
        ("false", False, "Pulsar's own shedder is off"),
        ("true", True, "Pulsar's own shedder is on, and kept still while this server moves bundles"),
        (
            "true",
            False,
            "warning: Pulsar's own shedder is on (loadBalancerSheddingEnabled) and balance.freeze_shedding",
        ),
        (None, False, "warning: it is not known whether Pulsar's own shedder is on"),
    ],
)
def test_what_the_own_shedder_does_is_said_at_the_start(
    tmp_path: Path, shedding: str | None, freeze: bool, sentence: str
) -> None:
    """As brokers are configured while they run."""
    with crowded(tmp_path) as standin:
        standin.shedding = shedding or ""
        if shedding is None:
            standin.answers["brokers/configuration/runtime"] = (500, "{}")
        with serving(moving_settings(tmp_path / "one", standin, freeze_shedding=freeze), standin) as server:
            awaited(lambda: [line for line in server.said if sentence in line])
            (_, about) = server.ask("GET", "/balance")

        assert sentence in about["shedding"]
        assert standin.configuration.get(KEY) is None
