"""`generate`: one seed gives one log in the canonical layout; nothing is half-written or overwritten by accident."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lookup.logs.generator import generate as module
from lookup.logs.generator.generate import generate
from lookup.logs.schema import CANONICAL
from lookup.model.load_data import broker_load_from_json, bundle_stats_from_json
from lookup.model.names import TopicName
from tests.logs.generator.logs import SMALL, TABLES, read
from tests.programs import Elsewhere, written

# One seed, one log


def test_same_seed_same_files(sample: Path, tmp_path: Path) -> None:
    """The same settings give the same files, byte for byte."""
    again = Path(generate(SMALL, tmp_path / "again").output)
    names = sorted(path.relative_to(sample) for path in sample.rglob("*.parquet"))

    assert [(again / name).read_bytes() == (sample / name).read_bytes() for name in names] == [True] * len(names)


def test_file_size_does_not_matter(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are the same whatever the size of the files."""
    monkeypatch.setattr(module, "ROWS_PER_FILE", 2_000)
    many = Path(generate(SMALL, tmp_path / "many").output)

    assert len(list(many.rglob("lookups/**/*.parquet"))) > len(list(sample.rglob("lookups/**/*.parquet")))
    assert read(sample, "lookups").equals(read(many, "lookups"))


# Files as a canonical log has them


def test_a_file_of_lookups_has_one_cluster_and_day(tmp_path: Path) -> None:
    """A log over midnight has a file for each cluster and UTC day, with the day in its name."""
    late = replace(SMALL, start=datetime(2026, 1, 5, 23, 30, tzinfo=UTC))
    files = sorted(Path(generate(late, tmp_path / "late").output, "lookups").iterdir())

    found = {}
    for file in files:
        frame = pd.read_parquet(file)
        ((cluster, day),) = {*zip(frame["cluster"], frame["ts"].dt.strftime("%Y-%m-%d"), strict=True)}
        found[file.name] = cluster, day
    assert found == {
        "part-00000-2026-01-05.parquet": ("east", "2026-01-05"),
        "part-00001-2026-01-06.parquet": ("east", "2026-01-06"),
        "part-00002-2026-01-05.parquet": ("west", "2026-01-05"),
        "part-00003-2026-01-06.parquet": ("west", "2026-01-06"),
    }


@pytest.mark.parametrize("name", TABLES)
def test_other_programs_read_what_was_written(elsewhere: Elsewhere, sample: Path, name: str) -> None:
    """Every row with every column, by what a newcomer types first."""
    assert elsewhere(sample / name, CANONICAL[name]) == written(sample / name, CANONICAL[name])


# Nothing half-written, nothing overwritten by accident


def test_a_failing_writer_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes wrong in the writing thread ends the run."""
    monkeypatch.setattr(module, "write_parquet", _raising(OSError("disk full")))

    with pytest.raises(OSError, match="disk full"):
        generate(replace(SMALL, lookups=100), tmp_path / "log")
    assert list(tmp_path.iterdir()) == []


def _raising(error: Exception) -> Callable[..., None]:
    def raises(*_: object, **__: object) -> None:
        raise error

    return raises


def test_bundles_follow_the_traffic(sample: Path, lookups: pd.DataFrame) -> None:
    """A bundle carries the more messages the more is looked up in it, and what it carries lasts a while."""
    bundles = read(sample, "bundles").query("cluster == 'east'")
    stats = bundles["stats"].map(bundle_stats_from_json)
    bundles["rate"] = stats.map(lambda each: each.msg_rate_in)
    mean = bundles.groupby("bundle")["rate"].mean()
    topics = lookups.query("cluster == 'east' and ~topic.str.contains('/healthcheck')")["topic"].value_counts()
    namespaces = topics.groupby(lambda topic: str(TopicName.parse(topic).namespace)).sum()
    carried = mean.groupby(lambda bundle: bundle.rpartition("/")[0]).sum()
    steps = bundles.groupby("bundle")["rate"].pct_change().abs()

    assert np.corrcoef(namespaces, carried.reindex(namespaces.index))[0, 1] > 0.95
    assert 0.05 < steps.median() < 0.3
    assert all(each.msg_throughput_out == 2 * each.msg_throughput_in > 0 for each in stats)


def test_loads_are_those_of_the_bundles_that_a_broker_owns(sample: Path) -> None:
    """All messages of a cluster are on its brokers once every bundle has an owner."""
    sent = read(sample, "bundles").query("cluster == 'west'")
    loads = read(sample, "loads").query("cluster == 'west'")
    by_bundles = sent["stats"].map(lambda text: bundle_stats_from_json(text).msg_rate_in).groupby(sent["ts"]).sum()
    by_brokers = loads["load"].map(lambda text: broker_load_from_json(text).msg_rate_in).groupby(loads["ts"]).sum()
    late = by_bundles.index[len(by_bundles) // 2 :]

    assert (by_brokers[late] / by_bundles[late]).max() == pytest.approx(1.0)
    assert (by_brokers[late] / by_bundles[late]).median() > 0.95


def test_load_reports_are_pulsars(sample: Path) -> None:
    """Reports read back, count the bundles and stay within their limits."""
    reports = [broker_load_from_json(text) for text in read(sample, "loads")["load"]]

    assert max(report.bundle_count for report in reports) > 10
    assert max(report.topics for report in reports) > 10
    assert all(0.0 <= report.max_resource_usage <= 1.0 for report in reports)
    assert all(report.cpu.usage <= report.cpu.limit for report in reports)


def test_no_reports_where_none_are_wanted(tmp_path: Path) -> None:
    """`load_report_s = 0` writes empty tables."""
    report = generate(replace(SMALL, load_report_s=0), tmp_path / "log")

    assert report.rows["loads"] == report.rows["bundles"] == 0
    assert len(read(report.output, "loads")) == 0
