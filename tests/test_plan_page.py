"""The page `docs/plan.md` shows lines of a plan: these are printed for the record that it was made of."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lookup
from lookup.cli import main
from tests.pages import block, page

_START = 1_795_694_400_000_000  # 26 November 2026, 12:00 UTC
_BROKERS = ("broker-0:8080", "broker-1:8080", "broker-2:8080")
_BUNDLES = [f"shop/orders/0x{number:x}0000000_0x{number + 1:x}0000000" for number in range(15)]


def _owner(number: int) -> str:
    return _BROKERS[0] if number < 11 else _BROKERS[1 + number % 2]


def _load(number: int, minute: int) -> float:
    return (1.0 + number % 4) * (1.0 + 0.1 * ((number * 7 + minute * 5) % 9 - 4) / 4) * 1e6


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """Return a record of ten minutes in which one of three brokers owns most bundles."""
    rows: dict[str, list[dict[str, object]]] = {"brokers": [], "ownership": [], "loads": [], "bundles": []}
    for broker in _BROKERS:
        data = {"webServiceUrl": f"http://{broker}", "startTimestamp": 1_795_600_000_000}
        rows["brokers"].append({"broker": broker, "event": "registered", "lookup_data": json.dumps(data)})
    for number, bundle in enumerate(_BUNDLES):
        rows["ownership"].append({"bundle": bundle, "event": "owned", "broker": _owner(number)})
    for minute in range(10):
        ts = _START + minute * 60_000_000
        for broker in _BROKERS:
            owned = [number for number in range(15) if _owner(number) == broker]
            report = {"msgThroughputIn": sum(_load(number, minute) for number in owned)}
            rows["loads"].append({"ts": ts, "broker": broker, "load": json.dumps(report)})
            for number in owned:
                stats = {"msgThroughputIn": _load(number, minute), "topics": 4, "producerCount": 3, "consumerCount": 5}
                rows["bundles"].append({"ts": ts, "bundle": _BUNDLES[number], "stats": json.dumps(stats)})
    for name, of_table in rows.items():
        (tmp_path / "record" / name).mkdir(parents=True)
        table = pa.Table.from_pylist([{"cluster": "east", "ts": _START, **row} for row in of_table])
        pq.write_table(table, tmp_path / "record" / name / "part-000001.parquet")
    (tmp_path / "record" / "namespaces.toml").write_text(
        '[[namespaces]]\nname = "shop/vault"\nisolation = [{ primary = ["broker-9"] }]\n', encoding="utf-8"
    )
    return tmp_path / "record"


def test_the_page_shows_what_is_printed(record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every line of the plan on the page is one of `lookup plan show`."""
    policy = {"name": "even", "selector": "best", "shedder": "rebalance"}
    lookup.plan(str(record), policy=policy, max_moves=4).write(str(tmp_path / "plan"))

    assert main(["plan", "show", str(tmp_path / "plan")]) == 0
    printed = set(capsys.readouterr().out.splitlines())
    assert set(block(page("docs/plan.md"), "## What you get").splitlines()) <= printed
