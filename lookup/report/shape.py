"""State what `manifest.json` and `summary.json` of a run hold, as far as it is read back, and check it.

Pages and sentences use these facts unchecked: a file that was edited by hand is refused here, by key and value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lookup.errors import InputError
from lookup.hooks import Question
from lookup.logs.sources import open_parquet
from lookup.model.quoting import shown
from lookup.model.time import FIRST_US, LAST_US
from lookup.score.verdict import Guard, HoldsFor, Word

__all__ = ["Manifest", "Summary", "open_result", "require_shape"]


_AGAIN = "the file was changed by hand, or written by another version; evaluate again"


#: µs since the Unix epoch, in the calendar.
_Instant = Annotated[int, Field(ge=FIRST_US, le=LAST_US)]


class _Record(BaseModel):
    """JSON's types as they are, nothing converted; keys that are not read may be there."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class _Input(_Record):
    """The fingerprint of an input."""

    path: str
    files: int
    rows: int | None
    blake2b: str


class _PlugIn(_Record):
    """A plug-in that was loaded."""

    name: str
    origin: str
    blake2b: str | None


class _Topology(_Record):
    """Distances and prices by level; the whole is checked with the settings."""

    distance_ms: dict[str, float] = {}
    price_per_gb: dict[str, float] = {}


class _Settings(_Record):
    """Settings that pages read one by one."""

    evaluation: dict[str, Any]
    verdict: dict[str, Any]
    topology: _Topology = _Topology()
    policies: list[dict[str, Any]] = []


class Manifest(_Record):
    """`manifest.json`."""

    command: list[str]
    exit_code: int
    versions: dict[str, str]
    settings: _Settings
    inputs: dict[str, _Input]
    plugins: list[_PlugIn]


class _MetricRow(_Record):
    """A figure, or that there is none."""

    policy: str
    cluster: str | None
    metric: str
    key: str | None
    by: dict[str, str] | None
    value: float | None
    low: float | None
    high: float | None
    unit: str
    direction: str


class _Span(_Record):
    """What one question gets for an answer."""

    low: float | None
    high: float | None
    p_value: float | None


class _InCluster(_Record):
    """A difference in one cluster."""

    cluster: str
    delta: float | None
    low: float | None
    high: float | None


class _VerdictRow(_Record):
    """A verdict; what has a default is absent in runs of earlier versions."""

    policy: str
    against: str
    metric: str
    key: str | None
    verdict: Word
    reason: str | None
    delta: float | None
    low: float | None
    high: float | None
    margin: float | None = None
    primary: bool
    holds_for: HoldsFor
    p_value: float | None
    p_family: float | None
    alone: Word | None = None
    question: Question = "demand"
    guard: Guard | None = None
    on_log: _Span | None = None
    for_demand: _Span | None = None
    clusters: list[_InCluster] = []


class _Winner(_Record):
    """By how much the best of equals would look better."""

    metric: str
    key: str | None
    candidates: int
    value: float | None
    advantage: float | None


class _FidelityRow(_Record):
    """How far the replayed incumbent is from the log."""

    metric: str
    key: str | None
    logged: float | None
    resimulated: float | None
    low: float | None
    high: float | None
    gap: float | None
    seeds: list[int]
    reason: str | None


class _Shortfall(_Record):
    """What kept a shedder from acting."""

    figure: float
    what: str
    limit: float


class _Cycles(_Record):
    """What a policy's shedder did."""

    shedder: str
    cycles: int
    reasons: dict[str, int]
    accepted: int
    refused: dict[str, int]
    excess: dict[str, float]
    #: absent in runs of earlier versions
    short: dict[str, _Shortfall] = {}


class _Finding(_Record):
    """A finding about the log and the settings."""

    rule: str
    what: str
    how_often: str
    evidence: str
    remedy: str


class _Facts(_Record):
    """Facts about what was read and replayed."""

    lookups: int = 0
    clusters: list[str] = []
    first_us: _Instant | None = None
    last_us: _Instant | None = None
    cycles: dict[str, _Cycles] = {}
    findings: list[_Finding] = []
    placed_once: dict[str, str]
    cannot_act: dict[str, str]


class Summary(_Record):
    """`summary.json`."""

    metrics: list[_MetricRow]
    verdicts: list[_VerdictRow]
    winners: list[_Winner] = []
    guarded: list[str] = []
    fidelity: list[_FidelityRow]
    inputs: _Facts


def require_shape(file: str, document: Mapping[str, Any], shape: type[Manifest | Summary]) -> None:
    """Refuse a document that an evaluation cannot have written.

    Args:
        file: its name in sentences.

    Raises:
        InputError: naming file, key, value and what would be right.
    """
    try:
        shape.model_validate(document)
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(map(str, problem["loc"]))
        what = "is missing" if problem["type"] == "missing" else f"is {shown(problem['input'])}: {problem['msg']}"
        raise InputError(f"{file}: {key} {what}; {_AGAIN}") from None


@contextmanager
def open_result(path: str, schema: pa.Schema) -> Iterator[pq.ParquetFile]:
    """Open a table of results.

    Raises:
        InputError: if it cannot be read, or its columns are not those of the schema by names and types.
    """
    with open_parquet(path) as parquet:
        present = parquet.schema_arrow
        for field in schema:
            position = present.get_field_index(field.name)
            if position < 0 or present.field(position).type != field.type:
                raise InputError(f"{path}: its column {field.name!r} is missing or holds no {field.type}; {_AGAIN}")
        yield parquet
