"""Plug-ins that fail on a worker: a run ends with one sentence that names the part, and uses files as they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lookup.errors import ContractError, PluginError, PolicyError, PulsarLookupError
from lookup.replay.run import replay
from lookup.settings.evaluation import EvaluationFile
from tests.replay.small import evaluation_in, write_log
from tests.replay.worlds import MICRO, START_US

_PART = """
from typing import ClassVar
from dataclasses import dataclass
from lookup.hooks import hookimpl

@dataclass(frozen=True)
class Broken:
    name: ClassVar[str] = "broken"
    reads: ClassVar[frozenset[str]] = frozenset()

    def odds(self, request, brokers, scores, view):
        {body}

@hookimpl
def lookup_register_selectors():
    return [Broken]
"""
_BODIES: Sequence[tuple[str, type[PulsarLookupError], str]] = (
    (
        "raise KeyError('rack')",
        PolicyError,
        r"policy 'p': part 'broken' raised KeyError: 'rack' \(broken\.py, line 12\); it was",
    ),
    (
        "return [float('nan')] * len(brokers)",
        ContractError,
        r"part 'broken' answered odds nan for broker '[^']+', not a finite",
    ),
    (
        "return [-0.5] * len(brokers)",
        ContractError,
        r"part 'broken' answered odds -0\.5 for broker '[^']+', not a finite",
    ),
    ("return [1.0] * 7", ContractError, r"part 'broken' answered odds of shape \(7,\) for 1 brokers"),
    ("return request.client", ContractError, r"part 'broken' read request\.client without 'client' in its reads"),
)


@pytest.mark.spark
@pytest.mark.parametrize(("body", "kind", "sentence"), _BODIES)
def test_a_part_that_fails_on_a_worker_is_one_sentence(
    spark: SparkSession, tmp_path: Path, body: str, kind: type[PulsarLookupError], sentence: str
) -> None:
    """A plug-in that raises, or answers what it may not, ends the run on Spark with a sentence that names it."""
    (tmp_path / "broken.py").write_text(_PART.format(body=body))
    write_log(tmp_path, {}, {"ts": START_US + 90 * MICRO})
    policies = [{"name": "p", "selector": "broken"}]
    files = [str(tmp_path / "broken.py")]
    settings = evaluation_in(tmp_path, policies=policies, plugin_files=files)

    with pytest.raises(kind, match=sentence) as raised:
        replay(spark, settings, str(tmp_path / "output"))
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "output" / ".work").exists()


@pytest.mark.spark
def test_the_collector_rests_while_a_task_decides(spark: SparkSession, tmp_path: Path) -> None:
    """Also in a worker's first task, although reading what Spark sends once starts the collector."""
    (tmp_path / "broken.py").write_text(_PART.format(body="import gc; return [float(not gc.isenabled())]"))
    write_log(tmp_path)
    files, policies = [str(tmp_path / "broken.py")], [{"name": "p", "selector": "broken"}]
    settings = evaluation_in(tmp_path, policies=policies, plugin_files=files)

    outcome = replay(spark, settings, str(tmp_path / "output"))

    [answered] = [one.sums.sum(axis=0).tolist() for one in outcome.sums if one.metric == "answered_ratio"]
    assert answered == [1.0, 1.0]


_METRIC = """
import numpy as np
from typing import ClassVar
from dataclasses import dataclass
from lookup.hooks import hookimpl

@dataclass(frozen=True)
class Broken:
    name: ClassVar[str] = "a_broken_ratio"
    unit: ClassVar[str] = "ratio"
    better: ClassVar[str] = "up"
    grain: ClassVar[str] = "lookup"
    resample: ClassVar[str] = "bundle"

    def keys(self, batch):
        {keys}

    def accumulate(self, batch, key):
        {accumulate}

    def value(self, sums):
        return sums[..., 0]

@hookimpl
def lookup_register_metrics():
    return [Broken]
"""


def _measured(folder: Path, keys: str = "return (None,)", accumulate: str = "return None") -> EvaluationFile:
    """Write a metric and a log, and return an evaluation of them."""
    (folder / "metric.py").write_text(_METRIC.format(keys=keys, accumulate=accumulate))
    write_log(folder)
    return evaluation_in(folder, plugin_files=[str(folder / "metric.py")])


@pytest.mark.spark
def test_a_metric_that_fails_on_a_worker_is_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    """A metric that ends its process ends the run on Spark with a sentence that names it."""
    settings = _measured(tmp_path, accumulate="raise SystemExit(0)")

    with pytest.raises(PluginError, match=r"^metric 'a_broken_ratio' .* \(metric\.py, line 19\)$"):
        replay(spark, settings, str(tmp_path / "output"))


@pytest.mark.spark
def test_a_plug_in_file_may_be_edited_between_runs_of_a_session(spark: SparkSession, tmp_path: Path) -> None:
    """A second run in the same session uses the file as it is by then, under the same name."""
    write_log(tmp_path, {}, {"ts": START_US + 90 * MICRO})
    policies, file = [{"name": "p", "selector": "broken"}], tmp_path / "edited.py"
    settings = evaluation_in(tmp_path, policies=policies, plugin_files=[str(file)])
    answered = []
    for odds in ("0.0", "1.0"):
        file.write_text(_PART.format(body=f"return [{odds}] * len(brokers)"))
        outcome = replay(spark, settings, str(tmp_path / odds))
        answered += [one.sums[:, 0].sum() for one in outcome.sums if one.metric == "answered_ratio"]

    assert answered == [0.0, 2.0]
