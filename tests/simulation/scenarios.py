"""A small scenario for the tests of this room, as text and as a model."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from lookup.engine.build import build_policies
from lookup.engine.plugins import load_plugins
from lookup.simulation import Scenario, Trend, run_policy

__all__ = ["SMALL", "scenario", "trends", "written"]

#: Two brokers, one twice as large; four bundles, of which one broker owns three.
SMALL = """
about = "Small."
minutes = 12
every = 5
window = 2
owners = { "b1" = 3, "b2" = 1 }
brokers = [{ id = "b1", capacity = 10.0 }, { id = "b2", capacity = 20.0 }]
namespaces = [{ name = "t/n", bundles = 4, topics = 8, load = 8.0 }]
policies = [{ name = "stays", selector = "round-robin" }]
"""


def scenario(**changes: Any) -> Scenario:
    """Build the small scenario with other values."""
    return Scenario.model_validate(tomllib.loads(SMALL) | changes)


def trends(**changes: Any) -> list[Trend]:
    """Run the small scenario with other values."""
    made = scenario(**changes)
    return [run_policy(made, policy) for policy in build_policies(load_plugins(), made.policies)]


def written(folder: Path, text: str = SMALL) -> Path:
    """Write a scenario file."""
    path = folder / "small.scenario"
    path.write_text(text, encoding="utf-8")
    return path
