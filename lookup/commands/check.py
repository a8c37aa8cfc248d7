"""`lookup config check`: everything that is wrong with an evaluation, and what is probably not meant."""

from __future__ import annotations

import argparse

from lookup.commands.options import Command, add_config, settings_flags
from lookup.commands.selection import examine
from lookup.commands.streams import say, stdout, warn
from lookup.errors import SettingsError
from lookup.replay.quantities import quantity
from lookup.settings import EvaluationFile, obstacles_of, warnings_of

__all__ = ["COMMAND"]

_NO_SPLITS = "a replay does not ask it and honours logged splits; `lookup simulate` does"


def _run(arguments: argparse.Namespace) -> int:
    findings, _, policies, problems = examine(arguments.config, settings_flags(arguments))
    if findings.settings is not None:
        reads = {policy.name: policy.reads for policy in policies}
        for sentence in (*warnings_of(findings.settings, reads), *obstacles_of(findings.settings)):
            warn(sentence)
        for policy in policies:
            if policy.splitter is not None:
                say(f"note: policy {policy.name!r} has a splitter, {policy.splitter.name!r}: {_NO_SPLITS}")
    if problems or findings.settings is None:
        raise SettingsError(problems)
    stdout().write(f"{arguments.config}: {_summary(findings.settings)}\n")
    return 0


def _summary(settings: EvaluationFile) -> str:
    brokers = len({broker for entry in settings.brokers for broker in entry.ids})
    policies = quantity(len(settings.policies), "policy", "policies")
    return f"no mistakes; {policies}, {quantity(brokers, 'broker')}"


COMMAND = Command(
    name="config check",
    summary="find every mistake in an evaluation and the files it names",
    examples=(("lookup config check --config evaluation.toml", "all mistakes and warnings; exit code 2 on mistakes"),),
    add_arguments=add_config,
    run=_run,
)
