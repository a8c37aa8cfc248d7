"""What is permitted but probably not meant, or keeps an evaluation from running, for `lookup config check` to say."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from lookup.model.broker import EXTENSIBLE_MANAGER
from lookup.model.quoting import listed, shown
from lookup.settings.broker import BrokerEntry, BrokerProfile
from lookup.settings.evaluation import EvaluationFile
from lookup.settings.policy import PolicySpec
from lookup.settings.resolve import load_manager_keys

__all__ = ["obstacles_of", "policy_warnings", "warnings_of"]

#: How Pulsar names brokers; a URL of the service is what one finds in clients' settings.
_BROKER_ID = re.compile(r"(?!\w+://)\S+:\d+")


def policy_warnings(policies: Iterable[PolicySpec]) -> list[str]:
    """Return what Pulsar itself would only log about the `broker.conf` that policies were read from."""
    return [f"policy {shown(policy.name)}: {warning}" for policy in policies for warning in policy.warnings]


def warnings_of(settings: EvaluationFile, reads: Mapping[str, Collection[str]] | None = None) -> list[str]:
    """Return a sentence for everything that is permitted but probably not meant.

    Args:
        reads: by policy, what its parts declare to read; only the engine knows.
    """
    return [
        *policy_warnings(settings.policies),
        *_ignored_properties(settings, reads or {}),
        *_duplicate_keys(settings),
        *_misspelt_keys(settings),
        *_conflicting_keys(settings),
        *_unknown_domain_members(settings),
        *_strange_ids(settings),
        *_prefixed_labels(settings),
        *_wide_margins(settings),
    ]


def obstacles_of(settings: EvaluationFile) -> list[str]:
    """Return a sentence for everything right in itself that keeps `lookup evaluate`, and nothing else, from running."""
    return [*_absent_inputs(settings), *_no_brokers(settings)]


def _ignored_properties(settings: EvaluationFile, reads: Mapping[str, Collection[str]]) -> Iterator[str]:
    deaf = [entry for entry in settings.brokers if entry.profile and not _is_extensible(entry.profile)]
    for entry in deaf:
        yield f"{_name(entry)}: {_manager(entry)} is no extensible load manager and ignores lookup properties"
    readers = [name for name, fields in reads.items() if any(_is_property(field) for field in fields)]
    for name in readers if deaf else ():
        yield f"policy {shown(name)} reads lookup properties, which {', '.join(map(_name, deaf))} would ignore"


def _duplicate_keys(settings: EvaluationFile) -> Iterator[str]:
    for file, profile in _profiles(settings).items():
        for key in profile.duplicates:
            yield f"{file}: {key} is given more than once; the last one counts, as in Pulsar"


def _misspelt_keys(settings: EvaluationFile) -> Iterator[str]:
    for file, profile in _profiles(settings).items():
        for key, known in profile.slips.items():
            yield f"{file}: Pulsar would ignore {key}, which it does not know; did you mean {known!r}?"


def _profiles(settings: EvaluationFile) -> Mapping[str | None, BrokerProfile]:
    """Return the profiles by file, so that of one that several brokers have each thing is said once."""
    return {entry.profile.file: entry.profile for entry in settings.brokers if entry.profile is not None}


def _conflicting_keys(settings: EvaluationFile) -> Iterator[str]:
    agreed = load_manager_keys(settings)
    profiles = [entry.profile for entry in settings.brokers if entry.profile is not None]
    for key in sorted({key for profile in profiles for key in profile.load_balancer} - set(agreed)):
        values = sorted({str(profile.load_balancer[key]) for profile in profiles if key in profile.load_balancer})
        yield f"profiles disagree on {key} ({listed(values)}), so no parameter of a policy takes it from them"


def _unknown_domain_members(settings: EvaluationFile) -> Iterator[str]:
    known = {broker for entry in settings.brokers for broker in entry.ids}
    for domain, brokers in settings.failure_domains.items() if known else ():
        for broker in sorted(set(brokers) - known):
            yield f"failure domain {shown(domain)} lists {shown(broker)}, which is none of the brokers"


def _strange_ids(settings: EvaluationFile) -> Iterator[str]:
    for entry in settings.brokers:
        if not _BROKER_ID.fullmatch(entry.ids[0]):
            yield f"{_name(entry)}: Pulsar names brokers by host and port of the web service, like broker-1:8080"


def _prefixed_labels(settings: EvaluationFile) -> Iterator[str]:
    prefixes = {entry.prefix for entry in settings.brokers} or {"lookup."}
    for place, entry in enumerate(settings.clients):
        for key in entry.properties:
            for prefix in sorted(prefix for prefix in prefixes if prefix and key.startswith(prefix)):
                yield (
                    f"clients[{place}].properties: {shown(key)} has the prefix that brokers' properties have; "
                    f"did you mean {shown(key.removeprefix(prefix))}?"
                )


def _wide_margins(settings: EvaluationFile) -> Iterator[str]:
    margins = {"margin": settings.verdict.margin}
    margins |= {f"margins.{metric}": margin for metric, margin in settings.verdict.margins.items()}
    for key, margin in margins.items():
        if margin >= 1:
            yield f"verdict.{key}: {margin:g} is {margin:.0%} of the incumbent's value; 1 % is 0.01"


def _absent_inputs(settings: EvaluationFile) -> Iterator[str]:
    for name, path in settings.inputs:
        # What a URI names is asked for by the run, which has the network.
        if path is not None and "://" not in path and not Path(path).exists():
            yield f"inputs.{name}: {path}: there is no such file or directory, and `lookup evaluate` needs it"


def _no_brokers(settings: EvaluationFile) -> Iterator[str]:
    if not settings.brokers and settings.inputs.brokers is None:
        yield "there is no broker, and `lookup evaluate` would refuse to run; give [[brokers]] or inputs.brokers"


def _is_extensible(profile: BrokerProfile) -> bool:
    # A manager of somebody's own, PIP-368's very use, is taken for extensible; of Pulsar's own only one is.
    own = profile.load_manager_class_name
    return own == EXTENSIBLE_MANAGER or not own.startswith("org.apache.pulsar.")


def _is_property(field: str) -> bool:
    return field == "properties" or field.startswith("properties.")


def _name(entry: BrokerEntry) -> str:
    return f"broker {entry.ids[0]}" if entry.count is None else f"brokers {entry.ids[0]} to {entry.ids[-1]}"


def _manager(entry: BrokerEntry) -> str:
    return entry.profile.load_manager_class_name.rpartition(".")[2] if entry.profile else ""
