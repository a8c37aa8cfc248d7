"""Published helpers for plug-in authors: clusters to test with and the conformance kit.

The kit needs pytest and is imported when one of its names is first used; the clusters need no extra.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lookup.testing.clusters import (
    Figures,
    OwnedBundles,
    broker,
    candidates,
    cluster,
    engine_request,
    request,
    three_racks,
)
from lookup.testing.worlds import WORLDS, World

if TYPE_CHECKING:
    from lookup.testing.conformance import (
        CHECKS,
        check_admitted_at_the_door,
        check_answers_are_sound,
        check_deciding_changes_nothing,
        check_empty_cluster_is_declined,
        check_idle_filters_admit_all,
        check_limits_are_wide,
        check_memory_is_json,
        check_nobody_is_preferred_without_properties,
        check_only_offered_brokers,
        check_order_does_not_matter,
        check_reads_are_honest,
        check_rejections_are_explained,
        check_repr_rebuilds,
        check_salt_is_mixed_in,
        check_same_answer_twice,
        check_shedding_repeats,
        check_splits_are_sound,
        check_splitting_repeats,
        check_survives_pickle,
        check_toml_round_trip,
        parametrize_with_policies,
        policy_of,
    )

__all__ = [
    "CHECKS", "WORLDS", "Figures", "OwnedBundles", "World", "broker", "candidates", "check_admitted_at_the_door",
    "check_answers_are_sound", "check_deciding_changes_nothing", "check_empty_cluster_is_declined",
    "check_idle_filters_admit_all", "check_limits_are_wide", "check_memory_is_json",
    "check_nobody_is_preferred_without_properties", "check_only_offered_brokers", "check_order_does_not_matter",
    "check_reads_are_honest", "check_rejections_are_explained", "check_repr_rebuilds", "check_salt_is_mixed_in",
    "check_same_answer_twice", "check_shedding_repeats", "check_splits_are_sound", "check_splitting_repeats",
    "check_survives_pickle", "check_toml_round_trip", "cluster", "engine_request", "parametrize_with_policies",
    "policy_of", "request", "three_racks",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("lookup.testing.conformance"), name)
