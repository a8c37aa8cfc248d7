"""Recognise the kind of a log by its first lines, and write the mapping with which `ingest` reads it.

Every proposed mapping was tried. The reader has read the first lines with it before it is returned.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from lookup.engine.plugins import Registry
from lookup.errors import InputError, SettingsError
from lookup.logs.columns import check_row
from lookup.logs.ingest import MAX_QUARANTINE_RATIO, NO_HALF_DAYS, borrowed_clocks, reader_of
from lookup.logs.rows import texts_of
from lookup.logs.sources import LogFile, list_files, list_log, open_lines, open_parquet
from lookup.logs.tabular import Proposal, TextTable, canonical_mapping, column_mappings, missing_columns, tables_of
from lookup.logs.unwrapping import ANSWERS, REQUESTS, Events, where_text_is
from lookup.model.documents import Refuted, Row, Unreadable, toml_table
from lookup.model.quoting import quantity, toml_text
from lookup.model.time import HalfDayClock

__all__ = ["Recognised", "recognise"]

#: Lines that are read. Lookups may be rare among the lines of a broker's log.
_HEAD = 20_000
#: Number of files that are read. The first may be logs of another kind, and no single one may name every broker.
_FILES = 10
#: Number of files whose first lines must be of the same kind, and of lines of the files after the first ten.
_ALIKE, _FEW = 50, 500
#: Readers of Pulsar's own logs, and the names of these logs.
_PULSAR = {
    "jetty-access": "an access log of Pulsar's web server",
    "pulsar-broker": "a log of a Pulsar broker",
    "cpp-client": "a log of a C++, Python or Node client",
    "pulsar-system-topics": "messages of the load manager's system topics",
}
_OWNER = """
# A line does not say whose log it is. If files are named after brokers, like broker-3.log:
# broker_pattern = '''([^/]+?)(?:\\.log.*)?$'''
"""
_ACCESS = """\
use = "shipped:access-log"

# Keys of this file go over those of what ships, which `lookup config list` names. Your own networks:
# [properties]
# zone = { column = "host", rule = "cidr", networks = { "10.1.0.0/16" = "a" }, default = "outside" }
"""
#: Further logs by their shipped mapping. In some of them only a few lines are lookups.
_SHIPPED = {
    "haproxy": "a log of HAProxy in its form for HTTP",
    "envoy": "an access log of Envoy in its default form",
    "aws-load-balancer": "an access log of a load balancer of AWS",
    "go-client": "a log of a Go client",
}
#: A line of a broker's log in JSON: with every topic in its context it would pass for a table of lookups.
_BROKER_JSON = re.compile(r'"loggerName"\s*:\s*"(?:org\.apache\.pulsar|o\.a\.p)\.')
#: The logger in a line of a text log of Pulsar. With a topic in each line it would look like a table as well.
_PULSAR_TEXT = re.compile(r"\b(?:TRACE|DEBUG|INFO|WARN|ERROR)\W+(?:org\.apache\.pulsar|o\.a\.p)\.")
_BROKER_TEXT = re.compile(_PULSAR_TEXT.pattern + r"(?:broker|b)\.")
#: The two addresses of a broker in the answer that brokers up to 4.2 log, the clients' address and that with its id.
_ADDRESSES = re.compile(r"brokerUrl=(pulsar://[^,}\s]+), .*?httpUrl=https?://([^,}\s]+)")


@dataclass(frozen=True)
class Recognised:
    """The kind of a log, its mapping, and the content of its first lines."""

    #: in a few words, for people
    what: str
    #: text of the mapping, empty for a table that needs no ingest
    mapping: str
    #: values of the lookup properties by key, the commonest first
    labels: Mapping[str, Sequence[str]]
    #: ids of the brokers that answered or received lookups
    brokers: Sequence[str]
    #: whether it has owners of bundles
    has_ownership: bool = False
    #: a question that the first lines do not decide, and the decision of the mapping
    doubt: str = ""
    #: further notes
    notes: Sequence[str] = ()
    #: values of the first lookup by column, as it is read
    first: Mapping[str, Any] = field(default_factory=dict)


class _Head:
    """The first lines of a file, as they are, as programs wrote them, and as records of JSON."""

    def __init__(self, raw: Sequence[tuple[int, str]]) -> None:
        events = Events(iter(raw))
        self.raw, self.lines, self.borrowed = raw, list(events), events.borrowed
        self.objects = list(Events(iter(raw), keeps_objects=True))
        #: lines with a phrase that only lookups have
        self.with_lookups = [text for _, text in raw if REQUESTS.search(text) or ANSWERS.search(text)]


@dataclass
class _Trial:
    proposal: Proposal
    lookups: int = 0
    #: rows of other tables, by the table
    others: Counter[str] = field(default_factory=Counter)
    #: records that cannot be read, by the reason
    reasons: Counter[str] = field(default_factory=Counter)
    brokers: Counter[str] = field(default_factory=Counter)
    #: the first lookup, as it is read
    first: Mapping[str, Any] = field(default_factory=dict)
    clock: HalfDayClock = field(default_factory=HalfDayClock)
    #: lookups by value and key of a property
    labels: dict[str, Counter[str]] = field(default_factory=dict)

    def take(self, entry: Row | Unreadable | Refuted) -> None:
        if isinstance(entry, Refuted):
            return
        if isinstance(entry, Unreadable):
            self.reasons[entry.reason] += 1
            return
        row = check_row(entry.table, entry.values, cluster="any" if "cluster" not in entry.values else None)
        if isinstance(row, str):
            self.reasons[row] += 1
        elif entry.table != "lookups":
            self.others[entry.table] += 1
        else:
            self.lookups += 1
            self.clock.take(row["ts"])
            self.first = self.first or {**row, "cluster": entry.values.get("cluster")}
            self.count(row)

    def count(self, row: Mapping[str, Any]) -> None:
        self.brokers.update(row[name] for name in ("broker", "asked_broker") if row.get(name))
        # Of a table that no ingest has checked, a text may be anything.
        with suppress(ValueError, AttributeError):
            for key, label in json.loads(row["properties"] or "{}").items():
                self.labels.setdefault(key, Counter())[label] += 1

    def add(self, other: _Trial) -> None:
        self.lookups += other.lookups
        self.others += other.others
        self.reasons += other.reasons
        self.brokers += other.brokers
        for key, counts in other.labels.items():
            self.labels.setdefault(key, Counter()).update(counts)

    @property
    def records(self) -> int:
        return self.reasons.total() + self.lookups + self.others.total()

    @property
    def is_readable(self) -> bool:
        """Whether nearly all records can be read. There may be none."""
        return self.reasons.total() <= MAX_QUARANTINE_RATIO * self.records

    def describe(self, doubt: str, notes: Sequence[str] = ()) -> Recognised:
        """Describe the log. A doubt that the lines have decided is no longer a comment of the mapping."""
        notes = [*filter(None, [self.proposal.note]), *notes]
        labels = {key: [label for label, _ in counts.most_common()] for key, counts in self.labels.items()}
        mapping = self.proposal.mapping
        if not doubt:
            mapping = mapping.replace(f"# {self.proposal.doubt}\n", "")
        owned = bool(self.others["ownership"])
        brokers = sorted(self.brokers)
        return Recognised(self.proposal.what, mapping, labels, brokers, owned, doubt, notes, self.first)


def recognise(source: str, registry: Registry) -> Recognised:
    """Find the reader of a log, and its mapping, by the first lines of its first files.

    Args:
        source: a file, folder, glob or URI.
        registry: of all plug-ins, whose readers are tried last.

    Raises:
        InputError: a sentence on the first file, if none has a known form and lookups, or the first of another kind.
    """
    paths = list_files([source])
    if paths[0].endswith(".parquet"):
        return _describe_table(list_log(source)[0])
    passed_over: list[InputError] = []
    for path in paths[:_FILES]:
        try:
            trials = _find_best_trials(path, _read_head(path), registry)
        except InputError as error:
            passed_over.append(error)
            continue
        # Others may have the facts that one file lacks, such as the name of a broker.
        for place, other in enumerate(paths[:_ALIKE]):
            if other != path:
                trials = _read_with_trials(trials, path, other, _HEAD if place < _FILES else _FEW, registry)
        best = max(trials, key=lambda trial: trial.lookups)
        equals = [trial for trial in trials if trial.lookups == best.lookups]
        notes = list(borrowed_clocks(_read_head(path).borrowed)) if "pulsar" in best.proposal.mapping else []
        notes += [f"nothing is read of {mistake}" for mistake in passed_over[:1]]
        if passed_over[1:]:
            notes.append(f"nothing is read of {quantity(len(passed_over) - 1, 'further file')} either")
        return best.describe(best.proposal.doubt if len(equals) > 1 else "", notes)
    raise passed_over[0]


def _read_head(path: str, lines: int = _HEAD) -> _Head:
    try:
        return _Head(list(islice(open_lines(path), lines)))
    except (OSError, EOFError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None


def _find_best_trials(path: str, head: _Head, registry: Registry) -> list[_Trial]:
    """List the best trial of a file by lookups, among readers that suit a line, or two for an ambiguous date."""
    if not any(line.strip() for _, line in head.raw):
        raise InputError(f"{path}: has no line in it")
    tried = []
    for alternatives in _propose_mappings(path, head, registry):
        trials = [_Trial(proposal) for proposal in alternatives]
        tried += [trial for trial in trials if _run_trial(trial, head, path, registry)]
        good = [trial for trial in trials if trial.lookups > 0 and trial.is_readable]
        if good:
            best = max(good, key=lambda trial: trial.lookups)
            if best.clock.lacks_half_days and 'use = "delimited"' in best.proposal.mapping:
                raise InputError(f"{path}: {NO_HALF_DAYS}")
            return [best, *(trial for trial in good if trial is not best and trial.proposal.doubt)]
        # A log of Pulsar's without lookups may look like a table of something else.
        if any(trial.others for trial in trials):
            break
    raise InputError(f"{path}: {_explain_failure(tried, head)}")


def _read_with_trials(trials: list[_Trial], first: str, path: str, lines: int, registry: Registry) -> list[_Trial]:
    head = _read_head(path, lines)
    parts = [_Trial(trial.proposal) for trial in trials]
    for part in parts:
        _run_trial(part, head, path, registry)
    able = [(trial, part) for trial, part in zip(trials, parts, strict=True) if part.is_readable]
    kind = trials[0].proposal.what
    remedy = f"is of another kind than {first}, {kind}; name the files of one kind, and make a mapping for each kind"
    if not able:
        # The first reason is better than the most frequent, as below a header that lacks a column every line is wrong.
        reason, count = next(iter(parts[0].reasons)), parts[0].reasons.total()
        raise InputError(f"{path}: {remedy}; of its first {len(head.raw):,} lines {count:,} cannot be read: {reason}")
    if not any(part.records for part in parts):
        try:
            other = _find_best_trials(path, _Head(head.raw[:_FEW]), registry)[0].proposal.what
        except InputError:
            other = kind
        if other != kind:
            raise InputError(f"{path}: {remedy}; it is {other}")
    for trial, part in able:
        trial.add(part)
    return [trial for trial, _ in able]


def _describe_table(file: LogFile) -> Recognised:
    trial = _Trial(Proposal("a table LOOKUPS in Parquet", ""))
    columns = [name for name in ("properties", "broker", "asked_broker") if name in file.columns]
    with open_parquet(file.path) as parquet:
        for batch in islice(parquet.iter_batches(batch_size=_HEAD, columns=columns), 1):
            for row in zip(*map(texts_of, batch.columns), strict=True):
                trial.count({"properties": None, **dict(zip(columns, row, strict=True))})
    return trial.describe("")


def _propose_mappings(path: str, head: _Head, registry: Registry) -> Iterator[list[Proposal]]:
    tables, texts = _cut_tables(head), [line for _, line in head.lines if line.strip()]
    for table in tables:
        canonical = canonical_mapping(table)
        if canonical is not None:
            yield [canonical]
    # The day of a layout with a clock only, unless the file's name has one.
    day = "" if "://" in path else datetime.fromtimestamp(Path(path).stat().st_mtime, UTC).date()
    # One log has lines for several of them, since a broker writes its lookups between lines of its web server.
    pulsar = []
    for use, kind in _PULSAR.items():
        mapping = f'use = "{use}"\n{_OWNER if use in ("jetty-access", "pulsar-broker") else ""}'
        mapping += _broker_ids(texts) if use == "pulsar-broker" else ""
        pulsar.append(Proposal(kind, mapping))
        if day and use != "pulsar-system-topics":
            clock_only = f'\n# The lines have a clock only: the day of the first one.\ndate = "{day}"\n'
            note = (
                f"its lines have a clock and no day; the first one is taken for {day}, when the file was last written"
            )
            pulsar.append(Proposal(kind, mapping + clock_only, note=f"{note}: `date` in the mapping says it"))
    yield pulsar
    yield [Proposal("an access log in the common or combined form", _ACCESS)]
    yield [Proposal(kind, f'use = "shipped:{name}"\n') for name, kind in _SHIPPED.items()]
    if not any(_BROKER_JSON.search(text) or _PULSAR_TEXT.search(text) for _, text in head.raw):
        yield from (proposals for table in tables if (proposals := column_mappings(table)))
    # Those of tables were tried as such.
    for name in filter(lambda name: name not in ("csv", "jsonl"), registry.classes["log_readers"]):
        yield [Proposal(f"a log that the reader {name!r} reads", f'use = "{name}"\n')]


def _cut_tables(head: _Head) -> list[TextTable]:
    objects = list(tables_of([line for _, line in head.objects if line.strip()]))
    if objects and not objects[0].delimiter:
        return objects
    return list(tables_of([line for _, line in head.lines if line.strip()]))


def _broker_ids(texts: Sequence[str]) -> str:
    pairs = {match[1]: match[2] for text in texts if (match := _ADDRESSES.search(text))}
    ports = {identity.rpartition(":")[2] for identity in pairs.values()}
    if ports <= {"8080"}:
        return ""
    if len(ports) == 1 and all(map(str.isdecimal, ports)):
        return f"\n# Ids of brokers are HOST:PORT of their web servers.\nweb_port = {ports.pop()}\n"
    lines = [f"{toml_text(url)} = {toml_text(identity)}" for url, identity in sorted(pairs.items())]
    about = "# Addresses of brokers in the log, and their ids: HOST:PORT of their web servers."
    return "\n".join(["", about, "[broker_ids]", *lines, ""])


def _run_trial(trial: _Trial, head: _Head, path: str, registry: Registry) -> bool:
    try:
        reader = reader_of(registry, toml_table(trial.proposal.mapping), "mapping")
    except SettingsError:
        return False
    try:
        for entry in reader.parse(iter(head.objects if getattr(reader, "reads_objects", False) else head.lines), path):
            trial.take(entry)
    except Exception as error:  # noqa: BLE001  a plug-in's reader may raise anything
        trial.reasons[str(error)] += _HEAD
    return True


def _explain_failure(tried: Sequence[_Trial], head: _Head) -> str:
    texts = [line for _, line in head.raw if line.strip()]
    lines, with_lookups = len(texts), head.with_lookups
    # A change of owner counts as well if only the file's name can give its broker.
    owned = "an `owned` row names no broker"
    others = [trial for trial in tried if not trial.lookups and (trial.others or trial.reasons[owned])]
    other = next((trial.proposal.what for trial in others), None)
    if other is None and any(_BROKER_JSON.search(text) or _BROKER_TEXT.search(text) for text in texts):
        other = _PULSAR["pulsar-broker"]
    if with_lookups and not any(trial.lookups for trial in tried):
        reasons = sum((trial.reasons for trial in tried if "pulsar-broker" in trial.proposal.mapping), Counter())
        form = reasons.most_common(1)[0][0] if reasons else f"their form is not known: {where_text_is(with_lookups[0])}"
        return (
            f"has lookups of a broker in {quantity(len(with_lookups), 'line')}, but {form}; take the lines out of "
            "what is around them, or write a reader of your own, see docs/getting-lookups.md"
        )
    if other is not None:
        return (
            f"is {other}, but no lookup is in the first {quantity(lines, 'line')}; brokers log them at "
            "DEBUG only, see docs/getting-lookups.md; an ingest with the reader pulsar-broker has changes of owners"
        )
    nearest = max((trial for trial in tried if trial.lookups), key=lambda trial: trial.lookups, default=None)
    # Words have blanks between them, and are no table for that.
    tables = [table for table in _cut_tables(head) if table.delimiter != " " and table.header]
    table = max(tables, key=lambda table: len(table.columns), default=None)
    if nearest is None and table is not None:
        nearest = next((trial for trial in tried if trial.proposal.what == table.what and trial.reasons), None)
    if nearest is not None:
        reason, count = nearest.reasons.most_common(1)[0]
        kind = nearest.proposal.what
        return f"looks like {kind}, but {quantity(count, 'line')} of {lines:,} cannot be read: {reason}"
    if table is not None:
        return (
            f"looks like {table.what}, but {missing_columns(table)}; say in a mapping which column is what, see "
            "docs/getting-lookups.md"
        )
    return (
        "is in no form that is known: a log of Pulsar's brokers or clients, an access log, JSON Lines or CSV with the "
        "columns of LOOKUPS, any delimited file or JSON Lines with a column of times and one of topics or paths, or a "
        "table LOOKUPS in Parquet; other logs take a reader of your own, see docs/getting-lookups.md"
    )
