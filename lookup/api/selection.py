"""Read an evaluation with settings, plug-ins, policies and brokers. All mistakes are reported together."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from lookup.engine.build import build_policies
from lookup.engine.plugins import Registry, load_plugins
from lookup.engine.policy import Policy
from lookup.errors import InputError, PluginError, SettingsError
from lookup.model.documents import TableName
from lookup.replay.timeline import Registration
from lookup.score.rules import check_rules
from lookup.settings import (
    EvaluationFile,
    SettingsFindings,
    VerdictSection,
    examine_settings,
    load_manager_keys,
    load_manager_sources,
    policy_warnings,
)  # fmt: skip
from lookup.settings.files import read_toml
from lookup.settings.pulsar_keys import KEYS
from lookup.settings.releases import release_of_all
from lookup.settings.tuning import TuneFile

__all__ = [
    "Examined", "Selection", "examine", "fit_to_brokers", "given_inputs", "is_about", "registrations_in",
    "require_shedding", "select", "unreadable_inputs",
]  # fmt: skip

#: Keys of a `broker.conf` without which no shedder acts.
_SWITCHES = ("loadBalancerEnabled", "loadBalancerSheddingEnabled")
_TABLES: tuple[TableName, ...] = ("lookups", "brokers", "loads", "bundles", "ownership")


@dataclass(frozen=True)
class Selection:
    """An evaluation that can be run."""

    settings: EvaluationFile
    registry: Registry
    #: in the order of the settings
    policies: tuple[Policy, ...]


@dataclass(frozen=True)
class Examined:
    """As much of an evaluation as can be understood, and everything that is wrong with it."""

    findings: SettingsFindings[EvaluationFile]
    #: None if the plug-ins cannot be loaded
    registry: Registry | None
    #: policies that can be built, in the order of the settings
    policies: tuple[Policy, ...]
    problems: Sequence[str]


def is_about(path: str, table: str) -> bool:
    """Check whether a file of settings has a table, such as `serving`, that an evaluation does not have."""
    try:
        return table in read_toml(Path(path))
    except SettingsError:
        return False  # it is then read as an evaluation, which reports its mistakes


def select(
    config: str | os.PathLike[str] | Mapping[str, object],
    flags: Mapping[str, object],
    warn: Callable[[str], None] = lambda sentence: None,
    *,
    source: str = "overrides",
) -> Selection:
    """Read an evaluation, load its plug-ins and build its policies.

    Args:
        config: path of the file, or its content.
        flags: settings by key path, which take precedence over those of the file.
        warn: called with a sentence about a permitted setting that was probably not intended.
        source: name of the flags in messages.

    Raises:
        SettingsError: with all mistakes of settings, plug-ins and policies together.
    """
    examined = examine(config, flags, source=source)
    settings = examined.findings.settings
    if examined.problems or settings is None or examined.registry is None:
        raise SettingsError(examined.problems)
    for sentence in policy_warnings(settings.policies):
        warn(sentence)
    return Selection(settings, examined.registry, examined.policies)


def examine(
    config: str | os.PathLike[str] | Mapping[str, object], flags: Mapping[str, object], *, source: str
) -> Examined:
    """Read an evaluation and check as much of it as can be understood. Arguments are those of `select`."""
    findings = examine_settings(EvaluationFile, config, flags, source=source)
    problems = list(findings.problems)
    if not findings.sound:  # the file could not be read at all
        return Examined(findings, None, (), problems)
    try:
        registry = load_plugins(findings.sound.get("plugin_files", ()))
    except PluginError as error:
        # A file that does not exist is among the problems of the settings already, which then lack the key.
        unloaded = [str(error)] if "plugin_files" in findings.sound else []
        return Examined(findings, None, (), [*problems, *unloaded])
    if findings.settings is not None:
        try:
            settings = fit_to_brokers(findings.settings)
        except SettingsError as error:
            return Examined(findings, registry, (), [*problems, *error.problems])
        findings = replace(findings, settings=settings, sound={**findings.sound, "policies": settings.policies})
    conf = {} if findings.settings is None else load_manager_keys(findings.settings)
    sources = {} if findings.settings is None else load_manager_sources(findings.settings)
    policies: list[Policy] = []
    for spec in findings.sound.get("policies", ()):
        try:
            # One by one, so that a policy that is wrong hides no mistake of another.
            policies += build_policies(registry, [spec], conf, sources)
        except SettingsError as error:
            problems += error.problems
    rules = findings.sound.get("verdict")
    if not isinstance(rules, VerdictSection):
        # Of a table that is wrong only the right keys are known.
        rules = VerdictSection(**vars(rules or VerdictSection()))
    try:
        check_rules(rules, [metric() for metric in registry.classes["metrics"].values()])
    except SettingsError as error:
        problems += error.problems
    return Examined(findings, registry, tuple(policies), problems)


def fit_to_brokers(settings: EvaluationFile) -> EvaluationFile:
    """Fit policies that are read from a `broker.conf` to the brokers' release, and begin with that file's bundles."""
    if not any(policy.conf_file for policy in settings.policies):
        return settings
    versions = [None if entry.profile is None else entry.profile.broker_version for entry in settings.brokers]
    path = settings.inputs.brokers
    is_assumed = any(policy.release_note for policy in settings.policies)
    # A check uses no network, and needs no Arrow.
    if path is not None and is_assumed and "://" not in path and find_spec("pyarrow") is not None:
        with suppress(InputError):  # the run reports the mistake
            rows = [row for of_cluster in registrations_in(path).values() for row in of_cluster]
            versions += [row.lookup_data.broker_version for row in rows if row.lookup_data is not None]
    release, why = release_of_all(versions)
    policies = [policy.under(release, why) for policy in settings.policies]
    if settings.inputs.bundles is None:  # it has the loads of the log's own bundles
        policies = [policy.with_bundles_of_file(settings.evaluation.default_bundles) for policy in policies]
    return settings.model_copy(update={"policies": tuple(policies)})


def require_shedding(file: TuneFile, settings: EvaluationFile) -> None:
    """Refuse a search for settings of a shedder that the `broker.conf` of its policy turns off."""
    policies = {policy.name: policy for policy in settings.policies}
    for space in file.spaces:
        policy, keys = policies.get(space.policy or settings.evaluation.incumbent), {*space.set, *space.vary}
        off = next((key for key in _SWITCHES if policy is not None and policy.value_at(key) is False), None)
        is_of_shedder = any(word.endswith("Shedder") for key in keys for word in KEYS.get(key, ()))
        if policy is not None and off is not None and off not in keys and is_of_shedder:
            raise SettingsError(
                f"shedding is off in {policy.conf_file} ({off} is false), so that there are no settings of a shedder "
                "to search for; set it to true, or search with spaces of other keys"
            )


def registrations_in(path: str) -> Mapping[str, Sequence[Registration]]:
    """Read a BROKERS table into registrations in order of time, by cluster. This needs Arrow."""
    from lookup.replay.tables import registrations

    table = registrations(path)
    return {cluster: table.of(cluster) for cluster in table.rows}


def given_inputs(settings: EvaluationFile) -> dict[TableName, str]:
    """Find the path of every given table."""
    paths = {name: getattr(settings.inputs, name) for name in _TABLES}
    return {name: path for name, path in paths.items() if path is not None}


def unreadable_inputs(inputs: Mapping[TableName, str]) -> list[str]:
    """Write a sentence for each input that is missing, or is not a table that a run could read. This needs Arrow."""
    from lookup.logs.sources import list_log

    problems = []
    for name, path in inputs.items():
        try:
            list_log(path, name)
        except InputError as error:
            problems.append(f"inputs.{name}: {error}")
    return problems
