"""Store the figures of a run, write them as `summary.json`, and read them back without a replay.

Models define the contents of `manifest.json` and `summary.json` that are read back. Pages and sentences use
these facts unchecked, so a file that was edited by hand is rejected here, by key and value.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lookup.errors import InputError
from lookup.hooks import Better
from lookup.logs.sources import locate, open_parquet, require_finished
from lookup.model.documents import parsed_object
from lookup.model.quoting import shown
from lookup.replay.outcome import InputFacts
from lookup.report.manifest import SCHEMA as MANIFEST_SCHEMA
from lookup.score.figures import Figure, figures_of, json_row, plain
from lookup.score.luck import LEVEL, least_chance
from lookup.score.rules import Name, may_decide
from lookup.score.scoring import Scored
from lookup.settings.evaluation import EvaluationFile, EvaluationSection, VerdictSection

__all__ = [
    "SCHEMA", "Comparisons", "Results", "Run", "open_result", "read_run", "results_of", "settings_given", "settings_of",
    "summary", "to_json",
]  # fmt: skip

#: Version of `summary.json` and `metrics.parquet`. It counts changes that break readers.
SCHEMA = 2
_AGAIN = "the file was changed by hand, or written by another version; evaluate again"


class Comparisons(NamedTuple):
    """How many comparisons were made."""

    #: names that may decide the exit code, judged together
    deciding: int
    #: all others, judged together for each figure
    others: int
    #: figures of the others
    figures: int


@dataclass(frozen=True, eq=False)
class Results:
    """The figures of a run, and the other facts that a report needs."""

    #: ordered by policy, metric, key, part of the demand, cluster
    figures: Sequence[Figure]
    #: in the order of the settings, the incumbent among them
    policies: tuple[str, ...]
    evaluation: EvaluationSection
    rules: VerdictSection
    inputs: InputFacts
    #: why verdicts on a policy hold for its placement only, by policy
    placed_once: Mapping[str, str]
    #: why a policy cannot act as intended on this log, by policy
    cannot_act: Mapping[str, str]
    exit_code: int
    #: the property by which the namespaces of a tenant send together, None if each is on its own
    label_of_tenants: str | None = None

    @property
    def incumbent(self) -> str:
        """The policy that all others are compared with."""
        return self.evaluation.incumbent

    @property
    def candidates(self) -> tuple[str, ...]:
        """The other policies, in the order of the settings."""
        return tuple(name for name in self.policies if name != self.incumbent)

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the replicates."""
        return tuple(self.evaluation.drawn)

    @cached_property
    def pooled(self) -> Mapping[tuple[str, str, str | None], Figure]:
        """The figures of the whole demand over all clusters, by policy, metric and key."""
        return {(row.policy, *row.name): row for row in self.figures if row.scope == "all clusters"}

    @cached_property
    def verdicts(self) -> Sequence[Figure]:
        """The figures that were compared with the incumbent's."""
        return [row for row in self.pooled.values() if row.verdict is not None]

    @cached_property
    def gaps(self) -> Mapping[Name, float]:
        """The distances between log and replay that are known, by figure."""
        return {row.name: row.gap for row in self.pooled.values() if not math.isnan(row.gap)}

    @cached_property
    def directions(self) -> Mapping[str, Better]:
        """The better direction of each metric."""
        return {row.metric: row.better for row in self.pooled.values()}

    @cached_property
    def clusters(self) -> tuple[str, ...]:
        """The clusters with figures, sorted."""
        return tuple(sorted({row.cluster for row in self.figures if row.cluster is not None}))

    @cached_property
    def comparisons(self) -> Comparisons:
        """The numbers of comparisons."""
        judged = [row for row in self.verdicts if not math.isnan(row.p_value)]
        others = [row for row in judged if not (row.primary and may_decide(row.holds_for, self.rules))]
        return Comparisons(len(judged) - len(others), len(others), len({row.name for row in others}))

    @cached_property
    def identical(self) -> Sequence[tuple[str, ...]]:
        """The groups of policies with the same value of every figure, a policy of its own kind as a group of one."""
        groups: dict[str, list[str]] = {}
        for policy in self.policies:
            # As text, since NaN does not equal itself.
            values = repr(
                [(row.name, row.cluster, row.part, row.value) for row in self.figures if row.policy == policy]
            )
            groups.setdefault(values, []).append(policy)
        return list(map(tuple, groups.values()))

    def like(self, policy: str) -> tuple[str, ...]:
        """List the policies with the same figures as this one, itself included."""
        return next(group for group in self.identical if policy in group)

    def incumbents(self, row: Figure) -> Figure | None:
        """Find the same figure of the incumbent."""
        return self.pooled.get((self.incumbent, *row.name))

    def smallest_visible(self, row: Figure) -> float:
        """Calculate the smallest change of a figure that this log can show, in the metric's unit.

        Chance explains whatever is below half the interval, the replay itself whatever is within the gap. A change that
        stays open for another reason is not visible either. It is infinite if so few seeds can show nothing.
        """
        if least_chance(len(self.seeds)) > LEVEL:
            return math.inf
        open_ = abs(row.change) if row.verdict == "inconclusive" else 0.0
        return max((row.change_high - row.change_low) / 2, self.gaps.get(row.name, 0.0), open_)


def results_of(scored: Scored) -> Results:
    """Write everything that was scored as rows of FIGURES."""
    return Results(
        figures=figures_of(scored),
        policies=scored.plan.policies,
        evaluation=scored.plan.evaluation,
        rules=scored.plan.rules,
        inputs=scored.inputs,
        placed_once=scored.placed_once,
        cannot_act=scored.cannot_act,
        exit_code=scored.exit_code,
        label_of_tenants=scored.label_of_tenants,
    )


def summary(results: Results) -> dict[str, Any]:
    """Write the results as JSON. Missing values of a figure are left out of its row."""
    notes = {name: getattr(results, name) for name in ("placed_once", "cannot_act", "label_of_tenants")}
    counts = results.comparisons
    return {
        "schema": SCHEMA,
        "figures": list(map(json_row, results.figures)),
        "comparisons": {
            "together": counts.deciding, "alone": counts.others, "expected_by_chance": round(LEVEL * counts.figures, 2)
        },
        "inputs": plain({**results.inputs.document(), **notes}),
    }  # fmt: skip


def to_json(content: Mapping[str, Any]) -> str:
    """Write a summary as JSON text. The same content gives the same bytes."""
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


class _Record(BaseModel):
    """Base of records with JSON's types, without conversion. Unread keys are permitted."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class _Input(_Record):
    path: str
    files: int
    rows: int | None
    blake2b: str


class _Topology(_Record):
    distance_ms: dict[str, float] = {}
    price_per_gb: dict[str, float] = {}


class _Settings(_Record):
    evaluation: dict[str, Any]
    verdict: dict[str, Any]
    topology: _Topology = _Topology()
    policies: list[dict[str, Any]] = []


class _Manifest(_Record):
    schema_number: ClassVar[int] = MANIFEST_SCHEMA

    command: list[str]
    exit_code: int
    versions: dict[str, str]
    settings: _Settings
    inputs: dict[str, _Input]
    plugins: list[dict[str, str | None]]


class _Notes(_Record):
    placed_once: dict[str, str]
    cannot_act: dict[str, str]
    label_of_tenants: str | None = None


class _Summary(_Record):
    schema_number: ClassVar[int] = SCHEMA

    figures: list[Figure]
    inputs: InputFacts
    notes: _Notes = Field(validation_alias="inputs")


_Shape = TypeVar("_Shape", _Manifest, _Summary)


def _check_shape(file: str, document: Mapping[str, Any], shape: type[_Shape]) -> _Shape:
    schema, right = document.get("schema"), shape.schema_number
    if schema != right:
        again = "evaluate again with this version"
        raise InputError(f"{file}: its schema is {shown(str(schema))}, and {right} can be read; {again}")
    try:
        # In JSON's form, where a list may replace a tuple and an object a dataclass.
        return shape.model_validate_json(json.dumps(document))
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(map(str, problem["loc"]))
        fault = "is missing" if problem["type"] == "missing" else f"is {shown(problem['input'])}: {problem['msg']}"
        raise InputError(f"{file}: {key} {fault}; {_AGAIN}") from None


@contextmanager
def open_result(path: str, schema: pa.Schema) -> Iterator[pq.ParquetFile]:
    """Open a table of results.

    Raises:
        InputError: if it cannot be read, or its columns differ from the schema in names or types.
    """
    with open_parquet(path) as parquet:
        present = parquet.schema_arrow
        for field in schema:
            position = present.get_field_index(field.name)
            if position < 0 or present.field(position).type != field.type:
                raise InputError(f"{path}: its column {field.name!r} is missing or holds no {field.type}; {_AGAIN}")
        yield parquet


@dataclass(frozen=True)
class Run:
    """A finished run, with its folder and the contents read at once. Tables are read by their users."""

    #: path or URI
    path: str
    results: Results
    manifest: Mapping[str, Any]
    #: `summary.json` unchanged
    summary: Mapping[str, Any]


def read_run(path: str, *, manifest: bytes | None = None) -> Run:
    """Read a run's folder.

    Args:
        manifest: content of `manifest.json`, for a run that has not written it yet, by default from the folder.

    Raises:
        InputError: if it is not an output of `evaluate`, or is of another version.
    """
    if manifest is None:
        require_finished(*locate(path), path)
    # The manifest first. It is written last, so without it the run is not complete.
    facts = _read_document(path, "manifest.json", manifest)
    summary = _read_document(path, "summary.json")
    read = _check_shape(f"{path}/summary.json", summary, _Summary)
    _check_shape(f"{path}/manifest.json", facts, _Manifest)
    try:
        return Run(path, _restore_results(read, facts), facts, summary)
    except ValidationError as error:
        keys = ", ".join(sorted({str(problem["loc"][0]) for problem in error.errors()}))
        version = shown(str(facts["versions"].get("pulsar-lookup")))
        raise InputError(
            f"{path}/manifest.json: its settings, of version {version}, cannot be read by this one ({keys}); "
            "evaluate again with this version"
        ) from None


def settings_given(run: Run) -> dict[str, Any]:
    """Find a run's settings in the form of a file, with the contents of all files that they named."""
    settings = dict(run.manifest["settings"])
    # A single broker may not have the first number of a template, and every default is written.
    settings["brokers"] = [
        {key: value for key, value in entry.items() if key != "first" or entry["count"] is not None}
        for entry in settings["brokers"]
    ]
    return settings


def settings_of(run: Run) -> EvaluationFile:
    """Read the settings of a run.

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


def _restore_results(summary: _Summary, manifest: Mapping[str, Any]) -> Results:
    settings = manifest["settings"]
    return Results(
        figures=summary.figures,
        policies=tuple(dict.fromkeys(row.policy for row in summary.figures)),
        evaluation=EvaluationSection.model_validate(settings["evaluation"]),
        rules=VerdictSection.model_validate(settings["verdict"]),
        inputs=summary.inputs,
        placed_once=summary.notes.placed_once,
        cannot_act=summary.notes.cannot_act,
        exit_code=manifest["exit_code"],
        label_of_tenants=summary.notes.label_of_tenants,
    )


def _read_document(path: str, name: str, raw: bytes | None = None) -> dict[str, Any]:
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
        raise InputError(f"{path}/{name}: is not UTF-8 text") from None
    content = parsed_object(text, f"{path}/{name}:")
    # Half a surrogate pair can be written in JSON, and in no page.
    if "\\ud" in text.lower():
        try:
            json.dumps(content, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise InputError(f"{path}/{name}: holds half a surrogate pair, which is not UTF-8 text") from None
    return content
