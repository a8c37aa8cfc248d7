"""From an evaluation file to settings, registered parts and policies; all mistakes are reported together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lookup.commands.streams import warn
from lookup.engine.build import build_policies
from lookup.engine.plugins import Registry, load_plugins
from lookup.engine.policy import Policy
from lookup.engine.sharing import shared_problems
from lookup.errors import PluginError, SettingsError
from lookup.score.verdict import check_rules
from lookup.settings import (
    EvaluationFile,
    Findings,
    VerdictSection,
    examine_evaluation,
    load_manager_keys,
    load_manager_sources,
    policy_warnings,
)

__all__ = ["Selection", "examine", "select"]


@dataclass(frozen=True)
class Selection:
    """An evaluation that can be run."""

    settings: EvaluationFile
    registry: Registry
    #: in the order of the settings
    policies: tuple[Policy, ...]


def select(config: str, flags: Mapping[str, object]) -> Selection:
    """Read an evaluation, load its plug-ins and build its policies.

    Raises:
        SettingsError: all mistakes of settings, plug-ins and policies together.
    """
    findings, registry, policies, problems = examine(config, flags)
    if problems or findings.settings is None or registry is None:
        raise SettingsError(problems)
    for sentence in policy_warnings(findings.settings.policies):
        warn(sentence)
    if findings.settings.verdict.resamples is not None:
        warn("verdict.resamples is no longer used: intervals are calculated and nothing is drawn; leave it out")
    return Selection(findings.settings, registry, policies)


def examine(
    config: str, flags: Mapping[str, object]
) -> tuple[Findings, Registry | None, tuple[Policy, ...], list[str]]:
    """Read an evaluation and check as much of it as can be understood; the last of the answers are all mistakes."""
    findings = examine_evaluation(config, flags)
    problems = list(findings.problems)
    if not findings.tables:  # the file could not be read at all
        return findings, None, (), problems
    try:
        registry = load_plugins(findings.tables.get("plugin_files", ()))
    except PluginError as error:
        # A file that is not there was already complained of.
        return findings, None, (), [*problems, str(error)] if "plugin_files" in findings.tables else problems
    policies, wrong = _built(findings, registry)
    problems += wrong
    if getattr(findings.sound.get("evaluation"), "ownership", None) == "shared":
        problems += shared_problems(policies)
    try:
        check_rules(_rules(findings.sound), [found() for found in registry.classes["metrics"].values()])
    except SettingsError as error:
        problems += error.problems
    return findings, registry, policies, problems


def _built(findings: Findings, registry: Registry) -> tuple[tuple[Policy, ...], list[str]]:
    """Build what policies can be built, each by itself, so that one that is wrong hides nothing of the others."""
    settings = findings.settings
    conf = {} if settings is None else load_manager_keys(settings)
    sources = {} if settings is None else load_manager_sources(settings)
    policies: list[Policy] = []
    problems: list[str] = []
    for spec in findings.sound.get("policies", ()):
        try:
            policies += build_policies(registry, [spec], conf, sources)
        except SettingsError as error:
            problems += error.problems
    return tuple(policies), problems


def _rules(sound: Mapping[str, Any]) -> VerdictSection:
    rules = sound.get("verdict")
    # Of a table that is wrong only the right keys are known.
    return rules if isinstance(rules, VerdictSection) else VerdictSection(**vars(rules or VerdictSection()))
