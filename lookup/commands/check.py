"""Carry out `lookup config check`, which reports all mistakes in settings, and warns of oddities."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from lookup.api.selection import examine, is_about, require_shedding, select
from lookup.commands.advice import obstacles_of, warnings_of
from lookup.commands.cluster_flags import add_cluster, credentials_of, load_cluster, serving_of
from lookup.commands.options import COMMAND_LINE, Command, Parser, add_config, require_extra, settings_flags
from lookup.commands.streams import note, stdout, warn
from lookup.engine.build import build_lister, build_policies
from lookup.engine.foreign import about_foreign, check_foreign
from lookup.engine.plugins import load_plugins
from lookup.engine.policy import Policy
from lookup.engine.units import act_warnings, cannot_act, idle_weights_of, policies_named, rates_without
from lookup.errors import InputError, PluginError, SettingsError
from lookup.model.quoting import quantity
from lookup.settings import EvaluationFile, ServingFile, load_topics
from lookup.settings.broker_conf import read_today
from lookup.settings.loader import load_tuning
from lookup.settings.policy import PolicySpec
from lookup.settings.problems import problems_of
from lookup.settings.tuning import split_overrides

__all__ = ["COMMAND", "check_broker_conf"]


def _add_arguments(parser: Parser) -> None:
    add_config(parser, "FILE", "TOML file of an evaluation, search, server, cluster or topics, or a broker.conf")
    add_cluster(parser)


def _run(arguments: argparse.Namespace) -> int:
    # As for the profile of a broker: TOML if the name ends so.
    if Path(arguments.config).suffix != ".toml":
        return _check_conf(arguments)
    if is_about(arguments.config, "serving"):
        return _check_serving(arguments)
    if is_about(arguments.config, "tune"):
        return _check_tuning(arguments)
    if is_about(arguments.config, "topics"):
        return _check_topics(arguments)
    if is_about(arguments.config, "cluster"):
        load_cluster(arguments.config, settings_flags(arguments))
        stdout().write(f"{arguments.config}: no mistakes in the connection to a cluster\n")
        return 0
    examined = examine(arguments.config, settings_flags(arguments), source=COMMAND_LINE)
    settings = examined.findings.settings
    if settings is not None:
        _warn(settings, examined.policies)
    if examined.problems or settings is None:
        raise SettingsError(examined.problems)
    policies = quantity(len(settings.policies), "policy", "policies")
    stdout().write(f"{arguments.config}: no mistakes; {policies}, {_count_brokers(settings)}\n")
    return 0


def _check_topics(arguments: argparse.Namespace) -> int:
    from lookup.commands.topics import lister_of

    lister = lister_of(load_topics(arguments.config, settings_flags(arguments)), ())
    stdout().write(f"{arguments.config}: no mistakes in the settings of topics; lister {lister.name!r}\n")
    return 0


def _check_tuning(arguments: argparse.Namespace) -> int:
    """Check a search as far as `lookup tune` does before it reads the log."""
    require_extra("tune", "pyspark", "pyarrow", "pandas", "scipy")
    from lookup.tuning.sought import check_figures, spaces_of

    own, rest = split_overrides(settings_flags(arguments))
    file = load_tuning(arguments.config, own)
    selection = select(file.tune.evaluation, rest, warn, source=COMMAND_LINE)
    require_shedding(file, selection.settings)
    spaces = spaces_of(file, selection.settings, selection.registry)
    check_figures(file.tune, selection.settings, selection.registry)
    varied = quantity(sum(len(space.axes) for space in spaces), "setting")
    stdout().write(f"{arguments.config}: no mistakes in the search; {quantity(len(spaces), 'space')}, {varied}\n")
    return 0


def _check_serving(arguments: argparse.Namespace) -> int:
    """Check settings of the decision server as far as `lookup serve` does before it listens."""
    require_extra("serve", "pyarrow", extra="serve")
    settings = serving_of(arguments, {})
    for sentence in settings.serving.warnings:
        warn(sentence)
    problems: list[str] = []
    for check in (_check_policies, _check_lister, lambda file: file.serving.token(), _check_record, _check_credentials):
        try:
            check(settings)
        except (SettingsError, PluginError, InputError) as error:
            problems += getattr(error, "problems", (str(error),))
    if problems:
        # A plug-in that cannot be loaded is found by two of them.
        raise SettingsError([*dict.fromkeys(problems)])
    policies = quantity(len(settings.policies), "policy", "policies")
    about = f"the settings of the decision server; {policies}; the cluster was not asked"
    stdout().write(f"{arguments.config}: no mistakes in {about}\n")
    return 0


def _check_policies(settings: ServingFile) -> None:
    from lookup.serve.policies import served_policies

    for sentence in served_policies(settings).warnings:
        warn(sentence)


def _check_lister(settings: ServingFile) -> None:
    if settings.topics is not None:
        build_lister(load_plugins(settings.plugin_files), settings.topics.lister, "topics.lister")


def _check_record(settings: ServingFile) -> None:
    record = Path(settings.serving.record)
    if record.exists() and not (record.is_dir() and os.access(record, os.W_OK)):
        raise SettingsError(f"serving.record: {record} is not a folder that can be written to")


def _check_credentials(settings: ServingFile) -> None:
    if settings.collect is not None:
        require_extra("serve", "kazoo", "pulsar", extra="collect")
        credentials_of(settings.collect, "collect")


def _check_conf(arguments: argparse.Namespace) -> int:
    if arguments.set:
        arguments.parser.error("--set: a broker.conf is checked as it stands")
    specs = check_broker_conf(arguments.config)
    notes = ", ".join(filter(None, (spec.release_note for spec in specs)))
    stdout().write(f"{arguments.config}: no mistakes in its keys of the load manager, {notes}\n")
    stdout().writelines(f"{key}: {fate}\n" for key, fate in sorted(read_today(arguments.config).fates.items()))
    return 0


def check_broker_conf(path: str) -> Sequence[PolicySpec]:
    """Read a `broker.conf` as a policy and print its warnings, or raise SettingsError with all its mistakes."""
    written = {"name": "today", "from_broker_conf": path}
    problems: list[str] = []
    specs: Sequence[PolicySpec]
    try:
        specs = [PolicySpec.model_validate(written)]
    except ValidationError as error:
        problems += [sentence for _, sentence in problems_of(error, PolicySpec)]
        specs = PolicySpec.right_in_part(written)
    for spec in specs:
        for warning in spec.warnings:
            warn(warning)
    try:
        build_policies(load_plugins(()), specs)
    except SettingsError as error:
        problems += error.problems
    if problems:
        raise SettingsError(problems)
    return specs


def _warn(settings: EvaluationFile, policies: Sequence[Policy]) -> None:
    # Warnings come before mistakes, which are raised, so that a user sees both at once.
    reads = {policy.name: policy.reads for policy in policies}
    for sentence in (*warnings_of(settings, reads), *obstacles_of(settings), *idle_weights_of(settings)):
        warn(sentence)
    rates = rates_without(settings)
    if rates is not None:
        for sentence in act_warnings(cannot_act(policies, rates), settings.evaluation.incumbent):
            warn(sentence)
    for sentence in about_foreign(policies, check_foreign(policies)):
        warn(sentence)
    splitting: dict[str, list[str]] = {}
    for policy in policies:
        if policy.splitter is not None:
            splitting.setdefault(policy.splitter.name, []).append(policy.name)
    for splitter, names in splitting.items():
        reason = "a replay does not ask it and honours logged splits; `lookup simulate` does"
        note(f"note: {policies_named(names)} has a splitter, {splitter!r}: {reason}")


def _count_brokers(settings: EvaluationFile) -> str:
    if settings.inputs.brokers is not None:
        return "brokers of inputs.brokers"
    return quantity(len({broker for entry in settings.brokers for broker in entry.ids}), "broker")


COMMAND = Command(
    name="config check",
    examples=(
        ("lookup config check evaluation.toml", "all mistakes and warnings. Exit code 2 for mistakes"),
        ("lookup config check broker.conf", "the keys of the load manager, with their effect here"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
