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
from lookup.report.shape import Manifest, Summary, shaped
from lookup.score.luck import Estimate
from lookup.score.scoring import Plan, Scored
from lookup.score.series import Series
from lookup.settings.evaluation import EvaluationFile, EvaluationSection, VerdictSection

__all__ = ["Run", "read_run", "settings_given", "settings_of"]


@dataclass(frozen=True, slots=True)
class _RecordedMetric:
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
    read = shaped(f"{path}/summary.json", summary, Summary)
    shaped(f"{path}/manifest.json", facts, Manifest)
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


def _restored(summary: Summary, manifest: Mapping[str, Any]) -> Scored:
    """Rebuild a scored replay from its summary: the same figures and sentences, without the sums behind them."""
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
