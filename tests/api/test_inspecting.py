"""`lookup.inspect`: a log before it is replayed, with or without settings."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import lookup
from lookup.api.generating import GeneratedLog
from lookup.errors import InputError, SettingsError

SETTINGS: dict[str, Any] = {
    "evaluation": {"incumbent": "slip", "seeds": 1},
    "policies": [{"name": "slip", "scorers": [{"use": "property-match", "key": "rakc"}], "selector": "best"}],
}


@pytest.fixture(scope="module")
def log() -> GeneratedLog:
    """Generate a small log of two clusters."""
    return lookup.generate(lookups=2000, clusters=2, topics=60, clients=60, hours=2)


def test_counts_of_a_log_add_up(log: GeneratedLog) -> None:
    """Every kind of share adds up to the lookups of its cluster. A path has the same."""
    found = lookup.inspect(log.lookups)

    assert [cluster.cluster for cluster in found.clusters] == ["east", "west"]
    for cluster in found.clusters:
        for counts in (cluster.tenants, cluster.namespaces, cluster.top_bundles, *cluster.labels.values()):
            assert sum(counts.values()) == cluster.lookups
        assert cluster.first_us < cluster.last_us
    assert (len(found.findings), len(found.quarantined)) == (0, 0)
    of_path = lookup.inspect(Path(log.folder) / "lookups")
    assert json.dumps(found.document()) == json.dumps(of_path.document())


def test_settings_are_held_against_a_log(log: GeneratedLog) -> None:
    """With brokers of a frame; what has no effect is said with its remedy."""
    found = lookup.inspect(log.lookups, SETTINGS, brokers=log.brokers)

    (sentence,) = (finding.sentence for finding in found.findings if finding.kind == "policy-key")
    assert "did you mean 'rack'?" in sentence
    assert all(cluster.session is not None for cluster in found.clusters)
    again = lookup.inspect(None, {**SETTINGS, "inputs": {n: f"{log.folder}/{n}" for n in ("lookups", "brokers")}})
    assert again.findings == found.findings
    accepted = lookup.inspect(log.lookups, SETTINGS, brokers=log.brokers, overrides={"lint.accept": ["policy-key"]})
    assert "policy-key" not in [finding.kind for finding in accepted.findings]


def _rows(count: int, **columns: Any) -> pd.DataFrame:
    """Return lookups of two topics, one every ten seconds, that two brokers have answered in turn."""
    times = pd.date_range("2026-01-05", periods=count, freq="10s", tz="UTC")
    topics = [f"persistent://shop/orders/cart-partition-{number % 2}" for number in range(count)]
    brokers = [("b:8080", "a:8080")[number % 2] for number in range(count)]
    given = {"ts": times, "cluster": "east", "topic": topics, "broker": brokers, "result": "connect"}
    return pd.DataFrame(given | {"client": [f"10.0.0.{number % 9}" for number in range(count)]} | columns)


def test_answers_outside_of_isolation_are_counted() -> None:
    """Of namespaces with policies alone, and of lookups that a broker has answered; rows without topic are refused."""
    rows = _rows(240)
    rows.loc[rows.index >= 200, "topic"] = "persistent://shop/free/t"
    rows.loc[239, "topic"] = "no topic"
    rows.loc[:9, ["broker", "result"]] = [None, "failed"]
    isolated = [{"name": "shop/orders", "isolation": [{"primary": ["a"], "secondary": ["c.*"]}]}]
    settings = {**SETTINGS, "brokers": [{"id": f"{host}:8080"} for host in "abc"], "namespaces": isolated}

    found = lookup.inspect(rows, settings)
    (cluster,) = found.clusters

    assert [*found.quarantined.values()] == [1]
    assert (cluster.isolated, cluster.outside, cluster.outside_bundles) == (190, 95, 1)
    (free,) = lookup.inspect(rows, {**settings, "namespaces": []}).clusters
    assert (free.isolated, free.outside, free.outside_bundles) == (0, 0, 0)


@pytest.mark.parametrize(
    ("clients", "named"),
    [
        (["10.0.0.1", "10.0.0.2"], "100.0% of the lookups of east come from 10.0.0.1, 10.0.0.2:"),
        (["10.0.0.1"], "100.0% of the lookups of east come from 10.0.0.1:"),
        (["10.0.0.1", "10.0.0.2", "10.0.0.3"], None),
        ([None], None),
    ],
)
def test_addresses_that_send_nearly_all_lookups_may_be_proxies(clients: list[str | None], named: str | None) -> None:
    """One or two; without settings as well, unless the kind is accepted."""
    rows = _rows(120, client=[clients[number % len(clients)] for number in range(120)])

    found = lookup.inspect(rows).findings

    assert [finding.kind for finding in found] == (["proxies"] if named else [])
    assert named is None or named in found[0].sentence
    brokers = [{"id": "a:8080"}, {"id": "b:8080"}]
    accepted = {**SETTINGS, "brokers": brokers, "lint": {"accept": ["proxies"]}}
    assert "proxies" not in [finding.kind for finding in lookup.inspect(rows, accepted).findings]


def test_mistakes_are_about_arguments(log: GeneratedLog) -> None:
    """And never about a file of the call."""
    with pytest.raises(SettingsError, match=r"^brokers: .* settings"):
        lookup.inspect(log.lookups, brokers=log.brokers)
    with pytest.raises(SettingsError, match=r"^overrides: .* settings"):
        lookup.inspect(log.lookups, overrides={"evaluation.tick_s": 30})
    with pytest.raises(SettingsError, match=r"lookups='PATH'$"):
        lookup.inspect(settings=SETTINGS)
    with pytest.raises(InputError, match=r"^brokers: column event "):
        lookup.inspect(log.lookups, SETTINGS, brokers=log.brokers.drop(columns="event"))
    with pytest.raises(InputError, match=r"^lookups: none of the 2,000") as raised:
        lookup.inspect(log.lookups.assign(result="redirect"))
    assert tempfile.gettempdir() not in str(raised.value)


def test_one_lookup_is_explained_with_brokers_of_a_frame(log: GeneratedLog) -> None:
    """As `explain` reads them of a file."""
    topic = log.lookups["topic"].iloc[0]

    found = lookup.explain(SETTINGS, topic, brokers=log.brokers, cluster="east")

    files = {**SETTINGS, "inputs": {"brokers": f"{log.folder}/brokers"}}
    assert found.document() == lookup.explain(files, topic, cluster="east").document()
    few = lookup.explain(SETTINGS, topic, brokers=[{"id": "b1:8080"}])
    assert [broker.id for broker in few.scene.roster] == ["b1:8080"]
    with pytest.raises(InputError, match=r"^brokers: column ts "):
        lookup.explain(SETTINGS, topic, brokers=log.brokers.drop(columns="ts"))
