"""Folders of finished runs, with tables written down instead of replayed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lookup.engine.cycle_sums import CycleSums
from lookup.logs.schema import CELLS, DECISIONS, FLOWS, OWNERS
from lookup.replay.outcome import InputFacts
from lookup.report.figures import Results, summary, to_json
from lookup.report.markdown import markdown_report
from tests.report.results import scored
from tests.score.cases import SEEDS, copies, moves, plan, ratios, spread, sums

__all__ = ["CELL_US", "START_US", "broad", "edit", "write_run", "write_table"]

#: 2026-01-05T00:00:00Z, and an hour, which is the width of a balance cell by default.
START_US = 1_767_571_200_000_000
CELL_US = 3_600_000_000

_SCHEMAS: Mapping[str, pa.Schema] = {"cells": CELLS, "flows": FLOWS, "owners": OWNERS, "decisions": DECISIONS}


def write_run(folder: Path, result: Results, **manifest: Any) -> Path:
    """Write summary, manifest and Markdown of a scored replay, without tables."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "schema": 1,
        "command": ["lookup", "evaluate", "--output", str(folder)],
        "exit_code": result.exit_code,
        "versions": {"python": "3.11", "pulsar-lookup": "0.1.0"},
        "settings": {
            "evaluation": result.evaluation.model_dump(mode="json"),
            "verdict": result.rules.model_dump(mode="json"),
            "topology": {"distance_ms": {"same": 0.05, "rack": 0.3}, "price_per_gb": {"rack": 0.01}, "edges": []},
        },
        "seeds": list(result.seeds),
        "inputs": {"lookups": {"path": "logs/lookups", "files": 1, "bytes": 9, "rows": 7, "blake2b": "00ff"}},
        "plugins": [],
        **manifest,
    }
    (folder / "manifest.json").write_text(json.dumps(content), encoding="utf-8")
    (folder / "summary.json").write_text(to_json(summary(result)), encoding="utf-8")
    (folder / "report.md").write_text(markdown_report(result), encoding="utf-8")
    return folder


def edit(folder: Path, path: str, value: object) -> None:
    """Change one value of a file of a run, by its name and key path, `summary.verdicts.0.guard`."""
    name, *above, last = path.split(".")
    file = folder / f"{name}.json"
    content = table = json.loads(file.read_text(encoding="utf-8"))
    for step in above:
        table = table[int(step) if step.isdecimal() else step]
    table[last] = value
    file.write_text(json.dumps(content), encoding="utf-8")


def write_table(
    folder: Path,
    table: str,
    rows: Sequence[Mapping[str, Any]],
    *,
    cluster: str = "c",
    policy: str = "stock",
    seed: int = 1,
) -> None:
    """Write one file of a run's table; columns that rows lack are null."""
    (folder / table).mkdir(exist_ok=True)
    name = {"cluster": cluster, "policy": policy, "seed": seed}
    content = pa.Table.from_pylist([{**name, **row} for row in rows], schema=_SCHEMAS[table])
    pq.write_table(content, folder / table / f"{cluster}-{policy}-{seed}.parquet")


def broad(folder: Path, *, policies: int, clusters: int, hours: int, brokers: int = 12) -> Path:
    """Write a run of many policies over several clusters, with every table and racks, parts and verdicts."""
    names, places = [f"policy-{number:02}" for number in range(policies)], [f"cluster-{n}" for n in range(clusters)]
    write_run(folder, _result(names, places, hours))
    for cluster in places:
        ids = [f"{cluster}-broker-{number:02}:8080" for number in range(brokers)]
        for number, policy in enumerate(names):
            of = {"cluster": cluster, "policy": policy}
            cells = [
                {
                    "ts": START_US + hour * CELL_US,
                    "broker": broker,
                    "zone": "z1",
                    "rack": "abc"[place % 3],
                    "weight": float((place * 7 + hour * 3 + number) % 11),
                }
                for hour in range(hours)
                for place, broker in enumerate(ids)
                # The last broker comes late and leaves early.
                if place < brokers - 1 or hours // 4 < hour < hours - 4
            ]
            write_table(folder, "cells", cells, **of)
            write_table(folder, "flows", _flows(number), **of)
            owners = [
                {
                    "bundle": f"t/n/{bundle}",
                    "broker": ids[(bundle + hour) % brokers],
                    "from": START_US + hour * CELL_US,
                    "to": START_US + (hour + 24) * CELL_US,
                    "state": "Owned",
                    "ended_by": ("shed", "forced", "admin")[bundle % 3],
                }
                for bundle in range(16)
                for hour in range(0, hours, 24)
            ]
            write_table(folder, "owners", owners, **of)
            decisions = [{"ts": START_US, "bundle": "t/n/1", "rejected": {"version": 2, "isolated": number}}]
            write_table(folder, "decisions", decisions, **of)
    return folder


def _flows(number: int) -> list[dict[str, Any]]:
    return [
        {
            "client_zone": "z1",
            "client_rack": client,
            "answered": True,
            "broker_zone": "z1",
            "broker_rack": broker,
            "lookups": 100.0 * (1 + (client == broker) * number),
            "weight": 1.0,
        }
        for client in "abc"
        for broker in "abc"
    ]


def _result(policies: Sequence[str], clusters: Sequence[str], hours: int) -> Results:
    parts = []
    for number, policy in enumerate(policies):
        for cluster in clusters:
            of = {"cluster": cluster}
            parts += [ratios(policy, spread(0.9 + number / 1000, 0.01), **of)]
            parts += [ratios(policy, spread(0.3 + number / 50, 0.1), "match_ratio", key="rack", **of)]
            parts += [
                ratios(policy, spread(0.3 - number / 90, 0.1), "match_ratio", key="rack", by=(("rack", "a"),), **of)
            ]
            for metric in ("imbalance_max_mean", "imbalance_cv", "load_variation"):
                shares = [1.5 + 0.2 * ((hour + number) % 5) for hour in range(hours)]
                parts += [ratios(policy, shares, metric, start_us=START_US, **of)]
            parts += [moves(policy, [number + bundle % 3 for bundle in range(40)], **of)]
            parts += [moves(policy, [number] * 40, metric="assignments", **of)]
            parts += [sums(policy, [[3, 4]] * 40, "network_covered_ratio", **of)]
    how = plan(*policies, seeds=SEEDS, primary=("answered_ratio", "match_ratio:rack"))
    inputs = InputFacts(
        lookups=1000,
        first_us=START_US,
        last_us=START_US + hours * CELL_US,
        cycles={policies[0]: CycleSums("threshold", 7, Counter({"overloaded": 7}), accepted=3)},
    )
    return scored([copy for part in parts for copy in copies(part)], how, inputs=inputs)
