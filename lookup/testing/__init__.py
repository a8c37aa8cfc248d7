"""Published helpers for plug-in authors: clusters to test with and the conformance kit."""

from __future__ import annotations

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

__all__ = [
    "Figures",
    "OwnedBundles",
    "broker",
    "candidates",
    "cluster",
    "engine_request",
    "request",
    "three_racks",
]
