"""Settings of the generator: what makes no sense is refused in sentences, everything else works."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lookup.errors import SettingsError
from lookup.logs.generator.generate import GenerateSettings, generate
from tests.logs.generator.logs import read


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"lookups": 0}, "lookups is 0, "),
        ({"zipf": -1.0}, "zipf is -1.0, "),
        ({"hours": float("nan")}, "hours is nan, "),
        ({"brokers": 4}, "losses + joins + leaves + updates is 5, "),
        ({"racks": 13}, "racks is 13, "),
        ({"clients": 2}, "racks is 3, "),
        ({"tenants": 25}, "tenants is 25, "),
        ({"topics": 20}, "namespaces is 24, "),
        ({"lookups": 1}, "lookups is 1, "),
        ({"clusters": 30, "racks": 7}, "clusters times racks is 210, "),
    ],
)
def test_bad_settings(change: dict[str, Any], sentence: str) -> None:
    """A figure out of range, or two that contradict each other, is one sentence."""
    with pytest.raises(SettingsError) as caught:
        GenerateSettings(**change)
    (problem,) = caught.value.problems
    assert problem.startswith(sentence)


def test_all_mistakes_at_once() -> None:
    """Several mistakes are reported together."""
    with pytest.raises(SettingsError) as caught:
        GenerateSettings(lookups=-5, topics=0, racks=0)
    assert len(caught.value.problems) >= 3


@pytest.mark.parametrize(
    "start",
    [
        datetime(9999, 12, 31, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone(timedelta(hours=-10))),
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
        datetime(1970, 1, 1, 23, 59, 59, tzinfo=UTC),
    ],
)
def test_a_log_outside_the_calendar_is_refused(start: datetime) -> None:
    """The brokers of a log start a day before it, none of them before 1970, and it ends within the year 9999."""
    with pytest.raises(SettingsError) as caught:
        GenerateSettings(start=start, hours=48)

    (problem,) = caught.value.problems
    assert problem.startswith(f"start is {start.isoformat()}, ")
    assert "1970-01-02T00:00:00Z and 9999-12-29T23:59:59Z" in problem


def test_a_start_between_two_seconds_is_refused() -> None:
    """A log begins at the instant that is given, or not at all."""
    with pytest.raises(SettingsError, match=r"start is 2026-01-05T00:00:00\.5"):
        GenerateSettings(start=datetime(2026, 1, 5, microsecond=500_000, tzinfo=UTC))


@pytest.mark.parametrize("start", [datetime(1970, 1, 2, tzinfo=UTC), datetime(9999, 12, 31, 22, 59, 59, tzinfo=UTC)])
def test_the_first_and_the_last_log_can_be_written(start: datetime, tmp_path: Path) -> None:
    """At both ends of what is permitted the tables are complete, and no timestamp is before the epoch."""
    report = generate(GenerateSettings(lookups=50, hours=1, start=start), tmp_path)

    stamps = pd.concat([read(tmp_path, name)["ts"] for name in report.rows]).astype("int64")
    assert report.rows["lookups"] == 50
    assert stamps.min() >= 0


def test_a_start_without_zone_is_utc() -> None:
    """A naive start means UTC, wherever the machine stands."""
    naive = GenerateSettings(start=datetime(2026, 1, 5))  # noqa: DTZ001  that is what is tested

    assert naive.start_us == GenerateSettings().start_us


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.builds(
        GenerateSettings,
        lookups=st.integers(4, 3_000),
        clusters=st.integers(1, 4),
        hours=st.floats(0.02, 30),
        topics=st.integers(5, 50),
        tenants=st.integers(1, 3),
        namespaces=st.integers(3, 5),
        bundles_per_namespace=st.integers(1, 9),
        brokers=st.integers(10, 12),
        racks=st.integers(1, 10),
        clients=st.integers(10, 50),
        property_sets=st.integers(1, 30),
        losses=st.integers(0, 3),
        splits=st.integers(0, 40),
        unloads=st.integers(0, 9),
        load_report_s=st.sampled_from([0, 60, 977]),
        policy=st.sampled_from(["random", "rack-only", "stock-modular-4.2", "stock-extensible-5.0"]),
        seed=st.integers(0, 2**63 - 1),
    )
)
def test_any_shape_works(tmp_path: Path, chosen: GenerateSettings) -> None:
    """Whatever the shape, the log has the rows asked for, in order and within its hours."""
    frame = read(generate(chosen, tmp_path, force=True).output, "lookups")

    assert len(frame) == chosen.lookups
    assert frame["ts"].min() >= pd.Timestamp(chosen.start_us, unit="us", tz="UTC")
    assert frame["ts"].max() < pd.Timestamp(chosen.end_us, unit="us", tz="UTC")
    assert all(rows["ts"].is_monotonic_increasing for _, rows in frame.groupby("cluster"))
