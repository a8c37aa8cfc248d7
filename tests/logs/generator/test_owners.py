"""Who owned what under the logging policy of a generated log, and by which odds."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lookup.logs.generator.generate import GenerateSettings, generate
from lookup.model.bundles import NamespaceBundle, bundle_of, equal_boundaries
from lookup.model.names import TopicName
from tests.logs.generator.logs import SMALL, read

#: A log with one bundle per topic and many topics: thousands of assignments to count.
MANY_ASSIGNMENTS = GenerateSettings(
    lookups=60_000,
    clusters=1,
    hours=1,
    topics=9_000,
    namespaces=40,
    bundles_per_namespace=1_024,
    brokers=6,
    losses=0,
    joins=0,
    leaves=0,
    updates=0,
    unloads=0,
    sheds=0,
    splits=0,
    zipf=0.0,
    load_report_s=0,
)


# Owners


def test_owners_answer(sample: Path, lookups: pd.DataFrame) -> None:
    """Replaying OWNERSHIP and BROKERS gives exactly the logged broker of every lookup."""
    for name in ("east", "west"):
        rows = lookups[(lookups["cluster"] == name) & ~lookups["topic"].str.contains("/healthcheck")]
        owners = _replayed(read(sample, "ownership").query("cluster == @name"), read(sample, "brokers"), rows)
        answered = rows["broker"].notna()

        assert (owners[answered] == rows.loc[answered, "broker"]).all()
        assert answered.mean() > 0.99


def test_events(sample: Path) -> None:
    """Each cluster has its unloads, sheds and splits, by the right hand; splits name three boundaries."""
    rows = read(sample, "ownership")
    counts = rows.groupby(["cluster", "event", "by"]).size()
    splits = rows[rows["event"] == "split"]

    for name in ("east", "west"):
        assert counts[name, "unloaded", "admin"] == SMALL.unloads
        assert counts[name, "unloaded", "policy"] == SMALL.sheds
        assert counts[name, "split", "admin"] == SMALL.splits
    for row in splits.itertuples():
        bounds = NamespaceBundle.parse(row.bundle).range
        low, middle, high = (int(text, 16) for text in row.boundaries)
        assert (low, high) == (bounds.lower, bounds.upper)
        assert low < middle < high


def test_the_log_begins_without_owners(sample: Path, lookups: pd.DataFrame) -> None:
    """No bundle is owned at the first lookup: every policy starts from nothing."""
    assert (read(sample, "ownership")["ts"] > lookups["ts"].min()).all()


def test_without_a_logging_policy(tmp_path: Path) -> None:
    """`logging_policy = "none"` leaves out whatever would tell who answered."""
    output = Path(generate(replace(SMALL, logging_policy="none"), tmp_path / "log").output)
    frame, ownership = read(output, "lookups"), read(output, "ownership")

    assert frame[["asked_broker", "broker", "propensity", "latency_ms"]].isna().all().all()
    assert set(frame["result"]) == {"unknown", "redirect"}
    assert set(ownership["by"]) == {"admin"}
    assert ownership["broker"].isna().all()


def _replayed(ownership: pd.DataFrame, brokers: pd.DataFrame, rows: pd.DataFrame) -> pd.Series[Any]:
    """Walk events and lookups in order of time in plain Python; an owner counts from its assigning lookup on."""
    events = [
        (row.ts - (timedelta(milliseconds=1.5) if row.event == "owned" else timedelta(0)), 0, row)
        for row in ownership.itertuples()
    ]
    events += [(row.ts, 0, row) for row in brokers.itertuples() if row.event == "unregistered"]
    events += [(row.ts, 1, row) for row in rows.itertuples()]
    bounds: dict[str, tuple[int, ...]] = {}
    owner: dict[str, str | None] = {}
    found = {}
    for _, kind, row in sorted(events, key=lambda event: event[:2]):
        if kind == 1:
            namespace = str(TopicName.parse(row.topic).namespace)
            own = bounds.setdefault(namespace, equal_boundaries(SMALL.bundles_per_namespace))
            found[row.Index] = owner.get(f"{namespace}/{bundle_of(row.topic, own)}")
        elif row.event == "unregistered":
            owner = {bundle: broker for bundle, broker in owner.items() if broker != row.broker}
        elif row.event == "split":
            namespace = row.bundle.rpartition("/")[0]
            low, middle, high = (int(text, 16) for text in row.boundaries)
            own = bounds.get(namespace, equal_boundaries(SMALL.bundles_per_namespace))
            bounds[namespace] = tuple(sorted({*own, middle}))
            for lower, upper in ((low, middle), (middle, high)):
                owner[f"{namespace}/0x{lower:08x}_0x{upper:08x}"] = owner.get(row.bundle)
        else:
            owner[row.bundle] = row.broker if row.event == "owned" else None
    return pd.Series(found).reindex(rows.index)


# Odds: those that are written down are those that were rolled


def test_uniform_odds_are_true(tmp_path: Path) -> None:
    """Under `random` every assignment says 1/n, and every broker got about that share."""
    made = _assignments(generate(MANY_ASSIGNMENTS, tmp_path / "log").output)
    share = made["broker"].value_counts(normalize=True)

    assert len(made) > 5_000
    assert made["propensity"].to_numpy() == pytest.approx(1 / 6)
    assert share.to_numpy() == pytest.approx(1 / 6, abs=4 * np.sqrt(1 / 6 * 5 / 6 / len(made)))


def test_rack_odds_are_true(tmp_path: Path) -> None:
    """Under `rack-random` the stated odds of every broker equal its share of the assignments, by client rack."""
    settings = replace(MANY_ASSIGNMENTS, logging_policy="rack-random")
    made = _assignments(generate(settings, tmp_path / "log").output)
    made["rack"] = made["properties"].map(lambda text: json.loads(text).get("rack", "-"))
    checked = 0
    for _, rows in made.groupby("rack"):
        for _, own in rows.groupby("broker"):
            stated = own["propensity"].iloc[0]
            tolerance = 4.5 * np.sqrt(stated * (1 - stated) / len(rows))
            checked += 1
            assert own["propensity"].nunique() == 1
            assert len(own) / len(rows) == pytest.approx(stated, abs=tolerance)

    assert checked >= 24


def test_racks_attract(tmp_path: Path) -> None:
    """Under `rack-random` a broker of the client's rack is about five times as likely as under `random`."""
    settings = replace(MANY_ASSIGNMENTS, logging_policy="rack-random")
    made = _assignments(generate(settings, tmp_path / "log").output)

    assert made["propensity"].max() == pytest.approx(0.8 / 2 + 0.2 / 6)
    assert made["propensity"].min() == pytest.approx(0.2 / 6)


def test_hits_repeat_the_odds_of_their_assignment(lookups: pd.DataFrame) -> None:
    """Between two events a bundle's answers all carry the odds of the assignment that made its owner."""
    east = lookups[(lookups["cluster"] == "east") & lookups["propensity"].notna()]
    changes = east.groupby("topic").agg(brokers=("broker", "nunique"), odds=("propensity", "nunique"))

    assert (changes.loc[changes["brokers"] == 1, "odds"] <= 2).all()


def _assignments(output: Path) -> pd.DataFrame:
    """Return the lookups that gave a bundle its owner, in a log where owners never change."""
    frame = read(output, "lookups").query("result == 'connect' and not read_only and propensity.notna()").copy()
    bounds = equal_boundaries(MANY_ASSIGNMENTS.bundles_per_namespace)
    bundle = {
        topic: f"{TopicName.parse(topic).namespace}/{bundle_of(topic, bounds)}" for topic in frame["topic"].unique()
    }
    frame["bundle"] = frame["topic"].map(bundle)
    return frame.drop_duplicates("bundle").copy()
