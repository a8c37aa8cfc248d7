"""Brokers of a generated log: who comes and goes, and what their clients do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from lookup.model.broker import EXTENSIBLE_MANAGER, BrokerLookupData
from tests.logs.generator.logs import SMALL, read


def intervals(sample: Path, name: str) -> Iterator[tuple[str, str, pd.Timestamp, pd.Timestamp]]:
    """Yield (cluster, broker, from, until) of every time a broker of a cluster was registered."""
    since: dict[str, pd.Timestamp] = {}
    rows = read(sample, "brokers")
    for row in rows[rows["cluster"] == name].itertuples():
        if row.event == "registered":
            since[row.broker] = row.ts
        elif row.event == "unregistered":
            yield name, row.broker, since.pop(row.broker), row.ts
    for broker, begin in since.items():
        yield name, broker, begin, pd.Timestamp.max.tz_localize("UTC")


def test_lookup_data_reads_back(sample: Path) -> None:
    """Every registration carries Pulsar's record with rack, zone and the extensible manager."""
    rows = read(sample, "brokers")
    data = [BrokerLookupData.from_json(text) for text in rows.loc[rows["event"] != "unregistered", "lookup_data"]]

    assert {record.load_manager_class_name for record in data} == {EXTENSIBLE_MANAGER}
    assert sum("lookup.rack" not in record.properties for record in data) == SMALL.clusters
    assert {record.properties.get("lookup.rack") for record in data} == {"a", "b", "c", None}
    assert all("lookup.zone" in record.properties for record in data)


def test_brokers_come_and_go(sample: Path) -> None:
    """Each cluster has the losses, leaves, joins and updates it was asked to have."""
    rows = read(sample, "brokers")
    during = rows[rows["ts"] >= pd.Timestamp(SMALL.start)].groupby(["cluster", "event"]).size()

    for name in ("east", "west"):
        assert during[name, "unregistered"] == SMALL.losses + SMALL.leaves
        assert during[name, "registered"] == SMALL.joins + SMALL.losses - 1
        assert during[name, "updated"] == 1


def test_only_registered_brokers_answer(sample: Path, lookups: pd.DataFrame) -> None:
    """No lookup is answered by, or put to, a broker that is not registered at that moment."""
    for name in ("east", "west"):
        rows = lookups[lookups["cluster"] == name]
        spans = list(intervals(sample, name))
        for column in ("broker", "asked_broker"):
            inside = rows[column].isna()
            for _, broker, begin, end in spans:
                inside |= (rows[column] == broker) & (rows["ts"] >= begin) & (rows["ts"] < end)

            assert inside.all()


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
