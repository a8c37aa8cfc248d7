"""Who owned what in a generated log, by which policy and by which odds."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import lookup
from lookup.errors import SettingsError
from lookup.logs.generator.generate import GenerateSettings, generate
from lookup.logs.generator.loads import CAPACITY
from lookup.logs.jobs import InProcess
from lookup.model.bundles import NamespaceBundle, bundle_of, equal_boundaries
from lookup.model.names import TopicName
from tests.logs.generator.logs import SMALL, TABLES, read

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
    splits=0,
    zipf=0.0,
    load_report_s=0,
    policy="random",
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
    """Each cluster has its unloads and splits, by the right hand; splits name three boundaries."""
    rows = read(sample, "ownership")
    counts = rows.groupby(["cluster", "event", "by"]).size()
    splits = rows[rows["event"] == "split"]

    for name in ("east", "west"):
        assert counts[name, "unloaded", "admin"] == SMALL.unloads
        assert counts[name, "split", "admin"] == SMALL.splits
    for row in splits.itertuples():
        bounds = NamespaceBundle.parse(row.bundle).range
        low, middle, high = (int(text, 16) for text in row.boundaries)
        assert (low, high) == (bounds.lower, bounds.upper)
        assert low < middle < high


def test_the_log_begins_with_a_bundle_for_each_broker_but_two(sample: Path, lookups: pd.DataFrame) -> None:
    """All others are placed by what the log shows, and the two empty brokers tie."""
    ownership, brokers = read(sample, "ownership"), read(sample, "brokers")
    for name in ("east", "west"):
        early = ownership[(ownership["cluster"] == name) & (ownership["ts"] <= lookups["ts"].min())]
        registered = brokers[(brokers["cluster"] == name) & (brokers["ts"] < lookups["ts"].min())]

        assert len(early) == len(registered) - 2
        assert early["broker"].is_unique


@pytest.mark.parametrize(
    ("policy", "manager", "version"),
    [
        ("stock-modular-4.2", "ModularLoadManagerImpl", "4.2.4"),
        ("stock-extensible-5.0", "ExtensibleLoadManagerImpl", "5.0.1"),
    ],
)
def test_brokers_run_what_the_policy_is_of(tmp_path: Path, policy: str, manager: str, version: str) -> None:
    """BROKERS names manager and release, as real ones do."""
    rows = read(generate(replace(SMALL, lookups=300, policy=policy), tmp_path / "log").output, "brokers")
    published = [json.loads(text) for text in rows["lookup_data"].dropna()]

    assert {each["loadManagerClassName"].rpartition(".")[2] for each in published} == {manager}
    assert {each["brokerVersion"] for each in published} == {version}


def test_a_policy_of_ones_own_places_bundles(tmp_path: Path) -> None:
    """A TOML file is as good as a name: here one of two brokers gets everything."""
    file = tmp_path / "mine.toml"
    file.write_text('name = "mine"\nselector = "best"\nscorers = [{ use = "property-match", key = "zone" }]\n')
    log = generate(replace(SMALL, lookups=3_000, policy=str(file)), tmp_path / "log").output
    frame = read(log, "lookups").query("result == 'connect' and propensity < 1.0")

    assert len(frame)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "neither a policy that ships nor a TOML file"),
        ("", "has 0 policies, not one"),
        ('name = "p"\nselector = "bets"', "did you mean 'best'"),
    ],
)
def test_a_policy_that_is_none_is_refused(tmp_path: Path, text: str | None, sentence: str) -> None:
    """Before anything is written."""
    file = tmp_path / "policy.toml"
    if text is not None:
        file.write_text(text or "policies = []")
    with pytest.raises(SettingsError, match=sentence):
        generate(replace(SMALL, policy=str(file)), tmp_path / "log")
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize("policy", ["stock-modular-4.2", "stock-modular-5.0", "stock-extensible-4.2"])
def test_the_policy_moves_bundles(tmp_path: Path, policy: str) -> None:
    """Each of Pulsar's shedders acts on what the log's own reports say."""
    rows = read(generate(replace(SMALL, hours=6, policy=policy), tmp_path / "log").output, "ownership")

    assert len(rows.query("event == 'unloaded' and by == 'policy'")) >= 5


def test_a_replay_of_the_policy_gives_the_log(tmp_path: Path) -> None:
    """With the log's own seed to the last move; dice decide between the two brokers that tie at first, and no more."""
    log = generate(SMALL, tmp_path / "log").output
    settings: dict[str, Any] = {
        "policies": ["shipped:stock-modular-4.2"],
        "evaluation": {"incumbent": "stock-modular-4.2", "default_bundles": 16, "balance_s": 900},
        "inputs": {name: f"{log}/{name}" for name in TABLES if name != "loads"},
        "brokers": [
            {"id": f"{name}-broker-{{n:02}}:8080", "count": 9, "first": 1, "clusters": [name], "capacity": CAPACITY}
            for name in ("east", "west")
        ],
    }

    def agreement(seeds: object) -> float:
        evaluation = {**settings["evaluation"], "seeds": seeds}
        whole = lookup.evaluate(settings={**settings, "evaluation": evaluation}, workers=InProcess()).figures
        return float(whole.query("scope == 'all clusters' and metric == 'agreement_ratio'")["value"].iloc[0])

    assert agreement([SMALL.seed]) > 0.95
    assert agreement(6) > 0.7


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


def test_odds_of_single_brokers_are_true(tmp_path: Path) -> None:
    """A client's rack has two brokers: each is as likely as it is said to be, and no other is chosen."""
    made = _assignments(generate(replace(MANY_ASSIGNMENTS, policy="rack-only"), tmp_path / "log").output)
    racks = made["properties"].map(lambda text: json.loads(text).get("rack"))
    for rack in "abc":
        rows = made[racks == rack]

        # Bundles that were placed before the log had no client.
        assert (rows["propensity"] == 0.5).mean() > 0.99
        rows = rows[rows["propensity"] == 0.5]
        assert rows["broker"].value_counts(normalize=True).to_numpy() == pytest.approx(0.5, abs=0.1)


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
