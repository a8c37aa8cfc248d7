"""Areas of the modular load manager as a whole: a policy read from its `broker.conf`, asked, shedding and splitting.

Their rules are those of ModularLoadManagerImpl, LoadManagerShared and BundleSplitterTask; each vector names where.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lookup.engine.build import build_policies
from lookup.engine.manager import LoadManager
from lookup.engine.policy import Instant, Policy
from lookup.model.bundles import IsolationPolicy, NamespacePolicies
from lookup.model.load import Traffic, topic_traffic
from lookup.model.load_data import bundle_stats_from_json
from lookup.model.view import ClusterView
from lookup.settings.policy import PolicySpec
from lookup.testing.asking import manager_in
from lookup.testing.clusters import cluster, engine_request
from lookup.testing.worlds import World
from tests.vectors.parts import registry
from tests.vectors.reading import Handler, only

__all__ = ["AREAS"]

_WORLD = ("config", "brokers", "owned", "isolation", "anti_affinity_groups")
#: Past every grace period, µs.
_NOW_US = 2 * Policy.grace_us


def _policy(given: Mapping[str, Any]) -> Policy:
    """Build what a broker.conf says; where the vector names a placement, the odds are that part's."""
    with tempfile.TemporaryDirectory() as folder:
        conf = Path(folder, "broker.conf")
        keys = {"clusterName": "vectors", **given.get("config", {})}
        conf.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
        own = {"selector": given["selector"]} if "selector" in given else {}
        spec = PolicySpec.model_validate({"name": "vector", "from_broker_conf": str(conf), **own})
    return build_policies(registry(), [spec], spec.broker_conf)[0]


def _view(given: Mapping[str, Any], **figures: Any) -> ClusterView:
    brokers: Mapping[str, Mapping[str, Any]] = given["brokers"]
    for broker in brokers.values():
        only(broker, "topics", "usage", "resources")
    isolation = {
        name: (IsolationPolicy(primary=tuple(primary)),) for name, primary in given.get("isolation", {}).items()
    }
    resources = {name: broker["resources"] for name, broker in brokers.items() if "resources" in broker}
    return cluster(
        *brokers,
        topics={name: broker.get("topics", 0) for name, broker in brokers.items()},
        usage={name: broker.get("usage", 0.5) for name, broker in brokers.items()},
        owned=given.get("owned", {}),
        namespaces=NamespacePolicies(isolation=isolation, anti_affinity_group=given.get("anti_affinity_groups", {})),
        now_us=_NOW_US,
        **figures,
        **({"resources": resources} if resources else {}),
    )


def _select(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, *_WORLD, "selector", "bundle")
    only(expected, "candidates")
    policy = _policy(given)
    ballot = policy.ballot(engine_request(given["bundle"]), Instant(policy, _view(given)))
    return {"candidates": sorted(ballot.odds)}


def _shed(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, *_WORLD, "selector", "bundle_throughput")
    only(expected, "unloaded", "stay")
    throughput: Mapping[str, float] = given["bundle_throughput"]
    view = _view(given, bundle_loads=throughput)
    manager = manager_in(_policy(given), World("vector", view, engine_request()))
    report = manager.shed()
    assert report is not None
    return {
        "unloaded": {unload.bundle: unload.destination for unload in report.accepted},
        "stay": {str(reason): count for reason, count in report.rejected.items()},
    }


def _split(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, *_WORLD, "bundle_stats", "topics_hash_rate_throughput", "long_term", "calls")
    only(expected, "children_per_call", "owners_after")
    stats: Mapping[str, Any] = given["bundle_stats"]
    namespaces = {bundle.rpartition("/")[0] for bundle in stats}
    topics = given.get("topics_hash_rate_throughput", {})
    traffic = Traffic(
        topics={bundle: topic_traffic(tuple(row) for row in rows) for bundle, rows in topics.items()},
        stats={bundle: bundle_stats_from_json(json.dumps(figures)) for bundle, figures in stats.items()},
        bundle_counts={name: sum(bundle.startswith(f"{name}/") for bundle in stats) for name in namespaces},
    )
    view, means = _view(given, traffic=traffic), given.get("long_term", {})
    long_run = {
        "long_term_bundle_rates": {bundle: mean["msgRate"] for bundle, mean in means.items()},
        "long_term_bundle_throughputs": {bundle: mean["msgThroughput"] for bundle, mean in means.items()},
    }
    view = replace(view, load=replace(view.load, **long_run))
    calls = [_called(_policy(given), view) for _ in range(given.get("calls", 1))]
    return {"children_per_call": [children for children, _ in calls], "owners_after": calls[-1][1]}


def _called(policy: Policy, view: ClusterView) -> tuple[Mapping[str, list[str]], Mapping[str, str | None]]:
    # A manager of its own for every call: what was split is whole again.
    manager: LoadManager = manager_in(policy, World("vector", view, engine_request()))
    report = manager.split_bundles()
    assert report is not None
    children = {split.bundle: [child.rpartition("/")[2] for child in split.children] for split in report.accepted}
    owners = {child: manager.ownership.owner(child) for split in report.accepted for child in split.children}
    ids = manager.roster.ids
    return children, {child: None if owner is None else ids[owner] for child, owner in owners.items()}


#: Area -> what puts its inputs to the API.
AREAS: Mapping[str, Handler] = {"modular.select": _select, "modular.shed": _shed, "modular.split": _split}
