"""How tasks come to policies and metrics: as settings and plug-in files, built once per worker process.

Objects do not travel: a class from a plug-in file has no module on a worker until that file is loaded there. Nor does a
file by its name: a session keeps the first of a name for good, so one that was edited would be refused, or stay as it
was.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from lookup.engine.build import build_policies
from lookup.engine.plugins import PluginContents, Registry, contents_of, load_contents, load_plugins
from lookup.engine.policy import Policy
from lookup.hooks import Metric
from lookup.settings.evaluation import EvaluationFile
from lookup.settings.policy import PolicySpec
from lookup.settings.resolve import load_manager_keys

__all__ = ["Recipe", "built", "built_here", "metrics_of", "ship"]


@dataclass(frozen=True)
class Recipe:
    """The policies of a run as written, and the plug-in files they need."""

    #: JSON of each `PolicySpec`
    policies: tuple[str, ...]
    plugin_files: PluginContents
    #: JSON of the keys of the brokers' `broker.conf`, which fill parameters
    conf: str


def ship(settings: EvaluationFile) -> Recipe:
    """Return what tasks need to build the policies."""
    return Recipe(
        policies=tuple(policy.model_dump_json() for policy in settings.policies),
        plugin_files=contents_of(settings.plugin_files),
        conf=json.dumps(dict(load_manager_keys(settings))),
    )


def built_here(settings: EvaluationFile) -> tuple[Policy, ...]:
    """Build the policies on the driver, to see what they read and whether they can be built at all.

    Raises:
        PluginError: where a plug-in cannot be loaded.
        SettingsError: with all mistakes in all policies.
    """
    return build_policies(load_plugins(settings.plugin_files), settings.policies, load_manager_keys(settings))


@lru_cache(maxsize=4)
def built(recipe: Recipe) -> tuple[tuple[Policy, ...], tuple[Metric, ...]]:
    """Build policies and metrics on a worker; the same recipe is built once per process."""
    registry = load_contents(recipe.plugin_files)
    policies = [PolicySpec.model_validate_json(text) for text in recipe.policies]
    return build_policies(registry, policies, json.loads(recipe.conf)), metrics_of(registry)


def metrics_of(registry: Registry) -> tuple[Metric, ...]:
    """Return one metric of every registered class, with its defaults."""
    makers: list[Callable[[], Metric]] = list(registry.classes["metrics"].values())
    return tuple(make() for make in makers)
