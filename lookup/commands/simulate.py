"""Carry out `lookup simulate`, which runs scenarios in closed loop, prints trends and checks assertions."""

from __future__ import annotations

import argparse

from lookup.api.simulating import policies_of, read_scenarios, run_scenario
from lookup.commands.options import Command, Parser, add_plugin_files, settings_path
from lookup.commands.streams import say, stdout, warn
from lookup.engine.plugins import load_plugins

__all__ = ["COMMAND"]


def _add_arguments(parser: Parser) -> None:
    parser.need("scenarios", nargs="*", type=settings_path, metavar="SCENARIO", help="scenario files, or shipped:NAME")
    add_plugin_files(parser)


def _run(arguments: argparse.Namespace) -> int:
    registry, files = load_plugins(arguments.plugin_file), read_scenarios(arguments.scenarios)
    policies = [policies_of(file, registry, warn) for file in files]
    code = 0
    for file, built in zip(files, policies, strict=True):
        run = run_scenario(file, built)
        stdout().write(f"scenario {file.path}\n{run.text}\n")
        for line in run.failures:
            say(line)
            code = 1
    return code


COMMAND = Command(
    name="simulate",
    examples=(("lookup simulate configs/scenarios/*.scenario", "exit code 1 if an assertion fails"),),
    add_arguments=_add_arguments,
    run=_run,
)
