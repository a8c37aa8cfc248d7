"""Reads the log: rows of Parquet as dictionaries, lookups that ask for a broker in total order, the rest counted."""

from __future__ import annotations

import json
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

from lookup.errors import InvalidNameError
from lookup.model.batch import ClientClass
from lookup.model.broker import Location
from lookup.model.names import TopicName, cluster_problem, is_internal_topic, looks_like_pattern
from lookup.settings.evaluation import EvaluationFile
from lookup.settings.resolve import client_rules, label_client

__all__ = ["MICRO", "Demand", "Log", "Row", "read_log", "read_table"]

MICRO = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Written out once more: names of the replay's own are none of the oracle's.
_RESULTS = ("connect", "redirect", "failed", "unknown")
Row = dict[str, Any]


@dataclass(frozen=True)
class Demand:
    """One lookup that asks for a broker."""

    ts: int
    topic: str
    namespace: str
    hashed: int
    client: str | None
    properties: Mapping[str, str]
    logged: str | None
    read_only: bool
    listener: str | None
    #: micro-units of weight
    micro: int

    @property
    def client_class(self) -> ClientClass:
        """Return what metrics know of the client."""
        return ClientClass(self.properties, Location(*(self.properties.get(key) for key in ("region", "zone", "rack"))))


@dataclass
class Log:
    """The demand of one cluster in total order, and what was left out of it."""

    demand: list[Demand] = field(default_factory=list)
    redirects: int = 0
    internal: int = 0


def read_table(path: str) -> Iterator[Row]:
    """Yield the rows of every Parquet file below a path, with `_place` = (path, row) and the cluster the path names."""
    root = Path(path)
    files = [root] if root.is_file() else [file for file in root.rglob("*.parquet") if file.is_file()]
    for file in sorted(files, key=str):
        named = [unquote(part[8:]) for part in file.relative_to(root).parts if part.startswith("cluster=")]
        with pq.ParquetFile(file) as parquet:
            rows = parquet.read().to_pylist()
        for number, row in enumerate(rows, start=1):
            row["ts"] = _micros(row["ts"])
            yield {**row, **({"cluster": named[0]} if named else {}), "_place": (str(file), number)}


def read_log(settings: EvaluationFile, quarantined: dict[str, int]) -> dict[str, Log]:
    """Read LOOKUPS, cluster by cluster; what cannot be used is counted by reason."""
    logs: dict[str, Log] = defaultdict(Log)
    rules = client_rules(settings)
    ordered: dict[str, list[tuple[Any, Demand]]] = defaultdict(list)
    for row in read_table(str(settings.inputs.lookups)):
        reason = _refused(row)
        if reason is not None:
            quarantined[reason] += 1
        elif (row.get("result") or "unknown") == "redirect":
            logs[row["cluster"]].redirects += 1
        elif is_internal_topic(row["topic"]):
            logs[row["cluster"]].internal += 1
        else:
            seq = row.get("seq")
            place = (row["ts"], seq is not None, seq or 0, row["_place"])
            properties = label_client(rules, row.get("client"), json.loads(row.get("properties") or "{}"))
            ordered[row["cluster"]].append((place, _demand(row, properties)))
    for cluster, found in ordered.items():
        logs[cluster].demand = [demand for _, demand in sorted(found, key=lambda entry: entry[0])]
    return logs


def _refused(row: Row) -> str | None:
    topic = row.get("topic")
    if row.get("cluster") is None:
        return "the cluster is missing"
    if (problem := cluster_problem(row["cluster"])) is not None:
        return problem
    if row["ts"] is None:
        return "the timestamp is missing"
    if topic is None:
        return "the topic is missing"
    if looks_like_pattern(topic):
        return "the topic is a regular expression, which topic list watchers look up"
    try:
        TopicName.parse(topic)
    except InvalidNameError as error:
        return str(error)
    if not _are_properties(row.get("properties")):
        return "properties is not a JSON object of texts"
    if row.get("result") is not None and row["result"] not in _RESULTS:
        return f"result {row['result']!r} is none of {', '.join(_RESULTS)}"
    weight = row.get("weight")
    if weight is not None and not 0.0 <= weight < float("inf"):
        return f"weight {weight} is not a finite number of at least 0"
    return None


def _are_properties(text: str | None) -> bool:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return False
    return isinstance(found, dict) and all(isinstance(value, str) for value in found.values())


def _demand(row: Row, properties: Mapping[str, str]) -> Demand:
    weight = row.get("weight")
    return Demand(
        ts=row["ts"],
        topic=row["topic"],
        namespace=str(TopicName.parse(row["topic"]).namespace),
        hashed=zlib.crc32(row["topic"].encode()),
        client=row.get("client"),
        properties=dict(sorted(properties.items())),
        logged=row.get("broker"),
        read_only=bool(row.get("read_only")),
        listener=row.get("listener"),
        micro=round((1.0 if weight is None else weight) * MICRO),
    )


def _micros(ts: Any) -> int | None:
    if ts is None or isinstance(ts, int):
        return ts
    aware = ts if ts.tzinfo is not None else ts.replace(tzinfo=UTC)
    return int((aware - _EPOCH) // timedelta(microseconds=1))
