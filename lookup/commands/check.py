"""`lookup config check`: everything that is wrong with an evaluation or with settings of topics, and what is odd."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from lookup.commands.catalogs import lister_of
from lookup.commands.options import Command, add_config, settings_flags
from lookup.commands.scene import registrations_in
from lookup.commands.selection import examine
from lookup.commands.show_topics import ANY_SETTINGS, is_about_topics
from lookup.commands.streams import say, stdout, warn
from lookup.engine.policy import Policy
from lookup.engine.units import act_warnings, cannot_act, rates_without
from lookup.errors import InputError, SettingsError
from lookup.model.quoting import quantity
from lookup.settings import EvaluationFile, load_topics, obstacles_of, warnings_of

__all__ = ["COMMAND"]

_NO_SPLITS = "a replay does not ask it and honours logged splits; `lookup simulate` does"


def _run(arguments: argparse.Namespace) -> int:
    return _check_topics(arguments) if is_about_topics(arguments.config) else _check_evaluation(arguments)


def _check_topics(arguments: argparse.Namespace) -> int:
    settings = load_topics(arguments.config, settings_flags(arguments))
    lister = lister_of(settings, ())
    stdout().write(f"{arguments.config}: no mistakes in the settings of topics; lister {lister.name!r}\n")
    return 0


def _check_evaluation(arguments: argparse.Namespace) -> int:
    findings, _, policies, problems = examine(arguments.config, settings_flags(arguments))
    if findings.settings is not None:
        reads = {policy.name: policy.reads for policy in policies}
        for sentence in (*warnings_of(findings.settings, reads), *obstacles_of(findings.settings)):
            warn(sentence)
        _warn_of_units(findings.settings, policies)
        for policy in policies:
            if policy.splitter is not None:
                say(f"note: policy {policy.name!r} has a splitter, {policy.splitter.name!r}: {_NO_SPLITS}")
    if problems or findings.settings is None:
        raise SettingsError(problems)
    stdout().write(f"{arguments.config}: {_summary(findings.settings)}\n")
    return 0


def _warn_of_units(settings: EvaluationFile, policies: Sequence[Policy]) -> None:
    """Warn of shedders that go by bytes or messages of which nothing in the settings says where they come from."""
    rates = rates_without(settings)
    if rates is not None:
        idle = cannot_act(policies, rates, partial(_mean_load, settings))
        for sentence in act_warnings(idle, settings.evaluation.incumbent):
            warn(sentence)


def _mean_load(settings: EvaluationFile) -> float | None:
    """Return what a broker of the log carries on average; None if that takes a network or packages that are absent."""
    paths = [path for path in (settings.inputs.lookups, settings.inputs.brokers) if path is not None]
    if any("://" in path for path in paths) or find_spec("pyarrow") is None:
        return None
    from lookup.replay.typical import mean_load  # noqa: PLC0415  Arrow only where a table is read

    try:
        return mean_load(settings)
    except InputError:  # what is wrong with the tables is said elsewhere
        return None


def _summary(settings: EvaluationFile) -> str:
    policies = quantity(len(settings.policies), "policy", "policies")
    return f"no mistakes; {policies}, {_brokers(settings)}"


def _brokers(settings: EvaluationFile) -> str:
    """Say how many brokers a run would have; a BROKERS table counts in place of what is written."""
    path = settings.inputs.brokers
    if path is None:
        return quantity(len({broker for entry in settings.brokers for broker in entry.ids}), "broker")
    # What a URI names is asked for by the run, which has the network; that a file is not there was said before.
    if "://" in path or not Path(path).exists():
        return "brokers of inputs.brokers, which was not looked at"
    if find_spec("pyarrow") is None:
        return "brokers of inputs.brokers, which was not looked at, since pyarrow is not installed"
    try:
        found = registrations_in(path)
    except InputError as error:
        warn(f"inputs.brokers: {error}; `lookup evaluate` needs it")
        return "brokers of inputs.brokers, which cannot be read"
    count = len({(cluster, event.broker) for cluster, events in found.items() for event in events})
    return f"{quantity(count, 'broker')} in inputs.brokers"


COMMAND = Command(
    name="config check",
    summary="find every mistake in an evaluation and the files it names, or in settings of topics",
    examples=(
        ("lookup config check --config evaluation.toml", "all mistakes and warnings; exit code 2 on mistakes"),
        ("lookup config check --config topics.toml", "the same of settings of topics, or of a broker.conf"),
    ),
    add_arguments=lambda parser: add_config(parser, ANY_SETTINGS),
    run=_run,
)
