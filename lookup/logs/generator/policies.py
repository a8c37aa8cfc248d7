"""Read the policy that places and moves the bundles of a synthetic log, and the software of its brokers."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from lookup.engine.build import build_policies
from lookup.engine.plugins import load_plugins
from lookup.engine.policy import Policy
from lookup.errors import Argument, Sentence, SettingsError
from lookup.logs.generator.world import Software
from lookup.model.broker import EXTENSIBLE_MANAGER
from lookup.model.quoting import shown, suggestion
from lookup.settings.files import load_policies
from lookup.settings.shipped import shipped

__all__ = ["read_policy"]

#: Version of brokers by release.
_VERSIONS = {"4.0": "4.0.8", "4.2": "4.2.4", "5.0": "5.0.1"}


@lru_cache
def read_policy(name: str) -> tuple[Policy, Software]:
    """Read a policy that ships, by its name, or a TOML file with one policy.

    Raises:
        SettingsError: if there is none, or it is wrong.
    """
    known = {each.name: each.path for each in shipped().values() if each.kind == "policy"}
    path = known.get(name, Path(name))
    if path.suffix != ".toml" or not path.is_file():
        hint = suggestion(name, known)
        raise _wrong(f" is {shown(name)}, neither a policy that ships nor a TOML file; {hint}")
    specs = load_policies(path)
    if len(specs) != 1:
        raise _wrong(f" is {shown(name)}, which has {len(specs)} policies, not one")
    (spec,), (policy,) = specs, build_policies(load_plugins(), specs)
    # A policy that names no manager may run in either.
    manager = spec.value_at("loadManagerClassName") or EXTENSIBLE_MANAGER
    return policy, Software(str(manager), _VERSIONS[spec.release])


def _wrong(sentence: str) -> SettingsError:
    return SettingsError([Sentence(Argument("policy"), sentence)])
