"""`manifest.json`: what made an output, so that it can be made again: versions, settings, seeds, inputs, plug-ins.

What differs between two equal runs (wall clock, machine) stands here and nowhere else.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from lookup.engine.plugins import PluginSource, Registry

__all__ = ["SCHEMA", "RunFacts", "manifest", "manifest_json"]

#: Version of the structure.
SCHEMA = 1
_PACKAGES = ("pulsar-lookup", "pyspark", "pyarrow", "pandas", "numpy", "pydantic")


@dataclass(frozen=True)
class RunFacts:
    """What a command knows about its run."""

    #: the words of the command line, `lookup` not among them
    command: Sequence[str]
    exit_code: int
    #: resolved settings, JSON-able
    settings: Mapping[str, Any]
    #: what set each value that is no default, by key path
    sources: Mapping[str, str] = field(default_factory=dict)
    seeds: Sequence[int] = ()
    #: fingerprint of each input, by its name in the settings
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: figures that differ from run to run, seconds and rates
    wall_clock: Mapping[str, float | str] = field(default_factory=dict)
    #: versions that only the run could find out, `java`
    versions: Mapping[str, str] = field(default_factory=dict)


def manifest(facts: RunFacts, registry: Registry | None = None) -> dict[str, Any]:
    """Put together the manifest of a run.

    Args:
        registry: of the plug-ins that were loaded; None where none were needed.
    """
    return {
        "schema": SCHEMA,
        "command": ["lookup", *facts.command],
        "exit_code": facts.exit_code,
        "versions": {**_versions(), **facts.versions},
        "settings": dict(facts.settings),
        "sources": dict(facts.sources),
        "seeds": list(facts.seeds),
        "inputs": {name: dict(one) for name, one in facts.inputs.items()},
        "plugins": [_plugin(source) for source in registry.sources] if registry else [],
        "wall_clock": dict(facts.wall_clock),
    }


def manifest_json(facts: RunFacts, registry: Registry | None = None) -> bytes:
    """Write the manifest as JSON text in UTF-8."""
    return (json.dumps(manifest(facts, registry), indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _plugin(source: PluginSource) -> dict[str, str | None]:
    """Describe a plug-in; of a file also its digest, since it has no version."""
    file = Path(source.origin)
    digest = hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest() if file.is_file() else None
    return {"name": source.name, "origin": source.origin, "blake2b": digest}
