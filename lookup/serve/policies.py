"""Load the policies of the decision server, refuse those it cannot serve, and describe them in its record."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lookup.engine.build import build_policies, policy_table
from lookup.engine.foreign import foreign_of
from lookup.engine.plugins import Registry, load_plugins
from lookup.engine.policy import Policy
from lookup.errors import InputError, PluginError, SettingsError
from lookup.logs.sources import locate
from lookup.model import NamespacePolicies, Topology
from lookup.model.bundles import IsolationPolicy
from lookup.model.documents import parsed_object, text
from lookup.model.topology import Edge
from lookup.serve.views import Surroundings, digest_of
from lookup.settings import PolicySpec, ServingFile, namespace_policies, policy_warnings, topology

__all__ = ["ServedPolicies", "built_again", "document_of", "plugin_versions", "served_policies"]

_OWNERS = "view.ownership"
#: Reads of policies that a server does not provide. Owners are missing only without a collector.
_ABSENT: Mapping[str, str] = {
    _OWNERS: "the owners of bundles, which a collector provides: give collect.service_url",
    "view.memory": "its memory, which no server keeps over a restart",
}


@dataclass(frozen=True, eq=False)
class ServedPolicies:
    """The policies of a server, and the document that describes them in its record."""

    #: None to record lookups without decisions
    active: Policy | None
    seed: int
    surroundings: Surroundings
    #: policies with every parameter, plug-ins with their versions, seed and surroundings
    document: Mapping[str, Any]
    #: digest of the document
    reference: str
    #: sentences about the server's possibly unexpected behaviour
    warnings: tuple[str, ...] = ()


def served_policies(settings: ServingFile) -> ServedPolicies:
    """Load the plug-ins and build the policies.

    Raises:
        SettingsError: with all mistakes together, including policies that read data which this server does not provide.
    """
    try:
        registry = load_plugins(settings.plugin_files)
    except PluginError as error:
        raise SettingsError(str(error)) from None
    section = settings.serving
    has_owners = settings.collect is not None and settings.collect.service_url is not None
    policies: list[Policy] = []
    problems: list[str] = []
    for spec in settings.policies:
        try:
            policies += build_policies(registry, [spec])
        except SettingsError as error:
            problems += error.problems
    warnings = policy_warnings(settings.policies)
    for policy in policies:
        problems += _find_unserved(policy, section.masked, provided=(_OWNERS,) if has_owners else ())
        idle = [name for name in ("shedder", "splitter") if getattr(policy, name) is not None]
        if idle:
            problem = f"policy {policy.name!r} has a {' and a '.join(idle)}"
            warnings.append(f"{problem}: the server chooses first owners only, the brokers' own manager does the rest")
    if problems:
        raise SettingsError(problems)
    surroundings = Surroundings(section.cluster, section.prefix, topology(settings), namespace_policies(settings))
    document = {
        "policies": [policy_table(policy) for policy in policies],
        "plugins": plugin_versions(registry),
        "version": version("pulsar-lookup"),
        "seed": section.seed,
        "cluster": surroundings.cluster,
        "prefix": surroundings.prefix,
        "topology": asdict(surroundings.topology),
        "namespaces": asdict(surroundings.namespaces),
    }
    active = next((policy for policy in policies if policy.name == section.active), None)
    return ServedPolicies(active, section.seed, surroundings, document, digest_of(document), tuple(warnings))


def _find_unserved(policy: Policy, masked: Sequence[str], provided: Sequence[str]) -> list[str]:
    if foreign_of(policy):
        return [
            f"policy {policy.name!r} runs a class in Java: brokers run it themselves, and a server cannot verify it"
        ]
    problems = []
    for part, reads in zip(policy.parts, policy.part_reads, strict=True):
        for source, meaning in _ABSENT.items():
            if source in reads and source not in provided:
                problems.append(f"policy {policy.name!r}: part {part.name!r} reads {source}: {meaning}")
        for field in masked:
            # A policy that reads all properties reads the masked one as well, and the other way round.
            is_read = field in reads or (field.startswith("properties.") and "properties" in reads)
            if is_read or (field == "properties" and any(name.startswith("properties.") for name in reads)):
                problems.append(
                    f"policy {policy.name!r}: part {part.name!r} reads {field}, which serving.masked keeps out of the "
                    "record: its decisions could not be verified"
                )
    if policy.is_stateful and not problems:
        problems.append(f"policy {policy.name!r} keeps memory between decisions: {_ABSENT['view.memory']}")
    return problems


def plugin_versions(registry: Registry) -> dict[str, str]:
    """Find the version of every plug-in by its name, that of an installed one's distribution, else a digest."""
    versions = {}
    for source in registry.sources:
        file = Path(source.origin)
        is_file = file.is_file()
        versions[source.name] = (
            hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest() if is_file else source.origin
        )
    return versions


def document_of(record: str, reference: str) -> dict[str, Any]:
    """Read a document of a record. Raise InputError if it is missing or not a JSON object.

    Args:
        record: path or URI of its folder.
    """
    name = f"settings/{reference}.json"
    system, inner = locate(f"{record}/{name}")
    try:
        with system.open_input_stream(inner) as stream:
            return parsed_object(stream.read().decode(), name)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{name} cannot be read: {error}") from None


def built_again(document: Mapping[str, Any], registry: Registry) -> tuple[dict[str, Policy], Surroundings]:
    """Build the policies, by name, that a document of a record describes, and the surroundings of its views.

    Raises:
        SettingsError: if a policy cannot be built with the loaded plug-ins.
        InputError: if the document is not a server's.
    """
    try:
        specs = [PolicySpec.model_validate(table) for table in document["policies"]]
        places = document["topology"]
        # Records of servers that did not know policies of namespaces have none.
        namespaces = document.get("namespaces", asdict(NamespacePolicies()))
        edges = tuple(Edge(**edge) for edge in places["edges"])
        isolation = {
            name: tuple(IsolationPolicy(tuple(e["primary"]), tuple(e["secondary"]), e["min_limit"]) for e in entries)
            for name, entries in namespaces["isolation"].items()
        }
        boundaries = {name: tuple(ends) for name, ends in namespaces["boundaries"].items()}
        surroundings = Surroundings(
            document["cluster"],
            text(document["prefix"], "prefix"),
            Topology(**{**places, "edges": edges}),
            NamespacePolicies(**{**namespaces, "isolation": isolation, "boundaries": boundaries}),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"a document of settings is incomplete: {error}") from None
    return {policy.name: policy for policy in build_policies(registry, specs)}, surroundings
