"""Load reports of a generated log."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from lookup.logs.generator.generate import generate
from lookup.model.load_data import broker_load_from_json
from tests.logs.generator.logs import SMALL, read


def test_loads_follow_the_traffic(sample: Path, lookups: pd.DataFrame) -> None:
    """A broker's reported rate is proportional to the weight it served in the minute before the report."""
    loads = read(sample, "loads")
    served = lookups[(lookups["result"] == "connect")]
    minute = served["ts"].dt.ceil("60s")
    weight = served.groupby([served["cluster"], served["broker"], minute])["weight"].sum()
    rate = loads["load"].map(lambda text: broker_load_from_json(text).msg_rate_in)
    keys = pd.MultiIndex.from_frame(loads[["cluster", "broker", "ts"]])

    assert np.corrcoef(weight.reindex(keys).fillna(0.0), rate)[0, 1] > 0.999


def test_load_reports_are_pulsars(sample: Path) -> None:
    """Reports read back, count the bundles and stay within their limits."""
    reports = [broker_load_from_json(text) for text in read(sample, "loads")["load"]]

    assert max(report.bundle_count for report in reports) > 10
    assert max(report.topics for report in reports) > 10
    assert all(0.0 <= report.max_resource_usage <= 1.0 for report in reports)
    assert all(report.cpu.usage <= report.cpu.limit for report in reports)


def test_no_reports_where_none_are_wanted(tmp_path: Path) -> None:
    """`load_report_s = 0` writes an empty table."""
    report = generate(replace(SMALL, load_report_s=0), tmp_path / "log")

    assert report.rows["loads"] == 0
    assert len(read(report.output, "loads")) == 0
