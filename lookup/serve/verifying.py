"""Verify a record by repeating decisions on its views, and comparing odds, draws and choice to the last digit.

Some files of DECISIONS are read at a time, with the views that they name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lookup.engine.ballots import Ballot, roll
from lookup.engine.owners import Owners
from lookup.engine.plugins import Registry, load_plugins
from lookup.engine.policy import Instant, Policy
from lookup.errors import InputError, PolicyError, SettingsError
from lookup.logs.schema import SERVED_DECISIONS
from lookup.logs.sources import list_files, locate, open_parquet
from lookup.model import LookupOptions
from lookup.model.documents import parsed_object, texts, whole_number
from lookup.model.request import request_of
from lookup.model.view import OwnershipView
from lookup.serve.deciding import reads_owners
from lookup.serve.policies import built_again, document_of, plugin_versions
from lookup.serve.views import Surroundings, View, digest_of, view_digest, view_of

__all__ = ["CAUSES", "Disagreement", "Verified", "verify"]

#: By broker id a pair of JSON texts, of `BrokerLookupData` and of `BrokerLoadData`.
ViewRecords = dict[str, tuple[str, str | None]]
#: Causes for which a decision cannot be repeated, in the order in which they are looked for.
CAUSES = ("view", "ownership", "load", "registry", "plug-in version", "settings", "policy")
#: Rows of DECISIONS that are held at a time.
_ROWS_AT_ONCE = 200_000
#: Disagreements that are kept with their names. All are counted.
_EXAMPLES = 20
_MOST_BALLOTS = 50_000


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A decision that was not the same when it was taken again."""

    decision: str
    policy: str
    #: one of `CAUSES`
    cause: str
    detail: str


@dataclass
class Verified:
    """The outcome of a verification."""

    decisions: int = 0
    agree: int = 0
    #: disagreements by cause
    causes: Counter[str] = field(default_factory=Counter)
    #: the first of them
    examples: list[Disagreement] = field(default_factory=list)

    @property
    def share(self) -> float:
        """The share of decisions that are the same, in [0, 1]."""
        return self.agree / self.decisions if self.decisions else 1.0

    def add(self, other: Verified) -> None:
        """Add the outcome of other files."""
        self.decisions += other.decisions
        self.agree += other.agree
        self.causes.update(other.causes)
        self.examples = (self.examples + other.examples)[:_EXAMPLES]


def verify(record: str, *, plugin_files: Sequence[str] = ()) -> Verified:
    """Verify the record of a decision server.

    Args:
        record: path or URI of its folder.
        plugin_files: Python files with parts of the policies.

    Raises:
        InputError: if the folder is not a record, or a file of it cannot be read.
        PluginError: if a plug-in cannot be loaded.
    """
    record = record.rstrip("/")
    registry = load_plugins(plugin_files)
    chunks: list[list[str]] = []
    room = 0
    try:
        files = list_files([f"{record}/decisions"])
    except InputError as error:
        raise InputError(f"{record} is not a record with decisions: {error}") from None
    for file in files:
        with open_parquet(file) as parquet:
            rows = parquet.metadata.num_rows
        if rows > room:
            chunks.append([])
            room = _ROWS_AT_ONCE
        chunks[-1].append(file)
        room -= rows
    total = Verified()
    for chunk in chunks:
        total.add(_verify_files(chunk, record, registry))
    return total


def _verify_files(files: Sequence[str], record: str, registry: Registry) -> Verified:
    rows: list[dict[str, Any]] = []
    for file in files:
        with open_parquet(file) as parquet:
            names = [name for name in SERVED_DECISIONS.names if name in parquet.schema_arrow.names or name != "owners"]
            absent = {*names} - {*parquet.schema_arrow.names}
            if absent:
                name = min(absent, key=names.index)
                raise InputError(f"{file} holds no decisions of `lookup serve`: it has no column {name!r}")
            schema = pa.schema([SERVED_DECISIONS.field(name) for name in names])
            read = parquet.read(names, use_threads=False).cast(schema)
        ts = names.index("ts")
        rows += read.set_column(ts, "ts", read.column("ts").cast("int64")).to_pylist()
    recorded = _read_views(record, {row["view"] for row in rows} - {None})
    # Records of servers without a collector may lack the column.
    references = {row["owners"] for row in rows if row.get("owners") is not None}
    owners = _RecordedOwners(record, references)
    # A series is applied from its beginning in the order of its states, each change once.
    rows.sort(key=lambda row: ("", 0) if row.get("owners") is None else _state_of(row["owners"])[:2])
    described: dict[str, _Described] = {}
    outcome = Verified()
    for row in rows:
        reference = row["settings"]
        if reference not in described:
            described[reference] = _Described(record, reference, registry)
        outcome.decisions += 1
        difference = described[reference].difference(row, recorded, owners)
        if difference is None:
            outcome.agree += 1
            continue
        cause, detail = difference
        outcome.causes[cause] += 1
        if len(outcome.examples) < _EXAMPLES:
            outcome.examples.append(Disagreement(row["decision"], row["policy"], cause, detail))
    return outcome


def _rows_of(record: str, table: str, columns: list[str], condition: pc.Expression) -> Iterator[dict[str, Any]]:
    try:
        files = list_files([f"{record}/{table}"])
    except InputError:
        return
    for file in files:
        system, inner = locate(file)
        try:
            read = pq.read_table(inner, filesystem=system, columns=columns, filters=condition, partitioning=None)
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{file}: cannot be read as {table}: {str(error).splitlines()[0]}") from None
        yield from read.to_pylist()


def _read_views(record: str, references: set[str]) -> Mapping[str, ViewRecords]:
    views: dict[str, ViewRecords] = {}
    condition = pc.field("view").isin(pa.array(sorted(references), pa.string()))
    # Without any, every decision disagrees by its view.
    for row in _rows_of(record, "views", ["view", "broker", "lookup_data", "load"], condition):
        views.setdefault(row["view"], {})[row["broker"]] = row["lookup_data"] or "", row["load"]
    return {reference: dict(sorted(records.items())) for reference, records in views.items()}


def _state_of(reference: str) -> tuple[str, int, str]:
    """Split a reference to owners into series, last change's number, and digest. An invalid one gives no record's."""
    series, number, digest = reference.rsplit(".", 2) if reference.count(".") > 1 else (reference, "", "")
    return series, int(number) if number.isdecimal() else 1, digest


class _RecordedOwners:
    """The series of changes of owners that some decisions name, applied as far as the next decision needs."""

    def __init__(self, record: str, references: set[str]) -> None:
        self._changes: dict[str, dict[int, tuple[str, str | None]]] = {}
        self._series, self._number = "", 0
        self._owners = Owners("")
        if not references:
            return
        condition = pc.field("series").isin(sorted({_state_of(reference)[0] for reference in references}))
        # Without any, every decision disagrees whose state is not the one without owners.
        for row in _rows_of(record, "owner_changes", ["series", "number", "bundle", "broker"], condition):
            self._changes.setdefault(row["series"], {})[row["number"]] = row["bundle"], row["broker"]

    def find(self, reference: str, ids: Sequence[str]) -> tuple[OwnershipView, bool] | None:
        """Find the owners of a state as brokers of a roster, and whether they match the decision's owners.

        Returns:
            None if a change that leads to the state is not in the record.
        """
        series, number, digest = _state_of(reference)
        if series != self._series or number < self._number:
            self._series, self._number, self._owners = series, 0, Owners("")
        changes = self._changes.get(series, {})
        while self._number < number:
            change = changes.get(self._number + 1)
            if change is None:
                return None
            self._owners.apply(*change)
            self._number += 1
        return self._owners.seen_by(ids), _state_of(self._owners.reference)[2] == digest


class _Described:
    """The policies that one document of settings describes, and views as they are seen under it."""

    def __init__(self, record: str, reference: str, registry: Registry) -> None:
        self._views: dict[str, View] = {}
        self._ballots: dict[Any, Ballot] = {}
        #: why nothing can be decided under these settings
        self.failure: str | None = None
        self.policies: dict[str, Policy] = {}
        self.surroundings = Surroundings("")
        self.seed = 0
        document: Mapping[str, Any] = {}
        before: Mapping[str, str] = {}
        try:
            document = document_of(record, reference)
            before = texts(document.get("plugins", {}), "plugins")
            self.seed = whole_number(document.get("seed"), "seed")
            self.policies, self.surroundings = built_again(document, registry)
        except (InputError, SettingsError) as error:
            self.failure = str(error)
        self.is_changed = digest_of(document) != reference
        versions = plugin_versions(registry)
        changed = [name for name, version in before.items() if versions.get(name) != version]
        #: plug-ins that are others than they were, as a clause
        self.other_plugins = ", ".join(
            f"{name} was {before[name]} and is {versions.get(name, 'absent')}" for name in changed
        )

    def difference(
        self, row: Mapping[str, Any], recorded: Mapping[str, ViewRecords], recorded_owners: _RecordedOwners
    ) -> tuple[str, str] | None:
        """Find cause and detail of a difference between a decision and its repetition, None if they are the same."""
        records = recorded.get(row["view"])
        if records is None or not row["view"].rpartition("@")[2].isdecimal():
            return "view", f"view {row['view']} is not in the record"
        absent = [broker for broker in row["candidates"] or () if broker not in records]
        if absent:
            return "view", f"broker {absent[0]} is not in view {row['view']}"
        policy = self.policies.get(row["policy"])
        if policy is None:
            cause = "plug-in version" if self.other_plugins else "settings"
            return cause, self.failure or f"policy {row['policy']!r} is not in the document {row['settings']}.json"
        owners, are_same = None, True
        try:
            view = self._find_view(row["view"], records)
            if reads_owners(policy):
                state = recorded_owners.find(row.get("owners") or "", view.roster.ids)
                if state is None:
                    return "ownership", f"a change that leads to the owners {row.get('owners')} is not in the record"
                owners, are_same = state
            ballot = self._repeat_ballot(policy, row, view, owners)
            different = _compare_row(row, ballot, self.seed)
        except (InputError, PolicyError) as error:
            different = str(error)
        if different is None:
            return None
        if are_same:
            cause, detail = self._find_cause(row, records)
        else:
            cause, detail = "ownership", f"the owners {row['owners']} differ from those of the decision"
        return cause, f"{different}: {detail}"

    def _find_cause(self, row: Mapping[str, Any], records: ViewRecords) -> tuple[str, str]:
        registry, _, loads = row["view"].partition("@")[0].partition(".")
        registry_now, _, loads_now = view_digest(records).partition(".")
        if loads_now != loads:
            return "load", f"the load in view {row['view']} differs from that of the decision"
        if registry_now != registry:
            return "registry", f"the brokers of view {row['view']} differ from those of the decision"
        if self.other_plugins:
            return "plug-in version", self.other_plugins
        if self.is_changed:
            return "settings", f"the document {row['settings']}.json differs from that of the decision"
        return "policy", "the same view, settings and plug-ins gave another answer"

    def _find_view(self, reference: str, records: ViewRecords) -> View:
        if reference not in self._views:
            self._views[reference] = view_of(records, int(reference.rpartition("@")[2]), self.surroundings)
        return self._views[reference]

    def _repeat_ballot(
        self, policy: Policy, row: Mapping[str, Any], view: View, owners: OwnershipView | None
    ) -> Ballot:
        properties = texts(parsed_object(row["properties"] or "", "properties"), "properties")
        options = LookupOptions(advertised_listener_name=row["listener"], properties=properties)
        request = request_of(row["topic"], row["bundle"] or "", options, row["client"])
        instant = (row["ts"] if "view.now" in policy.reads else None, None if owners is None else row["owners"])
        key = (policy.name, view.reference, tuple(row["candidates"] or ()), instant, policy.decision_key(request))
        if key not in self._ballots:
            if len(self._ballots) >= _MOST_BALLOTS:
                self._ballots.clear()
            snapshot = view.at(row["ts"], row["candidates"] or (), owners)
            self._ballots[key] = policy.ballot(request, Instant(policy, snapshot))
        return self._ballots[key]


def _compare_row(row: Mapping[str, Any], ballot: Ballot, seed: int) -> str | None:
    odds = dict(row["odds"] or ())
    if odds != ballot.odds:
        broker = next(name for name in {**odds, **ballot.odds} if odds.get(name) != ballot.odds.get(name))
        return f"the odds of {broker} were {odds.get(broker, 0.0)} and are {ballot.odds.get(broker, 0.0)}"
    declined = None if ballot.declined is None else ballot.declined.value
    if row["declined"] != declined:
        return f"it was declined for {row['declined']} and is for {declined}"
    if not odds:
        return None if row["broker"] is None else f"{row['broker']} was chosen, and no broker has odds"
    dice = 0.0
    if len(odds) > 1:
        if row["rolls"] is None:
            return "no dice roll is recorded, and several brokers have odds"
        dice = roll(seed, row["cluster"], row["bundle"], row["rolls"])
        if dice != row["dice"]:
            return f"the dice were {row['dice']} and are {dice}"
    # The odds are in the order of the brokers' numbers, in which the draw reads them.
    chosen = [*ballot.odds][ballot.numbers.index(ballot.pick(dice))]
    if chosen != row["broker"] or row["propensity"] != odds[chosen]:
        return f"{row['broker']} was chosen with {row['propensity']}, and it is {chosen} with {odds[chosen]}"
    return None
