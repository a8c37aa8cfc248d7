"""The log generator: one seed, one log; the properties a realistic log has; true propensities; clear refusals."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lookup.errors import InputError, SettingsError
from lookup.model.broker import EXTENSIBLE_MANAGER, BrokerLookupData
from lookup.model.bundles import NamespaceBundle, bundle_of, equal_boundaries
from lookup.model.load import broker_load_from_json
from lookup.model.names import TopicName, pinned_broker
from lookup.replay import generate as public
from lookup.replay.generate import GenerateSettings, generate
from lookup.replay.generator import cluster, tables
from lookup.replay.schema import CANONICAL, RESULTS

TABLES = ("lookups", "brokers", "loads", "ownership")
SMALL = GenerateSettings(lookups=30_000, topics=300, clients=120, hours=2, brokers=9)
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


def read(directory: Path, name: str) -> pd.DataFrame:
    """Read a table in the order of its files."""
    frame = ds.dataset(directory / name, partitioning="hive").to_table().to_pandas()
    assert isinstance(frame, pd.DataFrame)
    return frame


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small log of two clusters."""
    return generate(SMALL, tmp_path_factory.mktemp("generate") / "log").output


@pytest.fixture(scope="module")
def lookups(sample: Path) -> pd.DataFrame:
    """LOOKUPS of the small log."""
    return read(sample, "lookups")


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


class TestSameSeed:
    """One seed, one log."""

    @pytest.mark.parametrize("name", TABLES)
    def test_same_seed_same_table(self, sample: Path, tmp_path: Path, name: str) -> None:
        """The same settings give equal tables."""
        again = generate(SMALL, tmp_path / "again").output

        assert read(sample, name).equals(read(again, name))

    def test_same_seed_same_files(self, sample: Path, tmp_path: Path) -> None:
        """The same settings give the same files, byte for byte."""
        again = generate(SMALL, tmp_path / "again").output
        names = sorted(path.relative_to(sample) for path in sample.rglob("*.parquet"))

        assert [(again / name).read_bytes() == (sample / name).read_bytes() for name in names] == [True] * len(names)

    def test_other_seed_other_log(self, lookups: pd.DataFrame, tmp_path: Path) -> None:
        """Another seed gives other lookups."""
        other = read(generate(replace(SMALL, seed=2), tmp_path / "other").output, "lookups")

        assert not lookups["topic"].equals(other["topic"])

    def test_file_size_does_not_matter(self, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Rows are the same whatever the size of the files."""
        monkeypatch.setattr(tables, "ROWS_PER_FILE", 2_000)
        many = generate(SMALL, tmp_path / "many").output

        assert len(list(many.rglob("lookups/**/*.parquet"))) > len(list(sample.rglob("lookups/**/*.parquet")))
        assert read(sample, "lookups").equals(read(many, "lookups"))


class TestLayout:
    """Files as a canonical log has them."""

    @pytest.mark.parametrize("name", TABLES)
    def test_files_have_the_canonical_schema(self, sample: Path, name: str) -> None:
        """Every file of every table has exactly the canonical columns and types."""
        schemas = [pq.read_schema(path).remove_metadata() for path in (sample / name).rglob("*.parquet")]

        assert schemas
        assert all(schema == CANONICAL[name] for schema in schemas)

    def test_lookups_are_partitioned_by_cluster_and_date(self, tmp_path: Path) -> None:
        """A log over midnight has one directory per cluster and UTC day, and no row in the wrong one."""
        late = replace(SMALL, start=datetime(2026, 1, 5, 23, 30, tzinfo=UTC))
        frame = read(generate(late, tmp_path / "late").output, "lookups")

        assert sorted({str(path.relative_to(tmp_path)) for path in tmp_path.glob("late/lookups/*/*")}) == [
            f"late/lookups/cluster={name}/date={day}"
            for name in ("east", "west")
            for day in ("2026-01-05", "2026-01-06")
        ]
        assert (frame["ts"].dt.strftime("%Y-%m-%d") == frame["date"].astype(str)).all()

    def test_strings_keep_their_dictionaries(self, sample: Path) -> None:
        """Every string column of every row group is dictionary-encoded throughout."""
        strings = [field.name for field in CANONICAL["lookups"] if field.type == "string"]
        for path in (sample / "lookups").rglob("*.parquet"):
            metadata = pq.ParquetFile(path).metadata
            for group in range(metadata.num_row_groups):
                columns = [metadata.row_group(group).column(place) for place in range(metadata.num_columns)]
                assert {c.path_in_schema for c in columns if "RLE_DICTIONARY" in c.encodings} >= set(strings)

    def test_a_large_dictionary_is_not_given_up(self, tmp_path: Path) -> None:
        """With topics beyond Parquet's own limit of 1 MiB the pages behind the dictionary are still codes."""
        many = GenerateSettings(lookups=60_000, clusters=1, topics=30_000, hours=1, load_report_s=0)
        path = next((generate(many, tmp_path / "many").output / "lookups").rglob("*.parquet"))
        topic = pq.ParquetFile(path).metadata.row_group(0).column(CANONICAL["lookups"].get_field_index("topic"))

        # 16 bits a code and the dictionary itself; plain strings would take 50 bytes a row on top.
        assert topic.total_uncompressed_size < 30_000 * 60 + 60_000 * 3

    def test_rows_are_in_order(self, lookups: pd.DataFrame) -> None:
        """In each cluster rows ascend by time, and seq counts them."""
        for _, rows in lookups.groupby("cluster"):
            assert rows["ts"].is_monotonic_increasing
            assert rows["seq"].tolist() == list(range(len(rows)))

    def test_report_counts_what_was_written(self, tmp_path: Path) -> None:
        """The report's rows are the tables' rows, and LOOKUPS has as many as were asked for."""
        report = generate(SMALL, tmp_path / "log")

        assert report.rows == {name: len(read(report.output, name)) for name in TABLES}
        assert report.rows["lookups"] == SMALL.lookups


class TestLookups:
    """What a realistic log is like."""

    def test_every_topic_parses(self, lookups: pd.DataFrame) -> None:
        """Every topic is a complete name, some are partitions and some not persistent."""
        topics = [TopicName.parse(topic) for topic in lookups["topic"].unique()]

        assert {topic.domain for topic in topics} == {"persistent", "non-persistent"}
        assert any(topic.partition is not None for topic in topics)

    def test_popularity_falls_like_zipf(self, tmp_path: Path) -> None:
        """The most popular tenth of the topics draws most of the lookups, uniform topics do not."""
        shares = []
        for zipf in (1.0, 0.0):
            frame = read(generate(replace(SMALL, zipf=zipf), tmp_path / str(zipf)).output, "lookups")
            counts = frame["topic"].str.replace(r"-partition-\d+$", "", regex=True).value_counts()
            shares.append(counts.head(len(counts) // 10).sum() / len(frame))

        assert shares[0] > 0.4 > 0.2 > shares[1]

    def test_rates_follow_the_day(self, tmp_path: Path) -> None:
        """The busiest hour of a day has at least twice the lookups of the quietest."""
        day = read(generate(replace(SMALL, hours=24.0), tmp_path / "day").output, "lookups")
        by_hour = day.groupby(day["ts"].dt.hour).size()

        assert by_hour.max() > 2 * by_hour.min()
        assert 11 <= by_hour.idxmax() <= 17

    def test_property_sets(self, lookups: pd.DataFrame) -> None:
        """There are as many property sets as asked for, canonical JSON, the empty one among them."""
        sets = lookups["properties"].unique().tolist()

        assert len(sets) == SMALL.property_sets
        assert "{}" in sets
        assert all(json.dumps(json.loads(text), sort_keys=True, separators=(",", ":")) == text for text in sets)

    def test_racks_are_uneven(self, lookups: pd.DataFrame) -> None:
        """Rack a sends more lookups than rack b, rack b more than rack c."""
        rack = lookups["properties"].map(lambda text: json.loads(text).get("rack")).value_counts()

        assert rack["a"] > 1.2 * rack["b"]
        assert rack["b"] > rack["c"]

    def test_addresses_tell_the_rack(self, lookups: pd.DataFrame) -> None:
        """Clients that send their rack share a subnet with all others of it, in one cluster."""
        east = lookups[lookups["cluster"] == "east"]
        rack = east["properties"].map(lambda text: json.loads(text).get("rack"))
        subnets = east["client"].str.split(".").str[1].groupby(rack).unique()

        assert [list(subnets[name]) for name in "abc"] == [["0"], ["1"], ["2"]]

    def test_teams_live_somewhere(self, tmp_path: Path) -> None:
        """Affinity makes the racks of a topic's clients more alike than chance does."""
        alike = []
        for affinity in (0.9, 0.0):
            settings = replace(SMALL, rack_affinity=affinity, clusters=1)
            frame = read(generate(settings, tmp_path / str(affinity)).output, "lookups")
            subnet = frame["client"].str.split(".").str[1]
            table = pd.crosstab(frame["topic"], subnet)
            alike.append((table.max(axis=1).sum()) / table.to_numpy().sum())

        assert alike[0] > alike[1] + 0.2

    def test_results(self, lookups: pd.DataFrame) -> None:
        """Most lookups connect, some are redirected or fail; who failed got no broker."""
        shares = lookups["result"].value_counts(normalize=True)

        assert shares["connect"] > 0.98
        assert shares["redirect"] > 0.002
        assert shares["failed"] > 0
        assert set(lookups["result"]) <= set(RESULTS)
        assert lookups.loc[lookups["result"] == "failed", ["broker", "propensity", "latency_ms"]].isna().all().all()
        assert lookups.loc[lookups["result"] == "connect", "broker"].notna().all()

    def test_a_hop_is_followed_by_its_lookup(self, lookups: pd.DataFrame) -> None:
        """After a redirect the same client asks for the same topic, authoritatively, the broker it was sent to."""
        for _, rows in lookups.groupby("cluster"):
            following = rows.shift(-1)
            hops = rows["result"] == "redirect"
            answered = hops & (following["result"] == "connect")

            assert (rows.loc[hops, ["topic", "client"]] == following.loc[hops, ["topic", "client"]]).all().all()
            assert following.loc[hops, "authoritative"].all()
            assert (following.loc[answered, "asked_broker"] == following.loc[answered, "broker"]).all()
            assert rows["authoritative"].sum() == hops.sum()

    def test_a_few_lookups_are_read_only(self, lookups: pd.DataFrame) -> None:
        """About one lookup in a hundred is read-only."""
        assert 0.005 < lookups["read_only"].mean() < 0.015

    def test_weights_are_whole_millionths(self, lookups: pd.DataFrame) -> None:
        """Weights are positive, skewed, one on average and multiples of 0.000001."""
        weight = lookups["weight"].to_numpy()

        assert weight.min() > 0
        assert np.median(weight) < 0.7
        assert weight.mean() == pytest.approx(1.0, abs=0.05)
        assert np.abs(weight * 1e6 - np.round(weight * 1e6)).max() < 1e-6

    def test_heartbeats_go_to_the_broker_they_name(self, lookups: pd.DataFrame) -> None:
        """A few lookups are of heartbeat topics, answered by that broker or nobody, without odds."""
        beats = lookups[lookups["topic"].str.contains("/healthcheck")]
        named = beats["topic"].map(lambda topic: pinned_broker(str(TopicName.parse(topic).namespace)))

        assert 0 < len(beats) < 0.01 * len(lookups)
        assert (beats["broker"].isna() | (beats["broker"] == named)).all()
        assert beats["propensity"].isna().all()


class TestBrokers:
    """The registry, storms and load reports."""

    def test_lookup_data_reads_back(self, sample: Path) -> None:
        """Every registration carries Pulsar's record with rack, zone and the extensible manager."""
        rows = read(sample, "brokers")
        data = [BrokerLookupData.from_json(text) for text in rows.loc[rows["event"] != "unregistered", "lookup_data"]]

        assert {record.load_manager_class_name for record in data} == {EXTENSIBLE_MANAGER}
        assert sum("lookup.rack" not in record.properties for record in data) == SMALL.clusters
        assert {record.properties.get("lookup.rack") for record in data} == {"a", "b", "c", None}
        assert all("lookup.zone" in record.properties for record in data)

    def test_brokers_come_and_go(self, sample: Path) -> None:
        """Each cluster has the losses, leaves, joins and updates it was asked to have."""
        rows = read(sample, "brokers")
        during = rows[rows["ts"] >= pd.Timestamp(SMALL.start)].groupby(["cluster", "event"]).size()

        for name in ("east", "west"):
            assert during[name, "unregistered"] == SMALL.losses + SMALL.leaves
            assert during[name, "registered"] == SMALL.joins + SMALL.losses - 1
            assert during[name, "updated"] == 1

    def test_only_registered_brokers_answer(self, sample: Path, lookups: pd.DataFrame) -> None:
        """No lookup is answered by, or put to, a broker that is not registered at that moment."""
        for name in ("east", "west"):
            rows = lookups[lookups["cluster"] == name]
            spans = list(intervals(sample, name))
            for column in ("broker", "asked_broker"):
                inside = rows[column].isna()
                for _, broker, begin, end in spans:
                    inside |= (rows[column] == broker) & (rows["ts"] >= begin) & (rows["ts"] < end)

                assert inside.all()

    def test_clients_storm_back_after_a_loss(self, sample: Path, lookups: pd.DataFrame) -> None:
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

    def test_loads_follow_the_traffic(self, sample: Path, lookups: pd.DataFrame) -> None:
        """A broker's reported rate is proportional to the weight it served in the minute before the report."""
        loads = read(sample, "loads")
        served = lookups[(lookups["result"] == "connect")]
        minute = served["ts"].dt.ceil("60s")
        weight = served.groupby([served["cluster"], served["broker"], minute])["weight"].sum()
        rate = loads["load"].map(lambda text: broker_load_from_json(text).msg_rate_in)
        keys = pd.MultiIndex.from_frame(loads[["cluster", "broker", "ts"]])

        assert np.corrcoef(weight.reindex(keys).fillna(0.0), rate)[0, 1] > 0.999

    def test_load_reports_are_pulsars(self, sample: Path) -> None:
        """Reports read back, count the bundles and stay within their limits."""
        reports = [broker_load_from_json(text) for text in read(sample, "loads")["load"]]

        assert max(report.bundle_count for report in reports) > 10
        assert max(report.topics for report in reports) > 10
        assert all(0.0 <= report.max_resource_usage <= 1.0 for report in reports)
        assert all(report.cpu.usage <= report.cpu.limit for report in reports)

    def test_no_reports_where_none_are_wanted(self, tmp_path: Path) -> None:
        """`load_report_s = 0` writes an empty table."""
        report = generate(replace(SMALL, load_report_s=0), tmp_path / "log")

        assert report.rows["loads"] == 0
        assert len(read(report.output, "loads")) == 0


class TestOwnership:
    """Who owned what under the logging policy."""

    def test_owners_answer(self, sample: Path, lookups: pd.DataFrame) -> None:
        """Replaying OWNERSHIP and BROKERS gives exactly the logged broker of every lookup."""
        for name in ("east", "west"):
            rows = lookups[(lookups["cluster"] == name) & ~lookups["topic"].str.contains("/healthcheck")]
            owners = _replayed(read(sample, "ownership").query("cluster == @name"), read(sample, "brokers"), rows)
            answered = rows["broker"].notna()

            assert (owners[answered] == rows.loc[answered, "broker"]).all()
            assert answered.mean() > 0.99

    def test_events(self, sample: Path) -> None:
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

    def test_the_log_begins_without_owners(self, sample: Path, lookups: pd.DataFrame) -> None:
        """No bundle is owned at the first lookup: every policy starts from nothing."""
        assert (read(sample, "ownership")["ts"] > lookups["ts"].min()).all()

    def test_without_a_logging_policy(self, tmp_path: Path) -> None:
        """`logging_policy = "none"` leaves out whatever would tell who answered."""
        output = generate(replace(SMALL, logging_policy="none"), tmp_path / "log").output
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


class TestPropensities:
    """The odds that are written down are the odds that were rolled."""

    def test_uniform_odds_are_true(self, tmp_path: Path) -> None:
        """Under `random` every assignment says 1/n, and every broker got about that share."""
        made = _assignments(generate(MANY_ASSIGNMENTS, tmp_path / "log").output)
        share = made["broker"].value_counts(normalize=True)

        assert len(made) > 5_000
        assert made["propensity"].to_numpy() == pytest.approx(1 / 6)
        assert share.to_numpy() == pytest.approx(1 / 6, abs=4 * np.sqrt(1 / 6 * 5 / 6 / len(made)))

    def test_rack_odds_are_true(self, tmp_path: Path) -> None:
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

    def test_racks_attract(self, tmp_path: Path) -> None:
        """Under `rack-random` a broker of the client's rack is about five times as likely as under `random`."""
        settings = replace(MANY_ASSIGNMENTS, logging_policy="rack-random")
        made = _assignments(generate(settings, tmp_path / "log").output)

        assert made["propensity"].max() == pytest.approx(0.8 / 2 + 0.2 / 6)
        assert made["propensity"].min() == pytest.approx(0.2 / 6)

    def test_hits_repeat_the_odds_of_their_assignment(self, lookups: pd.DataFrame) -> None:
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


class TestOutput:
    """Nothing half-written, nothing overwritten by accident."""

    def test_a_file_is_refused(self, tmp_path: Path) -> None:
        """An output that is a file is refused with a sentence."""
        (tmp_path / "log").write_text("")

        with pytest.raises(InputError, match=r"log is a file; name a directory that does not exist or is empty"):
            generate(SMALL, tmp_path / "log")

    def test_a_full_directory_is_refused(self, tmp_path: Path) -> None:
        """An output with something in it is refused with a sentence, and left alone."""
        (tmp_path / "precious").write_text("x")

        with pytest.raises(
            InputError, match=r"is not empty; name another directory or replace its tables with --force"
        ):
            generate(SMALL, tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["precious"]

    def test_an_empty_directory_is_used(self, tmp_path: Path) -> None:
        """An output that exists and is empty is filled."""
        generate(replace(SMALL, lookups=100), tmp_path)

        assert sorted(path.name for path in tmp_path.iterdir()) == sorted(TABLES)

    def test_force_replaces_the_tables_only(self, tmp_path: Path) -> None:
        """With force old tables vanish, files and all, and whatever else lies there stays."""
        generate(replace(SMALL, start=datetime(2025, 1, 1, tzinfo=UTC), lookups=500), tmp_path)
        (tmp_path / "precious").write_text("x")
        generate(replace(SMALL, lookups=400), tmp_path, force=True)

        assert len(read(tmp_path, "lookups")) == 400
        assert (tmp_path / "precious").read_text() == "x"

    def test_a_failure_leaves_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A run that fails while writing leaves no table and no draft behind."""
        monkeypatch.setattr(public, "write_table", _raising(OSError("disk full")))

        with pytest.raises(OSError, match="disk full"):
            generate(replace(SMALL, lookups=100), tmp_path / "log")
        assert list(tmp_path.iterdir()) == []

    def test_a_failing_writer_is_heard(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """What goes wrong in the writing thread ends the run."""
        monkeypatch.setattr(tables, "write_parquet", _raising(OSError("disk full")))

        with pytest.raises(OSError, match="disk full"):
            generate(replace(SMALL, lookups=100), tmp_path / "log")
        assert list(tmp_path.iterdir()) == []


def _raising(error: Exception) -> Callable[..., None]:
    def raises(*_: object, **__: object) -> None:
        raise error

    return raises


class TestSettings:
    """Settings that make no sense are refused in sentences."""

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            ({"lookups": 0}, "lookups is 0, it must lie between 1 and 10000000000"),
            ({"zipf": -1.0}, "zipf is -1.0, it must lie between 0.0 and 3.0"),
            ({"hours": float("nan")}, "hours is nan, it must lie between 0.02 and 8784.0"),
            (
                {"logging_policy": "rack_random"},
                "logging_policy is 'rack_random', which does not exist; did you mean 'rack-random'?",
            ),
            (
                {"logging_policy": "best"},
                "logging_policy is 'best', which does not exist; known: none, random, rack-random",
            ),
            (
                {"brokers": 4},
                (
                    "losses + joins + leaves + updates is 5, it must not exceed brokers (4): each befalls another"
                    " broker, and one at least has to stay"
                ),
            ),
            ({"racks": 13}, "racks is 13, it must not exceed brokers (12): every rack has one"),
            ({"clients": 2}, "racks is 3, it must not exceed clients (2): every rack has one"),
            ({"tenants": 25}, "tenants is 25, it must not exceed namespaces (24): every tenant has one"),
            ({"topics": 20}, "namespaces is 24, it must not exceed topics (20): every namespace has one"),
            ({"lookups": 1}, "lookups is 1, it must not be below clusters (2)"),
            ({"clusters": 30, "racks": 7}, "clusters times racks is 210, it must not exceed 200"),
        ],
    )
    def test_bad_settings(self, change: dict[str, Any], sentence: str) -> None:
        """A figure out of range, or two that contradict each other, is one sentence."""
        with pytest.raises(SettingsError) as caught:
            GenerateSettings(**change)
        assert caught.value.problems == (sentence,)

    def test_all_mistakes_at_once(self) -> None:
        """Several mistakes are reported together."""
        with pytest.raises(SettingsError) as caught:
            GenerateSettings(lookups=-5, topics=0, logging_policy="x")
        assert len(caught.value.problems) >= 3

    def test_a_start_without_zone_is_utc(self) -> None:
        """A naive start means UTC, wherever the machine stands."""
        naive = GenerateSettings(start=datetime(2026, 1, 5))  # noqa: DTZ001  that is what is tested

        assert naive.start_us == GenerateSettings().start_us

    @settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
            logging_policy=st.sampled_from(["none", "random", "rack-random"]),
            seed=st.integers(0, 2**63 - 1),
        )
    )
    def test_any_shape_works(self, tmp_path: Path, chosen: GenerateSettings) -> None:
        """Whatever the shape, the log has the rows asked for, in order and within its hours."""
        frame = read(generate(chosen, tmp_path, force=True).output, "lookups")

        assert len(frame) == chosen.lookups
        assert frame["ts"].min() >= pd.Timestamp(chosen.start_us, unit="us", tz="UTC")
        assert frame["ts"].max() < pd.Timestamp(chosen.end_us, unit="us", tz="UTC")
        assert all(rows["ts"].is_monotonic_increasing for _, rows in frame.groupby("cluster"))


def test_shares_are_not_of_the_roll(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Raising the share of redirects raises it in the log: the constants mean what they say."""
    monkeypatch.setattr(cluster, "_REDIRECTED", 6_554)
    frame = read(generate(SMALL, tmp_path / "log").output, "lookups")

    assert (frame["result"] == "redirect").mean() == pytest.approx(0.1 / 1.1, rel=0.1)
