"""How runs are divided among tasks, and how policies and plug-ins come to workers."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from lookup.engine.plugins import contents_of, load_contents, load_plugins
from lookup.errors import PluginError
from lookup.logs.ingest import ingest
from lookup.replay.tasks import Costs, build_from_recipe, build_on_driver, build_recipe, divide, metrics_of
from tests.replay.plans import settings


@given(
    st.lists(st.integers(1, 100), min_size=1, max_size=4),
    st.lists(st.sampled_from([1.0, 3.0]), min_size=1, max_size=6),
    st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True),
    st.integers(1, 32),
)
def test_every_run_is_in_one_task_and_every_cluster_has_its_facts_once(
    clusters: list[int], policies: list[float], seeds: list[int], cores: int
) -> None:
    """However many cores there are, nothing is left out and nothing is done twice."""
    tasks = divide(clusters, Costs(1.0, 0.0, policies), seeds, cores=cores)

    expected = [
        (cluster, (policy, seed))
        for cluster in range(len(clusters))
        for policy in range(len(policies))
        for seed in seeds
    ]
    assert sorted((task.cluster, run) for task in tasks for run in task.runs) == sorted(expected)
    assert sorted(task.cluster for task in tasks if task.with_facts) == list(range(len(clusters)))
    assert all(task.runs or task.with_facts for task in tasks)
    assert len({task.name for task in tasks}) == len(tasks)


def test_facts_that_take_as_long_as_all_runs_are_a_task_of_their_own() -> None:
    """One cluster on two cores: one gathers its facts, with bounds that take long, while the other replays."""
    tasks = divide([10], Costs(1.0, 4.0, [1.0, 1.0, 1.0, 1.0]), [1], cores=2)

    assert sorted((len(task.runs), task.with_facts) for task in tasks) == [(0, True), (4, False)]


def test_where_preparing_takes_long_a_cluster_stays_whole() -> None:
    """Dividing three clusters would prepare each twice, which two cores would have to do as well."""
    clusters, policies = [8, 5, 6], [1.0] * 4

    assert len(divide(clusters, Costs(5.0, 0.0, policies), [1], cores=2)) == 3
    assert len(divide(clusters, Costs(0.0, 0.0, policies), [1], cores=2)) == 4


def test_one_cluster_alone_may_be_divided() -> None:
    """Of three equal clusters on two cores one is done by both, each with half of its runs."""
    tasks = divide([5, 5, 5], Costs(3.0, 0.0, [1.0] * 4), [1], cores=2)

    assert sorted(len(task.runs) for task in tasks) == [2, 2, 4, 4]


@pytest.mark.parametrize("cores", [2, 8, 16])
def test_cores_end_together_also_where_estimates_are_wrong(cores: int) -> None:
    """Three clusters, sixteen policies, of which any one may take twice as long as estimated."""
    sizes, costs = [10, 10, 10], Costs(1.5, 0.0, [4.0 if number % 4 == 3 else 1.0 for number in range(16)])
    tasks = divide(sizes, costs, range(1, 8), cores=cores)

    for slow in range(16):
        truth = [cost * (2 if number == slow else 1) for number, cost in enumerate(costs.policies)]
        lengths = [10 * (1.5 + sum(truth[policy] for policy, _ in task.runs)) for task in tasks]
        assert _ends(lengths, cores) <= 1.2 * sum(lengths) / cores


@given(
    st.lists(st.integers(0, 1000), min_size=1, max_size=5),
    st.lists(st.sampled_from([1.0, 4.0]), min_size=1, max_size=6),
    st.sampled_from([0.5, 1.5, 5.0]),
    st.sampled_from([0.0, 1.0, 10.0]),
    st.sampled_from([1, 2, 4, 16]),
)
@example([1, 2, 1], [1.0, 1.0], 0.5, 0.0, 2)
def test_the_last_core_is_done_no_later_than_with_whole_clusters(
    clusters: list[int], policies: list[float], task: float, facts: float, cores: int
) -> None:
    """Whatever is divided, it is for the sake of an earlier end."""
    tasks = divide(clusters, Costs(task, facts, policies), [1], cores=cores)

    lengths = [
        clusters[one.cluster] * (task + facts * one.with_facts + sum(policies[policy] for policy, _ in one.runs))
        for one in tasks
    ]
    whole = sorted((size * (task + facts + sum(policies)) for size in clusters), reverse=True)
    assert _ends(lengths, cores) <= _ends(whole, cores)


def _ends(lengths: list[float], cores: int) -> float:
    busy = [0.0] * cores
    for length in lengths:
        busy = sorted([busy[0] + length, *busy[1:]])
    return busy[-1]


_READER = """
from dataclasses import dataclass
from typing import ClassVar
from lookup.hooks import hookimpl
from lookup.model import Row

@dataclass(frozen=True)
class Reader:
    name: ClassVar[str] = "reader"

    def parse(self, lines, source):
        for number, line in lines:
            yield Row("lookups", number, {"ts": number, "topic": f"persistent://t/n/WORD-{line}"})

@hookimpl
def lookup_register_log_readers():
    return [Reader]
"""


def test_workers_build_what_the_driver_built() -> None:
    """A recipe gives equal policies, and every metric there is."""
    file = settings(policies=[{"name": "p", "selector": {"use": "explore", "epsilon": 0.2}, "on_error": "skip"}])
    policies, metrics = build_from_recipe(build_recipe(file))

    assert policies == build_on_driver(file)
    assert [metric.name for metric in metrics] == [metric.name for metric in metrics_of(load_plugins())]


def test_plug_in_files_travel_by_content(tmp_path: Path) -> None:
    """What was read on one machine is loaded on another, where the file is not."""
    file = tmp_path / "travels.py"
    file.write_text(_READER)
    contents = contents_of([str(file)])
    file.unlink()

    assert load_contents(contents).find("log_readers", "reader").name == "reader"


def test_a_plug_in_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    """A mistake in a plug-in file is told on the driver, with the file's own path."""
    file = tmp_path / "wrong.py"
    file.write_text("import nothing_of_that_name")

    with pytest.raises(PluginError, match=rf"plug-in file {file} cannot be loaded: .*nothing_of_that_name"):
        build_on_driver(settings(plugin_files=[str(file)]))


@pytest.mark.spark
def test_an_edited_reader_is_loaded_again(spark: SparkSession, tmp_path: Path) -> None:
    """A session reads with the plug-in file as it is at each ingest, also when an old state comes back."""
    plugin, log = tmp_path / "edited_reader.py", tmp_path / "log.txt"
    log.write_text("line\n")
    found = []
    for run, word in enumerate(("one", "two", "one")):
        plugin.write_text(_READER.replace("WORD", word))
        reader = load_plugins([plugin]).find("log_readers", "reader")()
        output = tmp_path / str(run)
        ingest(spark, [str(log)], reader, str(output), cluster="c", plugin_files=[str(plugin)])
        found += [row["topic"] for row in spark.read.parquet(str(output / "lookups")).collect()]

    assert found == [f"persistent://t/n/{word}-line" for word in ("one", "two", "one")]
