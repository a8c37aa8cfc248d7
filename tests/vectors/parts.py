"""The registered parts by name, as vectors ask them: with parameters, or filled by keys of a `broker.conf`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from lookup.engine.build import PartBuilder
from lookup.engine.plugins import Registry, load_plugins
from lookup.errors import SettingsError
from lookup.settings.policy import PartSpec

__all__ = ["configured_part", "named_part", "registry"]


@lru_cache
def registry() -> Registry:
    """Return everything that is registered; plug-ins are looked for once."""
    return load_plugins()


def named_part(kind: str, name: str, **parameters: Any) -> Any:
    """Return a part with these parameters."""
    return registry().find(kind, name)(**parameters)


def configured_part(kind: str, name: str, conf: Mapping[str, Any]) -> Any:
    """Return a part as a `broker.conf` would fill it.

    Raises:
        SettingsError: where a value is none of its parameter.
    """
    builder = PartBuilder(registry(), conf)
    built = builder.part(kind, PartSpec(use=name), name)
    if builder.problems:
        raise SettingsError(builder.problems)
    return built
