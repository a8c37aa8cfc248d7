"""Code the rows of a log. Each task reads its share and writes the columns of a replay as small integers.

Strings are coded once per dictionary, not once per row. Rows that cannot be used go to quarantine here. `logs.rows`
and, for topics, `TopicCodes` give the reasons. Codes are the task's own, and `days.py` maps them to the cluster's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lookup.errors import InvalidNameError
from lookup.logs.columns import LOOKUP_DEFAULTS, RESULTS
from lookup.logs.rows import Checks, LogBatch, Quarantined, flags, sequence, text_column, texts_of
from lookup.model.bundles import NamespacePolicies, topic_hash
from lookup.model.names import NamespaceName, TopicName, is_internal_topic, looks_like_pattern
from lookup.model.time import QUARTER_US
from lookup.replay.atoms import AtomRule
from lookup.replay.days import Codes, PartWriter, WrittenPart, narrow
from lookup.replay.grouping import column_keys
from lookup.replay.work import WorkDir
from lookup.settings.resolve import ClientRule

__all__ = [
    "EXTRA_FIELDS", "Coder", "CodingPlan", "Repeats", "Share", "TopicCodes", "keys_of", "properties_text",
    "used_columns",
]  # fmt: skip

#: Fields of a request that are coded only if a policy reads them, in addition to atom and properties.
EXTRA_FIELDS = ("domain", "topic", "client", "listener")
_DOMAINS = ("persistent://", "non-persistent://")
#: Topics a process remembers from one task to the next, some 60 MB at most.
_MOST_TOPICS = 1 << 17

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class CodingPlan:
    """Everything a task needs to know to code its share."""

    #: which of EXTRA_FIELDS the policies read
    extras: frozenset[str]
    client_rules: tuple[ClientRule, ...]
    policies: NamespacePolicies
    #: hashes at which bundles are split, by cluster, then namespace
    cuts: Mapping[str, Mapping[str, tuple[int, ...]]]
    tick_us: int
    #: first instant that is read, and the first that is no longer read, µs since the epoch, None if all are read
    window: tuple[int, int] | None = None
    #: numbers of bundles that policies begin with in place of the default
    bundle_counts: tuple[int, ...] = ()

    def rule(self, cluster: str) -> AtomRule:
        """Build the atoms' rule of one cluster."""
        return AtomRule(self.policies, self.cuts.get(cluster, {}), self.bundle_counts)


#: Number of pairs of time and topic that are kept, with the least hashes, so every count keeps the same pairs.
_MOST = 1000
#: Fewer pairs are too few to judge a log.
_TELLING = 20

#: Odd numbers without pattern, as in SplitMix64.
_SPREAD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
Keys = NDArray[np.uint64]


def keys_of(ts: NDArray[np.int64], topics: NDArray[Any]) -> Keys:
    """Hash each lookup's time and topic, shape (n_lookups,).

    Args:
        ts: µs since the Unix epoch.
        topics: a hash of each topic.
    """
    # Multiplicative hashing (Knuth) spreads both over all keys. The multiplications wrap around.
    return (ts.astype(np.uint64) * _SPREAD[0]) ^ (topics.astype(np.uint64) * _SPREAD[1])


class Repeats:
    """How often each sampled pair of time and topic occurs. The division of the rows makes no difference."""

    def __init__(self) -> None:
        self._keys: Keys = np.empty(0, np.uint64)
        self._counts: NDArray[np.int64] = np.empty(0, np.int64)

    def add(self, keys: Keys) -> None:
        """Count some lookups by their keys."""
        if len(self._keys) == _MOST:
            keys = keys[keys <= self._keys[-1]]
        if len(keys):
            self._count(keys, np.ones(len(keys), np.int64))

    def merge(self, other: Repeats) -> None:
        """Add the counts of another object."""
        self._count(other._keys, other._counts)

    def _count(self, keys: Keys, counts: NDArray[np.int64]) -> None:
        unique, places = np.unique(np.concatenate([self._keys, keys]), return_inverse=True)
        sums = np.bincount(places, weights=np.concatenate([self._counts, counts])).astype(np.int64)
        self._keys, self._counts = unique[:_MOST], sums[:_MOST]

    @property
    def even_ratio(self) -> float:
        """The share of pairs that occur evenly often, 1.0 if every row occurs twice, 0.0 with too few pairs."""
        return float(np.mean(self._counts % 2 == 0)) if len(self._counts) >= _TELLING else 0.0


@dataclass
class Share:
    """One task's part of one cluster, with its vocabularies, its counts and the parts it wrote."""

    cluster: str
    namespaces: list[str] = field(default_factory=list)
    #: None if no demand has them, since a dictionary also holds texts of rows that are left out
    properties: list[str | None] = field(default_factory=list)
    #: lookups that carry each of the properties
    by_properties: list[int] = field(default_factory=list)
    #: lookups to which each rule for clients applies
    by_rule: list[int] = field(default_factory=list)
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
    #: how often the same time and topic occur among the demand
    repeats: Repeats = field(default_factory=Repeats)
    first_us: int = np.iinfo(np.int64).max
    last_us: int = np.iinfo(np.int64).min


#: Texts and their codes, in order of their first occurrence.
_Words = dict[Any, int]


def _code_text(words: _Words, text: str | None) -> int:
    """Look up a text's code. A new text gets the next code."""
    return words.setdefault(text, len(words))


class TopicCodes:
    """Atom codes of topics, which the task numbers itself, by namespace in order of first occurrence."""

    #: codes of an invalid topic, and of the load manager's own topics
    BAD = -1
    INTERNAL = -2

    def __init__(self, rule: AtomRule) -> None:
        #: first code of each namespace
        self.bases: dict[str, int] = {}
        #: reasons why texts are not valid topics
        self.reasons: dict[str | None, str] = {None: "the topic is missing"}
        self._rule = rule
        self._boundaries: dict[str, tuple[int, ...]] = {}
        self._codes: dict[str | None, int] = {None: self.BAD}
        self._next = 0
        #: topics of demand, and, for each entry of the dictionary of the last rows, whether it is one
        self._demanded: set[str] = set()
        self._last: tuple[pa.Array, NDArray[np.bool_]] = pa.array([], pa.string()), np.zeros(1, dtype=bool)

    def code(self, topic: str | None) -> int:
        """Look up the code of a topic's atom, BAD or INTERNAL if it does not have an atom."""
        number = self._codes.get(topic)
        if number is not None:
            return number
        text = str(topic)
        try:
            parsed = _parse_topic(text)
        except InvalidNameError as error:
            self.reasons[text] = str(error)
            code = self.BAD
        else:
            code = self.INTERNAL
            if parsed is not None:
                namespace = parsed.namespace
                if namespace not in self.bases:
                    self._boundaries[namespace] = self._rule.boundaries(namespace)
                    self.bases[namespace] = self._next
                    self._next += len(self._boundaries[namespace]) - 1
                code = self.bases[namespace] + self._rule.place(parsed.hashed, self._boundaries[namespace])
        self._codes[topic] = code
        return code

    def note(self, topics: pa.DictionaryArray | None, usable: NDArray[np.bool_]) -> None:
        """Record the topics of rows that are demand, since a dictionary also holds topics of other rows."""
        if topics is None:
            return
        if not self._last[0].equals(topics.dictionary):
            self._add_last_topics()
            # The additional entry is for rows without a topic.
            self._last = topics.dictionary, np.zeros(len(topics.dictionary) + 1, dtype=bool)
        entries = pc.fill_null(topics.indices, len(topics.dictionary)).to_numpy(zero_copy_only=False)
        self._last[1][entries if usable.all() else entries[usable]] = True

    def digests(self) -> Ints:
        """Compute (digest, code) of every topic of demand, shape (n_topics, 2)."""
        self._add_last_topics()
        digests = {topic: parsed.digest for topic in self._demanded if (parsed := _parse_topic(topic)) is not None}
        codes = map(self._codes.__getitem__, digests)
        return np.column_stack([np.fromiter(values, dtype=np.int64) for values in (digests.values(), codes)])

    def _add_last_topics(self) -> None:
        dictionary, noted = self._last
        self._demanded.update(filter(None, texts_of(dictionary.filter(pa.array(noted[:-1])))))


class _Topic(NamedTuple):
    namespace: str
    hashed: int
    #: 64-bit hash that identifies the topic
    digest: int


@lru_cache(maxsize=_MOST_TOPICS)
def _parse_topic(topic: str) -> _Topic | None:
    """Parse a topic's name, once per process. The result is None for the load manager's own topics."""
    if looks_like_pattern(topic):
        raise InvalidNameError("the topic is a regular expression, which topic list watchers look up")
    parts = topic.partition("://")[2].split("/", 2)
    # The parts show that most names are well-formed. The full parser only builds the error message for the others.
    if not topic.startswith(_DOMAINS) or len(parts) != 3 or not parts[2]:
        TopicName.parse(topic)
    namespace = _check_namespace(f"{parts[0]}/{parts[1]}")
    if is_internal_topic(topic):
        return None
    digest = hashlib.blake2b(topic.encode(), digest_size=8).digest()
    return _Topic(namespace, topic_hash(topic), int.from_bytes(digest, "big", signed=True))


@lru_cache(maxsize=1 << 14)
def _check_namespace(text: str) -> str:
    """Check a namespace's name. The cache is small, since there are far fewer namespaces than topics."""
    return str(NamespaceName.parse(text))


class Coder:
    """A coder of the rows of one cluster that one task reads. Its number is part of the names of its files."""

    def __init__(self, plan: CodingPlan, cluster: str, work: WorkDir, task: int) -> None:
        self.share = Share(
            cluster, counts=dict.fromkeys(("rows", "redirects", "internal", "demand", "micro", "quarters"), 0)
        )
        self.quarantined: list[Quarantined] = []
        self._plan = plan
        self._writer = PartWriter(work, "lookups", cluster, task, tick_us=plan.tick_us)
        self._atoms = TopicCodes(plan.rule(cluster))
        self._properties: _Words = {}
        self._brokers: _Words = {}
        self._extras: dict[str, _Words] = {name: {} for name in EXTRA_FIELDS if name in plan.extras}
        self._by_broker = self._by_properties = np.empty(0, dtype=np.int64)
        self._by_rule = np.zeros(len(plan.client_rules), dtype=np.int64)
        self._maps: dict[str, tuple[pa.Array, Codes]] = {}

    def add(self, batch: LogBatch) -> None:
        """Code some rows."""
        columns, usable = self._columns(batch)
        self._atoms.note(text_column(batch.rows, "topic"), usable)
        counts = self.share.counts
        counts["rows"] += batch.rows.num_rows
        if not usable.all():
            rows = np.flatnonzero(usable)
            columns = {name: values.take(rows) for name, values in columns.items()}
        ts = columns["ts"]
        if not len(ts):
            return
        counts["demand"] += len(ts)
        # -1 is no broker.
        self._by_broker = _add_counts(self._by_broker, np.bincount(columns["broker"].astype(np.int64) + 1)[1:])
        self._by_properties = _add_counts(self._by_properties, np.bincount(columns["properties"]))
        counts["micro"] += int(columns["weight"].sum())
        # In a log with dates only, all times are midnights of some time zone.
        counts["quarters"] += int(np.count_nonzero(ts % QUARTER_US == 0))
        self.share.repeats.add(keys_of(ts, self._code_column(batch, "topic", _hash_topic, memo="hash")[usable]))
        self.share.first_us = min(int(ts.min()), self.share.first_us)
        self.share.last_us = max(int(ts.max()), self.share.last_us)
        self._writer.add(columns)

    def finish(self) -> Share:
        """Write the remaining rows and complete the share."""
        self._writer.flush()
        share = self.share
        share.parts = self._writer.parts
        share.namespaces = list(self._atoms.bases)
        lookups = _add_counts(self._by_properties, np.zeros(len(self._properties), np.int64)).tolist()
        share.properties = [text if count else None for text, count in zip(self._properties, lookups, strict=True)]
        share.by_properties, share.by_rule = lookups, self._by_rule.tolist()
        share.brokers = list(self._brokers)
        share.by_broker = _add_counts(self._by_broker, np.zeros(len(share.brokers), np.int64)).tolist()
        share.extras = {name: list(words) for name, words in self._extras.items()}
        share.topics = self._atoms.digests()
        return share

    def _columns(self, batch: LogBatch) -> tuple[dict[str, NDArray[Any]], NDArray[np.bool_]]:
        checks = Checks(batch)
        # Only a row's first problem is reported, so the order of the checks is that of the reasons in quarantine.
        ts = checks.timestamps()
        atoms = self._code_column(batch, "topic", self._atoms.code)
        checks.refuse(
            atoms == TopicCodes.BAD, lambda text: self._atoms.reasons.get(text, "the topic is missing"), "topic"
        )
        properties, by_rule = self._code_properties(batch)
        checks.refuse(properties < 0, lambda _: "properties is not a JSON object of texts", "properties")
        results = self._code_column(batch, "result", lambda text: RESULTS.index(text) if text in RESULTS else -1)
        checks.refuse(results < 0, lambda text: f"result {text!r} is not one of {', '.join(RESULTS)}", "result")
        weights = checks.weights()
        self.quarantined.extend(checks.quarantined)
        usable, is_redirect = checks.usable, results == RESULTS.index("redirect")
        self.share.counts["redirects"] += int(np.sum(usable & is_redirect))
        self.share.counts["internal"] += int(np.sum(usable & (atoms == TopicCodes.INTERNAL)))
        columns: dict[str, NDArray[Any]] = {
            "ts": ts,
            "seq": sequence(batch),
            "atom": atoms,
            "properties": properties,
            "weight": weights,
            "broker": self._code_column(
                batch, "broker", lambda text: -1 if text is None else _code_text(self._brokers, text)
            ),
            "read_only": flags(batch.rows, "read_only"),
        }
        for name, words in self._extras.items():
            if name == "domain":
                # The domain begins the topic and is not a column, so it is parsed once per topic of a dictionary too.
                columns[name] = self._code_column(batch, "topic", partial(_code_domain, words), memo="domain")
            else:
                columns[name] = self._code_column(batch, name, partial(_code_text, words), memo=f"extra {name}")
        is_demand = usable & (atoms >= 0) & ~is_redirect
        # Of demand only, since shares without any are dropped. One count more, of rows without a rule, is left out.
        if by_rule is not None:
            self._by_rule += np.bincount(by_rule[is_demand], minlength=len(self._by_rule) + 1)[:-1]
        return columns, is_demand

    def _code_properties(self, batch: LogBatch) -> tuple[Codes, Codes | None]:
        """Code each row's properties, completed by the rules for clients, and find each row's rule.

        Unusable properties are -1. Rows without a rule have the number of rules. Rules are None if none can apply.
        """
        words, rules = self._properties, self._plan.client_rules
        logged = self._code_column(batch, "properties", lambda text: _code_canonical(text, words))
        if not rules or "client" not in batch.rows.schema.names:
            return logged, None

        def first_rule(client: str | None) -> int:
            """Find the index of the first rule that matches a client, or the number of rules if no rule matches."""
            matching = (index for index, rule in enumerate(rules) if client is not None and rule.matches(client))
            return next(matching, len(rules))

        by_rule = self._code_column(batch, "client", first_rule, memo="rules")
        # Merged once per pair of properties and rule, of which there are few.
        pairs = column_keys(logged, size=len(words) + 1, low=-1).by(by_rule, size=len(rules) + 1)
        (codes, matched), of_row = pairs.number_keys()
        texts, labelled = list(words), []
        for code, rule in zip(codes.tolist(), matched.tolist(), strict=True):
            if code < 0 or rule == len(rules):
                labelled.append(code)
            else:
                # Properties that a client sent have precedence over the properties of a rule.
                merged = {**rules[rule].properties, **json.loads(texts[code])}
                labelled.append(_code_text(words, properties_text(merged)))
        return np.array(labelled, dtype=np.int32)[of_row], by_rule

    def _code_column(
        self, batch: LogBatch, name: str, code: Callable[[str | None], int], *, memo: str | None = None
    ) -> Codes:
        """Code each row of a text column. `code` is called once per distinct text of a dictionary."""
        column = text_column(batch.rows, name)
        absent: Any = LOOKUP_DEFAULTS.get(name)
        if column is None:
            return np.full(batch.rows.num_rows, code(absent), dtype=np.int32)
        mapping = self._maps.get(memo or name)
        if mapping is None or not mapping[0].equals(column.dictionary):
            texts = texts_of(column.dictionary)
            mapping = column.dictionary, narrow(np.fromiter(map(code, texts), np.int32, len(texts)))
            self._maps[memo or name] = mapping
        table, indices = mapping[1], column.indices
        if indices.null_count:
            table = narrow(np.append(table.astype(np.int32), np.int32(code(absent))))
            indices = pc.fill_null(indices, len(mapping[1]))
        codes: Codes = table.take(indices.to_numpy(zero_copy_only=False))
        return codes


def used_columns(present: Sequence[str], plan: CodingPlan) -> list[str]:
    """List the columns of a log that a task reads."""
    names = {"ts", "seq", "cluster", "topic", "properties", "broker", "result", "read_only", "weight"}
    names |= {name for name in plan.extras if name != "domain"} | ({"client"} if plan.client_rules else set())
    return [name for name in present if name in names]


def _add_counts(a: Ints, b: Ints) -> Ints:
    """Add two counts of which one may be longer."""
    total = np.zeros(max(len(a), len(b)), dtype=np.int64)
    total[: len(a)] += a
    total[: len(b)] += b
    return total


def _hash_topic(topic: str | None) -> int:
    """Hash a text independently of any codes, so that the hash is the same in all tasks."""
    return crc32((topic or "").encode(errors="surrogatepass")) >> 1


def _code_domain(words: _Words, topic: str | None) -> int:
    return _code_text(words, (topic or "").partition("://")[0])


def _code_canonical(text: str | None, words: _Words) -> int:
    """Look up the code of logged properties, -1 if they are not a JSON object of texts."""
    try:
        properties = json.loads(text or "{}")
        canonical = properties_text(properties)
        canonical.encode()
    except (ValueError, RecursionError):
        # The text is not JSON, or it is nested without end, or it has half of a surrogate pair.
        return -1
    if not isinstance(properties, dict) or not all(isinstance(value, str) for value in properties.values()):
        return -1
    return _code_text(words, canonical)


def properties_text(properties: Mapping[str, str]) -> str:
    """Write lookup properties as the one text by which codes of equal properties are equal."""
    return json.dumps(properties, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
