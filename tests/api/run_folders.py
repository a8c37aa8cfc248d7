"""A finished run with shedders, splits and lost brokers, for the tests that look into its folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lookup
from lookup.logs.generator.generate import GenerateSettings, generate
from lookup.logs.jobs import InProcess

__all__ = ["POLICIES", "evaluated", "generated"]

#: Two with shedders of their own kind, one without.
POLICIES: tuple[dict[str, Any], ...] = (
    {
        "name": "stock",
        "filters": ["load-manager-class", {"use": "max-topics", "max_topics": 40}],
        "selector": {"use": "power-of-two", "by": "usage", "choices": 3},
        "shedder": {"use": "threshold", "threshold": 0.4},
    },
    {
        "name": "rack",
        "scorers": [{"use": "property-match", "key": "rack", "weight": 0.7}, {"use": "headroom", "weight": 0.3}],
        "selector": "random",
        "shedder": {"use": "transfer", "target_std": 0.1, "hit_count": 1},
    },
    {"name": "fewest", "scorers": ["fewest-bundles"], "selector": "random"},
)


def generated(folder: Path) -> Path:
    """Write the tables of a small log with splits, unloads and a lost broker; return their folder."""
    settings = GenerateSettings(lookups=3_000, clusters=1, hours=2.0, topics=80, namespaces=6, tenants=2, clients=60)
    generate(settings, folder / "log")
    return folder / "log"


def evaluated(folder: Path, log: Path, evaluation: Mapping[str, Any] | None = None) -> Path:
    """Evaluate the policies over a log in this process; return the run's folder."""
    settings = {
        "evaluation": {"incumbent": "stock", "seeds": [1, 5], "default_bundles": 8, "session_s": 300}
        | dict(evaluation or {}),
        "inputs": {name: str(log / name) for name in ("lookups", "brokers", "ownership")},
        "policies": [*POLICIES],
    }
    lookup.evaluate(settings=settings, output=folder, workers=InProcess())
    return folder
