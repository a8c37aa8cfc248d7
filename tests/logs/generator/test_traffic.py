"""Lookups of a generated log, and the brokers that answer them: the properties a realistic log has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd

from lookup.logs.columns import RESULTS
from lookup.logs.generator.generate import generate
from lookup.model.names import TopicName, pinned_broker
from tests.logs.generator.logs import SMALL, read


def test_every_topic_parses(lookups: pd.DataFrame) -> None:
    """Every topic is a complete name, some are partitions and some not persistent."""
    topics = [TopicName.parse(topic) for topic in lookups["topic"].unique()]

    assert {topic.domain for topic in topics} == {"persistent", "non-persistent"}
    assert any("-partition-" in topic.local for topic in topics)


def test_popularity_falls_like_zipf(tmp_path: Path) -> None:
    """The most popular tenth of the topics draws most of the lookups, uniform topics do not."""
    shares = []
    for zipf in (1.0, 0.0):
        frame = read(generate(replace(SMALL, zipf=zipf), tmp_path / str(zipf)).output, "lookups")
        counts = frame["topic"].str.replace(r"-partition-\d+$", "", regex=True).value_counts()
        shares.append(counts.head(len(counts) // 10).sum() / len(frame))

    assert shares[0] > 0.4 > 0.2 > shares[1]


def test_teams_live_somewhere(tmp_path: Path) -> None:
    """Affinity makes the racks of a topic's clients more alike than chance does."""
    alike = []
    for affinity in (0.9, 0.0):
        settings = replace(SMALL, rack_affinity=affinity, clusters=1)
        frame = read(generate(settings, tmp_path / str(affinity)).output, "lookups")
        subnet = frame["client"].str.split(".").str[1]
        table = pd.crosstab(frame["topic"], subnet)
        alike.append((table.max(axis=1).sum()) / table.to_numpy().sum())

    assert alike[0] > alike[1] + 0.2


def test_results(lookups: pd.DataFrame) -> None:
    """Most lookups connect, some are redirected or fail; who failed got no broker."""
    shares = lookups["result"].value_counts(normalize=True)

    assert shares["connect"] > 0.98
    assert shares["redirect"] > 0.002
    assert shares["failed"] > 0
    assert set(lookups["result"]) <= set(RESULTS)
    assert lookups.loc[lookups["result"] == "failed", ["broker", "propensity", "latency_ms"]].isna().all().all()
    assert lookups.loc[lookups["result"] == "connect", "broker"].notna().all()


def test_a_hop_is_followed_by_its_lookup(lookups: pd.DataFrame) -> None:
    """After a redirect the same client asks for the same topic, authoritatively, the broker it was sent to."""
    for _, rows in lookups.groupby("cluster"):
        following = rows.shift(-1)
        hops = rows["result"] == "redirect"
        answered = hops & (following["result"] == "connect")

        assert (rows.loc[hops, ["topic", "client"]] == following.loc[hops, ["topic", "client"]]).all().all()
        assert following.loc[hops, "authoritative"].all()
        assert (following.loc[answered, "asked_broker"] == following.loc[answered, "broker"]).all()
        assert rows["authoritative"].sum() == hops.sum()


def test_heartbeats_go_to_the_broker_they_name(lookups: pd.DataFrame) -> None:
    """A few lookups are of heartbeat topics, answered by that broker or nobody, without odds."""
    beats = lookups[lookups["topic"].str.contains("/healthcheck")]
    named = beats["topic"].map(lambda topic: pinned_broker(str(TopicName.parse(topic).namespace)))

    assert 0 < len(beats) < 0.01 * len(lookups)
    assert (beats["broker"].isna() | (beats["broker"] == named)).all()
    assert beats["propensity"].isna().all()


def test_brokers_come_and_go(sample: Path) -> None:
    """Each cluster has the losses, leaves, joins and updates it was asked to have."""
    rows = read(sample, "brokers")
    during = rows[rows["ts"] >= pd.Timestamp(SMALL.start)].groupby(["cluster", "event"]).size()

    for name in ("east", "west"):
        assert during[name, "unregistered"] == SMALL.losses + SMALL.leaves
        assert during[name, "registered"] == SMALL.joins + SMALL.losses - 1
        assert during[name, "updated"] == 1


def test_clients_storm_back_after_a_loss(sample: Path, lookups: pd.DataFrame) -> None:
    """After the brokers' losses their topics are looked up far more often than before, within seconds."""
    rows = read(sample, "brokers")
    before = after = 0
    for loss in rows[rows["event"] == "unregistered"].itertuples():
        own = lookups[lookups["cluster"] == loss.cluster]
        age = (own["ts"] - loss.ts).dt.total_seconds()
        topics = own.loc[(own["broker"] == loss.broker) & (age < 0) & (age > -300), "topic"].unique()
        concerned = own["topic"].isin(topics)
        before += (concerned & (age < 0) & (age >= -10)).sum()
        after += (concerned & (age >= 0) & (age < 10)).sum()

    assert after > 3 * before > 0
