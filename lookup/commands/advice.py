"""Advise on settings that are permitted but probably not intended, or that prevent an evaluation."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from lookup.model.broker import EXTENSIBLE_MANAGER
from lookup.model.quoting import join_names, shown
from lookup.settings import BrokerEntry, EvaluationFile, load_manager_keys, policy_warnings

__all__ = ["obstacles_of", "warnings_of"]

#: Form of Pulsar's names of brokers. Clients' settings have URLs of the service instead.
_BROKER_ID = re.compile(r"(?!\w+://)\S+:\d+")


def warnings_of(settings: EvaluationFile, reads: Mapping[str, Collection[str]] | None = None) -> list[str]:
    """Write a sentence for every setting that is permitted but probably not intended.

    Args:
        reads: by policy, the declared reads of its parts, which only the engine knows.
    """
    warnings = [
        *policy_warnings(settings.policies),
        *_warn_about_profiles(settings, reads or {}),
        *_warn_about_names(settings),
    ]
    margins = {"margin": settings.verdict.margin}
    margins |= {f"margins.{metric}": margin for metric, margin in settings.verdict.margins.items()}
    # A margin is a ratio, and easily taken for a percentage.
    wide = {key: margin for key, margin in margins.items() if margin >= 1}
    warnings += [
        f"verdict.{key}: {margin:g} is {margin:.0%} of the incumbent's value; 1 % is 0.01"
        for key, margin in wide.items()
    ]
    return warnings


def obstacles_of(settings: EvaluationFile) -> list[str]:
    """Write a sentence for every valid setting that prevents `lookup evaluate` from running, but no other command."""
    obstacles = [
        f"inputs.{name}: {path}: there is no such file or directory, and `lookup evaluate` needs it"
        for name, path in settings.inputs
        # A URI needs the network to be looked for, which only the run has.
        if path is not None and "://" not in path and not Path(path).exists()
    ]
    if not settings.brokers and settings.inputs.brokers is None:
        obstacles.append(
            "there is no broker, and `lookup evaluate` would refuse to run; give [[brokers]] or inputs.brokers"
        )
    return obstacles


def _warn_about_profiles(settings: EvaluationFile, reads: Mapping[str, Collection[str]]) -> Iterator[str]:
    profiled = [(entry, entry.profile) for entry in settings.brokers if entry.profile is not None]
    ignoring = []
    for entry, profile in profiled:
        manager = profile.load_manager_class_name
        # A user's own manager, PIP-368's very use, counts as extensible. Of Pulsar's own only one is.
        if manager != EXTENSIBLE_MANAGER and manager.startswith("org.apache.pulsar."):
            ignoring.append(_name_brokers(entry))
            own = manager.rpartition(".")[2]
            yield f"{_name_brokers(entry)}: {own} is not an extensible load manager and ignores lookup properties"
    for name, fields in reads.items() if ignoring else ():
        if any(field == "properties" or field.startswith("properties.") for field in fields):
            yield f"policy {shown(name)} reads lookup properties, which {', '.join(ignoring)} would ignore"
    # By file, so that each sentence about a profile of several brokers is printed once.
    by_file = {profile.file: profile for _, profile in profiled}
    for file, profile in by_file.items():
        yield from profile.warnings
        for key, guess in profile.slips.items():
            yield f"{file}: {key} has no effect: Pulsar does not know it; did you mean {guess!r}?"
    keys = {key for _, profile in profiled for key in profile.load_balancer}
    for key in sorted(keys - set(load_manager_keys(settings))):
        values = sorted({str(p.load_balancer[key]) for _, p in profiled if key in p.load_balancer})
        yield f"profiles disagree on {key} ({join_names(values)}), so no parameter of a policy takes it from them"


def _warn_about_names(settings: EvaluationFile) -> Iterator[str]:
    ids = {broker for entry in settings.brokers for broker in entry.ids}
    for domain, brokers in settings.failure_domains.items() if ids else ():
        for broker in sorted(set(brokers) - ids):
            yield f"failure domain {shown(domain)} lists {shown(broker)}, which is none of the brokers"
    for entry in settings.brokers:
        if not _BROKER_ID.fullmatch(entry.ids[0]):
            yield f"{_name_brokers(entry)}: Pulsar names brokers by host and port of the web service, as broker-1:8080"
    prefixes = {entry.prefix for entry in settings.brokers} or {"lookup."}
    for index, client in enumerate(settings.clients):
        for key in client.properties:
            for prefix in sorted(prefix for prefix in prefixes if prefix and key.startswith(prefix)):
                yield (
                    f"clients[{index}].properties: {shown(key)} has the prefix that brokers' properties have; "
                    f"did you mean {shown(key.removeprefix(prefix))}?"
                )


def _name_brokers(entry: BrokerEntry) -> str:
    return f"broker {entry.ids[0]}" if entry.count is None else f"brokers {entry.ids[0]} to {entry.ids[-1]}"
