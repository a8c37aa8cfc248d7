"""A cluster is read from its record, at any instant of it, or as it is; what cannot be read is said in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from lookup.collect.collector import Endpoints
from lookup.errors import InputError, SettingsError
from lookup.model.bundles import IsolationPolicy
from lookup.model.time import time_text
from lookup.moving.reading import read_now, read_record
from tests.collect.rest import running_rest
from tests.moving.worlds import START_US, World

_MINUTE_US = 60_000_000


def _refused(folder: Path, at_us: int | None = None, cluster: str | None = None) -> str:
    with pytest.raises(InputError) as refused:
        read_record(str(folder), at_us, cluster)
    return str(refused.value)


def test_a_record_is_read_up_to_an_instant(tmp_path: Path) -> None:
    """By default its end; reports after the instant are not there."""
    folder = World.crowded().write(tmp_path / "record")

    whole, part = read_record(str(folder)), read_record(str(folder), START_US + 2 * _MINUTE_US)

    assert whole.at_us == START_US + 9 * _MINUTE_US
    assert (len(whole.tables["loads"]), len(part.tables["loads"])) == (30, 9)


def test_reports_of_more_than_an_hour_ago_do_not_count(tmp_path: Path) -> None:
    """Of 100 minutes the last 60, while owners are those of all."""
    world = World.crowded()
    world.minutes = 100

    rows = read_record(str(world.write(tmp_path / "record")))

    assert len(rows.tables["loads"]) == 3 * 60
    assert len(rows.tables["ownership"]) == 24


def test_an_instant_outside_the_record_is_refused(tmp_path: Path) -> None:
    """The sentence says from when to when the record goes."""
    folder = World.crowded().write(tmp_path / "record")

    for at_us in (START_US - 1, START_US + 9 * _MINUTE_US + 1):
        refused = _refused(folder, at_us)
        assert refused.startswith(f"at: {time_text(at_us)} is outside the record")
        assert "which goes from 2026-11-26T12:00:00Z to 2026-11-26T12:09:00Z" in refused


def test_a_record_of_another_cluster_is_refused(tmp_path: Path) -> None:
    """By the cluster's name."""
    folder = World.crowded().write(tmp_path / "record")

    assert "of east, not of 'west'" in _refused(folder, cluster="west")


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    """A folder without tables, and one whose tables have no rows yet."""
    empty = World()
    empty.brokers = empty.minutes = 0

    assert "`lookup collect`" in _refused(tmp_path)
    assert "has no rows yet" in _refused(empty.write(tmp_path / "empty"))


def test_what_operators_set_is_read_beside_the_record(tmp_path: Path) -> None:
    """In namespaces.toml, or in a text that is given; without any of it a sentence says that nothing is known."""
    folder = World.crowded().write(tmp_path / "record")
    text = '[[namespaces]]\nname = "shop/orders"\nisolation = [{ primary = ["broker-1"] }]\n'

    (unknown,) = read_record(str(folder)).missing
    (folder / "namespaces.toml").write_text(text)
    beside, given = read_record(str(folder)), read_record(str(folder), namespaces="")

    assert unknown.startswith("isolation policies and anti-affinity groups")
    assert beside.namespaces.isolation == {"shop/orders": (IsolationPolicy(("broker-1",)),)}
    assert (beside.missing, given.namespaces.isolation) == ((), {})


def test_a_mistake_in_namespaces_is_named(tmp_path: Path) -> None:
    """By file and key."""
    folder = World.crowded().write(tmp_path / "record")
    (folder / "namespaces.toml").write_text('[[namespaces]]\nname = "shop"\n')

    with pytest.raises(SettingsError, match=r"namespaces\.toml: namespaces\[0\]\.name"):
        read_record(str(folder))


def test_without_brokers_or_topics_nothing_is_read() -> None:
    """Owners and loads come from topics, brokers from ZooKeeper or the REST."""
    for endpoints, sentence in (
        (Endpoints("east", zookeeper="127.0.0.1:1"), "service_url must be given"),
        (Endpoints("east", service_url="pulsar://127.0.0.1:1"), "zookeeper must be given"),
    ):
        with pytest.raises(InputError, match=sentence):
            read_now(endpoints)


def test_a_page_in_place_of_the_rest_is_refused_at_once() -> None:
    """Whether the cluster's name is given or asked for; nobody waits for a minute."""
    with running_rest() as rest:
        rest.answers |= {"brokers/east": "<html>", "clusters": "<html>"}
        for name, sentence in (("east", "admin cannot be asked"), (None, "cluster must be given")):
            with pytest.raises(InputError, match=sentence) as refused:
                read_now(Endpoints(name, admin=rest.url, service_url="pulsar://127.0.0.1:1"))
            assert "no list of names" in str(refused.value)


def test_a_cluster_whose_owners_do_not_come_in_time_is_refused() -> None:
    """Brokers that the REST names are not enough."""
    with running_rest() as rest, pytest.raises(InputError, match="no owner is known"):
        read_now(Endpoints("east", admin=rest.url, service_url="pulsar://127.0.0.1:1"), wait_s=1.0)
