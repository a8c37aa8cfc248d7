"""Reading an evaluation: policies of a `broker.conf` are fitted to the brokers and to the replay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lookup.api.selection import select
from tests.replay.small import BROKER, write_table
from tests.replay.worlds import START_US


def _evaluation(folder: Path, conf: str, *versions: str, **given: Any) -> dict[str, Any]:
    (folder / "broker.conf").write_text(conf)
    row = {"ts": START_US, "cluster": "east", "event": "registered"}
    rows = [
        {**row, "broker": f"b{number}:8080", "lookup_data": json.dumps({"brokerVersion": version})}
        for number, version in enumerate(versions)
    ]
    if rows:
        write_table(folder, "brokers", *rows)
    return {
        "evaluation": {"incumbent": "today"},
        "inputs": {"lookups": str(folder / "lookups"), **({"brokers": str(folder / "brokers")} if rows else {})},
        "policies": [{"name": "today", "from_broker_conf": str(folder / "broker.conf")}],
        **given,
    }


@pytest.mark.parametrize(
    ("versions", "selector", "release"),
    [
        (("5.0.1", "5.0.0"), "avg-placement", "5.0"),
        (("4.0.8", "5.0.1"), "least-long-term-message-rate", "4.2"),
        ((), "least-long-term-message-rate", "4.2"),
    ],
)
def test_the_release_is_that_of_all_brokers(
    tmp_path: Path, versions: tuple[str, ...], selector: str, release: str
) -> None:
    """From the BROKERS table; it is said once which one counts."""
    said: list[str] = []
    chosen = select(_evaluation(tmp_path, "loadBalancerEnabled=true\n", *versions), {}, said.append)

    assert chosen.policies[0].selector.name == selector
    assert [sentence for sentence in said if f"Pulsar {release}, because" in sentence] == said


def test_a_profile_may_name_the_release(tmp_path: Path) -> None:
    """Its `broker_version`."""
    brokers = [{**BROKER, "profile": {"broker_version": "5.0.1"}}]

    evaluation = _evaluation(tmp_path, "loadBalancerEnabled=true\n", brokers=brokers)

    assert select(evaluation, {}).settings.policies[0].release == "5.0"


def test_namespaces_begin_with_the_bundles_of_the_file(tmp_path: Path) -> None:
    """Unless a BUNDLES table has the loads of the log's own bundles."""
    given = _evaluation(tmp_path, "defaultNumberOfNamespaceBundles=48")
    (tmp_path / "bundles").mkdir()
    reported = {**given, "inputs": {**given["inputs"], "bundles": str(tmp_path / "bundles")}}

    assert [select(each, {}).policies[0].bundles for each in (given, reported)] == [48, None]
