"""State what `manifest.json` and `summary.json` of a run hold, as far as it is read back, and check it.

Pages and sentences use these facts unchecked: a file that was edited by hand is refused here, by key and value.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lookup.errors import InputError
from lookup.logs.sources import open_parquet
from lookup.model.quoting import shown
from lookup.replay.outcome import InputFacts, Number
from lookup.report.manifest import SCHEMA as MANIFEST_SCHEMA
from lookup.score.scoring import Fidelity
from lookup.score.summary import SCHEMA as SUMMARY_SCHEMA
from lookup.score.verdict import Verdict, Winner

__all__ = ["Manifest", "MetricRow", "Summary", "open_result", "shaped"]


_AGAIN = "the file was changed by hand, or written by another version; evaluate again"


class _Record(BaseModel):
    """JSON's types as they are, nothing converted; keys that are not read may be there."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class _Input(_Record):
    """The fingerprint of an input."""

    path: str
    files: int
    rows: int | None
    blake2b: str


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

    schema_number: ClassVar[int] = MANIFEST_SCHEMA

    command: list[str]
    exit_code: int
    versions: dict[str, str]
    settings: _Settings
    inputs: dict[str, _Input]
    plugins: list[dict[str, str | None]]


class MetricRow(_Record):
    """A figure, or that there is none."""

    policy: str
    cluster: str | None
    metric: str
    key: str | None
    by: dict[str, str] | None
    value: Number
    low: Number
    high: Number
    unit: str
    direction: str


class _Notes(_Record):
    """What `inputs` of a summary has besides the facts about the input."""

    placed_once: dict[str, str]
    cannot_act: dict[str, str]


class Summary(_Record):
    """`summary.json`; what has a default is absent in runs of earlier versions."""

    schema_number: ClassVar[int] = SUMMARY_SCHEMA

    metrics: list[MetricRow]
    verdicts: list[Verdict]
    winners: list[Winner] = []
    guarded: frozenset[str] = frozenset()
    fidelity: list[Fidelity]
    inputs: InputFacts
    notes: _Notes = Field(validation_alias="inputs")


_Shape = TypeVar("_Shape", Manifest, Summary)


def shaped(file: str, document: Mapping[str, Any], shape: type[_Shape]) -> _Shape:
    """Return a document as far as it is read back.

    Args:
        file: its name in sentences.

    Raises:
        InputError: naming file, key, value and what would be right.
    """
    schema, right = document.get("schema"), shape.schema_number
    if schema != right:
        again = "evaluate again with this version"
        raise InputError(f"{file}: its schema is {shown(str(schema))}, and {right} can be read; {again}")
    try:
        # As JSON, where a list may stand for a tuple and an object for a dataclass.
        return shape.model_validate_json(json.dumps(document))
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
