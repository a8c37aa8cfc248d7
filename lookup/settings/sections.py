"""The tables `[evaluation]`, `[verdict]` and `[inputs]` of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from lookup.settings.base import Above0, CountS, Positive, PositiveS, Ratio, Share, ShareS, Strict, Truth, refuse

__all__ = [
    "EvaluationSection",
    "InputsSection",
    "LoadReports",
    "LoadSource",
    "OwnerLoss",
    "Ownership",
    "VerdictSection",
]

Ownership = Literal["exclusive", "shared"]
OwnerLoss = Literal["next-lookup", "leader"]
LoadSource = Literal["simulated", "reported"]
LoadReports = Literal["instant", "published"]


#: A whole number that tables can hold.
Seed = Annotated[int, Field(strict=True, ge=-(1 << 63), lt=1 << 63)]


#: More replicates than this would take longer than they tell.
_MOST_SEEDS = 1000


def _numbered_seeds(value: object) -> object:
    """Return the seeds 1 to n for a number n."""
    if isinstance(value, bool) or not isinstance(value, int):
        return value
    if not 1 <= value <= _MOST_SEEDS:
        raise ValueError(
            f"a number of seeds should be 1 to {_MOST_SEEDS}, not {value}; seeds of your choice are a list"
        )
    return tuple(range(1, value + 1))


_Seeds = Annotated[
    tuple[Seed, ...],
    Field(min_length=1, max_length=_MOST_SEEDS),
    BeforeValidator(_numbered_seeds, json_schema_input_type=Annotated[int, Field(ge=1, le=_MOST_SEEDS)] | list[Seed]),
]


class EvaluationSection(Strict):
    """How the log is replayed."""

    incumbent: str
    """Name of the policy the others are compared with."""
    ownership: Ownership = "exclusive"
    """A bundle has one owner (Pulsar's bundles), or each lookup is decided alone."""
    owner_loss: OwnerLoss = "next-lookup"
    """Who assigns a lost broker's bundles: the next lookup (modular manager) or the leader at once (extensible)."""
    handover_s: ShareS = 0.0
    """Seconds that a bundle which changes hands is Releasing, Assigning or Splitting, each; 0: it is so at once.

    Else a microsecond, 1e-6, at least."""
    load: LoadSource = "simulated"
    """Whose load the policies see: what the replay itself placed, or the LOADS table (`inputs.loads`)."""
    load_reports: LoadReports = "instant"
    """Whether policies see simulated load at once, or what each broker last published at its policy's cadence."""
    tick_s: PositiveS = 60
    """Seconds of a grid cell, in which the load that policies see is fixed."""
    session_s: PositiveS = 60
    """How many seconds a session's weight lasts; a multiple of `tick_s`."""
    balance_s: PositiveS = 3600
    """Seconds of a cell of the balance metrics; a multiple of `tick_s`."""
    warmup_s: CountS = 0
    """Seconds at the beginning that are simulated but not scored."""
    seeds: _Seeds = tuple(range(1, 8))
    """Replicates, a number or a list of seeds: each replays every policy with dice and a salt of its own."""
    default_bundles: Positive = Field(default=4, le=1 << 16)
    """Bundles of a namespace that is not named in `[[namespaces]]`."""
    reconnect_s: CountS = 30
    """Seconds after a logged loss of an owner in which lookups count as induced."""
    window_s: CountS = 3600
    """Seconds within which a bundle that comes back makes its moves redundant."""
    overload_threshold: Above0 = 0.85
    """Usage above which a broker counts as overloaded; 1.0 is full."""
    bytes_per_weight: Above0 | None = None
    """Bytes that one unit of weight stands for, for network cost, and for shedders with limits in bytes if there is no
    BUNDLES; absent: neither."""
    max_quarantine_ratio: Ratio = 0.01
    """Share of unreadable records above which a run fails."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        spans = {"session_s": self.session_s, "balance_s": self.balance_s}
        problems = [
            f"{key}: {span} should be a multiple of tick_s, which is {self.tick_s}"
            for key, span in spans.items()
            if span % self.tick_s
        ]
        if len(set(self.seeds)) < len(self.seeds):
            problems.append(f"seeds: each should occur once, not {list(self.seeds)}")
        if self.handover_s and self.ownership == "shared":
            problems.append(
                f"handover_s: {self.handover_s:g} should be 0 under shared ownership: nobody owns a bundle to hand over"
            )
        if self.load == "reported" and self.load_reports == "published":
            problems.append('load_reports: LOADS says what was published; "published" needs load = "simulated"')
        refuse(problems)
        return self


class VerdictSection(Strict):
    """How the comparison with the incumbent is judged."""

    primary: tuple[str, ...] | None = None
    """Metrics, `name` or `name:key`, that decide the exit code; absent: answers, locality, imbalance, moved weight."""
    margin: Share = 0.01
    """Differences within this are equivalent; relative to the incumbent's value, absolute where that is 0."""
    margins: Mapping[str, Share] = {}
    """Margins of single metrics."""
    require_decision: Truth = False
    """Whether an inconclusive primary metric makes the exit code 4."""
    accept_placement: Truth = False
    """Whether verdicts that hold for one placement only (a hash without salt, one seed) may decide the exit code."""
    resamples: Positive | None = None
    """No longer used: intervals are calculated, nothing is drawn."""
    block_s: PositiveS = 3600
    """Seconds of a block of neighbouring cells that count as one observation of the demand."""
    min_units: Positive = 20
    """With something happening in fewer bundles, or blocks of time, than this a comparison is inconclusive."""
    min_events: Positive = 5
    """With fewer lost brokers (unloads, splits) than this, what only they caused is inconclusive."""


#: Of a file or folder, or a URI; the empty one would be the folder of the settings.
Path = Annotated[str, Field(min_length=1)]


class InputsSection(Strict):
    """The tables; paths of files or folders, or URIs. Only lookups are needed."""

    lookups: Path | None = None
    """LOOKUPS: what clients asked; `--lookups` does the same."""
    brokers: Path | None = None
    """BROKERS: who was registered when; absent: from `[[brokers]]`."""
    loads: Path | None = None
    """LOADS: what brokers reported."""
    bundles: Path | None = None
    """BUNDLES: statistics of bundles."""
    ownership: Path | None = None
    """OWNERSHIP: initial owners, unloads by admins, splits."""
