"""Keys that a real cluster changes without a restart."""

from __future__ import annotations

import tomllib

import pytest

from lookup.settings.policy import is_path
from lookup.settings.shipped import shipped_files
from lookup.tuning.advice import dynamic_lines
from tests.acceptance.pulsar.cluster import Cluster

pytestmark = pytest.mark.pulsar


def test_keys_that_a_search_changes_without_a_restart_are_dynamic(cluster: Cluster) -> None:
    """`lookup tune` prints commands for the keys that a broker lists as dynamic, and for no others."""
    listed = cluster.admin("GET", "brokers/configuration")
    paths = [one.path for one in shipped_files().values() if one.kind == "space of a search"]
    spaces = [tomllib.loads(path.read_text(encoding="utf-8")) for path in paths]
    keys = {key for space in spaces for key in [*space.get("set", {}), *space["vary"]] if not is_path(key)}
    # These can be written, and yet are for a restart.
    written = {key for key in keys if any(dynamic_lines({key: 1}))} | {
        "loadBalancerLoadSheddingStrategy",
        "loadManagerClassName",
    }

    assert len(keys) > 10
    assert keys & set(listed) == written & keys
