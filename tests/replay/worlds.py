"""Small worlds for replays, drawn by Hypothesis: logs, registries, owners, loads, settings, and how files are laid out.

Times come from few instants, so that events meet lookups at their own microsecond; names from few names, so that bundles
are lost, split and asked for again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from lookup.replay.schema import CANONICAL
from lookup.settings.evaluation import EvaluationFile

MICRO = 1_000_000
#: 2026-01-01T23:56:00Z: days change soon after.
START_US = 1_767_311_760 * MICRO
CLUSTERS = ("east", "west")
BROKERS = tuple(f"broker-{letter}:8080" for letter in "abcd")
NAMESPACES = ("public/default", "t1/a", "t2/b", "pulsar/system")
TOPICS = (
    *(f"persistent://{name}/topic-{number}" for name in NAMESPACES for number in range(3)),
    "non-persistent://t1/a/topic-0-partition-7",
    "persistent://pulsar/broker-a:8080/healthcheck",
    "non-persistent://sla-monitor/broker-b:8080/sla",
    "persistent://pulsar/stranger:8080/heartbeat",
)
NOT_DEMAND = (
    "persistent://pulsar/system/loadbalancer-service-unit-state",
    "non-persistent://pulsar/system/loadbalancer-broker-load-data",
    "persistent://t1/only-here/.*",
    "no-topic",
    None,
)
CLIENTS = (None, "10.1.0.9:5000", "10.2.0.1", "web.example.com")
PROPERTIES = (
    None,
    "{}",
    '{"rack":"a"}',
    '{"rack":"b"}',
    '{"rack": "c", "zone": "z1"}',
    '{"zone":"z2","region":"eu","rack":"a"}',
)
_RULES = [
    {"match": {"cidr": "10.1.0.0/16"}, "properties": {"rack": "a", "zone": "z1"}},
    {"match": {"client": "*.example.com"}, "properties": {"rack": "b"}},
]
_HALF, _QUARTER = "0x80000000", "0x40000000"


def _matching(**parameters: Any) -> dict[str, Any]:
    return {"use": "property-match", "key": "rack", **parameters}


_STATELESS: tuple[dict[str, Any], ...] = (
    {"scorers": [_matching()], "selector": {"use": "best", "min_score": 1.0}},
    {"filters": ["load-manager-class", "version", "isolation"], "selector": "random"},
    {"filters": ["max-topics"], "selector": {"use": "least-resource-usage", "difference": 0.01}},
    {"filters": [{"use": "max-topics", "max_topics": 1}], "selector": "random"},
    {"scorers": [_matching(weight=0.7), {"use": "headroom", "weight": 0.3}], "selector": "best"},
    {"scorers": ["headroom"], "selector": {"use": "softmax", "temperature": 0.5}},
    {"selector": {"use": "power-of-two", "by": "usage", "choices": 2}},
    {"scorers": ["topology-distance"], "selector": {"use": "weighted-random", "power": 2.0}},
    {"selector": {"use": "rendezvous", "key": "topic"}},
    {"selector": {"use": "rendezvous", "key": "client"}},
    {"scorers": [_matching()], "selector": {"use": "explore", "epsilon": 0.3, "child": "best"}},
    {
        "scorers": [_matching()],
        "selector": {"use": "fallback", "children": [{"use": "best", "min_score": 1.0}, "least-resource-usage"]},
    },
    {"selector": {"use": "zone-spill", "key": "rack", "min_cluster_size": 1, "child": "random"}},
)
_OWNING: tuple[dict[str, Any], ...] = (
    {"scorers": ["fewest-bundles"], "selector": "best"},
    {"filters": ["anti-affinity"], "selector": "random"},
    {"filters": [{"use": "anti-affinity", "failure_domains_enabled": True}], "selector": "best"},
    {"selector": {"use": "bounded-consistent-hash", "points": 5}},
    {"selector": {"use": "power-of-two", "by": "bundles"}},
    {"selector": "round-robin"},
    {"scorers": [_matching()], "selector": "best", "shedder": {"use": "threshold", "threshold": 0.01, "history": 0.0}},
    {
        "selector": "least-resource-usage",
        "shedder": {"use": "threshold", "threshold": 0.05, "lower_boundary": True, "history": 0.5},
    },
)


@dataclass(frozen=True)
class Layout:
    """How rows lie in files."""

    with_seq: bool = False
    #: whether folders name the cluster, else a column does
    is_hive: bool = True
    #: rows of a file, rows of a row group
    file_rows: int = 7
    group_rows: int = 3
    #: whether topics are written with one dictionary for the whole file
    is_encoded: bool = False


@dataclass(frozen=True)
class World:
    """Tables and settings of one evaluation."""

    #: rows of LOOKUPS in order of their files
    lookups: Sequence[dict[str, Any]]
    settings: dict[str, Any]
    layout: Layout = Layout()
    #: rows of the other tables by name; a table that is absent is not given
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def written(self, folder: Path) -> EvaluationFile:
        """Write all tables and return the settings that name them."""
        write_lookups(self.lookups, folder / "lookups", self.layout)
        inputs = {"lookups": str(folder / "lookups")}
        for name, rows in self.tables.items():
            write_rows(rows, name, folder / f"{name}.parquet")
            inputs[name] = str(folder / f"{name}.parquet")
        return EvaluationFile.model_validate({**self.settings, "inputs": inputs})


def write_rows(rows: Sequence[dict[str, Any]], table: str, path: Path, *, group_rows: int = 100) -> None:
    """Write rows of a canonical table; absent values are null."""
    schema = CANONICAL[table]
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = [pa.array([row.get(name) for row in rows], schema.field(name).type) for name in schema.names]
    pq.write_table(pa.table(columns, schema=schema), path, row_group_size=group_rows)


def write_lookups(rows: Sequence[dict[str, Any]], folder: Path, layout: Layout) -> None:
    """Write LOOKUPS as a layout says; columns that hold nothing are left out now and then."""
    for number, first in enumerate(range(0, len(rows), layout.file_rows)):
        part = rows[first : first + layout.file_rows]
        if layout.is_hive:
            for cluster in sorted({row["cluster"] for row in part}):
                file = folder / f"cluster={cluster}" / f"date={number}" / "part.parquet"
                _write_part([row for row in part if row["cluster"] == cluster], file, layout, leave={"cluster"})
        else:
            _write_part(part, folder / f"part-{number:03d}.parquet", layout, leave=set())


def _write_part(rows: Sequence[dict[str, Any]], file: Path, layout: Layout, leave: set[str]) -> None:
    schema = CANONICAL["lookups"]
    leave = leave | (set() if layout.with_seq else {"seq"})
    names = [name for name in schema.names if name not in leave and name in rows[0]]
    table = pa.table({name: pa.array([row[name] for row in rows], schema.field(name).type) for name in names})
    if layout.is_encoded:
        place = names.index("topic")
        table = table.set_column(place, "topic", table.column("topic").combine_chunks().dictionary_encode())
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, file, row_group_size=layout.group_rows)


@st.composite
def worlds(draw: st.DrawFn, *, ownership: str | None = None) -> World:
    """Draw a world with up to forty lookups and three policies."""
    mode = ownership or draw(st.sampled_from(["exclusive", "exclusive", "shared"]))
    tick_s = draw(st.sampled_from([7, 60, 60, 90]))
    moments = _moments(draw, tick_s)
    tables = _tables(draw, moments)
    section = draw(_sections(mode, tick_s, "loads" in tables))
    if section["load"] == "simulated":
        tables.pop("loads", None)
    return World(draw(_logs(moments)), _settings(draw, section, "brokers" in tables), draw(_layouts()), tables)


def _moments(draw: st.DrawFn, tick_s: int) -> st.SearchStrategy[int]:
    tick = tick_s * MICRO
    start = START_US // tick * tick
    cells = st.integers(0, draw(st.sampled_from([2, 6])))
    offsets = st.sampled_from([0, 0, 1, tick // 2, tick // 2, tick - 1])
    near = st.builds(lambda cell, offset: start + cell * tick + offset, cells, offsets)
    # A quiet day lies between, now and then.
    far = near.map(lambda ts: ts + 26 * 3600 * MICRO)
    return near | far if tick_s >= 60 and draw(st.integers(0, 7)) == 0 else near


@st.composite
def _logs(draw: st.DrawFn, moments: st.SearchStrategy[int]) -> list[dict[str, Any]]:
    clusters = st.sampled_from(CLUSTERS[: draw(st.integers(1, 2))])
    rows = draw(st.lists(_rows(moments, clusters), min_size=1, max_size=40))
    # At least one lookup asks for a broker.
    rows.append({**draw(_rows(moments, clusters)), "topic": TOPICS[0], "result": "connect", "properties": "{}"})
    numbers = draw(st.permutations(range(len(rows))))
    has_gaps = draw(st.booleans())
    return [
        {**row, "seq": None if has_gaps and number % 3 == 0 else number}
        for row, number in zip(rows, numbers, strict=True)
    ]


def _rows(moments: st.SearchStrategy[int], clusters: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "ts": moments,
            "cluster": clusters,
            "topic": st.sampled_from(TOPICS * 4 + NOT_DEMAND),
            "client": st.sampled_from(CLIENTS),
            "properties": st.sampled_from(PROPERTIES * 3 + ("[1]", "{", '{"rack":1}')),
            "broker": st.sampled_from([None, *BROKERS, *BROKERS, "pulsar://broker-a:6650", "gone:8080"]),
            "result": st.sampled_from(["connect"] * 6 + ["failed", "redirect", "unknown", None]),
            "read_only": st.sampled_from([False, False, False, True, None]),
            "listener": st.sampled_from([None, "inside"]),
            "weight": st.sampled_from([1.0, 1.0, None, 0.1, 1e-6, 3.7, 0.0]),
        }
    )


@st.composite
def _layouts(draw: st.DrawFn) -> Layout:
    return Layout(
        with_seq=draw(st.booleans()),
        is_hive=draw(st.booleans()),
        file_rows=draw(st.sampled_from([3, 10, 100])),
        group_rows=draw(st.sampled_from([1, 2, 100])),
        is_encoded=draw(st.booleans()),
    )


def _tables(draw: st.DrawFn, moments: st.SearchStrategy[int]) -> dict[str, list[dict[str, Any]]]:
    before = st.just(START_US - 3600 * MICRO)
    tables = {}
    if draw(st.booleans()):
        tables["brokers"] = _registry(draw, before, moments)
    if draw(st.booleans()):
        tables["ownership"] = draw(st.lists(_ownership(before | moments), max_size=12))
    if draw(st.integers(0, 2)) == 0:
        tables["loads"] = draw(st.lists(_loads(before | moments), max_size=8))
    if draw(st.integers(0, 4)) == 0:
        tables["bundles"] = draw(st.lists(_bundles(before | moments), max_size=8))
    return {name: rows for name, rows in tables.items() if rows}


def _registry(
    draw: st.DrawFn, before: st.SearchStrategy[int], moments: st.SearchStrategy[int]
) -> list[dict[str, Any]]:
    first = [
        {"ts": draw(before), "cluster": cluster, "broker": BROKERS[0], "event": "registered", "lookup_data": _data("a")}
        for cluster in CLUSTERS
    ]
    return first + draw(st.lists(_registrations(before | moments), max_size=14))


def _registrations(moments: st.SearchStrategy[int]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "ts": moments,
            "cluster": st.sampled_from(CLUSTERS),
            "broker": st.sampled_from(BROKERS),
            "event": st.sampled_from(["registered", "registered", "registered", "updated", "unregistered"]),
            "lookup_data": st.sampled_from([None, _data("a"), _data("b"), _data(None)]),
        }
    )


def _data(rack: str | None) -> str:
    labels = {} if rack is None else {"lookup.rack": rack, "lookup.zone": f"z{ord(rack) - 96}"}
    return json.dumps({"properties": labels, "brokerVersion": "4.0.0", "pulsarServiceUrl": f"pulsar://broker-{rack}:6650"})


def _ownership(moments: st.SearchStrategy[int]) -> st.SearchStrategy[dict[str, Any]]:
    halves = ["0x00000000_0x80000000", "0x80000000_0xffffffff"]
    quarters = ["0x00000000_0x40000000", "0x40000000_0x80000000", "0x80000000_0xc0000000", "0xc0000000_0xffffffff"]
    bundles = [f"{name}/{ends}" for name in NAMESPACES[:2] for ends in (*halves, *quarters)]
    strangers = ["pulsar/broker-a:8080/0x00000000_0xffffffff", "t9/none/0x00000000_0xffffffff"]
    return st.fixed_dictionaries(
        {
            "ts": moments,
            "cluster": st.sampled_from(CLUSTERS),
            "bundle": st.sampled_from(bundles + strangers),
            "event": st.sampled_from(["owned", "owned", "unloaded", "split"]),
            "broker": st.sampled_from(BROKERS),
            "by": st.sampled_from(["admin", "admin", "policy", None]),
            "boundaries": st.sampled_from([[_HALF], [_QUARTER, "0xc0000000"], ["0x20000000", _QUARTER, "0xa0000000"]]),
        }
    )


def _loads(moments: st.SearchStrategy[int]) -> st.SearchStrategy[dict[str, Any]]:
    report = st.fixed_dictionaries(
        {
            "weightedMaxEMA": st.sampled_from([0.1, 0.5, 0.9, 1.3]),
            "msgThroughputIn": st.sampled_from([0.0, 10.5]),
            "topics": st.integers(0, 3),
        }
    )
    return st.fixed_dictionaries(
        {
            "ts": moments,
            "cluster": st.sampled_from(CLUSTERS),
            "broker": st.sampled_from([*BROKERS, "gone:8080"]),
            "load": report.map(json.dumps),
        }
    )


def _bundles(moments: st.SearchStrategy[int]) -> st.SearchStrategy[dict[str, Any]]:
    ends = ["0x00000000_0x80000000", "0x80000000_0xffffffff", "0x00000000_0x40000000", "0x10000000_0x30000000"]
    stats = st.fixed_dictionaries({"msgThroughputIn": st.sampled_from([0.0, 0.3, 7.7]), "msgThroughputOut": st.just(0.1)})
    return st.fixed_dictionaries(
        {
            "ts": moments,
            "cluster": st.sampled_from(CLUSTERS),
            "bundle": st.sampled_from([f"{name}/{bounds}" for name in NAMESPACES[:3] for bounds in ends]),
            "stats": stats.map(json.dumps),
        }
    )


@st.composite
def _sections(draw: st.DrawFn, mode: str, tick_s: int, has_loads: bool) -> dict[str, Any]:
    return {
        "incumbent": "p0",
        "ownership": mode,
        "owner_loss": draw(st.sampled_from(["next-lookup", "leader"])),
        "load": draw(st.sampled_from(["simulated", "reported"])) if has_loads else "simulated",
        "tick_s": tick_s,
        "session_s": tick_s * draw(st.sampled_from([1, 3])),
        "balance_s": tick_s * draw(st.sampled_from([1, 2, 40])),
        "warmup_s": draw(st.sampled_from([0, 0, 0, 60, tick_s * 3])),
        "seeds": draw(st.sampled_from([[1], [1], [7, 3]])),
        "default_bundles": 2,
        "overload_threshold": draw(st.sampled_from([0.85, 0.01])),
        "bytes_per_weight": draw(st.sampled_from([None, 1e6])),
        "window_s": 120,
        "max_quarantine_ratio": 1.0,
    }


def _settings(draw: st.DrawFn, section: dict[str, Any], has_registry: bool) -> dict[str, Any]:
    pool = _STATELESS if section["ownership"] == "shared" else _STATELESS + _OWNING
    chosen = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=3))
    return {
        "evaluation": section,
        "policies": [{"name": f"p{number}", **policy} for number, policy in enumerate(chosen)],
        "brokers": [] if has_registry and draw(st.booleans()) else _brokers(draw, has_registry=has_registry),
        "clients": draw(st.sampled_from([[], _RULES])),
        "namespaces": [
            {"name": "t1/a", "bundles": draw(st.sampled_from([1, 2, 4])), "anti_affinity_group": "g"},
            {"name": "t2/b", "anti_affinity_group": "G", "isolation": [{"primary": ["broker-[ab]"], "min_limit": 1}]},
        ],
        "failure_domains": {"d1": list(BROKERS[:2])},
    }


def _brokers(draw: st.DrawFn, *, has_registry: bool) -> list[dict[str, Any]]:
    capacities = draw(st.sampled_from([(None,), (0.05,), (0.05, 0.2)]))
    entries = [
        {"id": broker, "properties": {"lookup.rack": rack}, "capacity": capacities[place % len(capacities)]}
        for place, (broker, rack) in enumerate(zip(BROKERS, "abca", strict=True))
    ]
    kept = entries[: draw(st.integers(1, 4))]
    kept[0]["location"] = {"region": "eu", "zone": "z1", "rack": "a"}
    if not has_registry and len(kept) > 1:
        # One broker leaves and comes back with another label and capacity.
        leaves, returns = "2026-01-01T23:58:00Z", draw(st.sampled_from(["2026-01-01T23:58:00Z", "2026-01-01T23:59:30Z"]))
        again = {**kept[1], "from": returns, "properties": {"lookup.rack": "c"}}
        again["capacity"] = None if kept[1]["capacity"] is None else 0.1
        kept[1]["until"] = leaves
        kept.append(again)
    return kept
