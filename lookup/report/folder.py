"""Read back what an evaluation left in its output: the scored comparison and the manifest, without replaying.

Models state what `manifest.json` and `summary.json` hold as far as it is read back. Pages and sentences use these facts
unchecked: a file that was edited by hand is refused here, by key and value.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lookup.errors import InputError
from lookup.hooks import Better, Metric, Question
from lookup.logs.sources import locate, open_parquet, require_finished
from lookup.model.documents import parsed_object
from lookup.model.quoting import shown
from lookup.replay.outcome import InputFacts, Number
from lookup.report.manifest import SCHEMA as MANIFEST_SCHEMA
from lookup.score.luck import Estimate
from lookup.score.scoring import Best, Fidelity, Plan, Scored
from lookup.score.series import Series
from lookup.score.summary import SCHEMA as SUMMARY_SCHEMA
from lookup.score.units import Units
from lookup.score.verdict import Verdict, Winner
from lookup.settings.evaluation import EvaluationFile, EvaluationSection, VerdictSection

__all__ = ["Run", "open_result", "read_run", "settings_given", "settings_of"]

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


class _Manifest(_Record):
    """`manifest.json`."""

    schema_number: ClassVar[int] = MANIFEST_SCHEMA

    command: list[str]
    exit_code: int
    versions: dict[str, str]
    settings: _Settings
    inputs: dict[str, _Input]
    plugins: list[dict[str, str | None]]


class _MetricRow(_Record):
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
    direction: Better


class _Notes(_Record):
    """What `inputs` of a summary has besides the facts about the input."""

    placed_once: dict[str, str]
    cannot_act: dict[str, str]
    label_of_tenants: str | None = None


class _Summary(_Record):
    """`summary.json`; what has a default is absent in runs of earlier versions."""

    schema_number: ClassVar[int] = SUMMARY_SCHEMA

    metrics: list[_MetricRow]
    verdicts: list[Verdict]
    units: Units | None = None
    winners: list[Winner] = []
    guarded: frozenset[str] = frozenset()
    fidelity: list[Fidelity]
    at_best: list[Best] = []
    inputs: InputFacts
    notes: _Notes = Field(validation_alias="inputs")


_Shape = TypeVar("_Shape", _Manifest, _Summary)


def _shaped(file: str, document: Mapping[str, Any], shape: type[_Shape]) -> _Shape:
    """Return a document as far as it is read back."""
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


@dataclass(frozen=True, slots=True)
class _RecordedMetric:
    """What a summary says of a metric: enough to print its figures, not to compute them."""

    name: str
    unit: str
    better: Better
    question: Question = "demand"


@dataclass(frozen=True)
class Run:
    """A finished run: its folder, and what is read of it at once. The tables are read by who needs them."""

    #: path or URI
    path: str
    scored: Scored
    manifest: Mapping[str, Any]
    #: `summary.json` as it stands
    summary: Mapping[str, Any]


def read_run(path: str, *, manifest: bytes | None = None) -> Run:
    """Read a run's folder.

    Args:
        manifest: content of `manifest.json`, for a run that has not written it yet; default: what the folder has.

    Raises:
        InputError: if it is no output of `evaluate`, or one of another version.
    """
    if manifest is None:
        require_finished(*locate(path), path)
    # The manifest first: it is written last, so without it the run is not complete.
    facts = _document(path, "manifest.json", manifest)
    summary = _document(path, "summary.json")
    read = _shaped(f"{path}/summary.json", summary, _Summary)
    _shaped(f"{path}/manifest.json", facts, _Manifest)
    compared = {of.metric for of in read.verdicts} | {of.metric for of in read.fidelity}
    named = compared | {of.metric for of in read.winners} | {of.metric for of in read.at_best}
    if strange := named - {row.metric for row in read.metrics}:
        raise InputError(f"{path}/summary.json: metrics has no {shown(min(strange))}, and it is compared; {_AGAIN}")
    try:
        return Run(path, _restored(read, facts), facts, summary)
    except ValidationError as error:
        keys = ", ".join(sorted({str(problem["loc"][0]) for problem in error.errors()}))
        version = shown(str(facts["versions"].get("pulsar-lookup")))
        raise InputError(
            f"{path}/manifest.json: its settings, of version {version}, cannot be read by this one ({keys}); "
            "evaluate again with this version"
        ) from None


def settings_given(run: Run) -> dict[str, Any]:
    """Return the settings a run was made with as they may stand in a file, all files that they named read into them."""
    settings = dict(run.manifest["settings"])
    # A single broker may not say with which number its template begins, and every default is written down.
    settings["brokers"] = [
        {key: value for key, value in entry.items() if key != "first" or entry["count"] is not None}
        for entry in settings["brokers"]
    ]
    return settings


def settings_of(run: Run) -> EvaluationFile:
    """Return the settings a run was made with.

    Raises:
        InputError: if this version cannot read them.
    """
    try:
        return EvaluationFile.model_validate(settings_given(run))
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise InputError(
            f"{run.path}/manifest.json: its settings cannot be read by this version ({where}); evaluate again"
        ) from None


def _restored(summary: _Summary, manifest: Mapping[str, Any]) -> Scored:
    settings = manifest["settings"]
    metrics = {
        row.metric: _RecordedMetric(
            row.metric, row.unit, row.direction, "log" if row.metric in summary.guarded else "demand"
        )
        for row in summary.metrics
    }
    return Scored(
        plan=Plan(
            tuple(dict.fromkeys(row.policy for row in summary.metrics)),
            EvaluationSection.model_validate(settings["evaluation"]),
            VerdictSection.model_validate(settings["verdict"]),
        ),
        metrics=tuple(cast("Metric", metric) for metric in metrics.values()),
        estimates=[
            Estimate(
                Series(row.policy, cast("Metric", metrics[row.metric]), row.key, tuple((row.by or {}).items()), {}),
                row.cluster,
                row.value,
                row.low,
                row.high,
            )
            for row in summary.metrics
            # A metric that could not be computed has a row all the same, and no estimate.
            if not (math.isnan(row.value) and row.key is None and row.by is None)
        ],
        verdicts=summary.verdicts,
        winners=summary.winners,
        fidelity=summary.fidelity,
        inputs=summary.inputs,
        placed_once=summary.notes.placed_once,
        cannot_act=summary.notes.cannot_act,
        exit_code=manifest["exit_code"],
        at_best=summary.at_best,
        units=summary.units,
        label_of_tenants=summary.notes.label_of_tenants,
    )


def _document(path: str, name: str, raw: bytes | None = None) -> dict[str, Any]:
    system, folder = locate(path)
    file = f"{folder.rstrip('/')}/{name}"
    try:
        if raw is None:
            with system.open_input_file(file) as source:
                raw = source.read()
        text = raw.decode()
    except FileNotFoundError:
        raise InputError(f"{path}: has no {name}; name a folder that `lookup evaluate` has written") from None
    except OSError as error:
        raise InputError(f"{path}/{name}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}/{name}: is no text in UTF-8") from None
    content = parsed_object(text, f"{path}/{name}:")
    # Half a surrogate pair can be written in JSON, and in no page.
    if "\\ud" in text.lower():
        try:
            json.dumps(content, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise InputError(f"{path}/{name}: holds half a surrogate pair, which is no text in UTF-8") from None
    return content
