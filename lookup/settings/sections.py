"""The tables `[evaluation]`, `[verdict]` and `[inputs]` of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from lookup.settings.base import Above0, Count, Positive, Ratio, Share, Strict, Truth, refuse

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


class EvaluationSection(Strict):
    """How the log is replayed."""

    incumbent: str
    """Name of the policy the others are compared with."""
    ownership: Ownership = "exclusive"
    """A bundle has one owner (Pulsar's bundles), or each lookup is decided alone."""
    owner_loss: OwnerLoss = "next-lookup"
    """Who assigns a lost broker's bundles: the next lookup (modular manager) or the leader at once (extensible)."""
    handover_s: Share = Field(default=0.0, le=86_400)
    """Seconds that a bundle which changes hands is Releasing, Assigning or Splitting, each; 0: it is so at once."""
    load: LoadSource = "simulated"
    """Whose load the policies see: what the replay itself placed, or the LOADS table (`inputs.loads`)."""
    load_reports: LoadReports = "instant"
    """Whether policies see simulated load at once, or what each broker last published at its policy's cadence."""
    tick_s: Positive = 60
    """Seconds of a grid cell, in which the load that policies see is fixed."""
    session_s: Positive = 60
    """How many seconds a session's weight lasts; a multiple of `tick_s`."""
    balance_s: Positive = 3600
    """Seconds of a cell of the balance metrics; a multiple of `tick_s`."""
    warmup_s: Count = 0
    """Seconds at the beginning that are simulated but not scored."""
    seeds: tuple[Seed, ...] = Field(default=(1,), min_length=1)
    """Seeds of the dice; every policy is replayed once per seed."""
    default_bundles: Positive = Field(default=4, le=1 << 16)
    """Bundles of a namespace that is not named in `[[namespaces]]`."""
    reconnect_s: Count = 30
    """Seconds after a logged loss of an owner in which lookups count as induced."""
    window_s: Count = 3600
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
    """Metrics, `name` or `name:key`, that decide the exit code; absent: every metric with a direction."""
    margin: Share = 0.01
    """Differences within this are equivalent; relative to the incumbent's value, absolute where that is 0."""
    margins: Mapping[str, Share] = {}
    """Margins of single metrics."""
    require_decision: Truth = False
    """Whether an inconclusive primary metric makes the exit code 4."""
    # Memory grows with resamples times bundles; an interval hardly moves beyond some ten thousand.
    resamples: Positive = Field(default=2000, le=100_000)
    """Bootstrap resamples."""
    block_s: Positive = 3600
    """Seconds of a block where time is resampled."""
    min_units: Positive = 20
    """Below this many units of resampling a comparison is inconclusive."""


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
