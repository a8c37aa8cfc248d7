"""From rows to codes: each task reads its share of the log and writes what a replay needs as small integers.

Strings are met once per dictionary, not once per row. What cannot be used goes to quarantine here; `rows.py` and, for
topics, `topics.py` say why it cannot. Codes are the task's own; `ordering.py` makes them the cluster's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lookup.logs.rows import Checks, LogBatch, Quarantined, flags, sequence, text_column, texts_of
from lookup.logs.schema import LOOKUP_DEFAULTS, RESULTS
from lookup.model.namespaces import NamespacePolicies
from lookup.replay.atoms import AtomRule
from lookup.replay.parts import PartWriter, WrittenPart, narrowed
from lookup.replay.topics import TopicCodes
from lookup.replay.work import WorkDir
from lookup.settings.resolve import ClientRule

__all__ = ["EXTRA_FIELDS", "Coder", "CodingPlan", "Share", "properties_text", "used_columns"]

#: Fields of a request that are coded only where a policy reads them, beside atom and properties.
EXTRA_FIELDS = ("domain", "topic", "client", "listener")

Ints = NDArray[np.int64]
#: Codes in the smallest integers that hold them.
Codes = NDArray[Any]


@dataclass(frozen=True)
class CodingPlan:
    """What every task needs to know."""

    #: which of EXTRA_FIELDS the policies read
    extras: frozenset[str]
    client_rules: tuple[ClientRule, ...]
    policies: NamespacePolicies
    #: hashes at which bundles are split, by cluster, then namespace
    cuts: Mapping[str, Mapping[str, tuple[int, ...]]]
    tick_us: int

    def rule(self, cluster: str) -> AtomRule:
        """Return the atoms' rule of one cluster."""
        return AtomRule(self.policies, self.cuts.get(cluster, {}))


@dataclass
class Share:
    """What one task found of one cluster: its vocabularies, its counts and the parts it wrote."""

    cluster: str
    namespaces: list[str] = field(default_factory=list)
    #: None where no demand has them: a dictionary also holds texts of rows that are left out
    properties: list[str | None] = field(default_factory=list)
    brokers: list[str] = field(default_factory=list)
    #: lookups that carry each of the brokers
    by_broker: list[int] = field(default_factory=list)
    #: strings of the coded extras, by field
    extras: dict[str, list[str | None]] = field(default_factory=dict)
    #: in order of the log's files
    parts: list[WrittenPart] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    #: distinct topics of the demand: 64-bit digest and the task's atom code, shape (n_topics, 2)
    topics: Ints = field(default_factory=lambda: np.empty((0, 2), np.int64))
    first_us: int = np.iinfo(np.int64).max
    last_us: int = np.iinfo(np.int64).min


class _Vocabulary:
    """Strings in order of their first occurrence."""

    def __init__(self) -> None:
        self.codes: dict[str | None, int] = {}

    def code(self, value: str | None) -> int:
        """Return a string's code, the next one where it is new."""
        known = self.codes.get(value)
        if known is None:
            known = self.codes[value] = len(self.codes)
        return known

    @property
    def values(self) -> list[Any]:
        """Return the strings, by code."""
        return list(self.codes)


class Coder:
    """Codes the rows of one cluster that one task reads.

    Args:
        task: number of the task, part of the names of its files.
    """

    def __init__(self, plan: CodingPlan, cluster: str, work: WorkDir, task: int) -> None:
        self.share = Share(cluster, counts={"rows": 0, "redirects": 0, "internal": 0, "demand": 0, "micro": 0})
        self.quarantined: list[Quarantined] = []
        self._plan = plan
        self._writer = PartWriter(work, cluster, task, tick_us=plan.tick_us)
        self._rule = plan.rule(cluster)
        self._atoms = TopicCodes(self._rule)
        self._properties, self._brokers, self._clients = _Vocabulary(), _Vocabulary(), _Vocabulary()
        self._extras = {name: _Vocabulary() for name in EXTRA_FIELDS if name in plan.extras}
        self._by_broker = self._by_properties = np.empty(0, dtype=np.int64)
        self._rules: dict[str | None, int] = {}
        self._maps: dict[str, tuple[pa.Array, Codes]] = {}

    def add(self, batch: LogBatch) -> None:
        """Code some rows."""
        rows = batch.rows
        columns, usable = self._columns(batch)
        self._atoms.note(text_column(rows, "topic"), usable)
        self.share.counts["rows"] += rows.num_rows
        if not usable.all():
            places = np.flatnonzero(usable)
            columns = {name: values.take(places) for name, values in columns.items()}
        self._keep(columns)

    def finish(self) -> Share:
        """Write what is held and return the share."""
        self._writer.flush()
        share = self.share
        share.parts = self._writer.parts
        share.namespaces = list(self._atoms.bases)
        asked = _added(self._by_properties, np.zeros(len(self._properties.codes), np.int64)).tolist()
        share.properties = [text if count else None for text, count in zip(self._properties.values, asked, strict=True)]
        share.brokers = self._brokers.values
        share.by_broker = _added(self._by_broker, np.zeros(len(share.brokers), np.int64)).tolist()
        share.extras = {name: words.values for name, words in self._extras.items()}
        share.topics = self._atoms.digests()
        return share

    def _columns(self, batch: LogBatch) -> tuple[dict[str, NDArray[Any]], NDArray[np.bool_]]:
        checks = Checks(batch)
        ts = checks.timestamps()
        atoms = self._coded(batch, "topic", self._atoms.code)
        checks.refuse(
            atoms == TopicCodes.BAD, lambda text: self._atoms.reasons.get(text, "the topic is missing"), "topic"
        )
        properties = self._property_codes(batch)
        checks.refuse(properties < 0, lambda _: "properties is not a JSON object of texts", "properties")
        results = self._coded(batch, "result", _result_code)
        checks.refuse(results < 0, lambda text: f"result {text!r} is none of {', '.join(RESULTS)}", "result")
        weights = checks.weights()
        self.quarantined.extend(checks.quarantined)
        usable = checks.usable
        self.share.counts["redirects"] += int(np.sum(usable & (results == RESULTS.index("redirect"))))
        self.share.counts["internal"] += int(np.sum(usable & (atoms == TopicCodes.INTERNAL)))
        usable = usable & (atoms >= 0) & (results != RESULTS.index("redirect"))
        columns: dict[str, NDArray[Any]] = {
            "ts": ts,
            "seq": sequence(batch.rows),
            "atom": atoms,
            "properties": properties,
            "weight": weights,
        }
        columns["broker"] = self._coded(batch, "broker", lambda text: -1 if text is None else self._brokers.code(text))
        columns["read_only"] = flags(batch.rows, "read_only")
        for name in self._extras:
            columns[name] = self._extra_codes(batch, name)
        return columns, usable

    def _extra_codes(self, batch: LogBatch, name: str) -> Codes:
        words = self._extras[name]
        if name == "domain":
            return self._coded(batch, "topic", lambda text: words.code((text or "").partition("://")[0]), memo="domain")
        return self._coded(batch, name, words.code, memo=f"extra {name}")

    def _property_codes(self, batch: LogBatch) -> Codes:
        words, width = self._properties, len(self._plan.client_rules) + 1
        logged = self._coded(batch, "properties", lambda text: _canonical(text, words))
        if width == 1 or "client" not in batch.rows.schema.names:
            return logged
        rules = self._coded(batch, "client", self._rule_code, memo="rules")
        found, places = np.unique(logged.astype(np.int64) * width + rules, return_inverse=True)
        texts = words.values
        labelled = [self._labelled(texts, *divmod(pair, width)) for pair in found.tolist()]
        return np.array(labelled, dtype=np.int32)[places]

    def _rule_code(self, client: str | None) -> int:
        rules = self._plan.client_rules
        matching = (place for place, rule in enumerate(rules) if client is not None and rule.matches(client))
        return next(matching, len(rules))

    def _labelled(self, texts: Sequence[str], code: int, rule: int) -> int:
        """Return the code of logged properties, given by their texts and code, after a rule added its own."""
        if code < 0 or rule == len(self._plan.client_rules):
            return code
        logged = texts[code]
        added = self._plan.client_rules[rule].properties
        return self._properties.code(properties_text({**added, **json.loads(logged)}))

    def _coded(
        self, batch: LogBatch, name: str, code: Callable[[str | None], int], *, memo: str | None = None
    ) -> Codes:
        """Return the code of each row of a text column; `code` is asked once per distinct text of a dictionary."""
        column = text_column(batch.rows, name)
        if column is None:
            return np.full(batch.rows.num_rows, code(LOOKUP_DEFAULTS.get(name)), dtype=np.int32)  # type: ignore[arg-type]  # texts
        known = self._maps.get(memo or name)
        if known is None or not known[0].equals(column.dictionary):
            texts = texts_of(column.dictionary)
            known = column.dictionary, narrowed(np.fromiter(map(code, texts), np.int32, len(texts)))
            self._maps[memo or name] = known
        if column.indices.null_count:
            absent = code(LOOKUP_DEFAULTS.get(name))  # type: ignore[arg-type]  # texts
            table = narrowed(np.append(known[1].astype(np.int32), np.int32(absent)))
            return _taken(table, pc.fill_null(column.indices, len(known[1])).to_numpy(zero_copy_only=False))
        return _taken(known[1], column.indices.to_numpy(zero_copy_only=False))

    def _keep(self, columns: dict[str, NDArray[Any]]) -> None:
        ts, counts = columns["ts"], self.share.counts
        if not len(ts):
            return
        counts["demand"] += len(ts)
        # -1 stands for no broker.
        self._by_broker = _added(self._by_broker, np.bincount(columns["broker"].astype(np.int64) + 1)[1:])
        self._by_properties = _added(self._by_properties, np.bincount(columns["properties"]))
        counts["micro"] += int(columns["weight"].sum())
        first, last = int(ts.min()), int(ts.max())
        self.share.first_us, self.share.last_us = min(first, self.share.first_us), max(last, self.share.last_us)
        self._writer.add(columns)


def used_columns(present: Sequence[str], plan: CodingPlan) -> list[str]:
    """Return which columns of a log a task reads."""
    wanted = {"ts", "seq", "cluster", "topic", "properties", "broker", "result", "read_only", "weight"}
    wanted |= {name for name in plan.extras if name != "domain"} | ({"client"} if plan.client_rules else set())
    return [name for name in present if name in wanted]


def _added(a: Ints, b: Ints) -> Ints:
    """Add two counts of which one may be longer."""
    total = np.zeros(max(len(a), len(b)), dtype=np.int64)
    total[: len(a)] += a
    total[: len(b)] += b
    return total


def _taken(table: Codes, places: NDArray[Any]) -> Codes:
    taken: Codes = table[places]
    return taken


def _result_code(text: str | None) -> int:
    return RESULTS.index(text) if text in RESULTS else -1


def _canonical(text: str | None, words: _Vocabulary) -> int:
    try:
        found = json.loads(text or "{}")
        canonical = properties_text(found)
        canonical.encode()
    except (ValueError, RecursionError):
        # No JSON, JSON that is nested without end, or half of a surrogate pair, which is no text.
        return -1
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        return -1
    return words.code(canonical)


def properties_text(properties: Mapping[str, str]) -> str:
    """Write lookup properties as the one text by which codes of equal properties are equal."""
    return json.dumps(properties, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
