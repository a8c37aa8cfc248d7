"""Model the evaluation file with its own tables, the whole, and checks between tables. `loader.py` reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from lookup.model.quoting import shown, suggestion
from lookup.settings.base import (
    Above0,
    CountS,
    Moment,
    Positive,
    PositiveS,
    Ratio,
    Share,
    Strict,
    Text,
    Truth,
    WholeFile,
    refuse,
)
from lookup.settings.broker import BrokerEntry
from lookup.settings.cluster import ClientEntry, NamespaceEntry, TopologySection
from lookup.settings.policy import PolicySpec
from lookup.settings.problems import LIST, NUMBER, Loc
from lookup.settings.pulsar_keys import MOST_BUNDLES

__all__ = [
    "OTHER_BUNDLES", "SLICE_ROWS", "EvaluationFile", "EvaluationSection", "InputsSection", "LintRule", "LintSection",
    "LoadReports", "LoadSource", "OwnerLoss", "Seed", "VerdictSection",
]  # fmt: skip

OwnerLoss = Literal["next-lookup", "leader"]
LoadSource = Literal["simulated", "reported"]
LoadReports = Literal["instant", "published"]
#: Kinds of findings about settings without effect on a log, or out of proportion to it.
LintRule = Literal[
    "broker-key", "broker-label", "broker-times", "bundles", "capacity-unit", "client-label", "client-rule", "doubled",
    "few-blocks", "isolation", "java", "namespace", "new-namespaces", "no-capacity", "policy-key", "proxies",
    "short-session", "skewed", "time-of-day",
]  # fmt: skip
#: A whole number that tables can hold.
Seed = Annotated[int, Field(strict=True, ge=-(1 << 63), lt=1 << 63)]
#: More replicates than this take longer than they are worth.
_MOST_SEEDS = 1000


def _check_seed_count(value: int) -> int:
    if not 1 <= value <= _MOST_SEEDS:
        raise ValueError(
            f"a number of seeds should be 1 to {_MOST_SEEDS}, not {value}; seeds of your choice are a list"
        )
    return value


_Seeds = Annotated[
    Annotated[int, AfterValidator(_check_seed_count), Tag(NUMBER)]
    | Annotated[tuple[Seed, ...], Field(min_length=1, max_length=_MOST_SEEDS), Tag(LIST)],
    Discriminator(lambda value: NUMBER if isinstance(value, int) and not isinstance(value, bool) else LIST),
]


#: Why a policy cannot begin with other bundles if there is such a table.
OTHER_BUNDLES = "BUNDLES (inputs.bundles) has the loads of the log's own bundles only; leave it out"

#: Default rows of a cluster that a task holds at a time, with Python and libraries below 1 GB (`benchmarks/`).
SLICE_ROWS = 4_000_000


class EvaluationSection(Strict):
    """Rules of the replay."""

    incumbent: str
    """Name of the policy the others are compared with."""
    owner_loss: OwnerLoss = "next-lookup"
    """Who assigns a lost broker's bundles, either the next lookup (modular manager) or the leader at once
    (extensible)."""
    load: LoadSource = "simulated"
    """Load that the policies see, either that of the replay's own placement, or the LOADS table (`inputs.loads`)."""
    load_reports: LoadReports = "instant"
    """Whether policies see simulated load at once, or each broker's last report at its policy's cadence."""
    tick_s: PositiveS = 60
    """Seconds of a grid cell, in which the load that policies see is fixed."""
    session_s: PositiveS = 60
    """Seconds for which a session's weight lasts, a multiple of `tick_s`."""
    balance_s: PositiveS = 3600
    """Seconds of a cell of the balance metrics, a multiple of `tick_s`."""
    warmup_s: CountS = 0
    """Seconds at the beginning that are simulated but not scored."""
    since: Moment | None = None
    """Start of the lookups that are read, by default the beginning of the log."""
    until: Moment | None = None
    """End of the lookups that are read, exclusive, by default the end of the log."""
    scored_from: Moment | None = None
    """Earlier lookups are simulated but not scored, as in a warm-up. The default is the end of the warm-up."""
    seeds: _Seeds = 7
    """Number of replicates, each with its own seed, or a list of seeds."""
    draw: CountS = 0
    """Number of the draw of seeds. The same log has other seeds in each draw, and another log has others in all."""
    default_bundles: Positive = Field(default=4, le=MOST_BUNDLES)
    """Bundles of a namespace that is not named in `[[namespaces]]`."""
    reconnect_s: CountS = 30
    """Seconds after a logged loss of an owner in which lookups count as induced."""
    window_s: CountS = 3600
    """Seconds within which a bundle that comes back makes its moves redundant."""
    overload_threshold: Above0 = 0.85
    """Usage above which a broker counts as overloaded, where 1.0 is full."""
    bytes_per_weight: Above0 | None = None
    """Bytes per unit of weight, for network cost, and for shedders with limits in bytes if there is no BUNDLES.
    Without it, both are unknown."""
    max_quarantine_ratio: Ratio = 0.01
    """Share of unreadable records above which a run fails."""
    slice_rows: Positive = SLICE_ROWS
    """Rows of a cluster that a task holds at a time. A day with more is replayed in slices of whole ticks."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        spans = {"session_s": self.session_s, "balance_s": self.balance_s}
        problems = [
            f"{key}: {span} should be a multiple of tick_s, which is {self.tick_s}"
            for key, span in spans.items()
            if span % self.tick_s
        ]
        if self.since is not None and self.until is not None and self.since >= self.until:
            problems.append(f"until: {self.until.isoformat()} should be later than since, {self.since.isoformat()}")
        if len(set(self.drawn)) < len(self.drawn):
            problems.append(f"seeds: each should occur once, not {list(self.drawn)}")
        if self.draw and isinstance(self.seeds, tuple):
            problems.append(f"draw: {self.draw} should be 0 with a list of seeds; a number of seeds is drawn")
        if self.load == "reported" and self.load_reports == "published":
            problems.append('load_reports: LOADS has the published load; "published" needs load = "simulated"')
        refuse(problems)
        return self

    @property
    def drawn(self) -> tuple[int, ...]:
        """The seeds. If the log is not known yet, they are numbers from 1 on in place of the random ones."""
        return self.seeds if isinstance(self.seeds, tuple) else tuple(range(1, self.seeds + 1))


class VerdictSection(Strict):
    """Rules of the comparison with the incumbent."""

    primary: tuple[str, ...] | None = None
    """Metrics, `name` or `name:key`, that decide the exit code, by default answers, locality, imbalance and moved
    weight."""
    margin: Share = 0.01
    """Greatest difference that is equivalent, relative to the incumbent's value, or to itself if that is smaller."""
    margins: Mapping[str, Share] = {}
    """Margins of single metrics."""
    guard_margin: Share = 0.0001
    """Tolerated loss of the guarded figures, as a share of all lookups, or of the brokers' time."""
    require_decision: Truth = False
    """Whether an inconclusive primary metric makes the exit code 4. An inconclusive guarded one always does."""
    accept_placement: Truth = False
    """If true, verdicts that hold for one placement only (a hash without salt, one seed) may decide the exit code."""
    block_s: PositiveS = 3600
    """Least seconds of neighbouring cells that count as one observation. The length grows if the difference drifts."""
    min_units: Positive = 8
    """Least number of senders of equal weight, below which finer ones are counted. With fewer bundles, or blocks,
    there is no verdict."""
    min_events: Positive = 5
    """Figures that only lost brokers, unloads or splits change are inconclusive with fewer of these events."""


class LintSection(Strict):
    """Findings about the settings compared with a log."""

    accept: tuple[LintRule, ...] = ()
    """Kinds of findings that are known and intended, and not reported."""


class InputsSection(Strict):
    """The tables, as paths of files or folders, or URIs. Only lookups are needed."""

    # An empty path would be the folder of the settings.

    lookups: Text | None = None
    """LOOKUPS, the lookups of clients."""
    brokers: Text | None = None
    """BROKERS, the times of registrations, by default from `[[brokers]]`."""
    loads: Text | None = None
    """LOADS, the load reports of brokers."""
    bundles: Text | None = None
    """BUNDLES, the statistics of bundles."""
    ownership: Text | None = None
    """OWNERSHIP, with initial owners, unloads by administrators, and splits."""


# As written an entry may also be the path of a file, which the loader replaces by the file's content.
_Policies = Annotated[
    tuple[PolicySpec, ...],
    Field(min_length=1),
    BeforeValidator(lambda value: value, json_schema_input_type=list[PolicySpec | str]),
]


class EvaluationFile(WholeFile):
    """Everything an evaluation needs, with all files it names read into it."""

    evaluation: EvaluationSection
    """Rules of the replay."""
    verdict: VerdictSection = VerdictSection()
    """Rules of the comparison."""
    lint: LintSection = LintSection()
    """Findings about settings without effect that are not reported."""
    inputs: InputsSection = InputsSection()
    """Paths of the tables. Each may also be given on the command line."""
    topology: TopologySection = TopologySection()
    """Distances between locations."""
    brokers: tuple[BrokerEntry, ...] = ()
    """Brokers and their times, if there is no BROKERS table. One id may recur with disjoint intervals."""
    namespaces: tuple[NamespaceEntry, ...] = ()
    """Bundles, isolation and anti-affinity by namespace."""
    failure_domains: Mapping[str, tuple[str, ...]] = {}
    """Brokers by failure domain."""
    clients: tuple[ClientEntry, ...] = ()
    """Lookup properties of clients that did not send any. The first match counts."""
    policies: _Policies
    """The policies to compare, as tables, or paths of files with policies."""
    plugin_files: tuple[str, ...] = ()
    """Paths of Python files that register parts through the hooks."""

    @classmethod
    def problems_between(cls, tables: Mapping[str, Any]) -> list[tuple[Loc, str]]:
        """List the mistakes between tables, even if the file has only some of them.

        The checks cover names of policies, namespaces and brokers, the incumbent, and the source of the load.
        """
        problems: list[tuple[Loc, str]] = []
        evaluation, inputs, policies = tables.get("evaluation"), tables.get("inputs"), tables.get("policies")
        names = None if policies is None else [policy.name for policy in policies]
        for name, count in Counter(names).items():
            if count > 1:
                problems.append((("policies",), f"{count} policies are named {shown(name)}; a name should occur once"))
        incumbent = getattr(evaluation, "incumbent", None)
        if incumbent is not None and names is not None and incumbent not in names:
            sentence = f"there is no policy named {shown(incumbent)}; {suggestion(incumbent, names)}"
            problems.append((("evaluation", "incumbent"), sentence))
        if evaluation is not None and getattr(inputs, "bundles", None) is not None:
            problems += [
                (("policies", index, "bundles"), f"{policy.bundles} cannot be replayed: {OTHER_BUNDLES}")
                for index, policy in enumerate(policies or ())
                if policy.bundles not in (None, getattr(evaluation, "default_bundles", policy.bundles))
            ]
        # `inputs` may lack `loads` altogether, if its written value is wrong.
        if getattr(evaluation, "load", None) == "reported" and getattr(inputs, "loads", "unknown") is None:
            problems.append((("evaluation", "load"), '"reported" needs a LOADS table: give inputs.loads'))
        for name, count in Counter(entry.name for entry in tables.get("namespaces", ())).items():
            if count > 1:
                sentence = f"{count} entries are named {shown(name)}; a namespace should occur once"
                problems.append((("namespaces",), sentence))
        domains: Mapping[str, Sequence[str]] = tables.get("failure_domains", {})
        for broker, count in Counter(broker for brokers in domains.values() for broker in brokers).items():
            if count > 1:
                sentence = f"broker {shown(broker)} is listed {count} times; it can be in one domain only"
                problems.append((("failure_domains",), sentence))
        return [*problems, *_find_clashes(tables.get("brokers", ()))]


def _find_clashes(brokers: Sequence[BrokerEntry]) -> Iterator[tuple[Loc, str]]:
    by_id: dict[str, list[tuple[int, BrokerEntry]]] = {}
    for index, entry in enumerate(brokers):
        for broker in entry.ids:
            by_id.setdefault(broker, []).append((index, entry))
    for broker, entries in by_id.items():
        for number, (index, entry) in enumerate(entries):
            clash = next((other for other, earlier in entries[:number] if _overlap(earlier, entry)), None)
            if clash is not None:
                yield ("brokers", index), f"{shown(broker)} is registered by brokers[{clash}] at the same time"


def _overlap(a: BrokerEntry, b: BrokerEntry) -> bool:
    # Intervals are half-open, so that one may begin when the other ends. None is open, in time and in clusters.
    return (
        (a.clusters is None or b.clusters is None or bool(set(a.clusters) & set(b.clusters)))
        and (a.from_ is None or b.until is None or a.from_ < b.until)
        and (b.from_ is None or a.until is None or b.from_ < a.until)
    )
