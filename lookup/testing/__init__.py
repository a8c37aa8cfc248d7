"""Published helpers for plug-in authors, which are clusters to test with and the conformance kit.

The kit needs pytest and is imported when one of its names is first used. The clusters need no extra.
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
    from lookup.testing.conformance import CHECKS, parametrize_with_policies, policy_of

__all__ = [
    "CHECKS", "WORLDS", "Figures", "OwnedBundles", "World", "broker", "candidates", "cluster", "engine_request",
    "parametrize_with_policies", "policy_of", "request", "three_racks",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("lookup.testing.conformance"), name)
