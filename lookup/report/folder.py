"""Read back what an evaluation left in its output: the scored comparison and the manifest, without replaying."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError

from lookup.errors import InputError
from lookup.hooks import Metric, Question
from lookup.logs.sources import locate, require_finished
from lookup.model.documents import parsed_object
from lookup.model.quoting import shown
from lookup.report.manifest import SCHEMA as MANIFEST_SCHEMA
from lookup.report.shape import Manifest, Summary, require_shape
from lookup.score.luck import Estimate
from lookup.score.scoring import Fidelity, Plan, Scored
from lookup.score.series import Series
from lookup.score.summary import SCHEMA as SUMMARY_SCHEMA
from lookup.score.verdict import InCluster, Span, Verdict
from lookup.score.winners import Winner
from lookup.settings.evaluation import EvaluationFile, EvaluationSection, VerdictSection

__all__ = ["RecordedMetric", "Run", "read_run", "restored", "settings_given", "settings_of"]

#: Inputs of a summary that `Scored` holds as fields of their own.
_NOTES = ("placed_once", "cannot_act")


@dataclass(frozen=True, slots=True)
class RecordedMetric:
    """What a summary says of a metric: enough to print its figures, not to compute them."""

    name: str
    unit: str
    better: str
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
    for name, document, schema, shape in (
        ("summary.json", summary, SUMMARY_SCHEMA, Summary),
        ("manifest.json", facts, MANIFEST_SCHEMA, Manifest),
    ):
        if document.get("schema") != schema:
            raise InputError(
                f"{path}/{name}: its schema is {shown(str(document.get('schema')))}, and {schema} can be read; "
                "evaluate again with this version"
            )
        require_shape(f"{path}/{name}", document, shape)
    try:
        return Run(path, restored(summary, facts), facts, summary)
    except ValidationError as error:
        keys = ", ".join(sorted({str(problem["loc"][0]) for problem in error.errors()}))
        version = shown(str(facts["versions"].get("pulsar-lookup")))
        raise InputError(
            f"{path}/manifest.json: its settings, of version {version}, cannot be read by this one ({keys}); "
            "evaluate again with this version"
        ) from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"{type(error).__name__}: {error}"
        raise InputError(f"{path}: summary.json and manifest.json are not those of an evaluation ({what})") from None


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


def restored(summary: Mapping[str, Any], manifest: Mapping[str, Any]) -> Scored:
    """Rebuild a scored replay from its summary: the same figures and sentences, without the sums behind them."""
    settings = manifest["settings"]
    evaluation = EvaluationSection.model_validate(settings["evaluation"])
    rules = VerdictSection.model_validate(settings["verdict"])
    rows = summary["metrics"]
    # Runs of earlier versions guarded nothing.
    guarded = frozenset(summary.get("guarded", ()))
    metrics = {
        name: cast(
            "Metric", RecordedMetric(name, row["unit"], row["direction"], "log" if name in guarded else "demand")
        )
        for row in rows
        for name in [row["metric"]]
    }
    estimates = []
    for row in rows:
        # A metric that could not be computed has a row all the same, and no estimate.
        if row["value"] is None and row["key"] is None and row["by"] is None:
            continue
        by = tuple((row["by"] or {}).items())
        series = Series(row["policy"], metrics[row["metric"]], row["key"], by, {})
        value, low, high = (_number(row[name]) for name in ("value", "low", "high"))
        estimates.append(Estimate(series, row["cluster"], value, low, high))
    return Scored(
        plan=Plan(tuple(dict.fromkeys(row["policy"] for row in rows)), evaluation, rules),
        metrics=tuple(metrics.values()),
        estimates=estimates,
        verdicts=[_verdict(row) for row in summary["verdicts"]],
        winners=[
            Winner(row["metric"], row["key"], row["candidates"], _number(row["value"]), _number(row["advantage"]))
            for row in summary.get("winners", ())
        ],
        fidelity=[_fidelity(row) for row in summary["fidelity"]],
        inputs={name: value for name, value in summary["inputs"].items() if name not in _NOTES},
        placed_once=summary["inputs"]["placed_once"],
        cannot_act=summary["inputs"]["cannot_act"],
        exit_code=manifest["exit_code"],
    )


def _verdict(row: Mapping[str, Any]) -> Verdict:
    # Runs of earlier versions have no margins, one question, and no differences by cluster.
    return Verdict(
        policy=row["policy"],
        against=row["against"],
        metric=row["metric"],
        key=row["key"],
        verdict=row["verdict"],
        reason=row["reason"],
        delta=_number(row["delta"]),
        low=_number(row["low"]),
        high=_number(row["high"]),
        margin=_number(row.get("margin")),
        primary=row["primary"],
        holds_for=row["holds_for"],
        p_value=_number(row["p_value"]),
        p_family=_number(row["p_family"]),
        alone=row.get("alone"),
        question=row.get("question", "demand"),
        guard=row.get("guard"),
        on_log=_span(row.get("on_log")),
        for_demand=_span(row.get("for_demand")),
        clusters=tuple(
            InCluster(one["cluster"], *(_number(one[name]) for name in ("delta", "low", "high")))
            for one in row.get("clusters", ())
        ),
    )


def _span(row: Mapping[str, Any] | None) -> Span:
    return Span() if row is None else Span(*(_number(row[name]) for name in ("low", "high", "p_value")))


def _fidelity(row: Mapping[str, Any]) -> Fidelity:
    numbers = {name: _number(row[name]) for name in ("logged", "resimulated", "low", "high", "gap")}
    return Fidelity(row["metric"], row["key"], **numbers, seeds=tuple(row["seeds"]), reason=row["reason"])


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


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
