"""Small worlds for replays, drawn by Hypothesis: logs, registries, owners, loads, settings, and how files are laid out.

Times come from few instants, so that events meet lookups at their own microsecond; names from few names, so that
bundles are lost, split and asked for again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from lookup.replay.schema import CANONICAL
from lookup.settings.evaluation import EvaluationFile

MICRO = 1_000_000
_PLUGIN = Path(__file__).parent.parent / "assets" / "restless.py"
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
#: What the log calls the brokers that were answered: ids, an address, nobody, one the registry never had.
_LOGGED = (*BROKERS, "pulsar://broker-a:6650", None, "gone:8080")
_RULES = [
    {"match": {"cidr": "10.1.0.0/16"}, "properties": {"rack": "a", "zone": "z1"}},
    {"match": {"client": "*.example.com"}, "properties": {"rack": "b"}},
]


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
    {
        "filters": ["isolation", {"use": "max-topics", "max_topics": 1}],
        "selector": "random",
        "second_choice": {"filters": 1, "overloaded": 0.3},
    },
)
_OWNING: tuple[dict[str, Any], ...] = (
    {"scorers": ["fewest-bundles"], "selector": "best"},
    {"filters": ["anti-affinity"], "selector": "random"},
    {"filters": [{"use": "anti-affinity", "failure_domains_enabled": True}], "selector": "best"},
    {"selector": {"use": "bounded-consistent-hash", "points": 5}},
    {"selector": {"use": "power-of-two", "by": "bundles"}},
    {"selector": "round-robin"},
    {
        "filters": ["isolation", "anti-affinity", "even-distribution"],
        "selector": "least-long-term-message-rate",
        "second_choice": {"filters": 1, "overloaded": 0.3},
        "shedder": {"use": "threshold", "threshold": 0.01, "history": 0.0},
    },
    {"selector": {"use": "least-resource-usage-with-weight", "history": 0.5}},
    {"selector": {"use": "least-resource-usage-with-weight", "rule": "average"}},
    {
        "selector": "avg-placement",
        "shedder": {"use": "avg", "low_threshold": 0.1, "low_hits": 1, "min_rate": 0.1, "min_throughput": 0.001},
    },
    {
        "selector": "random",
        "shedder": {"use": "uniform", "min_rate": 0.1, "min_throughput": 0.001, "quirks": "intended"},
    },
    {"scorers": [_matching()], "selector": "best", "shedder": {"use": "threshold", "threshold": 0.01, "history": 0.0}},
    {
        "selector": "least-resource-usage",
        "shedder": {"use": "threshold", "threshold": 0.05, "lower_boundary": True, "history": 0.5},
    },
    {
        "selector": "random",
        "shedder": {
            "use": "transfer",
            "target_std": 0.001,
            "hit_count": 0,
            "cool_down_s": 0,
            "shed_with_policies": True,
        },
    },
    {"filters": ["max-topics"], "selector": "round-robin", "shedder": {"use": "restless", "every": 3}},
    {"scorers": ["fewest-bundles"], "selector": "best", "shedder": {"use": "restless", "every": 1000}},
    {"selector": "random", "shedder": {"use": "overload", "threshold": 0.01}},
)


#: Pulsar's, and some that meet the instants of the grid, or miss them, often or seldom.
_CADENCES: tuple[dict[str, Any], ...] = (
    {},
    {"min_interval_ms": 60_000, "history": 0.0},
    {"min_interval_ms": 7_000, "max_interval_ms": 0, "change_percent": 0.0},
    {"min_interval_ms": 90_000, "max_interval_ms": 120_000, "change_percent": 60.0, "history": 0.5},
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


@dataclass(frozen=True)
class _Times:
    """The instants at which things happen: few, so that they meet."""

    tick_us: int
    cells: int
    has_quiet_day: bool

    def one(self, dice: Random) -> int:
        """Return an instant of the log."""
        offset = dice.choice([0, 0, 1, self.tick_us // 2, self.tick_us // 2, self.tick_us - 1, 3 * MICRO])
        quiet = 26 * 3600 * MICRO if self.has_quiet_day and dice.random() < 0.2 else 0
        return START_US // self.tick_us * self.tick_us + dice.randrange(self.cells) * self.tick_us + offset + quiet

    def any(self, dice: Random) -> int:
        """Return an instant of the log, or one before it."""
        return START_US - 3600 * MICRO if dice.random() < 0.25 else self.one(dice)


def worlds(*, ownership: str | None = None) -> st.SearchStrategy[World]:
    """Draw worlds with up to a hundred lookups and three policies.

    Hypothesis draws seeds: what it would draw piece by piece are too many alike and too few with anything happening.
    """
    return st.builds(world_of, st.integers(0, 1 << 32), st.sampled_from([3, 20, 100, 100]), st.just(ownership))


def world_of(seed: int, most: int, ownership: str | None = None) -> World:
    """Make a world of a seed, with at most so many lookups."""
    dice = Random(seed)
    mode = ownership or dice.choice(["exclusive", "exclusive", "shared"])
    tick_s = dice.choice([7, 60, 60, 90])
    times = _Times(tick_s * MICRO, dice.choice([3, 8]), tick_s >= 60 and dice.random() < 0.1)
    tables = _tables(dice, times)
    section = _section(dice, mode, tick_s, has_loads="loads" in tables)
    if section["load"] == "simulated":
        tables.pop("loads", None)
    settings = _settings(dice, section, has_registry="brokers" in tables)
    return World(_logs(dice, times, most), settings, _layout(dice), tables)


def moving_world(seed: int, owner_loss: str) -> World:
    """Make a world in which bundles are moved, split and orphaned while they are being handed over."""
    dice, world = Random(seed), world_of(seed, 100, "exclusive")
    tick_s = world.settings["evaluation"]["tick_s"]
    times = _Times(tick_s * MICRO, 8, has_quiet_day=False)
    registered = [{**_FIRST, "cluster": cluster, "broker": broker} for cluster in CLUSTERS for broker in BROKERS]
    tables = {
        "brokers": registered + [_registration(dice, times) for _ in range(40)],
        "ownership": [_ownership(dice, times) for _ in range(100)],
    }
    policies = [
        {"name": f"p{number}", "selector": selector, "shedder": {"use": "restless", "every": number + 2}}
        for number, selector in enumerate(("random", "least-resource-usage"))
    ]
    section = {
        **world.settings["evaluation"],
        "owner_loss": owner_loss,
        "load": "simulated",
        "handover_s": dice.choice([tick_s / 2, 1.5 * tick_s]),
    }
    return replace(world, tables=tables, settings={**world.settings, "evaluation": section, "policies": policies})


def _logs(dice: Random, times: _Times, most: int) -> list[dict[str, Any]]:
    clusters, logged = CLUSTERS[: dice.choice([1, 2])], _LOGGED[: dice.randint(4, len(_LOGGED))]
    odd = dice.choice([0.0, 0.1])
    rows = [_row(dice, times, (clusters, logged), odd=odd) for _ in range(dice.randrange(most))]
    # At least one lookup asks for a broker.
    last = _row(dice, times, (clusters, logged), odd=0.0)
    rows.append({**last, "topic": TOPICS[0], "result": "connect", "properties": "{}"})
    numbers, has_gaps = dice.sample(range(len(rows)), len(rows)), dice.random() < 0.5
    return [
        {**row, "seq": None if has_gaps and number % 3 == 0 else number}
        for row, number in zip(rows, numbers, strict=True)
    ]


def _row(
    dice: Random, times: _Times, names: tuple[Sequence[str], Sequence[str | None]], *, odd: float
) -> dict[str, Any]:
    is_odd = dice.random() < odd
    return {
        "ts": times.one(dice),
        "cluster": dice.choice(names[0]),
        "topic": dice.choice(NOT_DEMAND if is_odd and dice.random() < 0.5 else TOPICS),
        "client": dice.choice(CLIENTS),
        "properties": dice.choice(("[1]", "{", '{"rack":1}') if is_odd and dice.random() < 0.3 else PROPERTIES),
        "broker": dice.choice(names[1]),
        "result": dice.choice(
            ["redirect", "redirect", "unknown"] if is_odd else ["connect", "connect", "failed", None]
        ),
        "read_only": dice.choice([False, False, False, True, None]),
        "listener": dice.choice([None, "inside"]),
        "weight": dice.choice([1.0, 1.0, None, 0.1, 1e-6, 3.7, 1.005, 0.0]),
    }


def _layout(dice: Random) -> Layout:
    return Layout(
        with_seq=dice.random() < 0.5,
        is_hive=dice.random() < 0.5,
        file_rows=dice.choice([5, 20, 200]),
        group_rows=dice.choice([1, 4, 200]),
        is_encoded=dice.random() < 0.5,
    )


def _tables(dice: Random, times: _Times) -> dict[str, list[dict[str, Any]]]:
    tables = {
        name: [make(dice, times) for _ in range(dice.randint(1, most))]
        for name, (make, most) in _KINDS.items()
        if dice.random() < 0.5
    }
    if "brokers" in tables:
        tables["brokers"][:0] = [{**_FIRST, "cluster": cluster} for cluster in CLUSTERS]
    return tables


def _registration(dice: Random, times: _Times) -> dict[str, Any]:
    return {
        "ts": times.any(dice),
        "cluster": dice.choice(CLUSTERS),
        "broker": dice.choice(BROKERS),
        "event": dice.choice(["registered", "registered", "registered", "updated", "unregistered"]),
        "lookup_data": dice.choice([None, _data("a"), _data("b"), _data(None)]),
    }


def _data(rack: str | None) -> str:
    labels = {} if rack is None else {"lookup.rack": rack, "lookup.zone": f"z{ord(rack) - 96}"}
    address = f"pulsar://broker-{rack}:6650"
    return json.dumps({"properties": labels, "brokerVersion": "4.0.0", "pulsarServiceUrl": address})


_FIRST = {
    "ts": START_US - 3600 * MICRO,
    "broker": BROKERS[0],
    "event": "registered",
    "lookup_data": _data("a"),
}


def _ownership(dice: Random, times: _Times) -> dict[str, Any]:
    halves = ["0x00000000_0x80000000", "0x80000000_0xffffffff"]
    quarters = ["0x00000000_0x40000000", "0x40000000_0x80000000", "0x80000000_0xc0000000", "0xc0000000_0xffffffff"]
    strangers = ["pulsar/broker-a:8080/0x00000000_0xffffffff", "t9/none/0x00000000_0xffffffff"]
    name = dice.choice([f"{name}/{dice.choice(halves + halves + quarters)}" for name in NAMESPACES] * 3 + strangers)
    return {
        "ts": times.any(dice),
        "cluster": dice.choice(CLUSTERS),
        "bundle": name,
        "event": dice.choice(["owned", "unloaded", "unloaded", "split", "split"]),
        "broker": dice.choice(BROKERS),
        "by": dice.choice(["admin", "admin", "policy", None]),
        "boundaries": dice.choice(
            [["0x80000000"], ["0x40000000", "0xc0000000"], ["0x20000000", "0x40000000", "0xa0000000"]]
        ),
    }


def _load(dice: Random, times: _Times) -> dict[str, Any]:
    report = {
        "weightedMaxEMA": dice.choice([0.1, 0.5, 0.9, 1.3]),
        "msgThroughputIn": dice.choice([0.0, 10.5]),
        "topics": dice.randrange(4),
        "maxResourceUsage": dice.choice([0.2, 1.1]),
        "msgThroughputEMA": dice.choice([0.0, 4.2]),
        "msgRateIn": dice.choice([0.0, 70.0]),
        "msgRateOut": 3.3,
        "cpu": {"usage": dice.choice([10.0, 95.0]), "limit": 100.0},
        "bandwidthIn": {"usage": 30.0, "limit": dice.choice([20.0, 300.0])},
    }
    report = _thinned(dice, report, times.cells)
    broker = dice.choice([*BROKERS, "gone:8080"])
    return {"ts": times.any(dice), "cluster": dice.choice(CLUSTERS), "broker": broker, "load": json.dumps(report)}


def _thinned(dice: Random, report: dict[str, Any], cells: int) -> dict[str, Any]:
    """Leave keys out: in some worlds all but Pulsar's averages, in the others those of some rows."""
    if cells <= 3:
        return {key: report[key] for key in ("weightedMaxEMA", "msgThroughputIn")}
    return {key: value for key, value in report.items() if dice.random() < 0.8}


def _bundle(dice: Random, times: _Times) -> dict[str, Any]:
    ends = ["0x00000000_0x80000000", "0x80000000_0xffffffff", "0x00000000_0x40000000", "0x10000000_0x30000000"]
    stats = {"msgThroughputIn": dice.choice([0.0, 0.3, 7.7]), "msgThroughputOut": 0.1}
    if times.cells > 3:
        stats |= {"msgRateIn": dice.choice([0.0, 40.0]), "msgRateOut": dice.choice([0.1, 2.5])}
    return {
        "ts": times.any(dice),
        "cluster": dice.choice(CLUSTERS),
        "bundle": f"{dice.choice(NAMESPACES[:3])}/{dice.choice(ends)}",
        "stats": json.dumps(stats),
    }


_KINDS: Mapping[str, tuple[Callable[[Random, _Times], dict[str, Any]], int]] = {
    "brokers": (_registration, 40),
    "ownership": (_ownership, 60),
    "loads": (_load, 12),
    "bundles": (_bundle, 8),
}


def _section(dice: Random, mode: str, tick_s: int, *, has_loads: bool) -> dict[str, Any]:
    # Instants are half a tick, 3 s or a microsecond apart: hand-overs end at them, between them, and after the log.
    durations = [0.0, 0.0, 1e-6, 3.0, tick_s / 2, tick_s, 1.5 * tick_s, 4000.0]
    return {
        "handover_s": 0.0 if mode == "shared" else dice.choice(durations),
        "incumbent": "p0",
        "ownership": mode,
        "owner_loss": dice.choice(["next-lookup", "leader"]),
        "load": (load := dice.choice(["simulated", "reported"]) if has_loads else "simulated"),
        "load_reports": dice.choice(["instant", "published"]) if load == "simulated" else "instant",
        "tick_s": tick_s,
        "session_s": tick_s * dice.choice([1, 3]),
        "balance_s": tick_s * dice.choice([1, 2, 40]),
        "warmup_s": dice.choice([0, 0, 0, 60, tick_s * 2]),
        "seeds": dice.choice([[1], [1], [7, 3]]),
        "default_bundles": 2,
        "overload_threshold": dice.choice([0.85, 0.01]),
        "bytes_per_weight": dice.choice([None, 1e6]),
        "window_s": dice.choice([120, 3600]),
        "max_quarantine_ratio": 1.0,
    }


def _settings(dice: Random, section: dict[str, Any], *, has_registry: bool) -> dict[str, Any]:
    pool = _STATELESS if section["ownership"] == "shared" else _STATELESS + _OWNING
    chosen = dice.sample(pool, dice.randint(1, 3))
    return {
        "evaluation": section,
        "policies": [
            {"name": f"p{number}", **policy, "cadence": dice.choice(_CADENCES)} for number, policy in enumerate(chosen)
        ],
        "brokers": [] if has_registry and dice.random() < 0.5 else _brokers(dice, has_registry=has_registry),
        "clients": dice.choice([[], _RULES]),
        "namespaces": [
            {"name": "t1/a", "bundles": dice.choice([1, 2, 4]), "anti_affinity_group": "g"},
            {"name": "t2/b", "anti_affinity_group": "G", "isolation": [{"primary": ["broker-[ab]"], "min_limit": 1}]},
        ],
        "failure_domains": {"d1": list(BROKERS[:2])},
        "plugin_files": [str(_PLUGIN)],
    }


def _brokers(dice: Random, *, has_registry: bool) -> list[dict[str, Any]]:
    capacities = dice.choice([(None,), (0.05,), (0.05, 0.2)])
    entries = [
        {"id": broker, "properties": {"lookup.rack": rack}, "capacity": capacities[place % len(capacities)]}
        for place, (broker, rack) in enumerate(zip(BROKERS, "abca", strict=True))
    ]
    kept = entries[: dice.randint(1, 4)]
    kept[0]["location"] = {"region": "eu", "zone": "z1", "rack": "a"}
    if not has_registry and len(kept) > 1:
        # One broker leaves and comes back with another label and capacity.
        leaves, returns = "2026-01-01T23:58:00Z", dice.choice(["2026-01-01T23:58:00Z", "2026-01-01T23:59:30Z"])
        again = {**kept[1], "from": returns, "properties": {"lookup.rack": "c"}}
        again["capacity"] = None if kept[1]["capacity"] is None else 0.1
        kept[1]["until"] = leaves
        kept.append(again)
    return kept
